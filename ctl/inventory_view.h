#pragma once

#include <optional>
#include <string>

#include "common/app/inventory.h"
#include "common/core/settings.h"
#include "ctl/command.h"

namespace podqos::ctl {

/// Narrows the process, loads the settings and takes the inventory, in the order that is safe.
[[nodiscard]] Result<std::optional<app::Inventory>> observe(const Globals& globals);

/// The inventory as one JSON object, for `status -o json` and `tree -o json` alike; of a node
/// without state the same members, empty.
[[nodiscard]] std::string format_inventory(const std::optional<app::Inventory>& inventory);

/// The pod's limits as podqos knows them; of an adopted pod, about whose limits its kubelet
/// decides, those that its cgroup has.
[[nodiscard]] core::ResourceList limits_shown(const app::PodEntry& pod);

/// "default/web", or the uid of a pod that has no name.
[[nodiscard]] std::string pod_title(const core::Pod& pod);
/// "engine", "podqos.io/pod", …: where a pod's class comes from.
[[nodiscard]] std::string_view format_source(core::ClassSource source);
/// "pending", "live" or "dead".
[[nodiscard]] std::string_view format_state(const app::ContainerEntry& container);

}  // namespace podqos::ctl

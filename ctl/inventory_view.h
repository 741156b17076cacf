#pragma once

#include <string>

#include "common/app/inventory.h"
#include "common/core/settings.h"
#include "ctl/command.h"

namespace podqos::ctl {

/// Restricts the process with narrow(), loads the settings and reads the inventory, in this order:
/// nothing untrusted is parsed before the restriction.
[[nodiscard]] Result<app::Inventory> observe(const Globals& globals);

/// The inventory as one JSON object, for `status -o json` and `tree -o json`.
[[nodiscard]] std::string format_inventory(const app::Inventory& all);

/// The pod's limits: those in its record, or for an adopted pod, whose limits the kubelet sets,
/// those read from its cgroup.
[[nodiscard]] core::ResourceList limits_shown(const app::PodEntry& pod);

/// "default/web", or the uid of a pod without a name.
[[nodiscard]] std::string pod_title(const core::Pod& pod);
/// The source of a pod's class as shown to users: "engine", "podqos.io/pod", ….
[[nodiscard]] std::string_view format_source(core::ClassSource source);
/// "pending" (being created), "live" or "dead" (its process is gone, the record not yet).
[[nodiscard]] std::string_view format_state(const app::ContainerEntry& container);

}  // namespace podqos::ctl

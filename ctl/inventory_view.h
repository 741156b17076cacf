#pragma once

#include <string>

#include "common/app/configuration.h"
#include "common/app/inventory.h"
#include "common/core/settings.h"
#include "ctl/command.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// What `status` and `tree` show. A configuration with errors does not hide the pods.
struct NodeView {
  app::ConfigurationReport configuration;
  app::Inventory inventory;
};

/// The view as one JSON object, for `status -o json` and `tree -o json`.
[[nodiscard]] std::string format_view(const NodeView& view);

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         ColourMode mode);

/// An inventory for people, without its warnings.
using TextOfInventory = std::string (*)(const app::Inventory&, ColourMode);
/// Adds a subcommand that prints the inventory as text or JSON, and what is wrong with it. It ends
/// with kRefused if the configuration has errors.
[[nodiscard]] Command add_view(CLI::App& app, const Globals& globals, TextOfInventory text,
                               const std::string& name, const std::string& description);

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

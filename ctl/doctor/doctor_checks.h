#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/core/events/event.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/settings.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/node/engines.h"
#include "ctl/node/finding.h"
#include "ctl/node/machine_facts.h"
#include "ctl/node/node_model.h"
#include "ctl/node/systemd_units.h"

// What follows from the facts that `podqosctl doctor` has gathered. docs/troubleshooting.md says
// what each check means.
namespace podqos::ctl {

constexpr const char* kTimerUnit = "podqos-reconcile.timer";

[[nodiscard]] Findings check_kernel(const KernelFacts& facts, const core::Settings& settings);
[[nodiscard]] Findings check_configuration(const app::ConfigurationReport& configuration);
/// Whether the last writer had the settings of the files, which each reads by itself.
/// @param last  of the last transaction; nullopt if there was none
[[nodiscard]] Finding check_settings(const app::ConfigurationReport& configuration,
                                     const std::optional<core::Settings>& last);
/// Whether the weights that podqos computes are those of the runtime.
/// @param observed  in a container of the runtime's; nullopt if none has been seen
[[nodiscard]] Finding check_weights(const core::Settings& settings,
                                    std::optional<core::WeightFormula> observed);
[[nodiscard]] Finding check_directory(const DirectoryFacts& facts);
[[nodiscard]] Finding check_lock(const LockFacts& facts, const core::Settings& settings);
/// What was found of the node, by kind, with tiers whose limit usage keeps above its rule, and
/// containers that podqos should manage and does not.
[[nodiscard]] Findings check_node(const Node& node);
/// Whether what is to evict pods runs.
[[nodiscard]] Finding check_eviction(const core::Settings& settings, const Node& node);
/// Containers that failed or were refused in the hour before `now`.
[[nodiscard]] Finding check_events(const std::vector<core::Event>& events, UnixMillis now);
/// What concerns no engine alone: whether any is registered, and whether their drivers are allowed.
[[nodiscard]] Findings check_engines(const std::vector<EngineFacts>& engines,
                                     const core::Settings& settings);
/// @param units  with kTimerUnit; what systemd says of units, or why it cannot be asked.
[[nodiscard]] Finding check_timer(const Result<Units>& units);
/// Settings of a kubelet's configuration that contradict podqos's.
/// @param text  YAML or JSON of type KubeletConfiguration; nullopt without a kubelet
[[nodiscard]] Findings check_kubelet(std::string_view file, const std::optional<std::string>& text,
                                     const core::Settings& settings);

/// For people: a line for each check beneath the name of its group, and how many problems and
/// warnings there are.
[[nodiscard]] std::string format_checks(const Findings& checks, const Screen& screen);
/// For programs: group, name, outcome, text and remedy of each.
[[nodiscard]] Json json_of(const Findings& checks);

}  // namespace podqos::ctl

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/core/events/event.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/settings.h"
#include "ctl/check.h"
#include "ctl/doctor_facts.h"
#include "ctl/engines.h"
#include "ctl/json.h"
#include "ctl/not_managed.h"
#include "ctl/systemd_units.h"
#include "ctl/table.h"

// What follows from the facts that `podqosctl doctor` has gathered. docs/troubleshooting.md says
// what each check means.
namespace podqos::ctl {

constexpr const char* kTimerUnit = "podqos-reconcile.timer";
constexpr const char* kOomdUnit = "systemd-oomd.service";

[[nodiscard]] Checks check_kernel(const KernelFacts& facts, const core::Settings& settings);
[[nodiscard]] Checks check_configuration(const app::ConfigurationReport& configuration);
/// Whether the last writer had the settings of the files, which each reads by itself.
/// @param last  of the last transaction; nullopt if there was none
[[nodiscard]] Check check_settings(const app::ConfigurationReport& configuration,
                                   const std::optional<core::Settings>& last);
/// Whether the weights that podqos computes are those of the runtime.
/// @param observed  in a container of the runtime's; nullopt if none has been seen
[[nodiscard]] Check check_weights(const core::Settings& settings,
                                  std::optional<core::WeightFormula> observed);
[[nodiscard]] Check check_directory(const DirectoryFacts& facts);
[[nodiscard]] Check check_lock(const LockFacts& facts, const core::Settings& settings);
/// The warnings of an inventory, by kind, and tiers whose limit usage keeps above its rule.
/// @param inventory  of inventory_json(), or why there is none
[[nodiscard]] Checks check_inventory(const Result<Json>& inventory);
/// Whether what is to evict pods runs.
/// @param inventory  of inventory_json()
/// @param units  with kOomdUnit
[[nodiscard]] Check check_eviction(const core::Settings& settings, const Json& inventory,
                                   const Result<Units>& units, bool plugin_runs);
/// Containers that podqos should manage and does not, else those of which that is unknown.
[[nodiscard]] Check check_missed(const MissedContainers& found);
/// Containers that failed or were refused in the hour before `now`.
[[nodiscard]] Check check_events(const std::vector<core::Event>& events, UnixMillis now);
/// What concerns no engine alone: whether any is registered, and whether their drivers are allowed.
[[nodiscard]] Checks check_engines(const std::vector<EngineFacts>& engines,
                                   const core::Settings& settings);
/// @param units  with kTimerUnit; what systemd says of units, or why it cannot be asked.
[[nodiscard]] Check check_timer(const Result<Units>& units);
/// Settings of a kubelet's configuration that contradict podqos's.
/// @param text  YAML or JSON of type KubeletConfiguration; nullopt without a kubelet
[[nodiscard]] Checks check_kubelet(std::string_view file, const std::optional<std::string>& text,
                                   const core::Settings& settings);

/// For people: a line for each check beneath the name of its group, and how many problems and
/// warnings there are.
[[nodiscard]] std::string format_checks(const Checks& checks, const Screen& screen);
/// For programs: group, name, outcome, text and remedy of each.
[[nodiscard]] Json json_of(const Checks& checks);

}  // namespace podqos::ctl

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/plan.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/tier.h"

namespace podqos::core {

/// Makes root and tiers.
/// @param top  the outermost directory above `kubepods` that podqos makes too; "" for none
[[nodiscard]] Plan plan_tree(std::string_view kubepods, std::string_view top = {});
/// The directories from `top` down to above `kubepods`; none if `top` is "".
[[nodiscard]] std::vector<std::string> directories_above(std::string_view kubepods,
                                                         std::string_view top);

/// Whether a cgroup holds values of podqos's, or is made and gets all of them.
enum class Cgroup : std::uint8_t { kExists, kCreate };

/// Writes the values of tiers and root. `values` holds what may be written now (see
/// bounded_tier_limit).
/// @param make  kCreate: systemd is told what the files hold already, if it has not that itself.
[[nodiscard]] Plan plan_tiers(std::string_view kubepods, const TierValues& values,
                              const CgroupLayout& layout, WeightFormula formula,
                              Cgroup make = Cgroup::kExists);

/// Writes the memory limit of a tier or root alone.
[[nodiscard]] Plan plan_memory_limit(const std::string& cgroup, Bytes limit,
                                     const CgroupLayout& layout);

/// Writes the values of all pods, their shares and what is reserved for them, to
/// cgroups_with_share().
/// @param make  as above
[[nodiscard]] Plan plan_top(const std::vector<std::string>& directories, const CgroupValues& values,
                            const CgroupLayout& layout, WeightFormula formula,
                            Cgroup make = Cgroup::kExists);

/// Writes one pod's values; makes the cgroup first if asked to.
[[nodiscard]] Plan plan_pod(const std::string& cgroup, const CgroupValues& values,
                            const CgroupLayout& layout, WeightFormula formula, Cgroup make_it);

/// Writes the values of a container that runs already in `cgroup`.
[[nodiscard]] Plan plan_container(const std::string& cgroup, const CgroupValues& values,
                                  const CgroupLayout& layout, WeightFormula formula);

/// The cgroup of the engine's own processes beside a pod's containers: "podqos-monitor" in the
/// pod's, with systemd a scope.
[[nodiscard]] std::string monitor_path(const std::string& pod_cgroup);
/// Moves the process there; what it needs from now on is the pod's.
[[nodiscard]] Plan plan_monitor(const std::string& pod_cgroup, Pid monitor);

/// Removes one empty cgroup; its unit once it is gone.
[[nodiscard]] Plan plan_removal(const std::string& cgroup);

/// The tiers and, last, the root: in this order they are removed.
[[nodiscard]] std::vector<std::string> tiers_and_root(std::string_view kubepods);

/// Whether systemd-oomd evicts from the tiers of this tree. It takes containers, whose scopes, not
/// the pods' slices, have to tell that they are spared.
/// @note systemd src/oom/oomd-manager.c recursively_get_cgroup_context: leaves, and cgroups with
///       memory.oom.group
[[nodiscard]] bool is_watched_by_oomd(std::string_view kubepods, const CgroupLayout& layout);

}  // namespace podqos::core

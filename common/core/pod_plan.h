#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/cgroup_values.h"
#include "common/core/layout.h"
#include "common/core/naming.h"
#include "common/core/plan.h"
#include "common/core/record.h"
#include "common/core/tier.h"

namespace podqos::core {

/// Makes root and tiers.
/// @param top  the outermost directory above `kubepods` that podqos makes too; "" for none
[[nodiscard]] Plan plan_tree(std::string_view kubepods, std::string_view top = {});
/// The directories from `top` down to above `kubepods`; none if `top` is "".
[[nodiscard]] std::vector<std::string> directories_above(std::string_view kubepods,
                                                         std::string_view top);

enum class Make : std::uint8_t { kNo, kYes };

/// Writes the values of tiers and root. `values` holds what may be written now (see
/// bounded_tier_limit).
/// @param make  kYes: systemd is told even what the files hold already.
[[nodiscard]] Plan plan_tiers(std::string_view kubepods, const TierValues& values,
                              const CgroupLayout& layout, WeightFormula formula,
                              Make make = Make::kNo);

/// Writes the shares of all pods to cgroups_with_share().
/// @param make  as above
[[nodiscard]] Plan plan_top(const std::vector<std::string>& directories, CpuShares shares,
                            const CgroupLayout& layout, WeightFormula formula,
                            Make make = Make::kNo);

/// Writes one pod's values; makes the cgroup first if asked to.
[[nodiscard]] Plan plan_pod(const std::string& cgroup, const CgroupValues& values,
                            const CgroupLayout& layout, WeightFormula formula, Make make_it);

/// Writes the values of a container that runs already, where it is.
[[nodiscard]] Plan plan_container(const ContainerRecord& container, const CgroupValues& values,
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

}  // namespace podqos::core

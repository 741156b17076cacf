#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "ctl/inventory.h"

namespace podqos::ctl {

// What an inventory warns of beside the values of pods and tiers: sentences with their remedies.

/// Of pod cgroups in the tier that are not among the `known` ones, which have records.
[[nodiscard]] std::vector<std::string> unmanaged_pods(
    const std::string& tier, const std::set<std::string, std::less<>>& known,
    cgroup::Machine& cgroups);

/// Of controllers that the kernel has and the tree's children lack.
[[nodiscard]] std::vector<std::string> lacking_controllers(const core::TreeRecord& tree,
                                                           cgroup::Machine& cgroups);

/// Of a root that podqos cannot use, or has no records of. One with a kubelet's pods belongs to
/// the kubelet.
[[nodiscard]] std::vector<std::string> unusable_roots(const core::Settings& settings,
                                                      const NodeRecords& records,
                                                      cgroup::Machine& cgroups);

}  // namespace podqos::ctl

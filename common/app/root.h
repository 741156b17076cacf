#pragma once

#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/tier_write.h"
#include "common/core/record.h"

namespace podqos::app {

/// The root for podqos's own pods of a driver; see core::choose_root(). Creates nothing.
/// @param container  see cgroup::origin_of_root()
/// @return the errors of core::choose_root() and core::check_root()
[[nodiscard]] Result<std::string> choose_root(Transaction& transaction, core::Driver driver,
                                              const std::optional<std::string>& container);

/// True if the state was lost while cgroups still exist: it names no tree, and a root has
/// podqos's mark.
[[nodiscard]] bool has_lost_roots(Transaction& transaction);
/// Finds the trees that the state does not name: by the mark of their root, and by the records of
/// the pods in them.
/// @return why a cgroup could not be examined: it is left out
[[nodiscard]] std::vector<Error> find_roots(Transaction& transaction,
                                            const core::PodRecords& records);

/// Before a pod is counted: makes root and tiers for one of podqos's own unless they are in use.
/// @param root  of choose_root()
[[nodiscard]] Status make_root_for(Transaction& transaction, const core::PodRecord& record,
                                   const Result<std::string>& root);

/// Removes the tree of a root that could not be made for the first pod. If systemd does not answer
/// now either, units without cgroups may be left, which the next pod takes up.
void take_back_root(Transaction& transaction, const std::string& kubepods);

/// Writes the share of all of a tree's pods to the cgroups above its root that podqos has made, see
/// core::tree_shares(). Where the tree is not as it was, systemd is told even what the files hold.
[[nodiscard]] core::Plan plan_top(Transaction& transaction, const core::TreeRecord& tree,
                                  core::Cgroup make);

/// The values to write to a tree's root: core::root_limits(), unless the transaction has changed
/// nothing that they follow from and the tree is as it was; and the share, if no cgroup above has
/// it.
[[nodiscard]] core::CgroupValues changed_root_values(Transaction& transaction,
                                                     const core::TreeRecord& tree,
                                                     core::TreeState state);

/// Warns if ioWeight has no effect on this kernel: when the root is made, not at each container.
[[nodiscard]] Status check_io_weight(Transaction& transaction, const std::string& kubepods);

}  // namespace podqos::app

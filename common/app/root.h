#pragma once

#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/driver.h"
#include "common/core/event_plan.h"
#include "common/core/record.h"

namespace podqos::app {

/// The root for podqos's own pods; see core::choose_root(). Removes the root in use if it has to be
/// replaced, and creates nothing.
/// @param just_made  see cgroup::observe_root()
/// @return the errors of core::choose_root() and core::check_root(); kConflict if the root in use
///         must be replaced and cannot be removed.
[[nodiscard]] Result<std::string> choose_root(Transaction& transaction, core::Driver driver,
                                              const std::optional<std::string>& just_made);

/// True if the state directory was lost while the cgroups still exist: a marked root that the state
/// does not name.
[[nodiscard]] bool has_lost_root(Transaction& transaction, const std::string& kubepods);
/// If the state directory was lost, finds podqos's root by its mark. Leaves it to a kubelet if one
/// has come.
[[nodiscard]] Status find_root(Transaction& transaction);

/// The plan for the root before a pod is counted: makes root and tiers for one of podqos's own
/// unless they are in use, and leaves the root in use to a kubelet if the adopted pod lies in it.
/// @param root  of choose_root()
[[nodiscard]] core::EventPlan plan_root_for(Transaction& transaction, const core::PodRecord& record,
                                            const Result<std::string>& root);

/// Leaves the root in use to a kubelet if it is the one that kubelets use and the machine has a
/// kubelet: podqos writes no more values there.
void leave_root_to_kubelet(Transaction& transaction);

/// Removes tiers and root, of which no pod is left, and the cgroups above that podqos has made.
[[nodiscard]] Status remove_root(Transaction& transaction);

}  // namespace podqos::app

#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// What is observed of the cgroup of one of podqos's own pods before its values are written.
struct PodWriteSnapshot {
  /// The pod's record before this event, whose values the cgroup holds; nullopt if it is not known
  /// which values it holds, or if it does not exist.
  std::optional<PodRecord> written = std::nullopt;
  /// podqos has set the cgroup's I/O weight, and may no longer want one.
  bool has_io_weight = false;
};

/// What is written of a pod's values.
struct PodWrite {
  Cgroup make = Cgroup::kExists;  ///< kCreate: make the cgroup and write all values
  CgroupValues values;
  bool hugepages = false;  ///< huge page limits too: two files for each page size of the host
  bool may_cut = false;    ///< the memory limit may be below the usage: see hold_above_usage()
};

/// Decides what is written of the pod's values: all of them, with limits that other programs have
/// set removed, or what may differ from `written`.
/// @return the errors of pod_values()
[[nodiscard]] Result<PodWrite> decide_pod_write(const PodRecord& record,
                                                const PodWriteSnapshot& snapshot,
                                                const Settings& settings);

/// Keeps a memory limit above the usage: below it the kernel would invoke the OOM killer
/// (Documentation/admin-guide/cgroup-v2.rst, memory.max). A reconciliation lowers one that stays
/// above the rule for this.
/// @param usage  the memory in use that the limit would cut off; nullopt if it cuts off none
/// @return a notice for the log; nullopt if the limit is the rule's
[[nodiscard]] std::optional<std::string> hold_above_usage(PodWrite& write,
                                                          const std::string& cgroup,
                                                          std::optional<Bytes> usage);

}  // namespace podqos::core

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/pod_config.h"
#include "common/core/pod_plan.h"
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
  /// The memory in use that a limit would cut off; nullopt if none is, or if the limit is not lower
  /// than the present one. Asked for only where a limit may be lowered.
  std::function<std::optional<Bytes>(Bytes limit)> usage_above;
};

/// What is written of a pod's values.
struct PodWrite {
  Make make = Make::kNo;  ///< kYes: make the cgroup and write all values
  CgroupValues values;
  bool hugepages = false;  ///< huge page limits too: two files for each page size of the host
  std::string notice;      ///< for the log if the memory limit stays above the rule; empty if not
};

/// Decides what is written of the pod's values: all of them, with limits that other programs have
/// set removed, or what may differ from `written`. A memory limit stays above the usage: below it
/// the kernel would invoke the OOM killer (Documentation/admin-guide/cgroup-v2.rst, memory.max).
/// One that stays above the rule for this is lowered by a reconciliation.
/// @return the errors of pod_values()
[[nodiscard]] Result<PodWrite> decide_pod_write(const PodRecord& record,
                                                const PodWriteSnapshot& snapshot,
                                                const Settings& settings);

}  // namespace podqos::core

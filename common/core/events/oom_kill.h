#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/record.h"

// By whose limit a process was OOM-killed, as the kernel itself logs it.
namespace podqos::core {

/// A process that the OOM killer has ended. Cgroups are absolute paths in the hierarchy of the
/// memory controller.
struct OomKill {
  std::int64_t at = 0;  ///< microseconds of the log's clock, which starts near 0 at boot
  Pid pid;              ///< in the initial pid namespace
  /// The process's; "" if the log does not name it: the kernel logs at most ten kills in five
  /// seconds with their cgroups.
  std::string cgroup = {};
  /// The one whose limit was met, "" of the node's memory; nullopt if the log does not name it.
  std::optional<std::string> limited = std::nullopt;
  std::optional<Bytes> limit = std::nullopt;  ///< of that cgroup then; nullopt if not logged
  friend bool operator==(const OomKill&, const OomKill&) = default;
};

/// The container that a killed process belonged to; nullptr for a process of another pod, or none.
[[nodiscard]] const ContainerRecord* find_killed(const PodRecord& pod, const OomKill& kill);

/// "OOM-killed by the limit of tier besteffort (380Mi); its pod had used up to 371Mi".
/// @param limited, limit  of the kill
/// @param peak  the most memory that the pod has used; nullopt if it is not known
[[nodiscard]] std::string describe_oom_kill(const PodRecord& pod,
                                            const std::optional<std::string>& limited,
                                            std::optional<Bytes> limit, std::optional<Bytes> peak);

}  // namespace podqos::core

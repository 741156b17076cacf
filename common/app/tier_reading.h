#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/app/cgroup_reading.h"
#include "common/base/units.h"
#include "common/cgroup/cgroupfs.h"

namespace podqos::app {

/// Pressure stall information: the time for which tasks have waited for a resource since the cgroup
/// was made.
/// @note Documentation/accounting/psi.rst
struct Pressure {
  Micros waiting;  ///< "some": at least one of them
  std::optional<Micros>
      stalled;  ///< "full": all of them at once; kernels before 5.13 have none of the CPU
  friend bool operator==(const Pressure&, const Pressure&) = default;
};
/// nullopt: the text is no pressure file's.
[[nodiscard]] std::optional<Pressure> parse_pressure(std::string_view text);

/// What the kernel says of a tier now, beyond what it says of every cgroup. nullopt: not to be had
/// (cgroup v1 has no protection and no pressure, a kernel may be without PSI).
struct TierReading {
  CgroupReading values;
  std::optional<std::int64_t> cpu_usage_ns;
  std::optional<Bytes> memory_min;
  std::optional<Bytes> memory_low;
  std::optional<std::int64_t> oom_kills;  ///< in the tier and below
  std::optional<Pressure> cpu_pressure;
  std::optional<Pressure> memory_pressure;
  std::optional<Pressure> io_pressure;
};

/// A dozen small files, whatever is in the tier.
[[nodiscard]] TierReading read_tier(cgroup::Cgroupfs& cgroups, const std::string& path);

}  // namespace podqos::app

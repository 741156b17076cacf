#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/app/cgroup_reading.h"
#include "common/base/units.h"
#include "common/cgroup/machine.h"

namespace podqos::app {

/// Pressure stall information: the time for which tasks have waited for a resource since the cgroup
/// was created.
/// @note Documentation/accounting/psi.rst
struct Pressure {
  Micros waiting;  ///< "some": at least one task waited
  std::optional<Micros>
      stalled;  ///< "full": all tasks waited at once; absent for CPU before Linux 5.13
  friend bool operator==(const Pressure&, const Pressure&) = default;
};
/// Parses a pressure file (cpu.pressure, memory.pressure, io.pressure); nullopt if it is malformed.
[[nodiscard]] std::optional<Pressure> parse_pressure(std::string_view text);

/// The current values of a tier that go beyond those of every cgroup. nullopt: unavailable (cgroup
/// v1 has no protection and no pressure, a kernel may lack PSI).
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

/// Reads about a dozen small files, regardless of the number of pods in the tier.
[[nodiscard]] TierReading read_tier(cgroup::Machine& machine, const std::string& path);

}  // namespace podqos::app

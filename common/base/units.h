#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

namespace podqos {

constexpr std::int64_t kPercent = 100;  ///< divisor of a percentage

constexpr std::int64_t kNanosPerMicro = 1000;
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

/// As wide as the product of two 64-bit integers.
__extension__ using Wide = __int128;

/// The nearest 64-bit integer.
[[nodiscard]] constexpr std::int64_t saturated(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, kInt64Min, kInt64Max));
}
/// a + b, clamped to the 64-bit range on overflow.
[[nodiscard]] constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return saturated(Wide{a} + b);
}
/// a - b, clamped to the 64-bit range on overflow.
[[nodiscard]] constexpr std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
  return saturated(Wide{a} - b);
}
/// trunc(a * b / c), computed in 128 bits and clamped to the 64-bit range. Requires c > 0.
[[nodiscard]] constexpr std::int64_t mul_div(std::int64_t a, std::int64_t b, std::int64_t c) {
  return saturated(Wide{a} * b / c);
}

/// A number with a unit that the compiler checks. Tag names the unit. Values are signed 64-bit
/// integers, like those of the kernel and Kubernetes.
template <class Tag>
class Unit {
 public:
  constexpr Unit() = default;
  constexpr explicit Unit(std::int64_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  friend constexpr auto operator<=>(Unit, Unit) = default;
  /// Sum and difference, clamped to the 64-bit range.
  friend constexpr Unit operator+(Unit a, Unit b) {
    return Unit{saturating_add(a.value_, b.value_)};
  }
  friend constexpr Unit operator-(Unit a, Unit b) {
    return Unit{saturating_sub(a.value_, b.value_)};
  }

 private:
  std::int64_t value_ = 0;
};

/// all - part, at least 0.
template <class Tag>
[[nodiscard]] constexpr Unit<Tag> rest_of(Unit<Tag> all, Unit<Tag> part) {
  return std::max(all - part, Unit<Tag>{});
}

using MilliCpu = Unit<struct MilliCpuTag>;    ///< thousandths of a CPU
using CpuShares = Unit<struct CpuSharesTag>;  ///< cgroup v1 cpu.shares, [2, 262144]
using CpuWeight = Unit<struct CpuWeightTag>;  ///< cgroup v2 cpu.weight, [1, 10000]
using Micros = Unit<struct MicrosTag>;        ///< microseconds of CPU time (quota, period)
using Bytes = Unit<struct BytesTag>;
using Pid = Unit<struct PidTag>;  ///< a process id in the host's pid namespace
using StartTime =
    Unit<struct StartTimeTag>;  ///< field 22 of /proc/PID/stat, clock ticks since boot
using BootSeconds = Unit<struct UnixSecondsTag>;
using UnixMillis = Unit<struct UnixMillisTag>;  ///< of the wall clock, since 1970 UTC

}  // namespace podqos

#pragma once

#include <optional>
#include <string_view>

#include "common/base/units.h"

namespace podqos::core {

constexpr CpuShares kMinShares{2};
constexpr CpuShares kMaxShares{262'144};
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kMilliPerCpu = 1000;
constexpr Micros kDefaultPeriod{100'000};
constexpr Micros kMinQuota{1'000};

/// Which shares→weight formula; the two give 39 and 100 for one CPU.
enum class WeightFormula : std::uint8_t {
  kLinear,  ///< kubelet's own cgroups, runc < 1.3.2, crun < 1.23
  kLog,     ///< runc ≥ 1.3.2, crun ≥ 1.23
};

/// floor(m * 1024 / 1000) within [2, 262144]; 0 and negative give 2.
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToShares.
[[nodiscard]] CpuShares cpu_shares_for(MilliCpu request);
/// The inverse that rounds up: ceil(shares * 1000 / 1024); below 2 gives 0.
[[nodiscard]] MilliCpu milli_cpu_for(CpuShares shares);
/// floor(m * period / 1000), at least 1000 us; a limit of 0 gives 0 ("none").
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToQuota.
[[nodiscard]] Micros cpu_quota_for(MilliCpu limit, Micros period);
/// floor(quota * 1000 / period); nullopt for a quota ≤ 0 (none).
[[nodiscard]] std::optional<MilliCpu> milli_cpu_for_quota(Micros quota, Micros period);

/// cpu.weight for shares. Shares below 2 count as 2.
/// @note linear: pkg/kubelet/cm/cgroup_manager_linux.go getCPUWeight; log: opencontainers/cgroups
///       utils.go ConvertCPUSharesToCgroupV2Value. -ffast-math would move 1024 to 101.
[[nodiscard]] CpuWeight cpu_weight_for(CpuShares shares, WeightFormula formula);
/// Kubelet's lossy inverse of the linear formula: floor((w-1)*262142/9999)+2.
[[nodiscard]] CpuShares shares_for_linear_weight(CpuWeight weight);

}  // namespace podqos::core

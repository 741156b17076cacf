#pragma once

#include <optional>
#include <string_view>

#include "common/base/units.h"

namespace podqos::core {

// Constants of pkg/kubelet/cm/helpers_linux.go.
constexpr CpuShares kMinShares{2};        ///< also means "no request"
constexpr CpuShares kMaxShares{262'144};  ///< 256 CPUs
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kMilliPerCpu = 1000;
constexpr Micros kDefaultPeriod{100'000};  ///< the kernel's and Kubernetes' default
constexpr Micros kMinQuota{1'000};         ///< the kernel's minimum

/// Formula that converts shares to a weight. One CPU (1024 shares) becomes 39 or 100.
enum class WeightFormula : std::uint8_t {
  kLinear,  ///< 39: the kubelet's own cgroups, runc < 1.3.2, crun < 1.23
  kLog,     ///< 100: runc ≥ 1.3.2, crun ≥ 1.23
};

/// Shares for a CPU request: floor(m * 1024 / 1000) within [2, 262144]; 0 and negative give 2.
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToShares.
[[nodiscard]] CpuShares cpu_shares_for(MilliCpu request);
/// CPU request for shares: ceil(shares * 1000 / 1024); shares below 2 give 0.
[[nodiscard]] MilliCpu milli_cpu_for(CpuShares shares);
/// Quota for a CPU limit: floor(m * period / 1000), at least 1000 us; limits ≤ 0 give 0 ("none").
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToQuota.
[[nodiscard]] Micros cpu_quota_for(MilliCpu limit, Micros period);
/// CPU limit for a quota: the least one whose quota is not below it, since the kernel refuses a
/// child's quota above its parent's; the inverse of cpu_quota_for(). nullopt for a quota or
/// period ≤ 0 (none).
[[nodiscard]] std::optional<MilliCpu> milli_cpu_for_quota(Micros quota, Micros period);

/// cpu.weight in [1, 10000] for shares, which are clamped to [2, 262144].
/// @note linear: pkg/kubelet/cm/cgroup_manager_linux.go getCPUWeight; log: opencontainers/cgroups
///       utils.go ConvertCPUSharesToCgroupV2Value. -ffast-math would move 1024 to 101.
[[nodiscard]] CpuWeight cpu_weight_for(CpuShares shares, WeightFormula formula);
/// Shares for a weight of the linear formula: floor((w-1)*262142/9999)+2. Lossy: 1024 becomes 998.
/// @note pkg/kubelet/cm/cgroup_manager_linux.go.
[[nodiscard]] CpuShares shares_for_linear_weight(CpuWeight weight);

}  // namespace podqos::core

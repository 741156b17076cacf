#include "common/core/cpu.h"

#include <algorithm>
#include <cmath>

namespace podqos::core {

namespace {

constexpr std::int64_t kSharesSpan = 262'142;  // kMaxShares - kMinShares
constexpr std::int64_t kWeightSpan = 9'999;    // 10000 - 1
constexpr std::int64_t kMaxWeight = 10'000;

static_assert(kMaxShares.value() - kMinShares.value() == kSharesSpan);

std::int64_t log_weight(std::int64_t shares) {
  // The curve passes through (2, 1), (1024, 100) and (262144, 10000). float64 is exact enough for
  // ceil() to agree with runc (Go) and crun (C) on every share in range.
  const double l = std::log2(static_cast<double>(shares));
  const double exponent = (((l * l) + (125.0 * l)) / 612.0) - (7.0 / 34.0);
  return static_cast<std::int64_t>(std::ceil(std::pow(10.0, exponent)));
}

}  // namespace

CpuShares cpu_shares_for(MilliCpu request) {
  if (request.value() <= 0) return kMinShares;
  // mul_div saturates for huge requests, and the clamp limits the result.
  const CpuShares shares{mul_div(request.value(), kSharesPerCpu, kMilliPerCpu)};
  return std::clamp(shares, kMinShares, kMaxShares);
}

MilliCpu milli_cpu_for(CpuShares shares) {
  if (shares < kMinShares) return MilliCpu{0};
  const std::int64_t floor = mul_div(shares.value(), kMilliPerCpu, kSharesPerCpu);
  const bool exact = shares.value() % (kSharesPerCpu / 8) == 0;  // gcd(1000, 1024) is 8
  return MilliCpu{exact ? floor : saturating_add(floor, 1)};
}

Micros cpu_quota_for(MilliCpu limit, Micros period) {
  if (limit.value() <= 0) return Micros{0};
  return std::max(Micros{mul_div(limit.value(), period.value(), kMilliPerCpu)}, kMinQuota);
}

std::optional<MilliCpu> milli_cpu_for_quota(Micros quota, Micros period) {
  if (quota.value() <= 0 || period.value() <= 0) return std::nullopt;
  const std::int64_t floor = mul_div(quota.value(), kMilliPerCpu, period.value());
  const bool enough = mul_div(floor, period.value(), kMilliPerCpu) >= quota.value();
  return MilliCpu{enough ? floor : saturating_add(floor, 1)};
}

CpuWeight cpu_weight_for(CpuShares shares, WeightFormula formula) {
  if (shares <= kMinShares) return CpuWeight{1};
  if (shares >= kMaxShares) return CpuWeight{kMaxWeight};
  switch (formula) {
    case WeightFormula::kLinear:
      return CpuWeight{1 + (((shares.value() - kMinShares.value()) * kWeightSpan) / kSharesSpan)};
    case WeightFormula::kLog: return CpuWeight{log_weight(shares.value())};
  }
  return CpuWeight{1};
}

CpuShares shares_for_linear_weight(CpuWeight weight) {
  const std::int64_t above_minimum = std::clamp(weight.value(), std::int64_t{1}, kMaxWeight) - 1;
  return CpuShares{(above_minimum * kSharesSpan / kWeightSpan) + kMinShares.value()};
}

}  // namespace podqos::core

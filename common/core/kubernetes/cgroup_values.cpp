#include "common/core/kubernetes/cgroup_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::int64_t kSharesSpan = kMaxShares.value() - kMinShares.value();
constexpr std::int64_t kWeightSpan = 9'999;  // 10000 - 1
constexpr std::int64_t kMaxWeight = 10'000;

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

CpuShares shares_for_weight(CpuWeight weight, WeightFormula formula) {
  std::int64_t low = kMinShares.value();
  std::int64_t high = kMaxShares.value();
  while (low < high) {
    const std::int64_t middle = low + ((high - low) / 2);
    const bool below = cpu_weight_for(CpuShares{middle}, formula) < weight;
    (below ? low : high) = below ? middle + 1 : middle;
  }
  return CpuShares{low};
}

CpuShares shares_for_linear_weight(CpuWeight weight) {
  const std::int64_t above_minimum = std::clamp(weight.value(), std::int64_t{1}, kMaxWeight) - 1;
  return CpuShares{(above_minimum * kSharesSpan / kWeightSpan) + kMinShares.value()};
}

namespace {

constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
constexpr std::int64_t kUnitStep = 1024;

Result<Bytes> page_size_of(std::string_view resource) {
  auto size = Quantity::parse(resource.substr(kHugePagesPrefix.size()));
  if (!size || size->sign() <= 0) {
    return fail(ErrorCode::kInvalidArgument,
                cat("invalid huge page resource \"", printable(resource),
                    "\": expected hugepages-SIZE, such as hugepages-2Mi"));
  }
  return Bytes{size->value()};
}

}  // namespace

std::string hugepage_label(Bytes page_size) {
  std::int64_t size = page_size.value();
  std::size_t unit = 0;
  while (size % kUnitStep == 0 && unit + 1 < kUnits.size()) {
    size /= kUnitStep;
    ++unit;
  }
  return cat(size, kUnits.at(unit));
}

Result<HugePageLimits> hugepage_limits(const ResourceList& requests) {
  HugePageLimits limits;
  for (const auto& [name, quantity] : requests) {
    if (!name.starts_with(kHugePagesPrefix)) continue;
    PODQOS_ASSIGN(const auto page_size, page_size_of(name));
    Bytes& limit = limits[hugepage_label(page_size)];
    limit = limit + Bytes{quantity.value()};
  }
  return limits;
}

namespace {

void set_quota(CgroupValues& values, MilliCpu limit, const PodConfigParams& params) {
  const Micros quota = cpu_quota_for(limit, params.cpu_period);
  values.cpu_quota = params.enforce_cpu_limits ? quota : Micros{-1};
  values.cpu_period = params.cpu_period;
}

void set_memory_qos(CgroupValues& values, QosClass qos_class, Bytes request,
                    const PodConfigParams& params) {
  if (!params.reserve_memory || request.value() <= 0) return;
  // All other classes, also a BestEffort pod with overhead, get the soft protection.
  const std::string file = qos_class == QosClass::kGuaranteed ? "memory.min" : "memory.low";
  values.unified[file] = std::to_string(request.value());
}

}  // namespace

Result<CgroupValues> pod_cgroup_values(const Pod& pod, QosClass qos_class,
                                       const PodConfigParams& params) {
  const ResourceList requests = pod_requests(pod);
  const ResourceList limits = pod_limits(pod);
  PODQOS_ASSIGN(auto hugepages, hugepage_limits(requests));

  CgroupValues values;
  values.hugepages = std::move(hugepages);
  const bool has_requests = qos_class != QosClass::kBestEffort;
  const auto is_limited = [&](std::string_view name) {
    return qos_class == QosClass::kGuaranteed || (has_requests && limit_declared(pod, name));
  };
  values.cpu_shares = has_requests ? cpu_shares_for(cpu_of(requests)) : kMinShares;
  if (is_limited(kCpu)) set_quota(values, cpu_of(limits), params);
  if (is_limited(kMemory)) values.memory_limit = Bytes{memory_of(limits).value()};
  if (qos_class == QosClass::kGuaranteed) values.io_weight = params.guaranteed_io_weight;
  set_memory_qos(values, qos_class, Bytes{memory_of(requests).value()}, params);
  if (params.pod_pids_limit && *params.pod_pids_limit >= 0)
    values.pids_limit = params.pod_pids_limit;
  return values;
}

namespace {

/// The container's limit, or else the pod-level one; 0 if there is none.
Quantity effective_limit(const Pod& pod, const Container& container, std::string_view name) {
  const Quantity own = find(container.resources.limits, name).value_or(Quantity{});
  if (!own.is_zero() || !pod.resources) return own;
  return find(pod.resources->limits, name).value_or(Quantity{});
}

}  // namespace

Result<CgroupValues> container_cgroup_values(const Pod& pod, const Container& container,
                                             const PodConfigParams& params) {
  const Quantity cpu_limit = effective_limit(pod, container, kCpu);
  // Only an absent request defaults to the limit; a request of 0 is kept.
  const Quantity cpu_request = find(container.resources.requests, kCpu).value_or(cpu_limit);
  ResourceList limits = container.resources.limits;
  if (pod.resources) limits.insert(pod.resources->limits.begin(), pod.resources->limits.end());
  auto hugepages = hugepage_limits(limits);
  if (!hugepages) return fail(std::move(hugepages).error().with_context(container.name));

  CgroupValues values;
  values.cpu_shares = cpu_shares_for(MilliCpu{cpu_request.milli_value()});
  if (params.enforce_cpu_limits) {
    values.cpu_quota = cpu_quota_for(MilliCpu{cpu_limit.milli_value()}, params.cpu_period);
    values.cpu_period = params.cpu_period;
  }
  values.memory_limit = Bytes{effective_limit(pod, container, kMemory).value()};
  values.hugepages = *std::move(hugepages);
  return values;
}

namespace {

/// Converts to int64 as Go does; values out of range, which are undefined there, are clamped.
std::int64_t truncate(double number) {
  constexpr double kEnd = 0x1p63;
  if (number >= kEnd) return kInt64Max;
  if (number <= -kEnd) return kInt64Min;
  return static_cast<std::int64_t>(number);
}

bool may_swap(const Pod& pod, QosClass qos_class, const Resources& resources) {
  if (is_critical(pod)) return false;
  // Also false if neither is set: both are 0 then.
  return qos_class == QosClass::kBurstable &&
         memory_of(resources.requests) != memory_of(resources.limits);
}

/// The request's share of the node's swap; 0 if the node's memory is unknown or smaller than it.
std::int64_t swap_share(Quantity request, const ContainerMemoryParams& params) {
  if (params.node_memory.value() <= 0 || request.value() > params.node_memory.value()) return 0;
  const double part =
      static_cast<double>(request.value()) / static_cast<double>(params.node_memory.value());
  return truncate(part * static_cast<double>(params.swap_capacity.value()));
}

}  // namespace

UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                       const Container& container,
                                       const ContainerMemoryParams& params) {
  UnifiedValues values;
  const Resources& resources = container.resources;
  if (params.swap_controller_available) {
    const bool swaps = params.limited_swap && may_swap(pod, qos_class, resources);
    values["memory.swap.max"] =
        swaps ? std::to_string(swap_share(memory_of(resources.requests), params)) : "0";
  }
  if (params.group_oom_kill) values["memory.oom.group"] = "1";
  return values;
}

namespace {

Status check_quota(Micros quota, Micros period) {
  if (quota <= kMaxQuota) return {};
  const std::int64_t most =
      mul_div(kMaxQuota.value(), kMilliPerCpu, std::max(period, Micros{1}).value());
  return fail(ErrorCode::kInvalidArgument,
              cat("cpu limit: quota of ", quota.value(), " us per ", period.value(),
                  " us exceeds the kernel's maximum of ", kMaxQuota.value(),
                  " us: lower the limit to ", most / kMilliPerCpu, " CPUs or less, or remove it"));
}

Status check_bytes(std::string_view what, Bytes limit) {
  if (limit <= kMaxMemoryLimit) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat(what, " limit: ", limit.value(), " bytes exceeds the kernel's maximum of ",
                  kMaxMemoryLimit.value(), ": lower or remove it"));
}

}  // namespace

Status check_kernel_bounds(const CgroupValues& values) {
  if (values.cpu_quota) {
    PODQOS_TRY(check_quota(*values.cpu_quota, values.cpu_period.value_or(kDefaultPeriod)));
  }
  if (values.memory_limit) {
    PODQOS_TRY(check_bytes("memory", *values.memory_limit));
  }
  for (const auto& [label, limit] : values.hugepages) {
    PODQOS_TRY(check_bytes(cat("hugepages-", label), limit));
  }
  return {};
}

}  // namespace podqos::core

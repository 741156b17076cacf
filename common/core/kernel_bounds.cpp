#include "common/core/kernel_bounds.h"

#include <string_view>

#include "common/base/text.h"
#include "common/core/cpu.h"

namespace podqos::core {

namespace {

Status check_quota(Micros quota, Micros period) {
  if (quota <= kMaxQuota) return {};
  const auto most = milli_cpu_for_quota(kMaxQuota, period).value_or(MilliCpu{0}).value();
  return fail(
      ErrorCode::kInvalidArgument,
      cat("cpu limit: its quota of ", quota.value(), " us in ", period.value(), " us exceeds ",
          kMaxQuota.value(), " us, the longest that the kernel takes: lower the limit to ",
          most / kMilliPerCpu, " CPUs or less, or leave it out"));
}

Status check_bytes(std::string_view what, Bytes limit) {
  if (limit <= kMaxMemoryLimit) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat(what, " limit: ", limit.value(), " bytes exceed ", kMaxMemoryLimit.value(),
                  ", the largest limit of the kernel: lower it, or leave it out"));
}

}  // namespace

Status check_kernel_bounds(const CgroupValues& values) {
  if (values.cpu_quota) {
    if (auto fits = check_quota(*values.cpu_quota, values.cpu_period.value_or(kDefaultPeriod));
        !fits)
      return fits;
  }
  if (values.memory_limit) {
    if (auto fits = check_bytes("memory", *values.memory_limit); !fits) return fits;
  }
  for (const auto& [label, limit] : values.hugepages) {
    if (auto fits = check_bytes(cat("hugepages-", label), limit); !fits) return fits;
  }
  return {};
}

}  // namespace podqos::core

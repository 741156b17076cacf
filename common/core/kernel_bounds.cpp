#include "common/core/kernel_bounds.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/base/text.h"
#include "common/core/cpu.h"

namespace podqos::core {

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

Status check_realtime(const EngineResources& resources, std::optional<CgroupVersion> cpu,
                      std::string_view pod_cgroup) {
  if (!resources.cpu_realtime_runtime || cpu != CgroupVersion::kV1) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("linux.resources.cpu.realtimeRuntime ", *resources.cpu_realtime_runtime,
                  ": on cgroup v1 the kernel refuses it in ", pod_cgroup,
                  ", which has no realtime time to share: remove it, or annotate the container "
                  "with podqos.io/ignore=true, so that it runs where its engine puts it"));
}

}  // namespace podqos::core

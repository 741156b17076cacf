#include "common/core/pod_config.h"

#include "common/core/aggregation.h"

namespace podqos::core {

namespace {

constexpr Micros kUnlimitedQuota{-1};

MilliCpu milli_cpu_of(const ResourceList& list) {
  const auto cpu = find(list, kCpu);
  return MilliCpu{cpu ? cpu->milli_value() : 0};
}

void set_quota(CgroupValues& values, MilliCpu limit, const PodConfigParams& params) {
  values.cpu_quota =
      params.enforce_cpu_limits ? cpu_quota_for(limit, params.cpu_period) : kUnlimitedQuota;
  values.cpu_period = params.cpu_period;
}

void set_memory_qos(CgroupValues& values, QosClass qos_class, Bytes request,
                    const PodConfigParams& params) {
  const bool reserves = params.enforce_memory_qos &&
                        params.reservation_policy == MemoryReservationPolicy::kTieredReservation;
  if (!reserves || request.value() <= 0) return;
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
  switch (qos_class) {
    case QosClass::kGuaranteed:
      values.cpu_shares = cpu_shares_for(milli_cpu_of(requests));
      set_quota(values, milli_cpu_of(limits), params);
      values.memory_limit = Bytes{memory_of(limits).value()};
      break;
    case QosClass::kBurstable:
      values.cpu_shares = cpu_shares_for(milli_cpu_of(requests));
      if (limit_declared(pod, kCpu)) set_quota(values, milli_cpu_of(limits), params);
      if (limit_declared(pod, kMemory)) values.memory_limit = Bytes{memory_of(limits).value()};
      break;
    case QosClass::kBestEffort: values.cpu_shares = kMinShares; break;
  }
  if (qos_class == QosClass::kGuaranteed) values.io_weight = params.guaranteed_io_weight;
  set_memory_qos(values, qos_class, Bytes{memory_of(requests).value()}, params);
  if (params.pod_pids_limit && *params.pod_pids_limit >= 0)
    values.pids_limit = params.pod_pids_limit;
  return values;
}

}  // namespace podqos::core

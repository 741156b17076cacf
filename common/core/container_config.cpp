#include "common/core/container_config.h"

namespace podqos::core {

namespace {

/// The container's limit, or else the pod-level one; 0 if there is none.
Quantity effective_limit(const Pod& pod, const Container& container, std::string_view name) {
  const Quantity own = find(container.resources.limits, name).value_or(Quantity{});
  if (!own.is_zero() || !pod.resources) return own;
  return find(pod.resources->limits, name).value_or(Quantity{});
}

void collect_hugepages(ResourceList& pages, const ResourceList& limits) {
  for (const auto& [name, limit] : limits) {
    if (name.starts_with(kHugePagesPrefix)) pages.try_emplace(name, limit);
  }
}

Result<HugePageLimits> effective_hugepages(const Pod& pod, const Container& container) {
  ResourceList pages;
  collect_hugepages(pages, container.resources.limits);
  if (pod.resources) collect_hugepages(pages, pod.resources->limits);
  return hugepage_limits(pages);
}

}  // namespace

Result<CgroupValues> container_cgroup_values(const Pod& pod, const Container& container,
                                             const ContainerConfigParams& params) {
  const Quantity cpu_limit = effective_limit(pod, container, kCpu);
  // Only an absent request defaults to the limit; a request of 0 is kept.
  const Quantity cpu_request = find(container.resources.requests, kCpu).value_or(cpu_limit);
  auto hugepages = effective_hugepages(pod, container);
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

}  // namespace podqos::core

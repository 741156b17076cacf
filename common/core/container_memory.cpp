#include "common/core/container_memory.h"

namespace podqos::core {

namespace {

/// Converts to int64 as Go does; values out of range, which are undefined there, are clamped.
std::int64_t truncate(double number) {
  constexpr double kEnd = 0x1p63;
  if (number >= kEnd) return kInt64Max;
  if (number <= -kEnd) return kInt64Min;
  return static_cast<std::int64_t>(number);
}

bool may_swap(const Pod& pod, QosClass qos_class, const Resources& resources) {
  if (pod.is_static || pod.priority.value_or(0) >= kSystemCriticalPriority) return false;
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

}  // namespace podqos::core

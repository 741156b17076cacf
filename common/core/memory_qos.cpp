#include "common/core/memory_qos.h"

#include <cmath>

namespace podqos::core {

namespace {

/// A double as Go converts it to int64 within range; beyond, held at the end instead of undefined.
std::int64_t truncate(double number) {
  constexpr double kEnd = 0x1p63;
  if (number >= kEnd) return kInt64Max;
  if (number <= -kEnd) return kInt64Min;
  return static_cast<std::int64_t>(number);
}

/// memory.min for Guaranteed, memory.low for the rest; without a reservation both are reset.
void add_reservation(UnifiedValues& values, QosClass qos_class, Quantity request,
                     MemoryReservationPolicy policy) {
  if (policy == MemoryReservationPolicy::kNone || request.is_zero()) {
    values["memory.min"] = "0";
    values["memory.low"] = "0";
    return;
  }
  const auto* file = qos_class == QosClass::kGuaranteed ? "memory.min" : "memory.low";
  values[file] = std::to_string(request.value());
}

/// The throttling point between request and limit, down to a page. Container values only: a
/// pod-level limit does not count.
void add_throttling(UnifiedValues& values, const Resources& resources,
                    const ContainerMemoryQosParams& params) {
  if (memory_of(resources.requests) == memory_of(resources.limits)) return;
  const std::int64_t request = memory_of(resources.requests).value();
  std::int64_t ceiling = memory_of(resources.limits).value();
  if (ceiling == 0) ceiling = params.node_allocatable_memory.value();
  if (ceiling == 0 || params.page_size.value() <= 0) return;
  const auto from = static_cast<double>(request);
  const auto to = static_cast<double>(ceiling);
  const double bytes = std::floor(from + ((to - from) * params.throttling_factor));
  const std::int64_t pages = truncate(bytes / static_cast<double>(params.page_size.value()));
  const std::int64_t high = mul_div(pages, params.page_size.value(), 1);
  if (high > request) values["memory.high"] = std::to_string(high);
}

bool may_swap(const Pod& pod, QosClass qos_class, const Resources& resources) {
  if (pod.is_static || pod.priority.value_or(0) >= kSystemCriticalPriority) return false;
  // Equal also covers "neither is set".
  return qos_class == QosClass::kBurstable &&
         memory_of(resources.requests) != memory_of(resources.limits);
}

/// The request's part of the node's swap; 0 where nothing sensible can be said.
std::int64_t swap_share(Quantity request, const ContainerMemoryQosParams& params) {
  if (params.node_memory.value() <= 0 || request.value() > params.node_memory.value()) return 0;
  const double part =
      static_cast<double>(request.value()) / static_cast<double>(params.node_memory.value());
  return truncate(part * static_cast<double>(params.swap_capacity.value()));
}

}  // namespace

UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                       const Container& container,
                                       const ContainerMemoryQosParams& params) {
  UnifiedValues values;
  const Resources& resources = container.resources;
  if (params.enforce_memory_qos) {
    add_reservation(values, qos_class, memory_of(resources.requests), params.reservation_policy);
    add_throttling(values, resources, params);
  }
  if (params.swap_controller_available) {
    const bool swaps = params.limited_swap && may_swap(pod, qos_class, resources);
    values["memory.swap.max"] =
        swaps ? std::to_string(swap_share(memory_of(resources.requests), params)) : "0";
  }
  if (params.group_oom_kill) values["memory.oom.group"] = "1";
  return values;
}

}  // namespace podqos::core

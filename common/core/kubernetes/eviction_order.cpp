#include "common/core/kubernetes/eviction_order.h"

namespace podqos::core {

namespace {

Bytes above_request(const MemoryUse& pod) {
  return pod.usage - pod.request;
}

}  // namespace

bool PressurePeriod::observe(std::optional<std::int64_t> percent, BootSeconds now,
                             const MemoryPressure& threshold) {
  if (!percent || *percent < threshold.percent) {
    since_.reset();
    return false;
  }
  if (!since_) since_ = now;
  return now.value() - since_->value() >= threshold.seconds;
}

bool is_evicted_before(const MemoryUse& pod, const MemoryUse& other) {
  const bool exceeds = above_request(pod) > Bytes{0};
  if (exceeds != (above_request(other) > Bytes{0})) return exceeds;
  if (pod.priority != other.priority) return pod.priority < other.priority;
  return above_request(pod) > above_request(other);
}

std::optional<std::size_t> find_victim(std::span<const MemoryUse> pods) {
  std::optional<std::size_t> victim;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i].critical || above_request(pods[i]) <= Bytes{0}) continue;
    if (!victim || is_evicted_before(pods[i], pods[*victim])) victim = i;
  }
  return victim;
}

}  // namespace podqos::core

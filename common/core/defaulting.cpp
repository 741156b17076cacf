#include "common/core/defaulting.h"

#include "common/core/aggregation.h"

namespace podqos::core {

namespace {

void default_requests_to_limits(std::vector<Container>& containers) {
  for (Container& container : containers) {
    auto& resources = container.resources;
    resources.requests.insert(resources.limits.begin(), resources.limits.end());
  }
}

void default_pod_hugepage_limits(const Pod& pod, Resources& pod_level) {
  if (pod_level.limits.empty() && pod_level.requests.empty()) return;
  for (const auto& [name, limit] : pod_limits(pod, PodLevel::kSkip, Overhead::kSkip)) {
    if (name.starts_with(kHugePagesPrefix) && !pod_level.requests.contains(name)) {
      pod_level.limits.try_emplace(name, limit);
    }
  }
}

void default_pod_requests(const Pod& pod, Resources& pod_level) {
  if (pod_level.limits.empty()) return;
  for (const auto& [name, request] : pod_requests(pod, PodLevel::kSkip, Overhead::kSkip)) {
    // Huge pages cannot be overcommitted: their request defaults to the pod-level limit below.
    if (name == kCpu || name == kMemory) pod_level.requests.try_emplace(name, request);
  }
  for (const auto& [name, limit] : pod_level.limits) {
    if (is_supported_pod_level_resource(name)) pod_level.requests.try_emplace(name, limit);
  }
}

void round_up(ResourceList& list) {
  for (auto& [name, quantity] : list)
    quantity = quantity.rounded_to_milli();
}

void round_up(Resources& resources) {
  round_up(resources.requests);
  round_up(resources.limits);
}

void round_up(std::vector<Container>& containers) {
  for (Container& container : containers)
    round_up(container.resources);
}

}  // namespace

Pod with_api_defaults(Pod pod) {
  default_requests_to_limits(pod.containers);
  default_requests_to_limits(pod.init_containers);
  if (pod.resources) {
    // In this order: pod-level values depend on the containers' defaults, requests on limits.
    default_pod_hugepage_limits(pod, *pod.resources);
    default_pod_requests(pod, *pod.resources);
    round_up(*pod.resources);
  }
  // Last, as in the API server: the sums above use unrounded values.
  round_up(pod.containers);
  round_up(pod.init_containers);
  round_up(pod.ephemeral_containers);
  round_up(pod.overhead);
  return pod;
}

Pod with_priority_of_class(Pod pod) {
  constexpr std::int64_t kSystemCritical = 2'000'000'000;
  constexpr std::int64_t kNodeCritical = kSystemCritical + 1000;
  if (pod.priority) return pod;
  if (pod.priority_class_name == "system-cluster-critical") pod.priority = kSystemCritical;
  if (pod.priority_class_name == "system-node-critical") pod.priority = kNodeCritical;
  return pod;
}

}  // namespace podqos::core

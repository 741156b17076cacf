#include "common/core/whole_pod.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "common/core/aggregation.h"

namespace podqos::core {

namespace {

/// Name of the init container that stands for all ended ones; no engine uses an empty name.
constexpr std::string_view kEnded;

/// Raises that init container's resources to the present sum of the pod.
void remember_sum(Pod& pod) {
  auto ended = std::ranges::find(pod.init_containers, kEnded, &Container::name);
  if (ended == pod.init_containers.end()) {
    pod.init_containers.push_back(
        {.name = std::string{kEnded}, .kind = ContainerKind::kInit, .resources = {}});
    ended = std::prev(pod.init_containers.end());
  }
  raise_to(ended->resources.requests, pod_requests(pod, PodLevel::kSkip, Overhead::kSkip));
  raise_to(ended->resources.limits, pod_limits(pod, PodLevel::kSkip, Overhead::kSkip));
}

}  // namespace

Pod whole_pod(const PodRecord& record) {
  return record.sums ? with_sums(record.pod, *record.sums) : record.pod;
}

ResourceList requests_of(const PodRecord& record) {
  return record.sums ? pod_requests(whole_pod(record)) : pod_requests(record.pod);
}

ResourceList limits_of(const PodRecord& record) {
  return record.sums ? pod_limits(whole_pod(record)) : pod_limits(record.pod);
}

void forget_container(PodRecord& record, std::string_view name) {
  if (!record.adopted || record.complete) return;
  auto& containers = record.pod.containers;
  const auto ended = std::ranges::find(containers, name, &Container::name);
  if (ended == containers.end()) return;
  remember_sum(record.pod);
  containers.erase(ended);
}

}  // namespace podqos::core

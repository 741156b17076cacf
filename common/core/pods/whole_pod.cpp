#include "common/core/pods/whole_pod.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

namespace {

/// Name of the init container that stands for all ended ones; no engine uses an empty name.
constexpr std::string_view kEnded;

/// The containers of a pod that have started, and those that ended before.
Pod started_part(const PodRecord& record) {
  std::set<std::string_view> started;
  for (const ContainerRecord& container : record.containers) {
    if (container.state == ContainerState::kLive) started.insert(container.name);
  }
  Pod part;
  part.init_containers = record.pod.init_containers;
  std::ranges::copy_if(
      record.pod.containers, std::back_inserter(part.containers),
      [&](const Container& container) { return started.contains(container.name); });
  return part;
}

/// Makes that init container as large as what of the pod has started. It has no limit where that
/// has none: the pod stays unlimited.
void remember_sum(PodRecord& record) {
  const Pod started = started_part(record);
  Resources sum{.requests = pod_requests(started, PodLevel::kSkip, Overhead::kSkip),
                .limits = pod_limits(started, PodLevel::kSkip, Overhead::kSkip)};
  std::erase_if(sum.limits,
                [&](const auto& limit) { return !limit_declared(started, limit.first); });
  Pod& pod = record.pod;
  auto ended = std::ranges::find(pod.init_containers, kEnded, &Container::name);
  if (ended == pod.init_containers.end()) {
    pod.init_containers.push_back(
        {.name = std::string{kEnded}, .kind = ContainerKind::kInit, .resources = {}});
    ended = std::prev(pod.init_containers.end());
  }
  ended->resources = std::move(sum);
}

}  // namespace

Pod whole_pod(const PodRecord& record) {
  return record.sums ? with_sums(record.pod, *record.sums) : record.pod;
}

ResourceList requests_of(const PodRecord& record) {
  return record.sums ? pod_requests(whole_pod(record)) : pod_requests(record.pod);
}

TierSum amounts_requested(const PodRecord& record) {
  const ResourceList requests = requests_of(record);
  return {.pods = 1, .cpu = cpu_of(requests), .memory = Bytes{memory_of(requests).value()}};
}

ResourceList limits_of(const PodRecord& record) {
  return record.sums ? pod_limits(whole_pod(record)) : pod_limits(record.pod);
}

void forget_container(PodRecord& record, const ContainerRecord& ended) {
  if (record.complete) return;
  auto& containers = record.pod.containers;
  const auto described = std::ranges::find(containers, ended.name, &Container::name);
  if (described == containers.end()) return;
  if (ended.state == ContainerState::kLive) remember_sum(record);
  containers.erase(described);
}

Pod with_sums(Pod pod, const EngineSums& sums) {
  Resources whole = pod.resources.value_or(Resources{});
  for (const auto& [name, request] : sums.resources.requests)
    whole.requests.insert_or_assign(name, request);
  for (const auto& [name, limit] : sums.resources.limits) {
    if (sums.enforced || limit_declared(pod, name)) whole.limits.insert_or_assign(name, limit);
  }
  // Empty pod-level resources would make the pod BestEffort (qos.h).
  if (whole != Resources{}) pod.resources = std::move(whole);
  return pod;
}

}  // namespace podqos::core

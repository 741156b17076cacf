#include "common/core/resize.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "common/core/cgroup_values.h"
#include "common/core/claim.h"
#include "common/core/pod_resources.h"

namespace podqos::core {

bool gives_quota(const Resources& known, const EngineResources& now) {
  const auto limit = find(known.limits, kCpu);
  if (!limit) return *now.cpu_quota <= 0;
  return cpu_quota_for(MilliCpu{limit->milli_value()}, now.period()).value() == *now.cpu_quota;
}

namespace {

void set_or_erase(ResourceList& list, std::string_view name, const std::optional<Quantity>& value) {
  if (value)
    list.insert_or_assign(std::string{name}, *value);
  else if (const auto known = list.find(name); known != list.end())
    list.erase(known);
}

void update(Resources& known, const EngineResources& now) {
  const Resources updated = infer_resources(now);
  if (now.cpu_shares && cpu_shares_for(cpu_of(known.requests)).value() != *now.cpu_shares)
    set_or_erase(known.requests, kCpu, find(updated.requests, kCpu));
  if (now.cpu_quota && !gives_quota(known, now))
    set_or_erase(known.limits, kCpu, find(updated.limits, kCpu));
  if (now.memory_limit) set_or_erase(known.limits, kMemory, find(updated.limits, kMemory));
  if (now.memory_reservation)
    set_or_erase(known.requests, kMemory, find(updated.requests, kMemory));
}

void cap_requests(Resources& known) {
  for (auto& [name, request] : known.requests) {
    if (const auto limit = find(known.limits, name)) request = std::min(request, *limit);
  }
}

void raise(ResourceList& pod_level, const ResourceList& sums) {
  for (auto& [name, value] : pod_level) {
    if (const auto sum = find(sums, name)) value = std::max(value, *sum);
  }
}

/// Updates the pod-level resources if the pod has some, else the engine's sums. Sums of requests
/// may exceed those of limits, since containers may lack a limit.
void resize_whole(PodRecord& record, const EngineResources& now) {
  if (record.pod.resources) {
    update(*record.pod.resources, now);
    cap_requests(*record.pod.resources);
    if (*record.pod.resources == Resources{}) record.pod.resources.reset();
    return;
  }
  if (!record.sums) record.sums.emplace();
  update(record.sums->resources, now);
  if (record.sums->resources == Resources{}) record.sums.reset();
}

/// Updates the memory limit that backs the container's request. Updates contain all values, also
/// those that podqos has filled in, so only a limit that differs from the known one is the
/// engine's.
void update_backing(PodRecord& record, const Resize& resize) {
  if (!resize.now.memory_limit) return;
  const Container* known = find_container(record.pod, resize.container);
  const auto limit = known == nullptr ? std::nullopt : find(known->resources.limits, kMemory);
  if (limit && limit->value() == *resize.now.memory_limit) return;
  for (ContainerRecord& container : record.containers) {
    if (container.name != resize.container || !container.backed_memory) continue;
    container.backed_memory = Bytes{std::max<std::int64_t>(*resize.now.memory_limit, 0)};
  }
}

/// True if the containers together request more than the engine says of their pod: then that states
/// pod-level resources, which a container's update does not change.
bool are_pod_level(const EngineSums& sums, const Pod& pod) {
  const ResourceList together = pod_requests(pod, PodLevel::kSkip, Overhead::kSkip);
  return std::ranges::any_of(sums.resources.requests, [&](const auto& request) {
    const auto sum = find(together, request.first);
    return sum && *sum > request.second;
  });
}

}  // namespace

void raise_to_containers(Resources& whole, const Pod& pod) {
  raise(whole.requests, pod_requests(pod, PodLevel::kSkip, Overhead::kSkip));
  raise(whole.limits, pod_limits(pod, PodLevel::kSkip, Overhead::kSkip));
}

bool undo_resize(PodRecord& record, const Identity& identity, const PodClaim& claim) {
  if (identity.source != IdentitySource::kEngine || claim.source != ClassSource::kPodAnnotation)
    return false;
  const Container* const claimed = find_container(claim.pod, identity.container_name);
  Container* const own = find_container(record.pod, identity.container_name);
  if (claimed == nullptr || own == nullptr) return false;
  Pod as_specified = record.pod;
  if (as_specified.resources && claim.pod.resources) as_specified.resources = claim.pod.resources;
  for (auto* list : {&as_specified.containers, &as_specified.init_containers}) {
    for (Container& container : *list) {
      if (const Container* const same = find_container(claim.pod, container.name))
        container.resources = same->resources;
    }
  }
  if (describes_otherwise(claim, as_specified)) return false;
  // An update may come before the start, which then claims the spec once more.
  if (claim.runs_as_specified) own->resources = claimed->resources;
  return true;
}

void apply_resize(PodRecord& record, const Resize& resize) {
  Pod& pod = record.pod;
  if (resize.whole_pod) {
    resize_whole(record, resize.now);
    return;
  }
  update_backing(record, resize);
  const bool pod_level = record.sums && are_pod_level(*record.sums, pod);
  Container* known = find_container(pod, resize.container);
  if (known == nullptr)
    known = &pod.containers.emplace_back(
        Container{.name = resize.container, .kind = ContainerKind::kApp, .resources = {}});
  update(known->resources, resize.now);
  cap_requests(known->resources);
  if (pod.resources) raise_to_containers(*pod.resources, pod);
  if (record.sums && !record.sums->enforced && !pod_level)
    raise_to_containers(record.sums->resources, pod);
}

}  // namespace podqos::core

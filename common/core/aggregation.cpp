#include "common/core/aggregation.h"

#include <algorithm>
#include <functional>

namespace podqos::core {

namespace {

using ListOf = ResourceList Resources::*;

void add(ResourceList& sum, const ResourceList& addend) {
  for (const auto& [name, quantity] : addend) {
    auto& entry = sum[name];
    entry = entry + quantity;
  }
}

/// Calls `visit` with the resources in use at each step of the pod's start: an init container plus
/// the sidecars already running, or for a sidecar the sidecars up to and including it.
/// @return the sum of all sidecars
ResourceList walk_init_containers(const Pod& pod, ListOf list,
                                  const std::function<void(const ResourceList&)>& visit) {
  ResourceList sidecars;
  for (const Container& container : pod.init_containers) {
    const ResourceList& own = container.resources.*list;
    if (container.kind == ContainerKind::kSidecar) {
      add(sidecars, own);
      visit(sidecars);
    } else {
      ResourceList candidate = own;
      add(candidate, sidecars);
      visit(candidate);
    }
  }
  return sidecars;
}

ResourceList aggregate(const Pod& pod, ListOf list) {
  ResourceList running;
  for (const Container& container : pod.containers)
    add(running, container.resources.*list);
  ResourceList starting;
  const auto sidecars = walk_init_containers(
      pod, list, [&](const ResourceList& candidate) { raise_to(starting, candidate); });
  add(running, sidecars);
  raise_to(running, starting);
  return running;
}

void overwrite_supported(ResourceList& sum, const ResourceList& pod_level) {
  for (const auto& [name, quantity] : pod_level) {
    if (is_supported_pod_level_resource(name)) sum.insert_or_assign(name, quantity);
  }
}

}  // namespace

void raise_to(ResourceList& most, const ResourceList& candidate) {
  for (const auto& [name, quantity] : candidate) {
    const auto [entry, inserted] = most.try_emplace(name, quantity);
    if (!inserted) entry->second = std::max(entry->second, quantity);
  }
}

ResourceList pod_requests(const Pod& pod, PodLevel pod_level, Overhead overhead) {
  ResourceList requests = aggregate(pod, &Resources::requests);
  if (pod_level == PodLevel::kInclude && pod.resources) {
    overwrite_supported(requests, pod.resources->requests);
  }
  if (overhead == Overhead::kInclude) add(requests, pod.overhead);
  return requests;
}

ResourceList pod_limits(const Pod& pod, PodLevel pod_level, Overhead overhead) {
  ResourceList limits = aggregate(pod, &Resources::limits);
  if (pod_level == PodLevel::kInclude && pod.resources) {
    overwrite_supported(limits, pod.resources->limits);
  }
  if (overhead == Overhead::kSkip) return limits;
  for (const auto& [name, quantity] : pod.overhead) {
    const auto limit = limits.find(name);
    if (limit != limits.end() && !limit->second.is_zero()) limit->second = limit->second + quantity;
  }
  return limits;
}

bool limit_declared(const Pod& pod, std::string_view resource) {
  const auto is_set = [&](const ResourceList& limits) {
    return !find(limits, resource).value_or(Quantity{}).is_zero();
  };
  if (pod.resources && is_set(pod.resources->limits)) return true;
  bool declared = std::ranges::all_of(pod.containers, [&](const Container& container) {
    return is_set(container.resources.limits);
  });
  walk_init_containers(pod, &Resources::limits,
                       [&](const ResourceList& limits) { declared = declared && is_set(limits); });
  return declared;
}

bool is_supported_pod_level_resource(std::string_view name) {
  return name == kCpu || name == kMemory || name.starts_with(kHugePagesPrefix);
}

}  // namespace podqos::core

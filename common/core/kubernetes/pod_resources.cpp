#include "common/core/kubernetes/pod_resources.h"

#include <cstddef>

#include "common/base/text.h"

namespace podqos::core {

namespace {

using ListOf = ResourceList Resources::*;

void add(ResourceList& sum, const ResourceList& addend) {
  for (const auto& [name, quantity] : addend) {
    auto& entry = sum[name];
    entry = entry + quantity;
  }
}

/// Raises each quantity of `most` to at least that of `candidate`, adding missing resources.
void raise_to(ResourceList& most, const ResourceList& candidate) {
  for (const auto& [name, quantity] : candidate) {
    const auto [entry, inserted] = most.try_emplace(name, quantity);
    if (!inserted) entry->second = std::max(entry->second, quantity);
  }
}

/// Calls `visit` with the resources in use at each step of the pod's start: an init container plus
/// the sidecars already running, or for a sidecar the sidecars up to and including it.
/// @return the sum of all sidecars
template <class Visit>
ResourceList walk_init_containers(const Pod& pod, ListOf list, const Visit& visit) {
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

/// Whether spec.resources may contain the resource.
bool is_supported_pod_level_resource(std::string_view name) {
  return name == kCpu || name == kMemory || name.starts_with(kHugePagesPrefix);
}

void overwrite_supported(ResourceList& sum, const ResourceList& pod_level) {
  for (const auto& [name, quantity] : pod_level)
    if (is_supported_pod_level_resource(name)) sum.insert_or_assign(name, quantity);
}

void default_requests_to_limits(std::vector<Container>& containers) {
  for (Container& container : containers) {
    auto& resources = container.resources;
    resources.requests.insert(resources.limits.begin(), resources.limits.end());
  }
}

void default_pod_hugepage_limits(const Pod& pod, Resources& pod_level) {
  if (pod_level.limits.empty() && pod_level.requests.empty()) return;
  for (const auto& [name, limit] : aggregate(pod, &Resources::limits))
    if (name.starts_with(kHugePagesPrefix) && !pod_level.requests.contains(name))
      pod_level.limits.try_emplace(name, limit);
}

void default_pod_requests(const Pod& pod, Resources& pod_level) {
  if (pod_level.limits.empty()) return;
  for (const auto& [name, request] : aggregate(pod, &Resources::requests)) {
    // Huge pages cannot be overcommitted: their request defaults to the pod-level limit below.
    if (name == kCpu || name == kMemory) pod_level.requests.try_emplace(name, request);
  }
  for (const auto& [name, limit] : pod_level.limits)
    if (is_supported_pod_level_resource(name)) pod_level.requests.try_emplace(name, limit);
}

void round_up(ResourceList& list) {
  for (auto& [name, quantity] : list)
    quantity = quantity.rounded_to_milli();
}

void round_up(Resources& resources) {
  round_up(resources.requests);
  round_up(resources.limits);
}

}  // namespace

std::optional<Quantity> find(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  if (found == list.end()) return std::nullopt;
  return found->second;
}

Quantity memory_of(const ResourceList& list) {
  return find(list, kMemory).value_or(Quantity{});
}

MilliCpu cpu_of(const ResourceList& list) {
  return MilliCpu{find(list, kCpu).value_or(Quantity{}).milli_value()};
}

std::string_view format_qos_class(QosClass qos_class) {
  return word_at(kQosClassNames, static_cast<std::size_t>(qos_class));
}

std::optional<QosClass> parse_qos_class(std::string_view text) {
  return place_of_word(kQosClassNames, text).transform([](std::size_t place) {
    return static_cast<QosClass>(place);
  });
}

Resources sum_of_containers(const Pod& pod) {
  return {.requests = aggregate(pod, &Resources::requests),
          .limits = aggregate(pod, &Resources::limits)};
}

ResourceList pod_requests(const Pod& pod) {
  ResourceList requests = aggregate(pod, &Resources::requests);
  if (pod.resources) overwrite_supported(requests, pod.resources->requests);
  add(requests, pod.overhead);
  return requests;
}

ResourceList pod_limits(const Pod& pod) {
  ResourceList limits = aggregate(pod, &Resources::limits);
  if (pod.resources) overwrite_supported(limits, pod.resources->limits);
  for (const auto& [name, quantity] : pod.overhead) {
    const auto limit = limits.find(name);
    if (limit != limits.end() && !limit->second.is_zero()) limit->second = limit->second + quantity;
  }
  return limits;
}

void take(ResourceList& list, const ResourceList& other, std::string_view name) {
  list.erase(std::string{name});
  if (const auto found = other.find(name); found != other.end()) list.insert(*found);
}

void cap_requests(Resources& resources) {
  for (auto& [name, request] : resources.requests)
    if (const auto limit = find(resources.limits, name)) request = std::min(request, *limit);
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
  for (auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    for (Container& container : *list)
      round_up(container.resources);
  round_up(pod.overhead);
  return pod;
}

bool is_critical(const Pod& pod) {
  return pod.is_static || pod.priority.value_or(0) >= kSystemCriticalPriority;
}

Pod with_priority_of_class(Pod pod) {
  if (pod.priority) return pod;
  if (pod.priority_class_name == "system-cluster-critical") pod.priority = kSystemCriticalPriority;
  if (pod.priority_class_name == "system-node-critical")
    pod.priority = kSystemCriticalPriority + 1000;
  return pod;
}

}  // namespace podqos::core

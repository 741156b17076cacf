#include "common/core/kubernetes/validation.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/base/text.h"

namespace podqos::core {

namespace {

using Problems = std::vector<std::string>;

bool is_hugepages(std::string_view name) {
  return name.starts_with(kHugePagesPrefix);
}

/// Extended resources, those of device plugins, have a domain other than kubernetes.io.
bool is_extended(std::string_view name) {
  return name.contains('/') && !name.contains("kubernetes.io/");
}

constexpr std::string_view kEphemeralStorage = "ephemeral-storage";

bool may_overcommit(std::string_view name) {
  return !is_hugepages(name) && !is_extended(name);
}

/// As people write it: "300m", "64Mi".
std::string shown(std::string_view name, const Quantity& quantity) {
  const MilliCpu cpu{quantity.milli_value()};
  if (name == kCpu && quantity == Quantity::from_milli(cpu.value())) return format_amount(cpu);
  const Bytes bytes{quantity.value()};
  if (is_in_bytes(name) && quantity == Quantity::from_units(bytes.value()))
    return exact_amount(bytes);
  return quantity.format_decimal();
}

void check_quantities(Problems& problems, const ResourceList& list, std::string_view owner,
                      std::string_view what) {
  for (const auto& [name, quantity] : list) {
    const bool negative = quantity.sign() < 0;
    const bool broken = is_extended(name) && !quantity.is_whole();
    if (!negative && !broken) continue;
    const std::string amount =
        cat(owner, ": ", printable(name), " ", what, " ", shown(name, quantity));
    if (negative) problems.push_back(cat(amount, " is negative"));
    if (broken) problems.push_back(cat(amount, " is not a whole number"));
  }
}

void check_requests_against_limits(Problems& problems, const Resources& resources,
                                   std::string_view owner) {
  for (const auto& [name, request] : resources.requests) {
    const auto limit = find(resources.limits, name);
    const auto asked = cat(owner, ": ", printable(name), " request ", shown(name, request));
    if (!limit) {
      if (!may_overcommit(name)) problems.push_back(cat(asked, " needs an equal limit"));
    } else if (!may_overcommit(name) && request != *limit) {
      problems.push_back(cat(asked, " must equal the limit ", shown(name, *limit)));
    } else if (request > *limit) {
      problems.push_back(cat(asked, " exceeds the limit ", shown(name, *limit)));
    }
  }
}

void check_hugepages_company(Problems& problems, const Resources& resources,
                             std::string_view owner) {
  const auto names_any = [&](const auto& predicate) {
    return std::ranges::any_of(resources.requests, predicate, &ResourceList::value_type::first) ||
           std::ranges::any_of(resources.limits, predicate, &ResourceList::value_type::first);
  };
  const auto is_cpu_or_memory = [](std::string_view name) {
    return name == kCpu || name == kMemory;
  };
  if (names_any(is_hugepages) && !names_any(is_cpu_or_memory))
    problems.push_back(cat(owner, ": huge pages require cpu or memory as well"));
}

void check_resources(Problems& problems, const Resources& resources, std::string_view owner) {
  check_quantities(problems, resources.limits, owner, "limit");
  check_quantities(problems, resources.requests, owner, "request");
  check_requests_against_limits(problems, resources, owner);
  check_hugepages_company(problems, resources, owner);
}

void check_against_pod_limits(Problems& problems, const Container& container,
                              const ResourceList& pod_limits) {
  for (const auto& [name, limit] : container.resources.limits) {
    const auto most = find(pod_limits, name);
    if (!most || limit <= *most) continue;
    problems.push_back(cat("container \"", container.name, "\": ", printable(name), " limit ",
                           shown(name, limit), " exceeds the pod's limit ", shown(name, *most)));
  }
}

void check_pod_level(Problems& problems, const Pod& pod, const Resources& pod_level) {
  check_resources(problems, pod_level, "pod");
  const Resources sum = sum_of_containers(pod);
  for (const auto& [name, needed] : sum.requests) {
    const auto request = find(pod_level.requests, name);
    if (!request || needed <= *request) continue;
    problems.push_back(cat("pod: ", printable(name), " request ", shown(name, *request),
                           " is below the containers' ", shown(name, needed)));
  }
  // Init containers are not compared: the pod's limit applies to them.
  for (const Container& container : pod.containers)
    check_against_pod_limits(problems, container, pod_level.limits);
}

/// A name that a container may use: standard, or with a domain.
bool is_container_resource(std::string_view name) {
  return name == kCpu || name == kMemory || name == kEphemeralStorage || is_hugepages(name) ||
         name.contains('/');
}

/// Checks name and, of huge pages, whole pages, as the API server does when it accepts a pod.
void check_resource(Problems& problems, std::string_view owner, const std::string& name,
                    Quantity quantity) {
  if (!is_container_resource(name))
    problems.push_back(cat(owner, ": resource \"", printable(name),
                           "\": expected cpu, memory, ephemeral-storage, hugepages-SIZE, or a "
                           "name with a domain such as example.com/device"));
  if (!is_hugepages(name)) return;
  const auto page = Quantity::parse(name.substr(kHugePagesPrefix.size()));
  if (page && page->value() > 0 && quantity.value() % page->value() == 0) return;
  problems.push_back(cat(owner, ": ", printable(name), " ", shown(name, quantity),
                         " is not a multiple of the page size"));
}

void check_container(Problems& problems, const Container& container) {
  const std::string owner = cat("container \"", printable(container.name), "\"");
  for (const auto* list : {&container.resources.requests, &container.resources.limits})
    for (const auto& [name, quantity] : *list)
      check_resource(problems, owner, name, quantity);
}

void add_fractions(Problems& found, std::string_view owner, const Resources& resources) {
  const auto add = [&](std::string_view name, std::string_view what, Quantity quantity) {
    if (is_in_bytes(name) && !quantity.is_whole())
      found.push_back(cat(owner, ": ", name, " ", what, " is ", describe_fraction(quantity)));
  };
  for (const auto& [name, limit] : resources.limits)
    add(name, "limit", limit);
  for (const auto& [name, request] : resources.requests) {
    // By default a request is the limit.
    if (find(resources.limits, name) != request) add(name, "request", request);
  }
}

}  // namespace

std::vector<std::string> validate(const Pod& pod) {
  Problems problems;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    const char* kind = list == &pod.containers ? "container" : "init container";
    for (const Container& container : *list)
      check_resources(problems, container.resources, cat(kind, " \"", container.name, "\""));
  }
  check_quantities(problems, pod.overhead, "pod", "overhead");
  if (pod.resources) check_pod_level(problems, pod, *pod.resources);
  return problems;
}

std::vector<std::string> validate_manifest(const Pod& pod) {
  Problems problems = validate(pod);
  if (pod.containers.empty())
    problems.emplace_back("spec.containers: a pod needs at least one container");
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const Container& container : *list)
      check_container(problems, container);
  // What is wrong with a limit is wrong with the request that defaults to it.
  Problems once;
  std::ranges::copy_if(problems, std::back_inserter(once),
                       [seen = std::set<std::string>{}](const std::string& problem) mutable {
                         return seen.insert(problem).second;
                       });
  return once;
}

bool is_in_bytes(std::string_view name) {
  return name == kMemory || name == kEphemeralStorage || is_hugepages(name);
}

std::string describe_fraction(Quantity bytes) {
  const std::string amount = bytes.format_decimal();
  std::string likely;
  // "m" is milli: 256m is meant as 256Mi. 1.5 lacks its unit.
  if (bytes.sign() > 0 && bytes < Quantity::from_units(1) &&
      bytes == Quantity::from_milli(bytes.milli_value())) {
    likely = cat(bytes.milli_value(), "Mi");
  } else if (bytes > Quantity::from_units(1)) {
    likely = cat(amount, "Gi");
  }
  return cat(amount, " bytes",
             likely.empty() ? ": expected whole bytes, such as 256Mi"
                            : cat(": did you mean ", likely, "?"));
}

std::vector<std::string> fractional_amounts(const Pod& pod) {
  Problems found;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    for (const Container& container : *list)
      add_fractions(found, cat("container \"", printable(container.name), "\""),
                    container.resources);
  if (pod.resources) add_fractions(found, "pod", *pod.resources);
  add_fractions(found, "pod overhead", {.requests = pod.overhead, .limits = {}});
  return found;
}

std::vector<std::string> low_memory_limits(const Pod& pod) {
  constexpr std::int64_t kLeast = std::int64_t{6} << 20U;
  Problems found;
  const auto check = [&](std::string_view owner, const Resources& resources) {
    const std::int64_t limit = find(resources.limits, kMemory).value_or(Quantity{}).value();
    // A limit of 0 is none.
    if (limit <= 0 || limit >= kLeast) return;
    found.push_back(cat(
        owner, ": memory limit ", format_amount(Bytes{limit}),
        " is too low for a container to start, which takes 6Mi",
        limit > 1 && limit < kLeast / 1024 ? cat(": did you mean ", limit, "Mi?") : std::string{}));
  };
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    for (const Container& container : *list)
      check(cat("container \"", printable(container.name), "\""), container.resources);
  if (pod.resources) check("pod", *pod.resources);
  return found;
}

}  // namespace podqos::core

#include "common/core/kubernetes/qos.h"

#include <array>
#include <cstddef>

#include "common/base/text.h"

namespace podqos::core {

namespace {

/// The resources that determine the class.
constexpr std::array kQosResources{kCpu, kMemory};

/// Sums of positive quantities, in the order of kQosResources; zero means absent.
using QosSums = std::array<Quantity, kQosResources.size()>;

Quantity positive(const ResourceList& list, std::string_view name) {
  const Quantity quantity = find(list, name).value_or(Quantity{});
  return quantity.sign() > 0 ? quantity : Quantity{};
}

/// Sums over the counted containers, or over spec.resources alone.
struct Tally {
  QosSums requests;
  QosSums limits;
  std::string missing;  ///< the first missing limit, because of which it is not Guaranteed
};

/// @param owner  returns the name of the resources' owner; called only if a limit is missing
template <class Owner>
void count(Tally& tally, const Resources& resources, Owner owner) {
  for (std::size_t i = 0; i < kQosResources.size(); ++i) {
    const Quantity limit = positive(resources.limits, kQosResources[i]);
    tally.requests[i] = tally.requests[i] + positive(resources.requests, kQosResources[i]);
    tally.limits[i] = tally.limits[i] + limit;
    if (limit.is_zero() && tally.missing.empty()) {
      tally.missing = cat(owner(), " has no ", kQosResources[i], " limit");
    }
  }
}

Tally tally_containers(const Pod& pod) {
  Tally tally;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    const char* kind = list == &pod.containers ? "container" : "init container";
    for (const Container& container : *list)
      count(tally, container.resources, [&] { return cat(kind, " \"", container.name, "\""); });
  }
  return tally;
}

QosVerdict verdict_for(const Tally& tally, std::string_view owner) {
  if (tally.requests == QosSums{} && tally.limits == QosSums{}) {
    return {.qos_class = QosClass::kBestEffort,
            .reason = cat("no cpu or memory is requested or limited by ", owner)};
  }
  if (!tally.missing.empty()) return {.qos_class = QosClass::kBurstable, .reason = tally.missing};
  for (std::size_t i = 0; i < kQosResources.size(); ++i) {
    if (tally.requests[i] == tally.limits[i]) continue;
    return {.qos_class = QosClass::kBurstable,
            .reason = cat("the ", kQosResources[i], " request of ", owner, " is ",
                          tally.requests[i].format_decimal(), ", the limit ",
                          tally.limits[i].format_decimal())};
  }
  return {.qos_class = QosClass::kGuaranteed,
          .reason = cat("cpu and memory are limited, and requested in full, by ", owner)};
}

}  // namespace

QosVerdict classify(const Pod& pod) {
  if (pod.status_qos_class) {
    return {.qos_class = *pod.status_qos_class,
            .reason = cat("status.qosClass is ", format_qos_class(*pod.status_qos_class))};
  }
  if (!pod.resources) return verdict_for(tally_containers(pod), "the containers");
  Tally tally;
  count(tally, *pod.resources, [] { return "spec.resources"; });
  return verdict_for(tally, "spec.resources");
}

}  // namespace podqos::core

#include "common/core/kubernetes/qos.h"

#include <algorithm>
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
    if (limit.is_zero() && tally.missing.empty())
      tally.missing = cat(owner(), " has no ", kQosResources[i], " limit");
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

/// "300m" or "256Mi": an amount of the resource at this place of kQosResources.
std::string amount_of(std::size_t resource, const Quantity& quantity) {
  return kQosResources.at(resource) == kCpu ? format_amount(MilliCpu{quantity.milli_value()})
                                            : format_amount(Bytes{quantity.value()});
}

QosVerdict verdict_for(const Tally& tally, std::string_view owner) {
  if (tally.requests == QosSums{} && tally.limits == QosSums{})
    return {.qos_class = QosClass::kBestEffort,
            .reason = cat("no cpu or memory is requested or limited by ", owner)};
  if (!tally.missing.empty()) return {.qos_class = QosClass::kBurstable, .reason = tally.missing};
  for (std::size_t i = 0; i < kQosResources.size(); ++i) {
    if (tally.requests[i] == tally.limits[i]) continue;
    return {.qos_class = QosClass::kBurstable,
            .reason = cat(kQosResources[i], " request ", amount_of(i, tally.requests[i]),
                          " differs from limit ", amount_of(i, tally.limits[i]), " of ", owner)};
  }
  return {.qos_class = QosClass::kGuaranteed,
          .reason = cat("cpu and memory are limited, and requested in full, by ", owner)};
}

constexpr std::string_view kNodeCriticalClass = "system-node-critical";
constexpr std::int64_t kMaxScore = 1000;
/// The kubelet's minimum for Burstable containers (3).
constexpr std::int64_t kMinBurstableScore = kMaxScore + kGuaranteedOomScoreAdj;

/// Each container's share of the pod-level memory request beyond the containers' own; may be
/// negative.
std::int64_t share_of_pod_request(const Pod& pod) {
  if (!pod.resources) return 0;
  const std::int64_t pod_request = memory_of(pod.resources->requests).value();
  const auto containers =
      static_cast<std::int64_t>(pod.containers.size() + pod.init_containers.size());
  if (pod_request == 0 || containers == 0) return 0;
  const std::int64_t claimed = memory_of(sum_of_containers(pod).requests).value();
  return saturating_sub(pod_request, claimed) / containers;
}

std::int64_t least_app_request(const Pod& pod) {
  std::int64_t least = kInt64Max;
  for (const Container& container : pod.containers)
    least = std::min(least, memory_of(container.resources.requests).value());
  return least;
}

/// 1000 * request wraps in 64 bits as in the kubelet, so that both compute the same score. This
/// happens only beyond 9.2e15 bytes, more than any node has.
std::int64_t score_for(const OomClaim& claim, Bytes node_memory) {
  const auto bytes = static_cast<std::uint64_t>(saturating_add(claim.request, claim.share));
  const auto scaled = static_cast<std::int64_t>(bytes * std::uint64_t{kMaxScore});
  return saturating_sub(kMaxScore, scaled / node_memory.value());
}

}  // namespace

QosVerdict classify(const Pod& pod) {
  if (pod.status_qos_class)
    return {.qos_class = *pod.status_qos_class,
            .reason = cat("status.qosClass is ", format_qos_class(*pod.status_qos_class))};
  if (!pod.resources) return verdict_for(tally_containers(pod), "the containers");
  Tally tally;
  count(tally, *pod.resources, [] { return "spec.resources"; });
  return verdict_for(tally, "spec.resources");
}

OomClaim oom_claim(const Pod& pod, const Container& container, Bytes node_memory) {
  const OomClaim own{.request = memory_of(container.resources.requests).value(),
                     .share = share_of_pod_request(pod)};
  if (container.kind != ContainerKind::kSidecar || pod.containers.empty()) return own;
  const OomClaim least{.request = least_app_request(pod), .share = own.share, .of_least = true};
  return score_for(least, node_memory) < score_for(own, node_memory) ? least : own;
}

int oom_score_adj(const Pod& pod, QosClass qos_class, const Container& container,
                  Bytes node_memory) {
  if (is_critical(pod) && pod.priority_class_name == kNodeCriticalClass)
    return kGuaranteedOomScoreAdj;
  switch (qos_class) {
    case QosClass::kGuaranteed: return kGuaranteedOomScoreAdj;
    case QosClass::kBestEffort: return kBestEffortOomScoreAdj;
    case QosClass::kBurstable: break;
  }
  if (node_memory.value() <= 0) return kBestEffortOomScoreAdj - 1;
  const std::int64_t score = score_for(oom_claim(pod, container, node_memory), node_memory);
  // Only 1000 itself, which means BestEffort, is lowered; more, by a negative share, is clamped.
  if (score == kBestEffortOomScoreAdj) return kBestEffortOomScoreAdj - 1;
  return static_cast<int>(std::clamp(score, kMinBurstableScore, kMaxScore));
}

}  // namespace podqos::core

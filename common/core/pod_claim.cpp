#include "common/core/pod_claim.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/core/defaulting.h"
#include "common/core/inference.h"

namespace podqos::core {

namespace {

const Container* find_container(const Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    const auto found = std::ranges::find(*list, name, &Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

/// The first limit that the annotation puts above what the engine set for this container, as a
/// sentence; "" if none.
std::string exceeds_engine(const Resources& annotated, const EngineResources& engine) {
  const auto memory = find(annotated.limits, kMemory);
  if (memory && engine.memory_limit && *engine.memory_limit > 0 &&
      memory->value() > *engine.memory_limit) {
    return cat("memory limit ", memory->value(), " exceeds the engine's ", *engine.memory_limit);
  }
  const auto cpu = find(annotated.limits, kCpu);
  if (cpu && engine.cpu_quota && *engine.cpu_quota > 0) {
    const Micros period{engine.cpu_period.value_or(kDefaultPeriod.value())};
    // One quota step of slack: the engine's own conversion has rounded down.
    if (cpu_quota_for(MilliCpu{cpu->milli_value()}, period).value() > *engine.cpu_quota + 1) {
      return cat("cpu limit ", cpu->milli_value(), "m exceeds the engine's quota ",
                 *engine.cpu_quota, "/", period.value());
    }
  }
  return {};
}

void claim_inferred(PodClaim& claim, const Identity& identity, const std::string& name,
                    const ContainerFacts& facts, Bytes node_memory) {
  // A kubelet's own scores encode the memory request; anybody else's mean something else.
  const bool kubelet = identity.placed.has_value() || identity.source == IdentitySource::kEngine;
  Container container{
      .name = name,
      .kind = ContainerKind::kApp,
      .resources = infer_resources(facts.resources, facts.oom_score_adj, kubelet, node_memory)};
  claim.pod.containers.push_back(std::move(container));
  if (!kubelet) claim.pod = with_api_defaults(std::move(claim.pod));
  claim.source = ClassSource::kInference;
  claim.known = true;
}

void claim_short_forms(PodClaim& claim, const std::string& name, const PodqosAnnotations& podqos) {
  claim.pod.resources = podqos.pod_level;
  for (const auto& [container, resources] : podqos.containers) {
    claim.pod.containers.push_back(
        {.name = container, .kind = ContainerKind::kApp, .resources = resources});
  }
  if (find_container(claim.pod, name) == nullptr) {
    claim.pod.containers.push_back({.name = name, .kind = ContainerKind::kApp, .resources = {}});
  }
  claim.pod = with_api_defaults(std::move(claim.pod));
  claim.source = ClassSource::kShortForms;
  claim.complete = podqos.pod_level.has_value();
  claim.known = true;
}

bool claim_annotated(PodClaim& claim, const std::string& name, const ContainerFacts& facts,
                     const PodqosAnnotations& podqos, const Settings& settings) {
  if (settings.trust_annotations == TrustAnnotations::kNone) return false;
  claim.declared_class = podqos.qos_class;
  const bool checked = settings.trust_annotations == TrustAnnotations::kEngineChecked;
  if (podqos.pod) {
    const Container* own = find_container(*podqos.pod, name);
    const std::string excess =
        checked && own != nullptr ? exceeds_engine(own->resources, facts.resources) : "";
    if (excess.empty()) {
      claim.pod = *podqos.pod;
      claim.source = ClassSource::kPodAnnotation;
      claim.complete = true;
      claim.known = true;
      return true;
    }
    claim.warnings.push_back(cat("annotation podqos.io/pod refused: ", excess));
    return false;
  }
  if (!podqos.pod_level && podqos.containers.empty()) return false;
  const auto own = podqos.containers.find(name);
  const std::string excess =
      checked && own != podqos.containers.end() ? exceeds_engine(own->second, facts.resources) : "";
  if (!excess.empty()) {
    claim.warnings.push_back(cat("annotation podqos.io/limits.", name, " refused: ", excess));
    return false;
  }
  claim_short_forms(claim, name, podqos);
  return true;
}

}  // namespace

std::string container_name_for(const Identity& identity, const PodClaim& claim,
                               const ContainerFacts& facts) {
  if (!identity.container_name.empty()) return identity.container_name;
  if (claim.complete && claim.pod.containers.size() == 1 && claim.pod.init_containers.empty()) {
    return claim.pod.containers.front().name;
  }
  return facts.id;
}

PodClaim claim_for(const Identity& identity, const ContainerFacts& facts,
                   const PodqosAnnotations& podqos, const EngineAnnotations& engine,
                   const Settings& settings, Bytes node_memory) {
  PodClaim claim;
  if (identity.placed) claim.engine_class = identity.placed->qos_class;
  const std::string name = identity.container_name.empty() ? facts.id : identity.container_name;
  if (!claim_annotated(claim, name, facts, podqos, settings)) {
    if (!identity.is_sandbox) {
      claim_inferred(claim, identity, name, facts, node_memory);
    } else if (engine.pod_sums) {
      claim.pod.resources = infer_resources(*engine.pod_sums, std::nullopt, false, node_memory);
      claim.source = ClassSource::kCriSums;
      claim.known = !claim.pod.resources->limits.empty() || !claim.pod.resources->requests.empty();
    }
  }
  claim.pod.uid = identity.uid;
  if (!identity.pod_name.empty()) claim.pod.name = identity.pod_name;
  if (!identity.pod_namespace.empty()) claim.pod.pod_namespace = identity.pod_namespace;
  return claim;
}

}  // namespace podqos::core

#include "common/core/pods/claim.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/qos.h"

namespace podqos::core {

namespace {

/// Describes the first quantity of `list` that exceeds the engine's limit of this container; "" if
/// there is none.
std::string exceeds_engine(std::string_view kind, const ResourceList& list,
                           const EngineResources& engine) {
  const auto memory = find(list, kMemory);
  if (memory && engine.memory_limit && *engine.memory_limit > 0 &&
      memory->value() > *engine.memory_limit)
    return cat("memory ", kind, " ", format_amount(Bytes{memory->value()}),
               " exceeds the engine's limit ", format_amount(Bytes{*engine.memory_limit}));
  const auto cpu = find(list, kCpu);
  if (cpu && engine.cpu_quota && *engine.cpu_quota > 0) {
    const Micros period = engine.period();
    // The engine may have rounded its quota down, so 1 us more is accepted.
    if (cpu_quota_for(MilliCpu{cpu->milli_value()}, period).value() > *engine.cpu_quota + 1)
      return cat("cpu ", kind, " ", format_amount(MilliCpu{cpu->milli_value()}),
                 " exceeds the engine's quota ", *engine.cpu_quota, "/", period.value());
  }
  return {};
}

/// The same for annotated resources of this container.
/// @param whole  of its pod, if it is the only container
std::string exceeds_engine(const EngineResources& engine, const Resources* own,
                           const Resources* whole) {
  std::string excess;
  for (const Resources* each : {own, whole}) {
    if (each != nullptr && excess.empty()) excess = exceeds_engine("limit", each->limits, engine);
    if (each != nullptr && excess.empty())
      excess = exceeds_engine("request", each->requests, engine);
  }
  return excess;
}

/// The limits of config.json that an engine makes of a container's.
EngineResources limits_for(const Resources& spec, Micros period) {
  EngineResources made;
  made.memory_limit = find(spec.limits, kMemory).transform(&Quantity::value);
  made.cpu_quota = find(spec.limits, kCpu).transform([&](const Quantity& limit) {
    return cpu_quota_for(MilliCpu{limit.milli_value()}, period).value();
  });
  return made;
}

/// Whether an engine sets these values for a container with this spec. Podman sets a reservation
/// only if it is given one.
bool fits(const Resources& spec, const EngineResources& engine) {
  const auto request = find(spec.requests, kMemory).transform(&Quantity::value);
  const EngineResources made = limits_for(spec, engine.period());
  return (!engine.memory_reservation || engine.memory_reservation == request) &&
         engine.memory_limit == made.memory_limit && engine.cpu_quota == made.cpu_quota;
}

/// True if no limit that the engine gives a container is another than that of its spec.
bool has_no_other_limit(const Resources& spec, const EngineResources& engine) {
  const EngineResources made = limits_for(spec, engine.period());
  return (!engine.memory_limit || engine.memory_limit == made.memory_limit) &&
         (!engine.cpu_quota || engine.cpu_quota == made.cpu_quota);
}

/// The only container of `pod` that has the engine's values; nullptr if none or several have, or if
/// the engine has set none.
const Container* fitting_container(const Pod& pod, const EngineResources& engine) {
  if (!engine.memory_limit && !engine.memory_reservation && !engine.cpu_quota) return nullptr;
  const Container* found = nullptr;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const Container& container : *list) {
      if (!fits(container.resources, engine)) continue;
      if (found != nullptr) return nullptr;
      found = &container;
    }
  }
  return found;
}

bool is_lone(const Pod& pod) {
  return pod.containers.size() == 1 && pod.init_containers.empty();
}

/// Why podqos.io/pod contradicts what the engine says about this container; "" if it does not.
std::string contradiction(const Pod& pod, const std::string& name, bool named_by_engine,
                          const EngineResources& engine) {
  const Container* own = find_container(pod, name);
  if (own == nullptr)
    return named_by_engine ? cat("it has no container \"", printable(name), "\"") : std::string{};
  return exceeds_engine(engine, &own->resources,
                        pod.resources && is_lone(pod) ? &*pod.resources : nullptr);
}

/// See PodClaim::container.
/// @param spec  the whole pod, or nullptr if that is unknown
std::string name_in(const Pod* spec, const Identity& identity, const ContainerFacts& facts) {
  if (!identity.container_name.empty()) return identity.container_name;
  // A sandbox is not a container of the spec, even if that has only one.
  if (spec == nullptr || identity.is_sandbox) return facts.id;
  if (is_lone(*spec)) return spec->containers.front().name;
  // Podman does not pass container names, but sets each container's limits.
  if (identity.sandbox_id.empty()) return facts.id;
  const Container* fitting = fitting_container(*spec, facts.resources);
  return fitting == nullptr ? facts.id : fitting->name;
}

void add_app(PodClaim& claim, const std::string& name, Resources resources) {
  claim.pod.containers.push_back(
      {.name = name, .kind = ContainerKind::kApp, .resources = std::move(resources)});
}

void claim_inferred(PodClaim& claim, const Identity& identity, const ContainerFacts& facts,
                    Bytes node_memory) {
  // Only a kubelet's scores encode the memory request.
  const bool kubelet = identity.placed.has_value() || identity.source == IdentitySource::kEngine;
  const auto score = kubelet ? facts.oom_score_adj : std::nullopt;
  add_app(claim, claim.container, infer_resources(facts.resources, score, node_memory));
  if (!kubelet) claim.pod = with_api_defaults(std::move(claim.pod));
}

/// Bounds what the engine says of a container by its pod's limits.
Resources within(Resources own, const ResourceList& limits) {
  for (ResourceList* const list : {&own.requests, &own.limits})
    for (auto& [name, amount] : *list)
      amount = std::min(amount, find(limits, name).value_or(amount));
  return own;
}

void claim_short_forms(PodClaim& claim, const Identity& identity, const ContainerFacts& facts,
                       const PodqosAnnotations& podqos) {
  claim.pod.resources = podqos.pod_level;
  claim.stated = podqos.containers.contains(claim.container);
  for (const auto& [container, resources] : podqos.containers)
    add_app(claim, container, resources);
  // A sandbox is not in the pod's spec. A container without annotations keeps the engine's values.
  if (!identity.is_sandbox && find_container(claim.pod, claim.container) == nullptr)
    add_app(
        claim, claim.container,
        within(infer_resources(facts.resources), podqos.pod_level.value_or(Resources{}).limits));
  claim.pod = with_api_defaults(std::move(claim.pod));
  // Kubernetes refuses a pod that requests more than its limit.
  if (claim.pod.resources) cap_requests(*claim.pod.resources);
  claim.source = ClassSource::kShortForms;
  claim.complete = podqos.pod_level.has_value();
}

bool claim_pod_annotation(PodClaim& claim, const Identity& identity, const ContainerFacts& facts,
                          const PodqosAnnotations& podqos, bool checked) {
  const Pod& pod = *podqos.pod;
  const std::string name = name_in(&pod, identity, facts);
  const bool named = !identity.container_name.empty() && identity.source == IdentitySource::kEngine;
  const std::string reason =
      checked && !identity.is_sandbox ? contradiction(pod, name, named, facts.resources) : "";
  if (!reason.empty()) {
    claim.warnings.push_back(cat("annotation podqos.io/pod refused: ", reason));
    // A container that the spec does not have may have come later, as one for debugging does.
    claim.refused = find_container(pod, name) != nullptr;
    return false;
  }
  claim.pod = pod;
  const Container* const own = find_container(pod, name);
  claim.runs_as_specified = own != nullptr && has_no_other_limit(own->resources, facts.resources);
  claim.source = ClassSource::kPodAnnotation;
  claim.stated = own != nullptr;
  claim.complete = true;
  return true;
}

/// Warns of requests or limits without memory beside what is left of a split annotation.
void warn_of_split(PodClaim& claim, const Resources& pod_level, const Annotations& annotations) {
  const auto rest = annotations.find(kSplitMemory);
  if (rest == annotations.end()) return;
  const auto lacks_memory = [](const ResourceList& list) {
    return !list.empty() && !list.contains(kMemory);
  };
  const bool requests = lacks_memory(pod_level.requests);
  if (!requests && !lacks_memory(pod_level.limits)) return;
  const std::string_view what = requests ? "request" : "limit";
  claim.warnings.push_back(cat("annotation podqos.io/", what,
                               "s has no memory, but there is an "
                               "annotation memory = \"",
                               printable(rest->second),
                               "\", which is not read: Podman 4.3 splits --annotation at a comma; "
                               "use --annotation podqos.io/memory-",
                               what, "=", printable(rest->second)));
}

bool claim_annotated(PodClaim& claim, const Identity& identity, const ContainerFacts& facts,
                     const PodqosAnnotations& podqos, const Settings& settings) {
  if (settings.trust_annotations == TrustAnnotations::kNone) return false;
  claim.declared_class = podqos.qos_class;
  // What a kubelet's pod requests is what the kubelet says: its author could claim the whole node.
  if (identity.placed) return false;
  const bool checked = settings.trust_annotations == TrustAnnotations::kEngineChecked;
  if (podqos.pod) return claim_pod_annotation(claim, identity, facts, podqos, checked);
  if (!podqos.pod_level && podqos.containers.empty()) return false;
  const auto own = podqos.containers.find(claim.container);
  const bool lone = podqos.pod_level && identity.source == IdentitySource::kLone;
  const std::string excess =
      exceeds_engine(facts.resources, own == podqos.containers.end() ? nullptr : &own->second,
                     lone ? &*podqos.pod_level : nullptr);
  if (checked && !excess.empty()) {
    claim.warnings.push_back(cat("annotations podqos.io/requests and limits refused: ", excess));
    claim.refused = true;
    return false;
  }
  if (podqos.pod_level) warn_of_split(claim, *podqos.pod_level, facts.annotations);
  claim_short_forms(claim, identity, facts, podqos);
  return true;
}

/// Applies a limit that the engine has set for its pod (podman pod create --memory). podqos moves
/// the containers out of the cgroup with that limit, so the claim has to keep it.
void bound_by_engine(PodClaim& claim, const EngineResources& engine) {
  const ResourceList bounds = infer_resources(engine).limits;
  for (const auto& [name, bound] : bounds) {
    const auto own = find(pod_limits(claim.pod), name);
    // In an incomplete pod, containers without a limit may follow.
    if (claim.complete && limit_declared(claim.pod, name) && own && *own <= bound) continue;
    if (claim.source != ClassSource::kInference)
      claim.warnings.push_back(cat("annotations allow the pod more ", name,
                                   " than the engine's pod limit, which applies instead"));
    if (!claim.sums) claim.sums = EngineSums{.resources = {}, .enforced = true};
    claim.sums->resources.limits.insert_or_assign(name, bound);
  }
}

/// Requests are read without the limits, since they may exceed the sum of the limits: containers
/// without a limit have requests too.
void claim_sums(PodClaim& claim, EngineResources reported) {
  EngineSums sums;
  sums.resources.limits = infer_resources(reported).limits;
  reported.cpu_quota.reset();
  reported.memory_limit.reset();
  sums.resources.requests = infer_resources(reported).requests;
  if (sums.resources != Resources{}) claim.sums = std::move(sums);
}

/// The pod overhead for the LinuxContainerResources in which CRI passes it. CPU is exact to a
/// millicpu.
/// @note pkg/kubelet/kuberuntime convertOverheadToLinuxResources: request and limit are equal.
ResourceList overhead_of(const EngineResources& engine) {
  Resources resources = infer_resources(engine);
  // Prefer the request: a limit below 10m was raised to the minimum quota.
  resources.requests.merge(resources.limits);
  return std::move(resources.requests);
}

// Scores that stand for one request: 3 means any larger request, and 999 any request below a
// thousandth of the node's memory or none.
constexpr std::int64_t kLowestBurstableScore = 4;
constexpr std::int64_t kHighestBurstableScore = 998;

std::optional<Quantity> memory_request_from_score(std::int64_t score, Bytes node_memory,
                                                  const std::optional<Quantity>& limit) {
  if (score == kGuaranteedOomScoreAdj) return limit;
  if (score < kLowestBurstableScore || score > kHighestBurstableScore) return std::nullopt;
  // The smallest request with this score, so rounded up.
  constexpr std::int64_t kScale = 1000;
  const std::int64_t whole = node_memory.value() / kScale * (kScale - score);
  const std::int64_t rest = node_memory.value() % kScale * (kScale - score);
  return Quantity::from_units(whole + (rest + kScale - 1) / kScale);
}

/// An amount of bytes; nullopt for none.
std::optional<Quantity> bytes_of(std::optional<std::int64_t> engine) {
  const bool limits = engine && *engine > 0 && *engine < kUnlimitedBytes.value();
  return limits ? std::optional{Quantity::from_units(*engine)} : std::nullopt;
}

}  // namespace

bool describes_otherwise(const PodClaim& claim, const Pod& known) {
  if (claim.source != ClassSource::kShortForms) {
    Pod claimed = claim.pod;
    if (claimed.overhead.empty()) claimed.overhead = known.overhead;  // only the engine reports it
    // Not all ways in tell them.
    claimed.name = known.name;
    claimed.pod_namespace = known.pod_namespace;
    return claimed != known;
  }
  return known.resources.value_or(Resources{}).limits !=
         claim.pod.resources.value_or(Resources{}).limits;
}

PodClaim claim_for(const Identity& identity, const AdmissionRequest& request,
                   const Settings& settings, Bytes node_memory) {
  const ContainerFacts& facts = request.facts;
  const EngineAnnotations& engine = request.engine;
  PodClaim claim;
  if (identity.placed) claim.engine_class = identity.placed->qos_class;
  claim.container = name_in(nullptr, identity, facts);
  claim.known = claim_annotated(claim, identity, facts, request.podqos, settings);
  if (!claim.known) {
    if (engine.pod_sums) claim_sums(claim, *engine.pod_sums);
    if (!identity.is_sandbox) claim_inferred(claim, identity, facts, node_memory);
    if (identity.is_sandbox && claim.sums) claim.source = ClassSource::kCriSums;
    claim.known = !identity.is_sandbox || claim.sums;
  }
  if (engine.pod_bound && !identity.is_sandbox) bound_by_engine(claim, *engine.pod_bound);
  if (engine.pod_overhead && claim.pod.overhead.empty())
    claim.pod.overhead = overhead_of(*engine.pod_overhead);
  claim.container = name_in(claim.complete ? &claim.pod : nullptr, identity, facts);
  claim.pod.uid = identity.uid;
  if (!identity.pod_name.empty()) claim.pod.name = identity.pod_name;
  // Podman tells its pods' names nowhere else; `podman pod create --hostname` makes it another.
  const bool podmans = engine.engine == Engine::kPodman && engine.sandbox_id;
  if (claim.pod.name.empty() && podmans) claim.pod.name = facts.shared_hostname;
  if (!identity.pod_namespace.empty()) claim.pod.pod_namespace = identity.pod_namespace;
  return claim;
}

Resources infer_resources(const EngineResources& engine, std::optional<std::int64_t> kubelets_score,
                          Bytes node_memory) {
  Resources out;
  // A kubelet writes 2 shares for "no request".
  if (engine.cpu_shares && *engine.cpu_shares > kMinShares.value())
    out.requests.emplace(
        kCpu, Quantity::from_milli(milli_cpu_for(CpuShares{*engine.cpu_shares}).value()));
  if (engine.cpu_quota && *engine.cpu_quota > 0) {
    if (const auto limit = milli_cpu_for_quota(Micros{*engine.cpu_quota}, engine.period()))
      out.limits.emplace(kCpu, Quantity::from_milli(limit->value()));
  }
  if (const auto limit = bytes_of(engine.memory_limit)) out.limits.emplace(kMemory, *limit);
  if (const auto reservation = bytes_of(engine.memory_reservation)) {
    out.requests.emplace(kMemory, *reservation);
  } else if (kubelets_score) {
    const auto request =
        memory_request_from_score(*kubelets_score, node_memory, find(out.limits, kMemory));
    if (request) out.requests.emplace(kMemory, *request);
  }
  // Shares may exceed the CPU limit, and a score is imprecise.
  cap_requests(out);
  return out;
}

}  // namespace podqos::core

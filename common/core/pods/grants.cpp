#include "common/core/pods/grants.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/whole_pod.h"

namespace podqos::core {

namespace {

/// all - part, at least 0.
template <class Amount>
Amount less(Amount all, Amount part) {
  return std::max(Amount{saturating_sub(all.value(), part.value())}, Amount{0});
}

/// Warning that the request of one resource does not count in full.
template <class Amount>
std::optional<std::string> describe_cut(const PodRecord& record, std::string_view name,
                                        Amount TierSum::* of, AdmissionPolicy policy,
                                        const Settings& settings) {
  const Amount requested = amounts_requested(record).*of;
  const Amount claimed = record.claimed.*of;
  const bool fits = policy == AdmissionPolicy::kOff;  // nothing is said if it does not
  const bool bounded = settings.max_pod_claim_percent != kPercent;
  if (requested > claimed && (bounded || !fits)) {
    return cat("requests ", name, " ", format_amount(requested), ", of which ",
               format_amount(claimed), " counts: ",
               bounded ? cat("maxPodClaim is ", settings.max_pod_claim_percent,
                             "% of what is allocatable; lower the request or raise maxPodClaim")
                       : "the node has no more allocatable; lower the request");
  }
  const Amount granted = record.granted.*of;
  if (granted >= countable(record, record.claimed, settings).*of || fits) return std::nullopt;
  return cat(
      "requests ", name, " ", format_amount(claimed), ", of which ", format_amount(granted),
      " counts: other pods have requested the rest of what is allocatable; end some, or lower "
      "requests");
}

/// Whether containers are still to come, whose limits may back more of the request.
bool awaits_containers(const PodRecord& record) {
  const auto is_there = [&](const Container& described) {
    return std::ranges::find(record.containers, described.name, &ContainerRecord::name) !=
           record.containers.end();
  };
  return std::ranges::all_of(record.containers, &ContainerRecord::sandbox) ||
         !std::ranges::all_of(record.pod.containers, is_there);
}

}  // namespace

std::optional<Bytes> backed_memory(const PodRecord& record) {
  if (record.adopted) return std::nullopt;
  std::optional<Bytes> sum;
  // All containers have ended, but processes of them are left: nothing backs the request.
  if (record.containers.empty() && record.founded_by == IdentitySource::kEngine) sum = Bytes{0};
  for (const ContainerRecord& container : record.containers) {
    if (!container.backed_memory && container.sandbox) continue;
    if (!container.backed_memory) return std::nullopt;
    sum = Bytes{saturating_add(sum.value_or(Bytes{0}).value(), container.backed_memory->value())};
  }
  return sum;
}

std::optional<Bytes> backing_of(const ContainerFacts& facts, const EngineAnnotations& engine) {
  if (!engine.cri) return std::nullopt;
  const auto memory_of = [](const EngineResources& resources) {
    return std::max<std::int64_t>(resources.memory_limit.value_or(0), 0);
  };
  const std::int64_t overhead =
      engine.is_sandbox && engine.pod_overhead ? memory_of(*engine.pod_overhead) : 0;
  return Bytes{saturating_add(memory_of(facts.resources), overhead)};
}

TierSum countable(const PodRecord& record, TierSum claimed, const Settings& settings) {
  if (record.qos_class == QosClass::kBestEffort) return {.pods = 1, .cpu = {}, .memory = {}};
  const auto backed = settings.reserve_memory_percent ? backed_memory(record) : std::nullopt;
  if (backed) claimed.memory = std::min(claimed.memory, *backed);
  return claimed;
}

std::optional<std::string> describe_uncounted(const PodRecord& record, const Settings& settings) {
  if (record.adopted || record.released_at || record.qos_class == QosClass::kBestEffort)
    return std::nullopt;
  if (auto cut = describe_cut(record, "cpu", &TierSum::cpu, settings.admission.cpu, settings))
    return cut;
  if (auto cut =
          describe_cut(record, "memory", &TierSum::memory, settings.admission.memory, settings))
    return cut;
  const Bytes most = countable(record, record.claimed, settings).memory;
  if (most == record.claimed.memory || awaits_containers(record)) return std::nullopt;
  return cat("requests memory ", format_amount(record.claimed.memory), ", of which ",
             format_amount(most),
             " is reserved, the sum of the memory limits that its engine enforces; set memory "
             "limits of its containers that add up to the request");
}

MilliCpu reserved_cpu(const Settings& settings) {
  return MilliCpu{
      saturating_add(settings.system_reserved.cpu.value(), settings.kube_reserved.cpu.value())};
}

MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity) {
  return less(capacity.cpu, reserved_cpu(settings));
}

Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity) {
  return less(capacity.memory, Bytes{saturating_add(settings.system_reserved.memory.value(),
                                                    settings.kube_reserved.memory.value())});
}

TierSum free_resources(const TierSums& sums, const Settings& settings,
                       const NodeCapacity& capacity) {
  TierSum used = sum_of_own(sums);
  used += sums.adopted;
  return {.pods = 0,
          .cpu = less(allocatable_cpu(settings, capacity), used.cpu),
          .memory = less(allocatable_memory(settings, capacity), used.memory)};
}

Grants grants_for(const PodRecord& record, const TierSums& others, const Settings& settings,
                  const NodeCapacity& capacity) {
  // The kubelet has granted the requests of its pods.
  const std::int64_t percent = record.adopted ? kPercent : settings.max_pod_claim_percent;
  const TierSum most{
      .pods = 1,
      .cpu = MilliCpu{mul_div(allocatable_cpu(settings, capacity).value(), percent, kPercent)},
      .memory = Bytes{mul_div(allocatable_memory(settings, capacity).value(), percent, kPercent)}};
  Grants grants;
  grants.claimed = amounts_requested(record).capped(most);
  grants.granted = countable(record, grants.claimed, settings);
  if (record.adopted) return grants;
  grants.granted = grants.granted.capped(free_resources(others, settings, capacity));
  return grants;
}

void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity) {
  const Grants grants = grants_for(record, others, settings, capacity);
  record.claimed = grants.claimed;
  record.granted = grants.granted;
}

namespace {

/// Whether podqos limits the pod's requests.
bool is_bound_by_us(const PodRecord& record) {
  return !record.adopted && record.qos_class != QosClass::kBestEffort;
}

}  // namespace

bool exceeds_node_cpu(const PodRecord& record) {
  return is_bound_by_us(record) && amounts_requested(record).cpu > record.claimed.cpu;
}

bool exceeds_node(const PodRecord& record) {
  const TierSum requested = amounts_requested(record);
  return is_bound_by_us(record) &&
         (requested.cpu > record.claimed.cpu || requested.memory > record.claimed.memory);
}

namespace {

// The tiers' record is written with each event.
constexpr std::size_t kMostListed = 64;
constexpr std::size_t kMostAtOnce = 4;

}  // namespace

void note_cut(TiersRecord& tiers, const PodRecord& record, const Settings& settings) {
  const TierSum most = countable(record, record.claimed, settings);
  CutEntry entry{
      .uid = record.pod.uid,
      .cpu = MilliCpu{saturating_sub(most.cpu.value(), record.granted.cpu.value())},
      .memory = Bytes{saturating_sub(most.memory.value(), record.granted.memory.value())}};
  const bool cut = !record.released_at && (entry.cpu > MilliCpu{0} || entry.memory > Bytes{0});
  const auto known = std::ranges::find(tiers.cut, entry.uid, &CutEntry::uid);
  if (!cut) {
    forget_cut(tiers, entry.uid);
  } else if (known != tiers.cut.end()) {
    *known = std::move(entry);
  } else if (tiers.cut.size() < kMostListed) {
    tiers.cut.push_back(std::move(entry));
  }
}

void forget_cut(TiersRecord& tiers, std::string_view uid) {
  std::erase_if(tiers.cut, [&](const CutEntry& entry) { return entry.uid == uid; });
}

std::vector<std::string> grantable(const TiersRecord& tiers, const Settings& settings,
                                   const NodeCapacity& capacity) {
  std::vector<std::string> uids;
  TierSum free = free_resources(tiers.sums, settings, capacity);
  for (const CutEntry& entry : tiers.cut) {
    const MilliCpu cpu = std::min(entry.cpu, free.cpu);
    const Bytes memory = std::min(entry.memory, free.memory);
    if (uids.size() == kMostAtOnce) break;
    if (cpu <= MilliCpu{0} && memory <= Bytes{0}) continue;
    uids.push_back(entry.uid);
    free.cpu = MilliCpu{free.cpu.value() - cpu.value()};
    free.memory = Bytes{free.memory.value() - memory.value()};
  }
  return uids;
}

void grant_again(PodRecord& record, TiersRecord& tiers, const Settings& settings,
                 const NodeCapacity& capacity) {
  remove_pod(tiers, record);
  grant_requests(record, tiers.sums, settings, capacity);
  add_pod(tiers, record);
}

}  // namespace podqos::core

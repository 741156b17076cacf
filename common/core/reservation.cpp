#include "common/core/reservation.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/core/whole_pod.h"

namespace podqos::core {

namespace {

template <class Amount>
std::string claim_warning(std::string_view name, Amount requested, Amount claimed,
                          const Settings& settings) {
  const std::string counts = cat("requests ", name, " ", format_amount(requested), ", of which ",
                                 format_amount(claimed), " counts: ");
  if (settings.max_pod_claim_percent == kPercent)
    return cat(counts, "the node has no more allocatable; lower the request");
  return cat(counts, "maxPodClaim is ", settings.max_pod_claim_percent,
             "% of what is allocatable; lower the request or raise maxPodClaim");
}

/// What a pod requests of one resource, and what of it counts.
template <class Amount>
struct Amounts {
  std::string_view name;
  Amount requested;
  Amount claimed;    ///< see Grants
  Amount countable;  ///< of the claim, if the node had room
  Amount granted;
};

/// Warning that the request of one resource does not count in full.
template <class Amount>
std::optional<std::string> describe_cut(const Amounts<Amount>& amounts, AdmissionPolicy policy,
                                        const Settings& settings) {
  const auto& [name, requested, claimed, countable, granted] = amounts;
  const bool fits = policy == AdmissionPolicy::kOff;  // nothing is said if it does not
  const bool bounded = settings.max_pod_claim_percent != kPercent;
  if (requested > claimed && (bounded || !fits))
    return claim_warning(name, requested, claimed, settings);
  if (granted >= countable || fits) return std::nullopt;
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

std::int64_t claimable(std::int64_t capacity, const Settings& settings) {
  return mul_div(capacity, settings.max_pod_claim_percent, kPercent);
}

std::optional<std::string> describe_uncounted(const PodRecord& record, const Settings& settings) {
  if (record.adopted || record.released_at || record.qos_class == QosClass::kBestEffort)
    return std::nullopt;
  const ResourceList requests = requests_of(record);
  const auto cpu = find(requests, kCpu);
  const auto memory = find(requests, kMemory);
  if (auto cut = describe_cut<MilliCpu>({.name = "cpu",
                                         .requested = MilliCpu{cpu ? cpu->milli_value() : 0},
                                         .claimed = record.claimed.cpu,
                                         .countable = record.claimed.cpu,
                                         .granted = record.granted.cpu},
                                        settings.admission.cpu, settings))
    return cut;
  const Bytes most = countable(record, record.claimed, settings).memory;
  if (auto cut = describe_cut<Bytes>({.name = "memory",
                                      .requested = Bytes{memory ? memory->value() : 0},
                                      .claimed = record.claimed.memory,
                                      .countable = most,
                                      .granted = record.granted.memory},
                                     settings.admission.memory, settings))
    return cut;
  if (most == record.claimed.memory || awaits_containers(record)) return std::nullopt;
  return cat("requests memory ", format_amount(record.claimed.memory), ", of which ",
             format_amount(most),
             " is reserved, the sum of the memory limits that its engine enforces; set memory "
             "limits of its containers that add up to the request");
}

}  // namespace podqos::core

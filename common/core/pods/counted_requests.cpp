#include "common/core/pods/counted_requests.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// Warning that a pod requests more of a resource than one pod may claim.
template <class Amount>
std::optional<std::string> describe_cap(std::string_view name, Amount requested, Amount capped,
                                        AdmissionPolicy policy, const Settings& settings) {
  const bool bounded = settings.max_pod_claim_percent != kPercent;
  if (requested <= capped || (!bounded && policy == AdmissionPolicy::kOff)) return std::nullopt;
  return cat("requests ", name, " ", format_amount(requested), ", of which ", format_amount(capped),
             " counts: ",
             bounded ? cat("maxPodClaim is ", settings.max_pod_claim_percent,
                           "% of what is allocatable; lower the request or raise maxPodClaim")
                     : "the node has no more allocatable; lower the request");
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

/// The kubelet's formula, if the weights of its pods tell which.
std::optional<WeightFormula> kubelets_formula(const PodRecords& records,
                                              const std::map<std::string, HeldResources>& held) {
  int log = 0;  // that many more pods have the weight of it
  for (const auto& [uid, values] : held) {
    const auto record = records.find(uid);
    if (record == records.end()) continue;
    const MilliCpu request = amounts_requested(record->second).cpu;
    log += int{gives_share(request, values, WeightFormula::kLog)};
    log -= int{gives_share(request, values, WeightFormula::kLinear)};
  }
  if (log == 0) return std::nullopt;
  return log > 0 ? WeightFormula::kLog : WeightFormula::kLinear;
}

/// What the pod requests by its cgroup; nullopt if that is as known, or does not tell it.
/// @param kubelets  formula; nullopt: any
/// @param nodes  formula, for weights that any may have given
std::optional<MilliCpu> changed_request(const PodRecord& record, const HeldResources& held,
                                        std::optional<WeightFormula> kubelets,
                                        WeightFormula nodes) {
  const bool is_known =
      held.cpu_weight ? *held.cpu_weight > CpuWeight{0} : held.values.cpu_shares.has_value();
  if (!is_known || gives_share(amounts_requested(record).cpu, held, kubelets)) return std::nullopt;
  Pod sum = record.pod;
  sum.resources.reset();
  const MilliCpu together = cpu_of(pod_requests(sum));
  if (gives_share(together, held, kubelets)) return together;
  if (has_new_share(held)) return std::nullopt;
  return milli_cpu_for(held.cpu_weight
                           ? shares_for_weight(*held.cpu_weight, kubelets.value_or(nodes))
                           : CpuShares{*held.values.cpu_shares});
}

}  // namespace

std::optional<Bytes> backed_memory(const PodRecord& record) {
  if (record.kubelets_own) return std::nullopt;
  std::optional<Bytes> sum;
  // All containers have ended, but processes of them are left: nothing backs the request.
  if (record.containers.empty() && record.uid_source == IdentitySource::kEngine) sum = Bytes{0};
  for (const ContainerRecord& container : record.containers) {
    if (!container.backed_memory && container.sandbox) continue;
    if (!container.backed_memory) return std::nullopt;
    sum = sum.value_or(Bytes{0}) + *container.backed_memory;
  }
  return sum;
}

std::optional<Bytes> backing_of(const ContainerFacts& facts, const EngineAnnotations& engine) {
  if (!engine.cri) return std::nullopt;
  const auto memory_of = [](const EngineResources& resources) {
    return Bytes{std::max<std::int64_t>(resources.memory_limit.value_or(0), 0)};
  };
  const bool has_overhead = engine.is_sandbox && engine.pod_overhead;
  return memory_of(facts.resources) + (has_overhead ? memory_of(*engine.pod_overhead) : Bytes{0});
}

void count_requests(PodRecord& record, const Settings& settings, const NodeCapacity& capacity) {
  // The kubelet has admitted its pods.
  const std::int64_t percent = record.kubelets_own ? kPercent : settings.max_pod_claim_percent;
  record.capped_request = amounts_requested(record).capped(
      {.cpu = MilliCpu{mul_div(allocatable_cpu(settings, capacity).value(), percent, kPercent)},
       .memory =
           Bytes{mul_div(allocatable_memory(settings, capacity).value(), percent, kPercent)}});
  record.counted_request = requested_by(record);
  if (const auto backed = keeps_memory(settings) ? backed_memory(record) : std::nullopt)
    record.counted_request.memory = std::min(record.counted_request.memory, *backed);
}

std::string describe_requests(const PodRecord& record) {
  const auto amounts = [](const TierSum& sum) {
    return cat("cpu ", format_amount(sum.cpu), ", memory ", format_amount(sum.memory));
  };
  const TierSum requested = amounts_requested(record);
  const TierSum& counted = record.counted_request;
  const bool is_all = requested.cpu == counted.cpu && requested.memory == counted.memory;
  return cat(amounts(requested), " requested",
             is_all ? "" : cat(", of which ", amounts(counted), " count"));
}

std::optional<std::string> describe_late_requests(const PodRecord& record) {
  const bool is_chosen = record.class_source == ClassSource::kEngine ||
                         record.class_source == ClassSource::kQosAnnotation;
  if (record.qos_class != QosClass::kBestEffort || is_chosen || record.kubelets_own ||
      classify(whole_pod(record.pod, record.sums)).qos_class == QosClass::kBestEffort)
    return std::nullopt;
  return cat(describe_requests(record),
             ": its first container requested nothing, so it is BestEffort; annotate the pod with "
             "podqos.io/pod (podqosctl annotate), then recreate it");
}

std::optional<std::string> describe_uncounted(const PodRecord& record, const Settings& settings) {
  if (record.kubelets_own || record.released_at || record.qos_class == QosClass::kBestEffort)
    return std::nullopt;
  const TierSum requested = amounts_requested(record);
  const TierSum& capped = record.capped_request;
  if (auto words = describe_cap("cpu", requested.cpu, capped.cpu, settings.admission.cpu, settings))
    return words;
  if (auto words = describe_cap("memory", requested.memory, capped.memory,
                                memory_admission(settings), settings))
    return words;
  const Bytes counted = record.counted_request.memory;
  if (counted == capped.memory || awaits_containers(record)) return std::nullopt;
  return cat("requests memory ", format_amount(capped.memory), ", of which ",
             format_amount(counted),
             " is reserved, the sum of the memory limits that its engine enforces; set memory "
             "limits of its containers that add up to the request");
}

std::vector<std::string> follow_kubelet(PodRecords& records,
                                        const std::map<std::string, HeldResources>& held,
                                        WeightFormula formula) {
  const auto kubelets = kubelets_formula(records, held);
  std::vector<std::string> changed;
  for (const auto& [uid, values] : held) {
    const auto found = records.find(uid);
    if (found == records.end() || found->second.qos_class == QosClass::kBestEffort) continue;
    PodRecord& record = found->second;
    const auto request = changed_request(record, values, kubelets, formula);
    if (!request) continue;
    // Overhead is added to what stands for the pod.
    const MilliCpu bare = rest_of(*request, cpu_of(record.pod.overhead));
    if (!record.sums) record.sums.emplace();
    record.sums->resources.requests.insert_or_assign(std::string{kCpu},
                                                     Quantity::from_milli(bare.value()));
    changed.push_back(uid);
  }
  return changed;
}

}  // namespace podqos::core

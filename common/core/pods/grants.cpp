#include "common/core/pods/grants.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// What of a pod's claim is granted if the node has room.
TierSum countable(const PodRecord& record, const Settings& settings) {
  TierSum most = requested_by(record);
  const bool reserves = settings.reserve_memory_percent || reserves_memory(settings);
  const auto backed = reserves ? backed_memory(record) : std::nullopt;
  if (backed) most.memory = std::min(most.memory, *backed);
  return most;
}

/// What is allocatable and neither granted to pods of podqos's own nor requested by a kubelet's;
/// `pods` is 0.
TierSum free_resources(const TierSums& sums, const Settings& settings,
                       const NodeCapacity& capacity) {
  TierSum used = sum_of_own(sums);
  used += sums.kubelets;
  return {.pods = 0,
          .cpu = rest_of(allocatable_cpu(settings, capacity), used.cpu),
          .memory = rest_of(allocatable_memory(settings, capacity), used.memory)};
}

/// Warning that the request of one resource does not count in full.
template <class Amount>
std::optional<std::string> describe_cut(const PodRecord& record, std::string_view name,
                                        Amount TierSum::* of, AdmissionPolicy policy,
                                        const Settings& settings) {
  const Amount requested = amounts_requested(record).*of;
  const Amount capped = record.capped_request.*of;
  const bool fits = policy == AdmissionPolicy::kOff;  // nothing is said if it does not
  const bool bounded = settings.max_pod_claim_percent != kPercent;
  if (requested > capped && (bounded || !fits)) {
    return cat("requests ", name, " ", format_amount(requested), ", of which ",
               format_amount(capped), " counts: ",
               bounded ? cat("maxPodClaim is ", settings.max_pod_claim_percent,
                             "% of what is allocatable; lower the request or raise maxPodClaim")
                       : "the node has no more allocatable; lower the request");
  }
  const Amount counted = record.counted_request.*of;
  if (counted >= countable(record, settings).*of || fits) return std::nullopt;
  return cat(
      "requests ", name, " ", format_amount(capped), ", of which ", format_amount(counted),
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
  if (auto cut = describe_cut(record, "cpu", &TierSum::cpu, settings.admission.cpu, settings))
    return cut;
  if (auto cut =
          describe_cut(record, "memory", &TierSum::memory, settings.admission.memory, settings))
    return cut;
  const Bytes most = countable(record, settings).memory;
  if (most == record.capped_request.memory || awaits_containers(record)) return std::nullopt;
  return cat("requests memory ", format_amount(record.capped_request.memory), ", of which ",
             format_amount(most),
             " is reserved, the sum of the memory limits that its engine enforces; set memory "
             "limits of its containers that add up to the request");
}

MilliCpu reserved_cpu(const Settings& settings) {
  return settings.system_reserved.cpu + settings.kube_reserved.cpu;
}

MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity) {
  return rest_of(capacity.cpu, reserved_cpu(settings));
}

Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity) {
  return rest_of(capacity.memory, settings.system_reserved.memory + settings.kube_reserved.memory +
                                      capacity.hugepages);
}

void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity) {
  // The kubelet has granted the requests of its pods.
  const std::int64_t percent = record.kubelets_own ? kPercent : settings.max_pod_claim_percent;
  record.capped_request = amounts_requested(record).capped(
      {.cpu = MilliCpu{mul_div(allocatable_cpu(settings, capacity).value(), percent, kPercent)},
       .memory =
           Bytes{mul_div(allocatable_memory(settings, capacity).value(), percent, kPercent)}});
  record.counted_request = countable(record, settings);
  if (!record.kubelets_own)
    record.counted_request =
        record.counted_request.capped(free_resources(others, settings, capacity));
}

namespace {

// The tiers' record is written with each event.
constexpr std::size_t kMostListed = 64;
constexpr std::size_t kMostAtOnce = 4;

}  // namespace

void note_cut(TiersRecord& tiers, const PodRecord& record, const Settings& settings) {
  const TierSum most = countable(record, settings);
  CutEntry entry{.uid = record.pod.uid,
                 .cpu = most.cpu - record.counted_request.cpu,
                 .memory = most.memory - record.counted_request.memory};
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
    free.cpu = free.cpu - cpu;
    free.memory = free.memory - memory;
  }
  return uids;
}

void grant_again(PodRecord& record, TiersRecord& tiers, const Settings& settings,
                 const NodeCapacity& capacity) {
  remove_pod(tiers, record);
  grant_requests(record, tiers.sums, settings, capacity);
  add_pod(tiers, record);
}

void grant_all(PodRecords& records, TiersRecord& tiers, const Settings& settings,
               const NodeCapacity& capacity) {
  std::vector<PodRecord*> own;
  for (const CutEntry& entry : tiers.cut) {
    const auto record = records.find(entry.uid);
    if (record != records.end() && !record->second.kubelets_own) own.push_back(&record->second);
  }
  for (auto& [uid, record] : records) {
    if (record.kubelets_own) continue;
    own.push_back(&record);
    PodRecord most = record;
    grant_requests(most, {}, settings, capacity);
    remove_pod(tiers, record);
    record.counted_request = record.counted_request.capped(most.counted_request);
    add_pod(tiers, record);
  }
  for (PodRecord* record : own)
    grant_again(*record, tiers, settings, capacity);
}

namespace {

constexpr std::size_t kNamedHolders = 3;

/// True if the pod's requests are in the sums.
bool is_counted(const std::optional<PodRecord>& pod) {
  return pod && !pod->released_at;
}

/// ", most of it pod 1 2, pod 2 500m", the largest first.
template <class Amount>
std::string name_holders(const NodeFit& fit, Amount TierSum::* resource) {
  std::vector<PodShare> pods = fit.holders;
  std::erase_if(pods, [&](const PodShare& pod) { return pod.requested.*resource == Amount{}; });
  if (pods.empty()) return {};
  std::ranges::stable_sort(pods, std::ranges::greater{},
                           [&](const PodShare& pod) { return pod.requested.*resource; });
  pods.resize(std::min(pods.size(), kNamedHolders));
  std::string names;
  for (const PodShare& pod : pods)
    names += cat(names.empty() ? ", most of it " : ", ", pod.name, " with ",
                 format_amount(pod.requested.*resource));
  return names;
}

/// Why the pod's request of CPU or memory does not fit; "" if it does.
template <class Amount>
std::string describe_shortage(const NodeFit& fit, std::string_view name, Amount allocatable,
                              Amount TierSum::* resource) {
  const Amount request = amounts_requested(fit.pod).*resource;
  const Amount held = fit.others.requested.*resource + fit.others.kubelets.*resource;
  const Amount free = rest_of(allocatable, held);
  const bool had = is_counted(fit.before) && request <= amounts_requested(*fit.before).*resource;
  if (request <= free || had) return {};
  return cat("requests ", name, " ", format_amount(request), ", of which ", format_amount(free),
             " is free: ", format_amount(allocatable), " is allocatable, and other pods have ",
             format_amount(held), name_holders(fit, resource));
}

}  // namespace

Status check_node_fit(const NodeFit& fit, const Settings& settings) {
  if (fit.pod.kubelets_own) return {};
  std::string reasons;
  std::string fields;
  const auto check = [&](AdmissionPolicy policy, std::string_view name, const auto& describe) {
    const std::string reason = policy == AdmissionPolicy::kEnforce ? describe() : std::string{};
    if (reason.empty()) return;
    reasons += cat(reasons.empty() ? "" : "; ", reason);
    fields += cat(fields.empty() ? "" : " and ", "admission.", name);
  };
  if (fit.pod.qos_class != QosClass::kBestEffort) {
    check(settings.admission.cpu, "cpu", [&] {
      return describe_shortage(fit, kCpu, allocatable_cpu(settings, fit.capacity), &TierSum::cpu);
    });
    check(settings.admission.memory, "memory", [&] {
      return describe_shortage(fit, kMemory, allocatable_memory(settings, fit.capacity),
                               &TierSum::memory);
    });
  }
  check(settings.admission.pids, "pids", [&] { return describe_pids(fit, settings).value_or(""); });
  if (reasons.empty()) return {};
  return fail(ErrorCode::kRefused,
              cat(reasons, "; end pods, lower requests, or set ", fields, R"( to "warn")"));
}

std::optional<std::string> describe_pids(const NodeFit& fit, const Settings& settings) {
  if (fit.pod.kubelets_own || is_counted(fit.before)) return std::nullopt;
  TierSums sums = fit.others;
  ++sums.of(fit.pod.qos_class).pods;
  return describe_pids(sums, settings, fit.capacity);
}

std::optional<std::string> describe_pids(const TierSums& sums, const Settings& settings,
                                         const NodeCapacity& capacity) {
  if (settings.admission.pids == AdmissionPolicy::kOff || !settings.pod_pids_limit ||
      capacity.pids <= 0)
    return std::nullopt;
  const std::int64_t pods = sum_of_own(sums).pods;
  if (pods <= capacity.pids / *settings.pod_pids_limit) return std::nullopt;
  return cat("podPidsLimit ", *settings.pod_pids_limit, " for each of ", pods,
             " pods is more than the node's ", capacity.pids,
             " processes: lower podPidsLimit, or raise kernel.pid_max");
}

}  // namespace podqos::core

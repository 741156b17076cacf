#include "common/core/pods/node_fit.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "common/base/text.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

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

/// What lacks of the resources that have a policy.
struct Shortages {
  std::string reasons;
  std::string fields;  ///< "admission.cpu and admission.memory"
  void add(std::string_view name, const std::string& reason) {
    if (reason.empty()) return;
    reasons += cat(reasons.empty() ? "" : "; ", reason);
    fields += cat(fields.empty() ? "" : " and ", "admission.", name);
  }
};

/// CPU and memory that lack, of those with one of these policies.
Shortages find_shortages(const NodeFit& fit, const Settings& settings,
                         std::initializer_list<AdmissionPolicy> policies) {
  Shortages found;
  if (fit.pod.kubelets_own || fit.pod.qos_class == QosClass::kBestEffort) return found;
  const auto is_checked = [&](AdmissionPolicy policy) {
    return std::ranges::find(policies, policy) != policies.end();
  };
  if (is_checked(settings.admission.cpu))
    found.add(kCpu,
              describe_shortage(fit, kCpu, allocatable_cpu(settings, fit.capacity), &TierSum::cpu));
  if (is_checked(memory_admission(settings)))
    found.add(kMemory, describe_shortage(fit, kMemory, allocatable_memory(settings, fit.capacity),
                                         &TierSum::memory));
  return found;
}

}  // namespace

Status check_node_fit(const NodeFit& fit, const Settings& settings) {
  Shortages found = find_shortages(fit, settings, {AdmissionPolicy::kEnforce});
  if (settings.admission.pids == AdmissionPolicy::kEnforce)
    found.add("pids", describe_pids(fit, settings).value_or(""));
  if (found.reasons.empty()) return {};
  return fail(ErrorCode::kRefused, cat(found.reasons, "; end pods, lower requests, or set ",
                                       found.fields, R"( to "warn")"));
}

std::optional<std::string> describe_overcommitment(const NodeFit& fit, const Settings& settings,
                                                   bool is_enforced) {
  using enum AdmissionPolicy;
  const Shortages found = is_enforced ? find_shortages(fit, settings, {kWarn})
                                      : find_shortages(fit, settings, {kWarn, kEnforce});
  if (found.reasons.empty()) return std::nullopt;
  return cat(found.reasons, "; it starts nevertheless: end pods, or lower requests");
}

std::optional<std::string> describe_overcommitment(const TierSums& sums, const Settings& settings,
                                                   const NodeCapacity& capacity) {
  Shortages found;
  const auto check = [&](std::string_view name, AdmissionPolicy policy, auto allocatable,
                         auto TierSum::* of) {
    const auto requested = sums.requested.*of + sums.kubelets.*of;
    if (policy != AdmissionPolicy::kOff && requested > allocatable)
      found.add(name, cat(name, " ", format_amount(requested), " of ", format_amount(allocatable)));
  };
  check(kCpu, settings.admission.cpu, allocatable_cpu(settings, capacity), &TierSum::cpu);
  check(kMemory, memory_admission(settings), allocatable_memory(settings, capacity),
        &TierSum::memory);
  if (found.reasons.empty()) return std::nullopt;
  return cat("pods request more than is allocatable, ", found.reasons,
             ": busy ones share it in proportion to their requests; end pods, or lower requests");
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

#include "common/core/pods/node_fit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/text.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/whole_pod.h"

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
  const auto requested = [&](const PodRecord& pod) {
    return (amounts_requested(pod).*resource).value();
  };
  const std::int64_t request = requested(fit.pod);
  const std::int64_t held = saturating_add((fit.others.requested.*resource).value(),
                                           (fit.others.adopted.*resource).value());
  const std::int64_t free = std::max<std::int64_t>(saturating_sub(allocatable.value(), held), 0);
  if (request <= free || (is_counted(fit.before) && request <= requested(*fit.before))) return {};
  return cat("requests ", name, " ", format_amount(Amount{request}), ", of which ",
             format_amount(Amount{free}), " is free: ", format_amount(allocatable),
             " is allocatable, and other pods have ", format_amount(Amount{held}),
             name_holders(fit, resource));
}

}  // namespace

Status check_node_fit(const NodeFit& fit, const Settings& settings) {
  if (fit.pod.adopted) return {};
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
  if (fit.pod.adopted || is_counted(fit.before)) return std::nullopt;
  TierSums sums = fit.others;
  add_pod(sums, fit.pod);
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

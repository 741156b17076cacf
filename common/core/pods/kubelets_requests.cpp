#include "common/core/pods/kubelets_requests.h"

#include <array>
#include <optional>
#include <span>

#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

constexpr std::array kLinearOnly = {WeightFormula::kLinear};
constexpr std::array kLogOnly = {WeightFormula::kLog};

/// The formulas that the kubelet may have: one, where the weights of its pods tell which.
std::span<const WeightFormula> possible_formulas(const PodRecords& records,
                                                 const std::map<std::string, HeldResources>& held) {
  int log = 0;  // that many more pods have the weight of it
  for (const auto& [uid, values] : held) {
    const auto record = records.find(uid);
    if (record == records.end()) continue;
    const MilliCpu request = amounts_requested(record->second).cpu;
    log += int{gives_share(request, values, kLogOnly)};
    log -= int{gives_share(request, values, kLinearOnly)};
  }
  if (log == 0) return kWeightFormulas;
  return log > 0 ? kLogOnly : kLinearOnly;
}

/// What the pod requests by its cgroup; nullopt if that is as known, or does not tell it.
/// @param formula  for weights that both formulas may have given
std::optional<MilliCpu> changed_request(const PodRecord& record, const HeldResources& held,
                                        std::span<const WeightFormula> formulas,
                                        WeightFormula formula) {
  const bool is_known =
      held.cpu_weight ? *held.cpu_weight > CpuWeight{0} : held.values.cpu_shares.has_value();
  if (!is_known || gives_share(amounts_requested(record).cpu, held, formulas)) return std::nullopt;
  Pod sum = record.pod;
  sum.resources.reset();
  const MilliCpu together = cpu_of(pod_requests(sum));
  if (gives_share(together, held, formulas)) return together;
  if (has_new_share(held)) return std::nullopt;
  if (formulas.size() == 1) formula = formulas.front();
  return milli_cpu_for(held.cpu_weight ? shares_for_weight(*held.cpu_weight, formula)
                                       : CpuShares{*held.values.cpu_shares});
}

}  // namespace

std::vector<std::string> follow_kubelet(PodRecords& records,
                                        const std::map<std::string, HeldResources>& held,
                                        WeightFormula formula) {
  const auto formulas = possible_formulas(records, held);
  std::vector<std::string> changed;
  for (const auto& [uid, values] : held) {
    const auto found = records.find(uid);
    if (found == records.end() || found->second.qos_class == QosClass::kBestEffort) continue;
    PodRecord& record = found->second;
    const auto request = changed_request(record, values, formulas, formula);
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

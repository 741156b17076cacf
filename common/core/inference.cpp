#include "common/core/inference.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/core/cpu.h"
#include "common/core/oom.h"

namespace podqos::core {

namespace {

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

}  // namespace

Resources infer_resources(const EngineResources& engine, std::optional<std::int64_t> oom_score_adj,
                          bool believe_oom_score, Bytes node_memory) {
  Resources out;
  // A kubelet writes 2 shares for "no request".
  if (engine.cpu_shares && *engine.cpu_shares > kMinShares.value()) {
    out.requests.emplace(
        kCpu, Quantity::from_milli(milli_cpu_for(CpuShares{*engine.cpu_shares}).value()));
  }
  if (engine.cpu_quota && *engine.cpu_quota > 0) {
    const Micros period{engine.cpu_period.value_or(kDefaultPeriod.value())};
    if (const auto limit = milli_cpu_for_quota(Micros{*engine.cpu_quota}, period))
      out.limits.emplace(kCpu, Quantity::from_milli(limit->value()));
  }
  if (engine.memory_limit && *engine.memory_limit > 0) {
    out.limits.emplace(kMemory, Quantity::from_units(*engine.memory_limit));
  }
  if (engine.memory_reservation && *engine.memory_reservation > 0) {
    out.requests.emplace(kMemory, Quantity::from_units(*engine.memory_reservation));
  } else if (believe_oom_score && oom_score_adj) {
    const auto request =
        memory_request_from_score(*oom_score_adj, node_memory, find(out.limits, kMemory));
    if (request) out.requests.emplace(kMemory, *request);
  }
  // Shares may exceed the CPU limit and a score is imprecise, but a request cannot exceed its
  // limit.
  for (auto& [name, request] : out.requests) {
    if (const auto limit = find(out.limits, name)) request = std::min(request, *limit);
  }
  return out;
}

}  // namespace podqos::core

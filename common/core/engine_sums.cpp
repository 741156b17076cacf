#include "common/core/engine_sums.h"

#include <utility>

#include "common/core/aggregation.h"
#include "common/core/inference.h"

namespace podqos::core {

Pod with_sums(Pod pod, const EngineSums& sums) {
  Resources whole = pod.resources.value_or(Resources{});
  for (const auto& [name, request] : sums.resources.requests)
    whole.requests.insert_or_assign(name, request);
  for (const auto& [name, limit] : sums.resources.limits) {
    if (sums.enforced || limit_declared(pod, name)) whole.limits.insert_or_assign(name, limit);
  }
  // Empty pod-level resources would make the pod BestEffort (qos.h).
  if (whole != Resources{}) pod.resources = std::move(whole);
  return pod;
}

ResourceList overhead_of(const EngineResources& engine) {
  Resources resources = infer_resources(engine, std::nullopt, false, Bytes{0});
  // Prefer the request: a limit below 10m was raised to the minimum quota.
  resources.requests.merge(resources.limits);
  return std::move(resources.requests);
}

}  // namespace podqos::core

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
  // Empty ones would stand for the containers' own.
  if (whole != Resources{}) pod.resources = std::move(whole);
  return pod;
}

ResourceList overhead_of(const EngineResources& told) {
  Resources read = infer_resources(told, std::nullopt, false, Bytes{0});
  // What is in both is the request, which no least quota has raised.
  read.requests.merge(read.limits);
  return std::move(read.requests);
}

}  // namespace podqos::core

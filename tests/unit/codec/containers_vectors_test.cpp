#include <gtest/gtest.h>

#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/oom.h"
#include "common/core/kubernetes/qos.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;

core::ContainerMemoryParams memory_params(const json& row) {
  const auto& params = row.at("params");
  return {
      .limited_swap = params.at("swapBehavior") == "LimitedSwap",
      .swap_controller_available = params.at("swapControllerAvailable").get<bool>(),
      .node_memory = Bytes{row.at("nodeMemoryBytes").get<std::int64_t>()},
      .swap_capacity = Bytes{params.at("swapCapacityBytes").get<std::int64_t>()},
  };
}

/// The vectors' node has 2 MB and 1 GB pages; other sizes never reach a container there.
json hugepages_json(const core::HugePageLimits& limits) {
  json out{{"2MB", 0}, {"1GB", 0}};
  for (const auto& [label, limit] : limits) {
    if (out.contains(label)) out[label] = limit.value();
  }
  return out;
}

json describe(const core::Pod& pod, const core::Container& container, const json& row) {
  const bool enforce_cpu_limits = row.at("params").at("cpuCFSQuota").get<bool>();
  const auto values =
      core::container_cgroup_values(pod, container, {.enforce_cpu_limits = enforce_cpu_limits});
  if (!values) {
    ADD_FAILURE() << values.error().message;
    return {};
  }
  const auto qos_class = core::classify(pod).qos_class;
  const auto params = memory_params(row);
  const auto unified = core::container_unified_values(pod, qos_class, container, params);
  return {
      {"cpuShares", values->cpu_shares.value().value()},
      {"cpuQuotaUs", values->cpu_quota.value_or(Micros{0}).value()},
      {"cpuPeriodUs", values->cpu_period.value_or(Micros{0}).value()},
      {"memoryLimitBytes", values->memory_limit.value().value()},
      {"hugepages", hugepages_json(values->hugepages)},
      {"oomScoreAdj", core::oom_score_adj(pod, qos_class, container, params.node_memory)},
      {"unified", unified.empty() ? json{} : json(unified)},
  };
}

/// Without Memory QoS, which podqos leaves to a kubelet.
json expected(json containers) {
  for (json& values : containers) {
    json& unified = values.at("unified");
    for (const char* file : {"memory.min", "memory.low", "memory.high"})
      if (unified.is_object()) unified.erase(file);
    if (unified.empty()) unified = json{};
  }
  return containers;
}

TEST(ContainersVectors, EveryValueOfEveryContainerIsKubernetes) {
  const auto rows = vectors::read_rows("containers");
  ASSERT_EQ(rows.size(), 200U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto pod = vectors::pod_of(row.at("pod"));
    json containers = json::object();
    for (const auto* list : {&pod.containers, &pod.init_containers}) {
      for (const auto& container : *list) {
        containers[container.name] = describe(pod, container, row);
      }
    }
    const json want = expected(row.at("expectContainersDefaulted"));
    EXPECT_EQ(containers, want) << json::diff(want, containers).dump();
  }
}

}  // namespace
}  // namespace podqos::codec

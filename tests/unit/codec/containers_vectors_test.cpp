#include <gtest/gtest.h>

#include "common/core/container_config.h"
#include "common/core/memory_qos.h"
#include "common/core/oom.h"
#include "common/core/qos.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;

core::ContainerMemoryQosParams memory_params(const json& row) {
  const auto& params = row.at("params");
  const auto bytes = [&](const char* name) { return Bytes{params.at(name).get<std::int64_t>()}; };
  return {
      .enforce_memory_qos = params.at("enforceMemoryQoS").get<bool>(),
      .reservation_policy = params.at("memoryReservationPolicy") == "TieredReservation"
                                ? core::MemoryReservationPolicy::kTieredReservation
                                : core::MemoryReservationPolicy::kNone,
      .throttling_factor = params.at("memoryThrottlingFactor").get<double>(),
      .node_allocatable_memory = bytes("nodeAllocatableMemoryBytes"),
      .page_size = Bytes{4096},
      .limited_swap = params.at("swapBehavior") == "LimitedSwap",
      .swap_controller_available = params.at("swapControllerAvailable").get<bool>(),
      .node_memory = Bytes{row.at("nodeMemoryBytes").get<std::int64_t>()},
      .swap_capacity = bytes("swapCapacityBytes"),
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
    EXPECT_EQ(containers, row.at("expectContainersDefaulted"))
        << json::diff(row.at("expectContainersDefaulted"), containers).dump();
  }
}

}  // namespace
}  // namespace podqos::codec

// What Kubernetes 1.36's own code makes of pods: classes, sums, scores, values and names; refusals;
// values of their containers; values of the tiers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/kubernetes/validation.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;

/// A number, or null.
json number(const auto& value) {
  return value ? json(value->value()) : json{};
}

/// "1500m" → "1.5", as podqos writes values.
std::string decimal(const std::string& text) {
  const auto quantity = core::Quantity::parse(text);
  return quantity ? quantity->format_decimal() : cat("malformed ", text);
}

json describe(const core::ResourceList& sums) {
  json all = json::object();
  for (const auto& [name, quantity] : sums)
    all[name] = quantity.format_decimal();
  const auto cpu = core::find(sums, core::kCpu);
  return {{"all", all},
          {"cpuMilli", cpu ? json(cpu->milli_value()) : json{}},
          {"memoryBytes", number(core::find(sums, core::kMemory))}};
}

json describe(const core::Pod& pod, const json& row) {
  const json& params = row.at("params");
  const auto qos_class = core::classify(pod).qos_class;
  const auto values = core::pod_cgroup_values(
      pod, qos_class,
      {.enforce_cpu_limits = params.at("enforceCPULimits").get<bool>(),
       .cpu_period = Micros{params.at("cpuPeriodUs").get<std::int64_t>()},
       .reserve_memory = params.at("enforceMemoryQoS").get<bool>() &&
                         params.at("memoryReservationPolicy") == "TieredReservation"});
  if (!values) return values.error().message;
  const Bytes node_memory{row.at("nodeMemoryBytes").get<std::int64_t>()};
  json scores = json::object();
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const auto& container : *list)
      scores[container.name] = core::oom_score_adj(pod, qos_class, container, node_memory);
  json hugetlb = json::object();
  for (const auto& [label, limit] : values->hugepages)
    hugetlb[label] = limit.value();
  const auto weight = [&](core::WeightFormula formula) {
    return core::cpu_weight_for(values->cpu_shares.value_or(CpuShares{}), formula).value();
  };
  const auto path = [&](core::Driver driver) {
    const auto root = params.at("cgroupRoot").get<std::string>();
    return core::pod_path(core::root_path(root, driver), qos_class, pod.uid);
  };
  return {{"qosClass", core::format_qos_class(qos_class)},
          {"podRequests", describe(core::pod_requests(pod))},
          {"podLimits", describe(core::pod_limits(pod))},
          {"oomScoreAdj", scores},
          {"cpuShares", number(values->cpu_shares)},
          {"cpuWeightLinear", weight(core::WeightFormula::kLinear)},
          {"cpuWeightLog", weight(core::WeightFormula::kLog)},
          {"cpuQuotaUs", number(values->cpu_quota)},
          {"cpuPeriodUs", number(values->cpu_period)},
          {"memoryLimitBytes", number(values->memory_limit)},
          {"hugetlb", hugetlb},
          {"unified", values->unified.empty() ? json{} : json(values->unified)},
          {"cgroupfs", path(core::Driver::kCgroupfs)},
          {"systemd", path(core::Driver::kSystemd)}};
}

TEST(PodsVectors, EveryValueOfEveryPodIsKubernetes) {
  const auto rows = vectors::read_rows("pods");
  ASSERT_EQ(rows.size(), 437U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    json want = row.at("expect");
    for (const char* sums : {"podRequests", "podLimits"})
      for (json& amount : want.at(sums).at("all"))
        amount = decimal(amount.get<std::string>());
    const json pod = describe(vectors::pod_of(row.at("pod")), row);
    EXPECT_EQ(pod, want) << json::diff(want, pod).dump();
  }
}

TEST(PodsVectors, EveryPodIsValid) {
  for (const auto& row : vectors::read_rows("pods")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    for (const auto& problem : core::validate(vectors::pod_of(row.at("pod")))) {
      ADD_FAILURE() << problem << "\n" << row.at("pod").dump();
    }
  }
}

TEST(PodsVectors, ASpecWrittenAndReadAgainIsTheSame) {
  for (const auto& row : vectors::read_rows("pods")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    auto pod = vectors::pod_of(row.at("pod"));
    const auto again = parse_pod_spec(format_pod_spec(pod));
    ASSERT_TRUE(again) << again.error().message;
    pod.uid = "";
    pod.status_qos_class.reset();
    pod.is_static = false;
    EXPECT_EQ(*again, pod);
  }
}

/// What one message of the API server says: whose resource, and both values.
struct Refusal {
  std::string owner;
  std::string resource;
  std::string value;
  std::string bound;
};

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto start = text.find(before);
  if (start == std::string::npos) return {};
  const auto from = start + before.size();
  return text.substr(from, text.find(after, from) - from);
}

std::string name_at(const json& list, const std::string& index) {
  return cat("container \"", list.at(std::stoul(index)).at("name").get<std::string>(), "\"");
}

Refusal read_refusal(const std::string& message, const json& spec) {
  Refusal refusal;
  refusal.value = decimal(between(message, "Invalid value: \"", "\""));
  refusal.bound = decimal(message.substr(message.rfind(' ') + 1));
  if (message.starts_with("spec.resources.containers[")) {
    refusal.owner = name_at(spec.at("containers"), between(message, "containers[", "]"));
    refusal.resource = between(message, "][", "]");
    return refusal;
  }
  refusal.resource = between(message, "less than or equal to ", " limit of");
  if (message.starts_with("spec.containers[")) {
    refusal.owner = name_at(spec.at("containers"), between(message, "containers[", "]"));
  } else if (message.starts_with("spec.initContainers[")) {
    refusal.owner =
        cat("init ", name_at(spec.at("initContainers"), between(message, "initContainers[", "]")));
  } else {
    refusal.owner = "pod";
  }
  return refusal;
}

/// Whether a word of the text is this amount, however it is written.
bool has_amount(std::string_view text, const std::string& amount) {
  while (!text.empty())
    if (decimal(std::string{read_until(text, ' ')}) == amount) return true;
  return false;
}

bool reports(const std::vector<std::string>& problems, const Refusal& refusal) {
  return std::ranges::any_of(problems, [&](const std::string& problem) {
    return problem.starts_with(cat(refusal.owner, ": ", refusal.resource, " ")) &&
           has_amount(problem, refusal.value) &&
           decimal(problem.substr(problem.rfind(' ') + 1)) == refusal.bound;
  });
}

/// The rows hold only "must be less than or equal" of what the API server says, so podqos may say
/// more.
TEST(PodsInvalidVectors, EveryRefusalOfKubernetesIsReported) {
  const auto rows = vectors::read_rows("pods_invalid");
  ASSERT_EQ(rows.size(), 40U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto problems = core::validate(vectors::pod_of(row.at("pod")));
    for (const auto& error : row.at("errors")) {
      const auto message = error.get<std::string>();
      EXPECT_TRUE(reports(problems, read_refusal(message, row.at("pod").at("spec"))))
          << message << "\n"
          << testing::PrintToString(problems);
    }
  }
}

core::ContainerMemoryParams memory_params(const json& row) {
  const auto& params = row.at("params");
  return {
      .limited_swap = params.at("swapBehavior") == "LimitedSwap",
      .swap_controller_available = params.at("swapControllerAvailable").get<bool>(),
      .node_memory = Bytes{row.at("nodeMemoryBytes").get<std::int64_t>()},
      .swap_capacity = Bytes{params.at("swapCapacityBytes").get<std::int64_t>()},
  };
}

core::MemoryQosParams memory_qos_params(const json& row) {
  const auto& params = row.at("params");
  if (!params.at("enforceMemoryQoS").get<bool>()) return {};
  const auto factor = params.at("memoryThrottlingFactor").get<double>();
  return {.reserves = params.at("memoryReservationPolicy") == "TieredReservation",
          .throttling_thousandths = std::lround(factor * 1000),
          .allocatable = Bytes{params.at("nodeAllocatableMemoryBytes").get<std::int64_t>()}};
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
  auto unified = core::container_unified_values(pod, qos_class, container, params);
  unified.merge(core::unified_values(
      core::container_memory_qos(qos_class, container, memory_qos_params(row))));
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
    const json& want = row.at("expectContainersDefaulted");
    EXPECT_EQ(containers, want) << json::diff(want, containers).dump();
  }
}

core::TierSums sums_of(const json& pods) {
  core::TierSums sums;
  for (const json& manifest : pods) {
    // These rows hold pods as the kubelet was given them: no request defaults to its limit here.
    const core::Pod pod = vectors::plain_pod(manifest);
    const core::ResourceList requests = core::pod_requests(pod);
    core::TierSum& sum = sums.of(core::classify(pod).qos_class);
    const auto cpu = core::find(requests, core::kCpu);
    const auto memory = core::find(requests, core::kMemory);
    ++sum.pods;
    sum.cpu = MilliCpu{saturating_add(sum.cpu.value(), cpu ? cpu->milli_value() : 0)};
    sum.memory = Bytes{saturating_add(sum.memory.value(), memory ? memory->value() : 0)};
  }
  return sums;
}

json describe(const core::TierSums& sums, const json& row) {
  const Bytes allocatable{vectors::number_or_null(row.at("allocatableMemoryBytes")).value_or(0)};
  const core::TierValues values =
      core::tier_values(sums, vectors::number_or_null(row.at("reservePercent")), allocatable);
  const bool tiered = row.at("memoryReservationPolicy") == "TieredReservation";
  const auto reserved = core::root_reservation(tiered ? sums : core::TierSums{});
  const CpuShares shares = values.burstable.cpu_shares.value_or(CpuShares{});
  return {{"guaranteedMemoryRequests", sums.guaranteed.memory.value()},
          {"burstableMemoryRequests", sums.burstable.memory.value()},
          {"burstableCpuShares", number(values.burstable.cpu_shares)},
          {"burstableCpuWeightLinear",
           core::cpu_weight_for(shares, core::WeightFormula::kLinear).value()},
          {"burstableMemoryLimit", number(values.burstable.memory_limit)},
          {"besteffortCpuShares", number(values.besteffort.cpu_shares)},
          {"besteffortMemoryLimit", number(values.besteffort.memory_limit)},
          {"memoryQoSUnified",
           {{"guaranteed", {{"memory.min", reserved.at("memory.min")}}},
            {"burstable", {{"memory.low", reserved.at("memory.low")}}},
            {"besteffort", json{}}}}};
}

TEST(TiersVectors, AgreeExceptThatNoLimitIsNegative) {
  const auto rows = vectors::read_rows("tiers");
  ASSERT_EQ(rows.size(), 100U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    json want = row.at("expect");
    for (const char* name : {"burstableMemoryLimit", "besteffortMemoryLimit"})
      if (json& limit = want.at(name); limit < 0 && !limit.is_null()) limit = 0;
    const json tiers = describe(sums_of(row.at("pods")), row);
    EXPECT_EQ(tiers, want) << json::diff(want, tiers).dump();
  }
}

}  // namespace
}  // namespace podqos::codec

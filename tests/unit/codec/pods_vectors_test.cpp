// What Kubernetes 1.36's own code makes of pods: classes, sums, scores, values and names; refusals;
// values of their containers; values of the tiers.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/kubernetes/validation.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;
using vectors::number_or_null;

core::ResourceList list_of(const json& wanted) {
  core::ResourceList list;
  for (const auto& [name, text] : wanted.items()) {
    const auto quantity = core::Quantity::parse(text.get<std::string>());
    if (!quantity) {
      ADD_FAILURE() << quantity.error().message;
      continue;
    }
    list.emplace(name, *quantity);
  }
  return list;
}

void expect_sums(const core::ResourceList& sums, const json& wanted) {
  EXPECT_EQ(sums, list_of(wanted.at("all")));
  const auto cpu = core::find(sums, core::kCpu);
  const auto memory = core::find(sums, core::kMemory);
  EXPECT_EQ(cpu ? std::optional{cpu->milli_value()} : std::nullopt,
            number_or_null(wanted.at("cpuMilli")));
  EXPECT_EQ(memory ? std::optional{memory->value()} : std::nullopt,
            number_or_null(wanted.at("memoryBytes")));
}

void expect_scores(const core::Pod& pod, core::QosClass qos_class, const json& row) {
  const Bytes node_memory{row.at("nodeMemoryBytes").get<std::int64_t>()};
  json scores = json::object();
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const auto& container : *list) {
      scores[container.name] = core::oom_score_adj(pod, qos_class, container, node_memory);
    }
  }
  EXPECT_EQ(scores, row.at("expect").at("oomScoreAdj"));
}

core::PodConfigParams params_of(const json& params) {
  return {.enforce_cpu_limits = params.at("enforceCPULimits").get<bool>(),
          .cpu_period = Micros{params.at("cpuPeriodUs").get<std::int64_t>()},
          .reserve_memory = params.at("enforceMemoryQoS").get<bool>() &&
                            params.at("memoryReservationPolicy") == "TieredReservation"};
}

template <class Unit>
std::optional<std::int64_t> number_of(const std::optional<Unit>& value) {
  if (!value) return std::nullopt;
  return value->value();
}

void expect_values(const json& expect, const core::CgroupValues& values) {
  EXPECT_EQ(number_of(values.cpu_shares), number_or_null(expect.at("cpuShares")));
  EXPECT_EQ(number_of(values.cpu_quota), number_or_null(expect.at("cpuQuotaUs")));
  EXPECT_EQ(number_of(values.cpu_period), number_or_null(expect.at("cpuPeriodUs")));
  EXPECT_EQ(number_of(values.memory_limit), number_or_null(expect.at("memoryLimitBytes")));
  const CpuShares shares = values.cpu_shares.value_or(CpuShares{});
  EXPECT_EQ(core::cpu_weight_for(shares, core::WeightFormula::kLinear).value(),
            expect.at("cpuWeightLinear").get<std::int64_t>());
  EXPECT_EQ(core::cpu_weight_for(shares, core::WeightFormula::kLog).value(),
            expect.at("cpuWeightLog").get<std::int64_t>());

  std::map<std::string, std::int64_t, std::less<>> hugepages;
  for (const auto& [label, limit] : values.hugepages)
    hugepages[label] = limit.value();
  EXPECT_EQ(json(hugepages), expect.at("hugetlb"));
  EXPECT_EQ(values.unified.empty() ? json() : json(values.unified), expect.at("unified"));
}

void expect_names(const json& row, core::QosClass qos_class, const std::string& uid) {
  const auto root = row.at("params").at("cgroupRoot").get<std::string>();
  for (const auto& [driver, name] : {std::pair{core::Driver::kCgroupfs, "cgroupfs"},
                                     std::pair{core::Driver::kSystemd, "systemd"}})
    EXPECT_EQ(core::pod_path(core::root_path(root, driver), qos_class, uid),
              row.at("expect").at(name).get<std::string>());
}

TEST(PodsVectors, EveryValueOfEveryPodIsKubernetes) {
  const auto rows = vectors::read_rows("pods");
  ASSERT_EQ(rows.size(), 437U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto pod = vectors::pod_of(row.at("pod"));
    const auto& expect = row.at("expect");
    const auto verdict = core::classify(pod);
    EXPECT_EQ(core::format_qos_class(verdict.qos_class), expect.at("qosClass").get<std::string>())
        << verdict.reason;
    expect_sums(core::pod_requests(pod), expect.at("podRequests"));
    expect_sums(core::pod_limits(pod), expect.at("podLimits"));
    expect_scores(pod, verdict.qos_class, row);
    const auto values =
        core::pod_cgroup_values(pod, verdict.qos_class, params_of(row.at("params")));
    ASSERT_TRUE(values) << values.error().message;
    expect_values(expect, *values);
    expect_names(row, verdict.qos_class, pod.uid);
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
    pod.uid = pod.name = pod.pod_namespace = "";
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

/// "1500m" → "1.5", as podqos writes values.
std::string decimal(const std::string& text) {
  const auto quantity = core::Quantity::parse(text);
  return quantity ? quantity->format_decimal() : cat("malformed ", text);
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

bool reports(const std::vector<std::string>& problems, const Refusal& refusal) {
  return std::ranges::any_of(problems, [&](const std::string& problem) {
    return problem.starts_with(cat(refusal.owner, ": ", refusal.resource, " ")) &&
           problem.contains(cat(" ", refusal.value, " ")) &&
           problem.ends_with(cat(" ", refusal.bound));
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

/// What podqos gives where upstream expects `limit`: 0 instead of a negative one.
std::optional<Bytes> limit_of(const json& limit) {
  return number_or_null(limit).transform(
      [](std::int64_t bytes) { return Bytes{std::max<std::int64_t>(bytes, 0)}; });
}

void check_memory_qos(const json& row, const core::TierSums& sums) {
  const bool tiered = row.at("memoryReservationPolicy") == "TieredReservation";
  const core::TierMemoryQos values = tiered ? core::tier_memory_qos(sums) : core::TierMemoryQos{};
  const json& unified = row.at("expect").at("memoryQoSUnified");
  EXPECT_EQ(std::to_string(values.root_memory_min.value()),
            unified.at("guaranteed").at("memory.min").get<std::string>());
  EXPECT_EQ(std::to_string(values.burstable_memory_low.value()),
            unified.at("burstable").at("memory.low").get<std::string>());
  EXPECT_TRUE(unified.at("besteffort").is_null());
}

TEST(TiersVectors, AgreeExceptThatNoLimitIsNegative) {
  const auto rows = vectors::read_rows("tiers");
  ASSERT_EQ(rows.size(), 100U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& expect = row.at("expect");
    const core::TierSums sums = sums_of(row.at("pods"));
    EXPECT_EQ(sums.guaranteed.memory.value(),
              expect.at("guaranteedMemoryRequests").get<std::int64_t>());
    EXPECT_EQ(sums.burstable.memory.value(),
              expect.at("burstableMemoryRequests").get<std::int64_t>());

    const Bytes allocatable{number_or_null(row.at("allocatableMemoryBytes")).value_or(0)};
    const core::TierValues values =
        core::tier_values(sums, number_or_null(row.at("reservePercent")), allocatable);

    EXPECT_EQ(values.burstable.cpu_shares,
              CpuShares{expect.at("burstableCpuShares").get<std::int64_t>()});
    EXPECT_EQ(values.besteffort.cpu_shares,
              CpuShares{expect.at("besteffortCpuShares").get<std::int64_t>()});
    EXPECT_EQ(core::cpu_weight_for(values.burstable.cpu_shares.value_or(CpuShares{}),
                                   core::WeightFormula::kLinear)
                  .value(),
              expect.at("burstableCpuWeightLinear").get<std::int64_t>());
    EXPECT_EQ(values.burstable.memory_limit, limit_of(expect.at("burstableMemoryLimit")));
    EXPECT_EQ(values.besteffort.memory_limit, limit_of(expect.at("besteffortMemoryLimit")));
    check_memory_qos(row, sums);
  }
}

}  // namespace
}  // namespace podqos::codec

// pods.jsonl: pod-level values and names as Kubernetes 1.36's own code gives them.

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/qos.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::core {
namespace {

namespace vectors = codec::vectors;

using nlohmann::json;

PodConfigParams params_of(const json& params) {
  return {.enforce_cpu_limits = params.at("enforceCPULimits").get<bool>(),
          .cpu_period = Micros{params.at("cpuPeriodUs").get<std::int64_t>()},
          .reserve_memory = params.at("enforceMemoryQoS").get<bool>() &&
                            params.at("memoryReservationPolicy") == "TieredReservation"};
}

std::optional<std::int64_t> number_or_null(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<std::int64_t>();
}

template <class Unit>
std::optional<std::int64_t> number_of(const std::optional<Unit>& value) {
  if (!value) return std::nullopt;
  return value->value();
}

void check_values(const json& expect, const CgroupValues& values) {
  EXPECT_EQ(number_of(values.cpu_shares), number_or_null(expect.at("cpuShares")));
  EXPECT_EQ(number_of(values.cpu_quota), number_or_null(expect.at("cpuQuotaUs")));
  EXPECT_EQ(number_of(values.cpu_period), number_or_null(expect.at("cpuPeriodUs")));
  EXPECT_EQ(number_of(values.memory_limit), number_or_null(expect.at("memoryLimitBytes")));
  const CpuShares shares = values.cpu_shares.value_or(CpuShares{});
  EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLinear).value(),
            expect.at("cpuWeightLinear").get<std::int64_t>());
  EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLog).value(),
            expect.at("cpuWeightLog").get<std::int64_t>());

  std::map<std::string, std::int64_t, std::less<>> hugepages;
  for (const auto& [label, limit] : values.hugepages)
    hugepages[label] = limit.value();
  EXPECT_EQ(json(hugepages), expect.at("hugetlb"));
  EXPECT_EQ(values.unified.empty() ? json() : json(values.unified), expect.at("unified"));
}

TEST(PodConfigVectors, AgreeWithKubernetes) {
  const auto rows = vectors::read_rows("pods");
  ASSERT_EQ(rows.size(), 437U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& expect = row.at("expect");
    const Pod pod = vectors::pod_of(row.at("pod"));
    const QosClass qos_class = classify(pod).qos_class;
    const auto values = pod_cgroup_values(pod, qos_class, params_of(row.at("params")));
    ASSERT_TRUE(values) << values.error().message;
    check_values(expect, *values);

    const auto root = row.at("params").at("cgroupRoot").get<std::string>();
    EXPECT_EQ(pod_path(root_path(root, Driver::kCgroupfs), qos_class, pod.uid),
              expect.at("cgroupfs").get<std::string>());
    EXPECT_EQ(pod_path(root_path(root, Driver::kSystemd), qos_class, pod.uid),
              expect.at("systemd").get<std::string>());
  }
}

}  // namespace
}  // namespace podqos::core

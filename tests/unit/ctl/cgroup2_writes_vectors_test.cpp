// cgroup2_writes.jsonl: what Kubernetes 1.36 writes on cgroup v2 for pods of pods.jsonl, by both
// drivers.

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "common/core/kubernetes/qos.h"
#include "ctl/explain/explanation.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::core {
namespace {

namespace vectors = codec::vectors;

using nlohmann::json;

PodConfigParams params_of(const json& params, const json& pids_limit) {
  PodConfigParams out{
      .enforce_cpu_limits = params.at("enforceCPULimits").get<bool>(),
      .cpu_period = Micros{params.at("cpuPeriodUs").get<std::int64_t>()},
      .reserve_memory = params.at("enforceMemoryQoS").get<bool>() &&
                        params.at("memoryReservationPolicy") == "TieredReservation"};
  if (!pids_limit.is_null()) out.pod_pids_limit = pids_limit.get<std::int64_t>();
  return out;
}

std::map<std::string, json, std::less<>> pods_by_id() {
  std::map<std::string, json, std::less<>> pods;
  for (auto& row : vectors::read_rows("pods"))
    pods.emplace(row.at("id").get<std::string>(), row);
  return pods;
}

TEST(Cgroup2WritesVectors, AgreeForBothDrivers) {
  const auto pods = pods_by_id();
  const CgroupLayout layout = ctl::layout_of(CgroupVersion::kV2);
  const auto rows = vectors::read_rows("cgroup2_writes");
  ASSERT_EQ(rows.size(), 200U);
  for (const auto& row : rows) {
    const auto id = row.at("id").get<std::string>();
    SCOPED_TRACE(id);
    const json& input = pods.at(id);
    const Pod pod = vectors::pod_of(input.at("pod"));
    const auto values = pod_cgroup_values(pod, classify(pod).qos_class,
                                          params_of(input.at("params"), row.at("pidsLimit")));
    ASSERT_TRUE(values) << values.error().to_string();

    EXPECT_EQ(json(ctl::files_on(*values, layout, WeightFormula::kLinear)),
              row.at("cgroupfsDriverFiles"));
    EXPECT_EQ(json(ctl::properties_on(*values, layout, WeightFormula::kLinear)),
              row.at("systemdProperties"));
    EXPECT_EQ(json(ctl::files_on(rounded_by_systemd(*values), layout, WeightFormula::kLinear)),
              row.at("systemdDriverFiles"));
  }
}

}  // namespace
}  // namespace podqos::core

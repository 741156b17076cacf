// tiers.jsonl: tier values as Kubernetes 1.36's own code computes them from a set of pods.

#include <algorithm>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/codec/pod_json.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/kubernetes/tier.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::core {
namespace {

namespace vectors = codec::vectors;

using nlohmann::json;

TierSums sums_of(const json& pods) {
  TierSums sums;
  for (const json& manifest : pods) {
    // These rows hold pods as the kubelet was given them: no request defaults to its limit here.
    const auto pod = codec::parse_pod(manifest.dump());
    if (!pod) {
      ADD_FAILURE() << pod.error().message;
      return {};
    }
    const ResourceList requests = pod_requests(*pod);
    TierSum& sum = sums.of(classify(*pod).qos_class);
    const auto cpu = find(requests, kCpu);
    const auto memory = find(requests, kMemory);
    ++sum.pods;
    sum.cpu = MilliCpu{saturating_add(sum.cpu.value(), cpu ? cpu->milli_value() : 0)};
    sum.memory = Bytes{saturating_add(sum.memory.value(), memory ? memory->value() : 0)};
  }
  return sums;
}

/// What podqos gives where upstream expects `limit`: 0 instead of a negative one.
std::optional<Bytes> limit_of(const json& limit) {
  if (limit.is_null()) return std::nullopt;
  return Bytes{std::max<std::int64_t>(limit.get<std::int64_t>(), 0)};
}

void check_memory_qos(const json& row, const TierSums& sums) {
  const bool tiered = row.at("memoryReservationPolicy") == "TieredReservation";
  const TierMemoryQos values = tiered ? tier_memory_qos(sums) : TierMemoryQos{};
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
    const TierSums sums = sums_of(row.at("pods"));
    EXPECT_EQ(sums.guaranteed.memory.value(),
              expect.at("guaranteedMemoryRequests").get<std::int64_t>());
    EXPECT_EQ(sums.burstable.memory.value(),
              expect.at("burstableMemoryRequests").get<std::int64_t>());

    std::optional<std::int64_t> percent;
    if (const json& given = row.at("reservePercent"); !given.is_null())
      percent = given.get<std::int64_t>();
    const json& allocatable = row.at("allocatableMemoryBytes");
    const TierValues values = tier_values(
        sums, percent, Bytes{allocatable.is_null() ? 0 : allocatable.get<std::int64_t>()});

    EXPECT_EQ(values.burstable.cpu_shares,
              CpuShares{expect.at("burstableCpuShares").get<std::int64_t>()});
    EXPECT_EQ(values.besteffort.cpu_shares,
              CpuShares{expect.at("besteffortCpuShares").get<std::int64_t>()});
    EXPECT_EQ(
        cpu_weight_for(values.burstable.cpu_shares.value_or(CpuShares{}), WeightFormula::kLinear)
            .value(),
        expect.at("burstableCpuWeightLinear").get<std::int64_t>());
    EXPECT_EQ(values.burstable.memory_limit, limit_of(expect.at("burstableMemoryLimit")));
    EXPECT_EQ(values.besteffort.memory_limit, limit_of(expect.at("besteffortMemoryLimit")));
    check_memory_qos(row, sums);
  }
}

}  // namespace
}  // namespace podqos::core

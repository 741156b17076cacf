// weights.jsonl: what Kubernetes 1.36's own code makes of cpu shares.

#include <gtest/gtest.h>

#include "common/core/kubernetes/cgroup_values.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::core {
namespace {

namespace vectors = codec::vectors;

TEST(WeightsVectors, AgreeWithBothFormulasAndTheirInverses) {
  const auto rows = vectors::read_rows("weights");
  ASSERT_EQ(rows.size(), 120U);
  for (const auto& row : rows) {
    const CpuShares shares{row.at("shares").get<std::int64_t>()};
    SCOPED_TRACE(shares.value());
    EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLog).value(),
              row.at("log").get<std::int64_t>());
    EXPECT_EQ(milli_cpu_for(shares).value(), row.at("milliCPUFromShares").get<std::int64_t>());
    if (row.at("linear").is_null()) {
      // Upstream's callers never pass less than 2: its unsigned arithmetic would underflow.
      EXPECT_EQ(shares.value(), 1);
      EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLinear).value(), 1);
      continue;
    }
    const CpuWeight linear{row.at("linear").get<std::int64_t>()};
    EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLinear), linear);
    EXPECT_EQ(shares_for_linear_weight(linear).value(),
              row.at("sharesFromLinearWeight").get<std::int64_t>());
  }
}

}  // namespace
}  // namespace podqos::core

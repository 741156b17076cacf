#include <string>

#include <gtest/gtest.h>

#include "common/core/cgroup_values.h"

namespace podqos::core {
namespace {

struct LabelCase {
  std::string label;
  std::int64_t bytes;
};

class HugepageLabel : public ::testing::TestWithParam<LabelCase> {};

TEST_P(HugepageLabel, DividesWhileItCan) {
  EXPECT_EQ(hugepage_label(Bytes{GetParam().bytes}), GetParam().label);
}
INSTANTIATE_TEST_SUITE_P(Table, HugepageLabel,
                         ::testing::ValuesIn<LabelCase>({
                             {"1B", 1},
                             {"1023B", 1023},
                             {"64KB", 65'536},
                             {"1536KB", 1'572'864},
                             {"2MB", 2'097'152},
                             {"1GB", 1'073'741'824},
                             {"16GB", 17'179'869'184},
                             {"1PB", 1'125'899'906'842'624},
                             {"1024PB", 1'152'921'504'606'846'976},
                         }),
                         [](const auto& c) { return c.param.label; });

Quantity quantity(std::int64_t units) {
  return Quantity::from_units(units);
}

TEST(HugepageLimits, SumsTwoSpellingsOfOneSize) {
  const auto limits = hugepage_limits({{"hugepages-2Mi", quantity(4'194'304)},
                                       {"hugepages-2048Ki", quantity(2'097'152)},
                                       {"hugepages-1Gi", quantity(1'073'741'824)}});
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits, (HugePageLimits{{"2MB", Bytes{6'291'456}}, {"1GB", Bytes{1'073'741'824}}}));
}

TEST(HugepageLimits, LeavesOtherResourcesAlone) {
  const auto limits = hugepage_limits({{"cpu", quantity(1)}, {"hugepage-2Mi", quantity(1)}});
  ASSERT_TRUE(limits);
  EXPECT_TRUE(limits->empty());
}

TEST(HugepageLimits, KeepsAnExplicitZero) {
  const auto limits = hugepage_limits({{"hugepages-2Mi", quantity(0)}});
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits, (HugePageLimits{{"2MB", Bytes{0}}}));
}

TEST(HugepageLimits, HoldsASumAtTheEndOfTheRange) {
  const auto limits =
      hugepage_limits({{"hugepages-2Mi", quantity(kInt64Max)}, {"hugepages-2048Ki", quantity(1)}});
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->at("2MB").value(), kInt64Max);
}

TEST(HugepageLimits, RefusesWhatIsNoSize) {
  for (const auto* name :
       {"hugepages-x", "hugepages-", "hugepages-0", "hugepages--2Mi", "hugepages-2mb"}) {
    const auto limits = hugepage_limits({{name, quantity(1)}});
    ASSERT_FALSE(limits) << name;
    EXPECT_EQ(limits.error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_NE(limits.error().message.find(name), std::string::npos) << limits.error().message;
  }
}

TEST(WithHostSizes, AddsZeroForSizesThatAreNotNamed) {
  EXPECT_EQ(
      with_host_sizes({{"2MB", Bytes{2'097'152}}, {"64KB", Bytes{65'536}}}, {"2MB", "1GB"}),
      (HugePageLimits{{"1GB", Bytes{0}}, {"2MB", Bytes{2'097'152}}, {"64KB", Bytes{65'536}}}));
}

}  // namespace
}  // namespace podqos::core

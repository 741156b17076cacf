#include "common/core/kernel_bounds.h"

#include <string>

#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::TestWithParam;

// kernel/sched/core.c: (1 << 44) - 1 us; page_counter.h: LONG_MAX / PAGE_SIZE pages.
constexpr std::int64_t kQuota = 17'592'186'044'415;
constexpr std::int64_t kMemory = 9'223'372'036'854'771'712;

TEST(CheckKernelBounds, TakesTheHighestValues) {
  const CgroupValues values{.cpu_quota = Micros{kQuota},
                            .cpu_period = Micros{100'000},
                            .memory_limit = Bytes{kMemory},
                            .hugepages = {{"2MB", Bytes{kMemory}}}};
  EXPECT_TRUE(check_kernel_bounds(values));
}

TEST(CheckKernelBounds, TakesWhatIsUnlimitedOrNotSet) {
  EXPECT_TRUE(check_kernel_bounds({}));
  EXPECT_TRUE(check_kernel_bounds({.cpu_quota = Micros{-1}, .memory_limit = Bytes{-1}}));
}

struct Refused {
  const char* name;
  CgroupValues values;
  const char* value;
  const char* bound;
};

class CheckKernelBoundsRefuses : public TestWithParam<Refused> {};

TEST_P(CheckKernelBoundsRefuses, WithValueAndBound) {
  const auto checked = check_kernel_bounds(GetParam().values);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(checked.error().message.find(GetParam().value), std::string::npos)
      << checked.error().message;
  EXPECT_NE(checked.error().message.find(GetParam().bound), std::string::npos)
      << checked.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Values, CheckKernelBoundsRefuses,
    ::testing::Values(Refused{"Quota",
                              {.cpu_quota = Micros{kQuota + 1}, .cpu_period = Micros{100'000}},
                              "17592186044416",
                              "175921860 CPUs"},
                      Refused{"Memory",
                              {.memory_limit = Bytes{9'223'372'036'854'775'807}},
                              "9223372036854775807",
                              "9223372036854771712"},
                      Refused{"HugePages",
                              {.hugepages = {{"2MB", Bytes{9'223'372'036'854'775'807}}}},
                              "hugepages-2MB",
                              "9223372036854771712"}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace podqos::core

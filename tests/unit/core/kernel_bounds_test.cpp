#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/cgroup_values.h"
#include "common/core/pod_values.h"

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

struct RealtimeCase {
  const char* name;
  std::optional<std::int64_t> runtime;
  std::optional<CgroupVersion> cpu;
  bool fits;
};

class CheckRealtime : public TestWithParam<RealtimeCase> {};

/// A new cgroup of v1 has a cpu.rt_runtime_us of 0, and the kernel refuses -1 below it too.
TEST_P(CheckRealtime, IsRefusedBelowACgroupThatHasNone) {
  EngineResources resources;
  resources.cpu_realtime_runtime = GetParam().runtime;
  EXPECT_EQ(check_realtime(resources, GetParam().cpu, "/podqos/pod42").has_value(),
            GetParam().fits);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CheckRealtime,
    ::testing::Values(RealtimeCase{"NotSet", std::nullopt, CgroupVersion::kV1, true},
                      RealtimeCase{"OnV1", 10'000, CgroupVersion::kV1, false},
                      RealtimeCase{"UnlimitedOnV1", -1, CgroupVersion::kV1, false},
                      RealtimeCase{"OnV2", 10'000, CgroupVersion::kV2, true},
                      RealtimeCase{"WithoutTheController", 10'000, std::nullopt, true}),
    [](const auto& param) { return param.param.name; });

TEST(CheckRealtime, NamesValueCauseAndRemedy) {
  EngineResources resources;
  resources.cpu_realtime_runtime = 10'000;
  const auto checked = check_realtime(resources, CgroupVersion::kV1, "/podqos/kubepods/pod42");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(checked.error().message,
            "linux.resources.cpu.realtimeRuntime 10000: on cgroup v1 the kernel refuses it in "
            "/podqos/kubepods/pod42, which has no realtime time to share: remove it, or annotate "
            "the container with podqos.io/ignore=true, so that it runs where its engine puts it");
}

}  // namespace
}  // namespace podqos::core

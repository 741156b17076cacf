#include "common/core/kubernetes/cgroup_values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/pod_values.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using ::testing::TestWithParam;
using namespace pod_text;

TEST(CpuSharesFor, MatchesKubelet) {
  struct SharesCase {
    std::string name;
    std::int64_t milli;
    std::int64_t want;
  };
  for (const auto& row : std::vector<SharesCase>{
           {"NoRequestIsKernelMinimum", 0, 2},
           {"NegativeIsKernelMinimum", -5, 2},
           {"BelowMinimumIsRaised", 1, 2},
           {"TwoMilliStayAtMinimum", 2, 2},
           {"ThreeMilliAreAboveIt", 3, 3},
           {"RoundsDown", 100, 102},
           {"OneCpu", 1000, 1024},
           {"JustBelowMaximum", 255'999, 262'142},
           {"Maximum", 256'000, 262'144},
           {"CappedAtKernelMaximum", 256'001, 262'144},
           {"HostileRequestDoesNotOverflow", kInt64Max, 262'144},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(cpu_shares_for(MilliCpu{row.milli}).value(), row.want);
  }
}

TEST(MilliCpuFor, RoundsUp) {
  struct MilliCase {
    std::string name;
    std::int64_t shares;
    std::int64_t want;
  };
  for (const auto& row : std::vector<MilliCase>{
           {"NothingBelowTheMinimum", 1, 0},
           {"MinimumIsTwoMilli", 2, 2},
           {"RoundsUp", 102, 100},
           {"ExactMultipleIsNotRaised", 128, 125},
           {"OneBeyondAMultiple", 129, 126},
           {"OneCpu", 1024, 1000},
           {"Maximum", 262'144, 256'000},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(milli_cpu_for(CpuShares{row.shares}).value(), row.want);
  }
}

TEST(CpuQuotaFor, MatchesKubelet) {
  struct QuotaCase {
    std::string name;
    std::int64_t milli;
    std::int64_t period;
    std::int64_t want;
  };
  for (const auto& [name, milli, period, want] : std::vector<QuotaCase>{
           {"NoLimitIsNoQuota", 0, 100'000, 0},
           {"OneCpuIsOnePeriod", 1000, 100'000, 100'000},
           {"SmallLimitIsRaisedToOneMillisecond", 1, 100'000, 1'000},
           {"TenMilliAreExactlyTheMinimum", 10, 100'000, 1'000},
           {"RoundsDown", 1, 1'500'500, 1'500},
           {"ShortPeriodStillHasTheMinimum", 500, 1'000, 1'000},
           {"LongPeriod", 2500, 1'000'000, 2'500'000},
           {"HostileLimitDoesNotOverflow", kInt64Max, 1'000'000, kInt64Max},
       }) {
    SCOPED_TRACE(name);
    EXPECT_EQ(cpu_quota_for(MilliCpu{milli}, Micros{period}).value(), want);
  }
}

TEST(MilliCpuForQuota, IsTheLeastWhoseQuotaIsEnough) {
  EXPECT_EQ(milli_cpu_for_quota(Micros{11'000}, Micros{100'000}), MilliCpu{110});
  EXPECT_EQ(milli_cpu_for_quota(Micros{33'330}, Micros{100'000}), MilliCpu{334});
  EXPECT_EQ(milli_cpu_for_quota(Micros{1'001}, Micros{1'000'000}), MilliCpu{2});
  // MilliCPUToQuota rounds down: 1 milli CPU has 1500 of 1,500,500 us.
  EXPECT_EQ(milli_cpu_for_quota(Micros{1'500}, Micros{1'500'500}), MilliCpu{1});
  EXPECT_EQ(milli_cpu_for_quota(Micros{kInt64Max}, Micros{1}), MilliCpu{kInt64Max});
}

TEST(MilliCpuForQuota, HasNoAnswerWithoutAQuota) {
  EXPECT_EQ(milli_cpu_for_quota(Micros{-1}, Micros{100'000}), std::nullopt);
  EXPECT_EQ(milli_cpu_for_quota(Micros{0}, Micros{100'000}), std::nullopt);
}

TEST(CpuWeightFor, FollowsBothFormulas) {
  struct WeightCase {
    std::string name;
    std::int64_t shares;
    std::int64_t linear;
    std::int64_t log;
  };
  for (const auto& row : std::vector<WeightCase>{
           {"BelowMinimumCountsAsMinimum", 0, 1, 1},
           {"Minimum", 2, 1, 1},
           {"TenthOfACpu", 102, 4, 17},
           {"QuarterOfACpu", 256, 10, 35},
           {"HalfACpu", 512, 20, 59},
           {"OneCpu", 1024, 39, 100},
           {"TwoCpus", 2048, 79, 174},
           {"Maximum", 262'144, 10'000, 10'000},
           {"BeyondMaximumIsHeld", kInt64Max, 10'000, 10'000},
       }) {
    SCOPED_TRACE(row.name);
    const CpuShares shares{row.shares};
    EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLinear).value(), row.linear);
    EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLog).value(), row.log);
  }
}

TEST(SharesForLinearWeight, LosesWhatTheWeightRoundedAway) {
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{1}).value(), 2);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{39}).value(), 998);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{100}).value(), 2597);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{10'000}).value(), 262'144);
}

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

CgroupValues values_of(const Pod& pod, const PodConfigParams& params = {}) {
  const auto values = container_cgroup_values(pod, pod.containers.at(0), params);
  if (!values) {
    ADD_FAILURE() << values.error().message;
    return {};
  }
  return *values;
}

TEST(ContainerCgroupValues, ComeFromRequestAndLimits) {
  const auto values = values_of(
      pod({container("a", list({{"cpu", "250m"}}),
                     list({{"cpu", "500m"}, {"memory", "64Mi"}, {"hugepages-2Mi", "4Mi"}}))}));
  const CgroupValues wanted{.cpu_shares = CpuShares{256},
                            .cpu_quota = Micros{50'000},
                            .cpu_period = Micros{100'000},
                            .memory_limit = Bytes{67'108'864},
                            .hugepages = {{"2MB", Bytes{4'194'304}}},
                            .pids_limit = {},
                            .unified = {}};
  EXPECT_EQ(values, wanted);
}

TEST(ContainerCgroupValues, NothingAskedMeansTheLeastSharesAndNoLimits) {
  const auto values = values_of(pod({container("a", {})}));
  EXPECT_EQ(values.cpu_shares, CpuShares{2});
  EXPECT_EQ(values.cpu_quota, Micros{0});
  EXPECT_EQ(values.memory_limit, Bytes{0});
  EXPECT_TRUE(values.hugepages.empty());
}

TEST(ContainerCgroupValues, AnAbsentRequestFollowsTheLimitAndAZeroOneDoesNot) {
  EXPECT_EQ(values_of(pod({container("a", {}, list({{"cpu", "1"}}))})).cpu_shares, CpuShares{1024});
  EXPECT_EQ(values_of(pod({container("a", list({{"cpu", "0"}}), list({{"cpu", "1"}}))})).cpu_shares,
            CpuShares{2});
}

TEST(ContainerCgroupValues, WhereAContainerHasNoLimitThePodsCounts) {
  auto subject =
      pod({container("a", {}, list({{"cpu", "0"}})), container("b", {}, list({{"cpu", "1"}}))});
  subject.resources = Resources{
      .requests = {}, .limits = list({{"cpu", "2"}, {"memory", "1Gi"}, {"hugepages-2Mi", "2Mi"}})};
  const auto values = values_of(subject);
  EXPECT_EQ(values.cpu_shares, CpuShares{2048});
  EXPECT_EQ(values.cpu_quota, Micros{200'000});
  EXPECT_EQ(values.memory_limit, Bytes{1'073'741'824});
  EXPECT_EQ(values.hugepages, (HugePageLimits{{"2MB", Bytes{2'097'152}}}));
  const auto own = container_cgroup_values(subject, subject.containers[1], {});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->cpu_quota, Micros{100'000});
}

TEST(ContainerCgroupValues, QuotaFollowsThePeriodAndIsNeverBelowAMillisecond) {
  const auto subject = pod({container("a", {}, list({{"cpu", "500m"}}))});
  const auto values = values_of(subject, {.cpu_period = Micros{10'000}});
  EXPECT_EQ(values.cpu_quota, Micros{5'000});
  EXPECT_EQ(values.cpu_period, Micros{10'000});
  const auto tiny = pod({container("a", {}, list({{"cpu", "1m"}}))});
  EXPECT_EQ(values_of(tiny).cpu_quota, Micros{1'000});
}

TEST(ContainerCgroupValues, WithoutCpuLimitsThereIsNoQuota) {
  const auto values =
      values_of(pod({container("a", {}, list({{"cpu", "1"}}))}), {.enforce_cpu_limits = false});
  EXPECT_EQ(values.cpu_quota, std::nullopt);
  EXPECT_EQ(values.cpu_period, std::nullopt);
  EXPECT_EQ(values.cpu_shares, CpuShares{1024});
}

TEST(ContainerCgroupValues, AMalformedHugePageNameNamesTheContainer) {
  const auto subject = pod({container("a", {}, list({{"hugepages-x", "1"}}))});
  const auto values = container_cgroup_values(subject, subject.containers[0], {});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(values.error().message, testing::StartsWith("a: "));
}

using Unified = UnifiedValues;

Unified unified(const Container& container, QosClass qos_class,
                const ContainerMemoryParams& params) {
  return container_unified_values(pod({container}), qos_class, container, params);
}

TEST(ContainerUnifiedValues, NothingIsWrittenUnlessSwitchedOn) {
  EXPECT_EQ(unified(container("a", memory("1Gi")), QosClass::kBurstable, {}), Unified{});
}

// pkg/kubelet/kuberuntime/kuberuntime_container_linux.go generateLinuxContainerResources: what a
// kubelet sets without any feature gate.
TEST(ContainerUnifiedValues, AContainerEndsAsAWhole) {
  EXPECT_EQ(unified(container("a", memory("1Gi")), QosClass::kBurstable, {.group_oom_kill = true}),
            (Unified{{"memory.oom.group", "1"}}));
}

TEST(SwapMax, IsTheRequestsPartOfTheNodesSwapOrNothing) {
  struct SwapCase {
    const char* name;
    bool limited;
    QosClass qos_class;
    const char* request;
    const char* limit;
    std::optional<std::int64_t> priority;
    const char* swap;
  };
  for (const auto& row : std::vector<SwapCase>{
           {"Burstable", true, QosClass::kBurstable, "1Gi", "2Gi", {}, "536870912"},
           {"NoSwap", false, QosClass::kBurstable, "1Gi", "2Gi", {}, "0"},
           {"Guaranteed", true, QosClass::kGuaranteed, "1Gi", "2Gi", {}, "0"},
           {"RequestIsLimit", true, QosClass::kBurstable, "1Gi", "1Gi", {}, "0"},
           {"NoRequest", true, QosClass::kBurstable, "0", "2Gi", {}, "0"},
           {"Critical", true, QosClass::kBurstable, "1Gi", "2Gi", 2'000'000'000, "0"},
           {"MoreThanTheNode", true, QosClass::kBurstable, "9Gi", "10Gi", {}, "0"}}) {
    SCOPED_TRACE(row.name);
    const ContainerMemoryParams params{.limited_swap = row.limited,
                                       .swap_controller_available = true,
                                       .node_memory = Bytes{8LL << 30U},
                                       .swap_capacity = Bytes{4LL << 30U}};
    const auto subject = container("a", memory(row.request), memory(row.limit));
    auto owner = pod({subject});
    owner.priority = row.priority;
    EXPECT_EQ(container_unified_values(owner, row.qos_class, subject, params),
              (Unified{{"memory.swap.max", row.swap}}));
  }
}

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

TEST(CheckKernelBoundsRefuses, WithValueAndBound) {
  struct Refused {
    const char* name;
    CgroupValues values;
    const char* value;
    const char* bound;
  };
  for (const auto& row :
       std::vector<Refused>{{"Quota",
                             {.cpu_quota = Micros{kQuota + 1}, .cpu_period = Micros{100'000}},
                             "17592186044416",
                             "175921860 CPUs"},
                            {"Memory",
                             {.memory_limit = Bytes{9'223'372'036'854'775'807}},
                             "9223372036854775807",
                             "9223372036854771712"},
                            {"HugePages",
                             {.hugepages = {{"2MB", Bytes{9'223'372'036'854'775'807}}}},
                             "hugepages-2MB",
                             "9223372036854771712"}}) {
    SCOPED_TRACE(row.name);
    const auto checked = check_kernel_bounds(row.values);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(checked.error().message.find(row.value), std::string::npos)
        << checked.error().message;
    EXPECT_NE(checked.error().message.find(row.bound), std::string::npos)
        << checked.error().message;
  }
}

/// A new cgroup of v1 has a cpu.rt_runtime_us of 0, and the kernel refuses -1 below it too.
TEST(CheckRealtime, IsRefusedBelowACgroupThatHasNone) {
  struct RealtimeCase {
    const char* name;
    std::optional<std::int64_t> runtime;
    std::optional<CgroupVersion> cpu;
    bool fits;
  };
  for (const auto& row :
       std::vector<RealtimeCase>{{"NotSet", std::nullopt, CgroupVersion::kV1, true},
                                 {"OnV1", 10'000, CgroupVersion::kV1, false},
                                 {"UnlimitedOnV1", -1, CgroupVersion::kV1, false},
                                 {"OnV2", 10'000, CgroupVersion::kV2, true},
                                 {"WithoutTheController", 10'000, std::nullopt, true}}) {
    SCOPED_TRACE(row.name);
    EngineResources resources;
    resources.cpu_realtime_runtime = row.runtime;
    EXPECT_EQ(check_realtime(resources, row.cpu, "/podqos/pod42").has_value(), row.fits);
  }
}

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

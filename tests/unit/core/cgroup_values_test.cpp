#include "common/core/kubernetes/cgroup_values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/pod_values.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace pod_text;

// Others are in Kubernetes' own answers (pods_vectors_test.cpp).
TEST(CpuSharesFor, HoldsWhatIsOutOfRange) {
  EXPECT_EQ(cpu_shares_for(MilliCpu{-5}), CpuShares{2});
  EXPECT_EQ(cpu_shares_for(MilliCpu{3}), CpuShares{3});
  EXPECT_EQ(cpu_shares_for(MilliCpu{255'999}), CpuShares{262'142});
  EXPECT_EQ(cpu_shares_for(MilliCpu{kInt64Max}), CpuShares{262'144});
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

// pkg/kubelet/cm/helpers_linux.go SharesToMilliCPU.
TEST(MilliCpuFor, RoundsUpFromTheMinimumOn) {
  for (const auto& [shares, milli] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0},
                                                          {1, 0},
                                                          {2, 2},
                                                          {3, 3},
                                                          {102, 100},
                                                          {128, 125},
                                                          {1024, 1000},
                                                          {262'144, 256'000}})
    EXPECT_EQ(milli_cpu_for(CpuShares{shares}), MilliCpu{milli}) << shares;
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
  EXPECT_EQ(milli_cpu_for_quota(Micros{10'000}, Micros{0}), std::nullopt);
}

TEST(CpuWeightFor, HoldsWhatIsOutOfRange) {
  for (const auto formula : {WeightFormula::kLinear, WeightFormula::kLog}) {
    EXPECT_EQ(cpu_weight_for(CpuShares{0}, formula), CpuWeight{1});
    EXPECT_EQ(cpu_weight_for(CpuShares{kInt64Max}, formula), CpuWeight{10'000});
  }
}

TEST(HugepageLabel, DividesWhileItCan) {
  for (const auto& [label, bytes] : std::vector<std::pair<std::string, std::int64_t>>{
           {"1B", 1},
           {"1023B", 1023},
           {"64KB", 65'536},
           {"1536KB", 1'572'864},
           {"2MB", 2'097'152},
           {"16GB", 17'179'869'184},
           {"1PB", 1'125'899'906'842'624},
           {"1024PB", 1'152'921'504'606'846'976},
       })
    EXPECT_EQ(hugepage_label(Bytes{bytes}), label);
}

Quantity quantity(std::int64_t units) {
  return Quantity::from_units(units);
}

TEST(HugepageLimits, SumTheSpellingsOfASize) {
  struct PagesCase {
    const char* name;
    ResourceList requests;
    HugePageLimits limits;
  };
  for (const auto& row : std::vector<PagesCase>{
           {"TwoSpellings",
            {{"hugepages-2Mi", quantity(4'194'304)}, {"hugepages-2048Ki", quantity(2'097'152)}},
            {{"2MB", Bytes{6'291'456}}}},
           {"AnotherResource", {{"cpu", quantity(1)}, {"hugepage-2Mi", quantity(1)}}, {}},
           {"AnExplicitZero", {{"hugepages-2Mi", quantity(0)}}, {{"2MB", Bytes{0}}}},
           {"TheEndOfTheRange",
            {{"hugepages-2Mi", quantity(kInt64Max)}, {"hugepages-2048Ki", quantity(1)}},
            {{"2MB", Bytes{kInt64Max}}}},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(hugepage_limits(row.requests), row.limits);
  }
}

TEST(HugepageLimits, RefusesWhatIsNoSize) {
  for (const auto* name :
       {"hugepages-x", "hugepages-", "hugepages-0", "hugepages--2Mi", "hugepages-2mb"}) {
    const auto limits = hugepage_limits({{name, quantity(1)}});
    ASSERT_FALSE(limits) << name;
    EXPECT_EQ(limits.error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_THAT(limits.error().message, HasSubstr(name));
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

TEST(ContainerCgroupValues, QuotaFollowsThePeriodAndIsNeverBelowAMillisecond) {
  const auto subject = pod({container("a", {}, list({{"cpu", "500m"}}))});
  const auto values = values_of(subject, {.cpu_period = Micros{10'000}});
  EXPECT_EQ(values.cpu_quota, Micros{5'000});
  EXPECT_EQ(values.cpu_period, Micros{10'000});
  const auto tiny = pod({container("a", {}, list({{"cpu", "1m"}}))});
  EXPECT_EQ(values_of(tiny).cpu_quota, Micros{1'000});
}

TEST(ContainerCgroupValues, AMalformedHugePageNameNamesTheContainer) {
  const auto subject = pod({container("a", {}, list({{"hugepages-x", "1"}}))});
  const auto values = container_cgroup_values(subject, subject.containers[0], {});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(values.error().message, testing::StartsWith("a: "));
}

TEST(PodCgroupValues, HavePodPidsLimitUnlessItIsNegative) {
  using Limit = std::optional<std::int64_t>;
  for (const auto& [given, want] : std::vector<std::pair<Limit, Limit>>{
           {std::nullopt, std::nullopt}, {-1, std::nullopt}, {0, 0}, {1, 1}, {100, 100}}) {
    const auto values =
        pod_cgroup_values(pod({}), QosClass::kBestEffort, {.pod_pids_limit = given});
    EXPECT_EQ(values->pids_limit, want) << want.value_or(-1);
  }
}

// KEP-2570: only a request above 0 is protected.
TEST(PodCgroupValues, ReserveARequestOfAByteAndNoneOfZero) {
  for (const auto& [request, unified] : std::vector<std::pair<const char*, UnifiedValues>>{
           {"0", {}}, {"1", {{"memory.low", "1"}}}}) {
    const auto values = pod_cgroup_values(pod({container("a", list({{"memory", request}}))}),
                                          QosClass::kBurstable, {.reserve_memory = true});
    EXPECT_EQ(values->unified, unified) << request;
  }
}

// What else depends on nothing but the pod is compared with Kubernetes' own values.
TEST(ContainerUnifiedValues, AreWhatIsSwitchedOn) {
  const auto subject = pod({container("a", memory("1Gi"))});
  const auto unified = [&](const ContainerMemoryParams& params) {
    return container_unified_values(subject, QosClass::kBurstable, subject.containers[0], params);
  };
  EXPECT_EQ(unified({}), UnifiedValues{});
  // pkg/kubelet/kuberuntime/kuberuntime_container_linux.go generateLinuxContainerResources.
  EXPECT_EQ(unified({.group_oom_kill = true}), (UnifiedValues{{"memory.oom.group", "1"}}));
}

// pkg/kubelet/kuberuntime/kuberuntime_container_linux.go: only Burstable pods swap, and containers
// whose request is below their limit and no more than the node has.
TEST(ContainerUnifiedValues, HaveSwapInProportionToTheRequest) {
  struct SwapCase {
    const char* name;
    QosClass qos_class;
    const char* request;
    const char* limit;
    std::int64_t node_memory;
    std::int64_t swap;
    const char* want;
  };
  for (const auto& row : std::vector<SwapCase>{
           {"AQuarter", QosClass::kBurstable, "250", "500", 1000, 800, "200"},
           {"RoundedDown", QosClass::kBurstable, "333", "500", 1000, 100, "33"},
           {"TheWholeNode", QosClass::kBurstable, "1000", "2000", 1000, 800, "800"},
           {"MoreThanTheNode", QosClass::kBurstable, "1001", "2000", 1000, 800, "0"},
           {"ANodeOfOneByte", QosClass::kBurstable, "1", "2", 1, 800, "800"},
           {"AnUnknownNode", QosClass::kBurstable, "250", "500", 0, 800, "0"},
           {"AnUnknownNodeAndNoRequest", QosClass::kBurstable, "0", "500", 0, 800, "0"},
           {"NoRequest", QosClass::kBurstable, "0", "500", 1000, 800, "0"},
           {"RequestAndLimitAreEqual", QosClass::kBurstable, "500", "500", 1000, 800, "0"},
           {"AnotherClass", QosClass::kGuaranteed, "250", "500", 1000, 800, "0"},
           {"TheEndOfTheRange", QosClass::kBurstable, "1", "2", 1, kInt64Max,
            "9223372036854775807"},
       }) {
    SCOPED_TRACE(row.name);
    const auto subject =
        pod({container("a", list({{"memory", row.request}}), list({{"memory", row.limit}}))});
    const auto values = container_unified_values(subject, row.qos_class, subject.containers[0],
                                                 {.limited_swap = true,
                                                  .swap_controller_available = true,
                                                  .node_memory = Bytes{row.node_memory},
                                                  .swap_capacity = Bytes{row.swap}});
    EXPECT_EQ(values, (UnifiedValues{{"memory.swap.max", row.want}}));
  }
}

// kernel/sched/core.c: (1 << 44) - 1 us; page_counter.h: LONG_MAX / PAGE_SIZE pages.
constexpr std::int64_t kQuota = 17'592'186'044'415;
constexpr std::int64_t kMemory = 9'223'372'036'854'771'712;

TEST(CheckKernelBounds, TakesTheHighestValuesAndUnlimitedOnes) {
  EXPECT_TRUE(check_kernel_bounds({.cpu_quota = Micros{kQuota},
                                   .cpu_period = Micros{100'000},
                                   .memory_limit = Bytes{kMemory},
                                   .hugepages = {{"2MB", Bytes{kMemory}}}}));
  EXPECT_TRUE(check_kernel_bounds({}));
  EXPECT_TRUE(check_kernel_bounds({.cpu_quota = Micros{-1}, .memory_limit = Bytes{-1}}));
}

TEST(CheckKernelBounds, RefusesWithValueAndBound) {
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
                            {"QuotaOfTheShortestPeriod",
                             {.cpu_quota = Micros{kQuota + 1}, .cpu_period = Micros{1}},
                             "17592186044416",
                             "17592186044415 CPUs"},
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
    EXPECT_THAT(checked.error().message, AllOf(HasSubstr(row.value), HasSubstr(row.bound)));
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
  EngineResources resources;
  resources.cpu_realtime_runtime = 10'000;
  EXPECT_EQ(check_realtime(resources, CgroupVersion::kV1, "/podqos/kubepods/pod42"),
            Status{fail(ErrorCode::kInvalidArgument,
                        "linux.resources.cpu.realtimeRuntime 10000: on cgroup v1 the kernel "
                        "refuses it in /podqos/kubepods/pod42, which has no realtime time to "
                        "share: remove it, or annotate the container with "
                        "podqos.io/ignore=true, so that it runs where its engine puts it")});
}

}  // namespace
}  // namespace podqos::core

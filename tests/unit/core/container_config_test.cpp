#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/cgroup_values.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;

CgroupValues values_of(const Pod& pod, const ContainerConfigParams& params = {}) {
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

}  // namespace
}  // namespace podqos::core

// cpuBurst and cpuIdle on a machine in memory, which refuses what the kernel refuses.

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/kubernetes/cgroup_values.h"
#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kBestEffort;
using containers::kBurstable;
using containers::kLogContainer;
using containers::kWebContainer;
using containers::kWebPod;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::Values;

constexpr const char* kCpuPod = "/podqos/kubepods/burstable/poda";
const std::string kCpuContainer = std::string{kCpuPod} + "/web";

core::EngineResources quota(std::int64_t microseconds) {
  core::EngineResources out;
  out.cpu_quota = microseconds;
  out.cpu_period = 100'000;
  return out;
}

/// Its engine has set a quota of 50 ms.
const FakeContainer kLimitedWeb{.id = "web", .uid = "a", .resources = quota(50'000)};

class CpuClassOnNode : public TestWithParam<core::CgroupVersion> {
 protected:
  CpuClassOnNode() { node_.settings.cpu_burst.burstable = 40; }

  [[nodiscard]] bool is_v2() const { return GetParam() == core::CgroupVersion::kV2; }
  [[nodiscard]] std::string burst_of(const std::string& cgroup) const {
    return node_.file(cgroup, is_v2() ? "cpu.max.burst" : "cpu.cfs_burst_us");
  }
  void reconcile() {
    const auto report = node_.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->failed, IsEmpty());
  }

  FakeNode node_{GetParam()};
};

TEST_P(CpuClassOnNode, PodAndContainerGetABurst) {
  node_.run(kLimitedWeb, Pid{10});
  EXPECT_EQ(burst_of(kCpuPod), "20000");
  EXPECT_EQ(burst_of(kCpuContainer), "20000");
}

TEST_P(CpuClassOnNode, WithoutTheSettingsNoFileOfTheirsIsWritten) {
  node_.settings.cpu_burst = {};
  node_.run(kLimitedWeb, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  reconcile();
  EXPECT_THAT(node_.changes, Each(Not(HasSubstr("burst_us"))));
  EXPECT_THAT(node_.changes, Each(Not(HasSubstr("cpu.max.burst"))));
  EXPECT_THAT(node_.changes, Each(Not(HasSubstr("cpu.idle"))));
}

TEST_P(CpuClassOnNode, ASmallerQuotaTakesTheBurstDown) {
  node_.run(kLimitedWeb, Pid{10});
  node_.tree.cgroups.at(kCpuContainer).files.at(is_v2() ? "cpu.max.burst" : "cpu.cfs_burst_us") =
      "0";
  node_.update(Pid{10}, quota(10'000));
  reconcile();
  EXPECT_EQ(burst_of(kCpuPod), "4000");
  EXPECT_EQ(burst_of(kCpuContainer), "4000");
}

TEST_P(CpuClassOnNode, ALargerQuotaTakesItUp) {
  node_.run(kLimitedWeb, Pid{10});
  node_.update(Pid{10}, quota(200'000));
  reconcile();
  EXPECT_EQ(burst_of(kCpuPod), "80000");
  EXPECT_EQ(burst_of(kCpuContainer), "80000");
}

TEST_P(CpuClassOnNode, WhatTheSettingsNoLongerGrantIsTakenBack) {
  node_.run(kLimitedWeb, Pid{10});
  node_.settings.cpu_burst = {};
  reconcile();
  EXPECT_EQ(burst_of(kCpuPod), "0");
  EXPECT_EQ(burst_of(kCpuContainer), "0");
}

TEST_P(CpuClassOnNode, AKernelWithoutTheFilesRunsThePodWithoutThem) {
  node_.settings.cpu_idle_besteffort = true;
  for (const char* file : {"cpu.max.burst", "cpu.cfs_burst_us", "cpu.idle"})
    node_.tree.lacking.insert(file);
  node_.run(kLimitedWeb, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  reconcile();
  EXPECT_EQ(burst_of(kCpuPod), "");
  EXPECT_EQ(node_.shares(kBestEffort), is_v2() ? "1" : "2");
}

TEST_P(CpuClassOnNode, TheBestEffortTierIsIdleWhileTheSettingsSaySo) {
  node_.settings.cpu_idle_besteffort = true;
  node_.run(kBatchContainer, Pid{11});
  EXPECT_EQ(node_.file(kBestEffort, "cpu.idle"), is_v2() ? "1" : "0");
  reconcile();
  EXPECT_EQ(node_.file(kBestEffort, "cpu.idle"), is_v2() ? "1" : "0");
  node_.settings.cpu_idle_besteffort = false;
  reconcile();
  EXPECT_EQ(node_.file(kBestEffort, "cpu.idle"), "0");
  EXPECT_EQ(node_.shares(kBestEffort), is_v2() ? "1" : "2");
}

/// The kernel refuses the weight of an idle cgroup (kernel/sched/fair.c sched_group_set_shares()).
TEST_P(CpuClassOnNode, WhatAnotherProgramMakesIdleIsWokenByTheNextEvent) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.make_idle(kWebPod);
  node_.tree.make_idle(kBurstable);
  node_.run(kLogContainer, Pid{11});
  for (const char* path : {kWebPod, kBurstable}) {
    EXPECT_EQ(node_.file(path, "cpu.idle"), "0") << path;
    EXPECT_EQ(node_.shares(path), node_.written(768)) << path;  // 750m
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, CpuClassOnNode,
                         Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

}  // namespace
}  // namespace podqos::app

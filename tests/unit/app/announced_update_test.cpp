// `runc update` by way of the wrapper: a pod follows before its container has changed.

#include "common/app/announced_update.h"

#include <cstdint>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/resize_pod.h"
#include "common/core/pods/resize_request.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kOneMebi = 1LL << 20U;
constexpr const char* kAnnouncedPod = "/podqos/kubepods/burstable/podu";
constexpr Pid kWebInit{10};

core::EngineResources engine_limits(std::int64_t memory, std::int64_t quota, std::int64_t shares) {
  core::EngineResources values;
  values.memory_limit = memory;
  values.cpu_quota = quota;
  values.cpu_shares = shares;
  return values;
}

/// A pod of web, 64Mi and 500m, and log, 32Mi and 250m, as their engine has them.
class Announced : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  void SetUp() override {
    node_.run({.id = "web", .uid = "u", .resources = engine_limits(64 * kOneMebi, 50'000, 512)},
              kWebInit);
    node_.run({.id = "log", .uid = "u", .resources = engine_limits(32 * kOneMebi, 25'000, 256)},
              Pid{11});
  }

  Status announce(const core::EngineResources& values, const char* id = "web") {
    Transaction transaction = node_.begin();
    return follow_announced(transaction, {.id = id, .values = values});
  }
  void expect_pod(std::int64_t memory, std::int64_t quota, std::int64_t milli_cpu) const {
    EXPECT_EQ(node_.memory(kAnnouncedPod), std::to_string(memory));
    EXPECT_EQ(node_.tree.is_v2() ? node_.file(kAnnouncedPod, "cpu.max")
                                 : node_.file(kAnnouncedPod, "cpu.cfs_quota_us"),
              node_.tree.is_v2() ? cat(quota, " 100000") : std::to_string(quota));
    for (const char* cgroup : {kAnnouncedPod, "/podqos/kubepods/burstable"})
      EXPECT_EQ(node_.shares(cgroup), node_.written(milli_cpu * 1024 / 1000)) << cgroup;
    EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{milli_cpu});
  }

  FakeNode node_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(, Announced,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const ::testing::TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST_P(Announced, ThePodGetsWhatIsRaised) {
  ASSERT_TRUE(announce(engine_limits(256 * kOneMebi, 75'000, 768)));
  expect_pod(288 * kOneMebi, 100'000, 750);
  node_.update(kWebInit, engine_limits(256 * kOneMebi, 75'000, 512));
  const auto after = node_.reconcile();
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_THAT(after->changes, IsEmpty());
}

/// The runtime may refuse: what is lower, and the share, follow when the container has them.
TEST_P(Announced, NothingIsLoweredBeforeTheRuntimeHasDoneIt) {
  for (const auto& [memory, quota, shares] :
       {std::tuple{32 * kOneMebi, 20'000, 4}, std::tuple{-7 * kOneMebi, -5, -5},
        std::tuple{0 * kOneMebi, 0, 0}}) {
    ASSERT_TRUE(announce(engine_limits(memory, quota, shares)));
    expect_pod(96 * kOneMebi, 75'000, 750);
  }
  core::EngineResources period;
  period.cpu_period = -100'000;
  ASSERT_TRUE(announce(period));
  expect_pod(96 * kOneMebi, 75'000, 750);
  node_.update(kWebInit, engine_limits(32 * kOneMebi, 20'000, 512));
  ASSERT_TRUE(node_.reconcile());
  expect_pod(64 * kOneMebi, 45'000, 450);
}

/// 50 ms of 50 ms in place of 50 of 100.
TEST_P(Announced, AShorterPeriodRaisesToo) {
  core::EngineResources period;
  period.cpu_period = 50'000;
  ASSERT_TRUE(announce(period));
  expect_pod(96 * kOneMebi, 125'000, 750);
}

TEST_P(Announced, WhatIsNotNamedStays) {
  core::EngineResources memory;
  memory.memory_limit = 128 * kOneMebi;
  ASSERT_TRUE(announce(memory));
  expect_pod(160 * kOneMebi, 75'000, 750);
}

/// The pod has two limits less one: it has none.
TEST_P(Announced, ALimitThatIsLiftedIsThePodsToo) {
  core::EngineResources lifted;
  lifted.cpu_quota = -1;
  ASSERT_TRUE(announce(lifted));
  EXPECT_THAT(node_.tree.is_v2() ? node_.file(kAnnouncedPod, "cpu.max")
                                 : node_.file(kAnnouncedPod, "cpu.cfs_quota_us"),
              node_.tree.is_v2() ? HasSubstr("max") : HasSubstr("-1"));
}

/// The runtime has failed: the container is as it was.
TEST_P(Announced, AReconciliationTakesBackWhatHasNotCome) {
  ASSERT_TRUE(announce(engine_limits(256 * kOneMebi, 75'000, 512)));
  ASSERT_TRUE(node_.reconcile());
  expect_pod(96 * kOneMebi, 75'000, 750);
}

/// Its container has the old values until its runtime is told: the pod keeps what it was raised to.
TEST_P(Announced, LeavesAPodThatIsBeingResized) {
  {
    Transaction transaction = node_.begin();
    const auto before = transaction.store().pod("u");
    ASSERT_TRUE(before && *before);
    core::PodRecord raised = **before;
    raised.pod.containers.front().resources.limits.insert_or_assign(
        "memory", *core::Quantity::parse("256Mi"));
    raised.resizing = core::Resizing{.container = "web",
                                     .before = core::amounts_of(**before, "web"),
                                     .raised = core::amounts_of(raised, "web"),
                                     .after = core::amounts_of(raised, "web")};
    ASSERT_TRUE(save_resized(transaction, raised, **before));
    ASSERT_TRUE(transaction.finish());
  }
  expect_pod(288 * kOneMebi, 75'000, 750);
  ASSERT_TRUE(announce(engine_limits(64 * kOneMebi, 50'000, 512)));
  expect_pod(288 * kOneMebi, 75'000, 750);
}

TEST_P(Announced, ChangesNothingForOthers) {
  node_.run(
      {.id = "db", .uid = "v", .annotations = {{"podqos.io/limits", "cpu=250m,memory=200Mi"}}},
      Pid{12});
  const auto before = node_.records;
  ASSERT_TRUE(announce(engine_limits(512 * kOneMebi, 75'000, 768), "db"));
  ASSERT_TRUE(announce(engine_limits(512 * kOneMebi, 75'000, 768), "unknown"));
  ASSERT_TRUE(announce({}));
  EXPECT_EQ(node_.records, before);
}

}  // namespace
}  // namespace podqos::app

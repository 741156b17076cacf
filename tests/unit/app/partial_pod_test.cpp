// Pods whose containers are not all known: containers come and go while the pod lives.

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::weight_of;
using ::testing::IsEmpty;

constexpr const char* kPodOfJobs = "/podqos/kubepods/burstable/podj";

/// A container of pod j, named as Podman and Docker do: by its id.
FakeContainer job(const std::string& id, const std::string& limits = "cpu=100m,memory=64Mi") {
  return {.id = id, .uid = "j", .annotations = {{"podqos.io/limits." + id, limits}}};
}

/// One of several containers that are all called "web".
FakeContainer replica(const std::string& id, const std::string& limits) {
  return {.id = id,
          .uid = "j",
          .annotations = {{"podqos.io/container", "web"}, {"podqos.io/limits.web", limits}}};
}

class PartialPod : public ::testing::Test {
 protected:
  void SetUp() override { node_.run(job("long"), Pid{10}); }

  /// A container whose runtime gives up before it has a process.
  void fail_to_create(const FakeContainer& container) {
    node_.tree.start(Pid{1100}, "/");
    ASSERT_TRUE(node_.admit(container, Pid{1100}));
    node_.tree.end(Pid{1100});
  }

  void expect_pod(std::int64_t milli_cpu, const std::string& memory) {
    const std::string weight = weight_of(milli_cpu * 1024 / 1000);
    EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), memory);
    EXPECT_EQ(node_.file(kPodOfJobs, "cpu.weight"), weight);
    EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), weight);
    EXPECT_EQ(node_.records.tiers.sums.burstable.cpu, MilliCpu{milli_cpu});
  }

  static constexpr const char* kOne = "67108864";     // 64Mi
  static constexpr const char* kTwo = "134217728";    // 128Mi
  static constexpr const char* kThree = "201326592";  // 192Mi
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(PartialPod, ShortJobsOneAfterAnotherCountAsOne) {
  for (int count = 1; count <= 300; ++count) {
    const FakeContainer each = job("job" + std::to_string(count));
    node_.run(each, Pid{11});
    EXPECT_EQ(node_.tree.processes.at(Pid{11}).cgroup, std::string{kPodOfJobs} + "/" + each.id);
    node_.tree.end(Pid{11});
    ASSERT_TRUE(node_.end(each));
    if (HasFailure()) return;
  }
  expect_pod(200, kTwo);
  const auto preview = node_.preview();
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_THAT(preview->plan, IsEmpty());
}

TEST_F(PartialPod, KeepsWhatItNeededAtMost) {
  node_.run(job("a"), Pid{11});
  node_.run(job("b"), Pid{12});
  for (const auto& [id, init] : {std::pair{"a", Pid{11}}, std::pair{"b", Pid{12}}}) {
    node_.tree.end(init);
    ASSERT_TRUE(node_.end(job(id)));
  }
  node_.run(job("c"), Pid{13});
  expect_pod(300, kThree);
}

TEST_F(PartialPod, JobsWhoseEndIsNeverReportedCountAsOne) {
  for (int count = 1; count <= 5; ++count) {
    node_.run(job("job" + std::to_string(count)), Pid{11});
    node_.tree.end(Pid{11});
  }
  expect_pod(200, kTwo);
}

TEST_F(PartialPod, ReconcileForgetsWhatHasEnded) {
  for (int count = 1; count <= 5; ++count) {
    node_.run(job("job" + std::to_string(count)), Pid{11});
    node_.tree.end(Pid{11});
    ASSERT_TRUE(node_.reconcile());
  }
  expect_pod(200, kTwo);
}

TEST_F(PartialPod, CreationsThatFailCountForNothing) {
  for (int count = 1; count <= 20; ++count) {
    const Pid creator{1100 + count};
    node_.tree.start(creator, "/");
    ASSERT_TRUE(node_.admit(job("failed" + std::to_string(count)), creator));
    EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), kTwo);
    node_.tree.end(creator);
  }
  node_.run(kBatchContainer, Pid{12});
  expect_pod(100, kOne);
}

/// Its runtime reports the end: the process that placed it runs poststop.
TEST_F(PartialPod, ACreationThatIsReportedAsFailedCountsForNothing) {
  node_.tree.start(Pid{1011}, "/");
  ASSERT_TRUE(node_.admit(job("failed"), Pid{1011}));
  Transaction transaction = node_.begin();
  ASSERT_TRUE(end_container(transaction,
                            {.id = "failed", .bundle = "/run/failed", .caller = Pid{1011}},
                            OnEnding::kLeave));
  expect_pod(100, kOne);
}

/// Its processes were killed, but the kernel has not ended them yet.
TEST_F(PartialPod, AKilledContainerIsRemovedOnlyOnceItsRuntimeWaitsNoLonger) {
  constexpr Pid kKilled{1 << 23};  // beyond PID_MAX_LIMIT: /proc knows it no more
  node_.run(job("killed"), kKilled);
  for (const auto on_ending : {OnEnding::kLeave, OnEnding::kDrop}) {
    expect_pod(200, kTwo);
    Transaction transaction = node_.begin();
    const auto ended = end_container(
        transaction, {.id = "killed", .bundle = "/run/killed", .caller = {}}, on_ending);
    ASSERT_TRUE(ended);
    EXPECT_EQ(node_.records.pods.at("j").contains("/run/killed"), on_ending == OnEnding::kLeave);
  }
}

/// What runs may use more than the pod may have without the failed container.
TEST_F(PartialPod, ItsLimitStaysAboveItsUsage) {
  node_.tree.start(Pid{1011}, "/");
  ASSERT_TRUE(node_.admit(job("failed"), Pid{1011}));
  node_.tree.cgroups.at(kPodOfJobs).usage = 100LL << 20U;
  node_.tree.end(Pid{1011});
  node_.run(kBatchContainer, Pid{12});
  EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), std::to_string(116LL << 20U));
}

/// The cgroup of a container that cannot be made: what was written for it is taken back.
TEST_F(PartialPod, AContainerThatCannotBePlacedCountsForNothing) {
  node_.refuses = [](const std::string& change) {
    return change.find("podj") != std::string::npos;
  };
  node_.tree.start(Pid{1011}, "/");
  ASSERT_FALSE(node_.admit(job("failed"), Pid{1011}));
  node_.refuses = {};
  ASSERT_TRUE(node_.reconcile());
  expect_pod(100, kOne);
}

TEST_F(PartialPod, IsUnlimitedFromTheFirstContainerWithoutALimit) {
  const FakeContainer free{.id = "free", .uid = "j"};
  node_.run(free, Pid{11});
  EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), "max");
  node_.tree.end(Pid{11});
  ASSERT_TRUE(node_.end(free));
  node_.run(job("a"), Pid{12});
  EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), "max");
}

TEST_F(PartialPod, IsNotUnlimitedForOneThatNeverStarted) {
  node_.tree.start(Pid{1011}, "/");
  ASSERT_TRUE(node_.admit({.id = "free", .uid = "j"}, Pid{1011}));
  node_.tree.end(Pid{1011});
  node_.run(kBatchContainer, Pid{12});
  expect_pod(100, kOne);
}

/// A creation that failed and has not expired yet when a job ends.
TEST_F(PartialPod, WhatAPendingContainerClaimsIsNotKept) {
  node_.run(job("job"), Pid{11});
  fail_to_create(job("bad", "cpu=8,memory=1Gi"));
  node_.tree.end(Pid{11});
  ASSERT_TRUE(node_.end(job("job")));
  expect_pod(200, kTwo);
}

TEST_F(PartialPod, ReconcileKeepsNothingOfAPendingContainer) {
  node_.run(job("job"), Pid{11});
  fail_to_create(job("bad", "cpu=8,memory=1Gi"));
  node_.tree.end(Pid{11});
  ASSERT_TRUE(node_.reconcile());
  expect_pod(200, kTwo);
}

TEST_F(PartialPod, APendingContainerWithoutALimitLeavesThePodItsOwn) {
  node_.run(job("job"), Pid{11});
  fail_to_create({.id = "free", .uid = "j"});
  node_.tree.end(Pid{11});
  ASSERT_TRUE(node_.end(job("job")));
  expect_pod(200, kTwo);
}

TEST_F(PartialPod, ReconcileKeepsWhatRanAtOnce) {
  node_.run(job("a"), Pid{11});
  node_.run(job("b"), Pid{12});
  node_.tree.end(Pid{11});
  node_.tree.end(Pid{12});
  ASSERT_TRUE(node_.reconcile());
  expect_pod(300, kThree);
}

TEST_F(PartialPod, ContainersWithOneNameCountApart) {
  node_.run(replica("1", "cpu=1,memory=1Gi"), Pid{11});
  node_.run(replica("2", "cpu=100m,memory=64Mi"), Pid{12});
  constexpr const char* kBoth = "1207959552";  // 64Mi + 1Gi + 64Mi
  expect_pod(1200, kBoth);
  node_.tree.end(Pid{12});
  ASSERT_TRUE(node_.end({.id = "2", .uid = "j"}));
  expect_pod(1200, kBoth);
  ASSERT_TRUE(node_.reconcile());
  expect_pod(1200, kBoth);
}

TEST_F(PartialPod, OneOfANameThatNeverStartsLeavesTheOthersTheirs) {
  node_.run(replica("1", "cpu=100m,memory=64Mi"), Pid{11});
  fail_to_create(replica("2", "cpu=1,memory=1Gi"));
  node_.run(kBatchContainer, Pid{12});
  expect_pod(200, kTwo);
}

/// As precreate and createRuntime announce one container.
TEST_F(PartialPod, OneThatIsAnnouncedTwiceCountsOnce) {
  node_.run(replica("1", "cpu=100m,memory=64Mi"), Pid{11});
  const FakeContainer second = replica("2", "cpu=100m,memory=64Mi");
  node_.tree.start(Pid{1012}, "/");
  ASSERT_TRUE(node_.admit(second, Pid{1012}));
  node_.tree.end(Pid{11});
  ASSERT_TRUE(node_.end({.id = "1", .uid = "j"}));
  ASSERT_TRUE(node_.admit(second, Pid{1012}));
  expect_pod(200, kTwo);
}

/// A spec that is not believed names no container either.
TEST_F(PartialPod, ContainersWithARefusedSpecCountApart) {
  const auto refused = [](const std::string& id, std::int64_t limit) {
    FakeContainer out{.id = id,
                      .uid = "j",
                      .annotations = {{"podqos.io/pod", R"({"containers": [{"name": "web",
                                           "resources": {"limits": {"memory": "8Gi"}}}]})"}},
                      .named = false};
    out.resources.memory_limit = limit << 20U;
    return out;
  };
  node_.run(refused("1", 128), Pid{11});
  node_.run(refused("2", 64), Pid{12});
  EXPECT_EQ(node_.file(kPodOfJobs, "memory.max"), std::to_string(256LL << 20U));
}

TEST_F(PartialPod, ARestartedContainerWithALowerLimitDoesNotShrinkIt) {
  node_.run(job("a", "cpu=1,memory=128Mi"), Pid{11});
  node_.tree.end(Pid{11});
  node_.run(job("a"), Pid{12});
  expect_pod(1100, kThree);
}

}  // namespace
}  // namespace podqos::app

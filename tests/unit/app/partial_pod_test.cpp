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
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr const char* kPodOfJobs = "/podqos/kubepods/burstable/podj";

/// A container of pod j, named as Podman and Docker do: by its id.
FakeContainer job(const std::string& id, const std::string& limits = "cpu=100m,memory=64Mi") {
  return {.id = id, .uid = "j", .annotations = {{"podqos.io/limits." + id, limits}}};
}
FakeContainer unlimited() {
  return {.id = "free", .uid = "j"};
}

/// One of several containers that are all called "web".
FakeContainer replica(const std::string& id, const std::string& limits = "cpu=100m,memory=64Mi") {
  return {.id = id,
          .uid = "j",
          .annotations = {{"podqos.io/container", "web"}, {"podqos.io/limits.web", limits}}};
}

constexpr const char* kOne = "67108864";         // 64Mi
constexpr const char* kTwo = "134217728";        // 128Mi
constexpr const char* kThree = "201326592";      // 192Mi
constexpr const char* kReplicas = "1207959552";  // 64Mi + 1Gi + 64Mi

/// A node on which "long" of pod j runs.
class PodOfJobs {
 public:
  PodOfJobs() { node.run(job("long"), Pid{10}); }

  /// Five jobs one after the other, whose end is not reported.
  void run_five(const std::function<void()>& after_each) {
    for (int count = 1; count <= 5; ++count) {
      node.run(job("job" + std::to_string(count)), Pid{11});
      node.tree.end(Pid{11});
      after_each();
    }
  }
  void run_two() {
    node.run(job("a"), Pid{11});
    node.run(job("b"), Pid{12});
  }
  /// What was placed and never created expires with the next event.
  void expire() { node.run(kBatchContainer, Pid{20}); }
  void reconcile() { ASSERT_TRUE(node.reconcile()); }

  void expect(std::int64_t milli_cpu, const std::string& memory) const {
    EXPECT_EQ(node.memory(kPodOfJobs), memory);
    for (const char* cgroup : {kPodOfJobs, containers::kBurstable})
      EXPECT_EQ(node.shares(cgroup), node.written(milli_cpu * 1024 / 1000)) << cgroup;
    EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{milli_cpu});
    EXPECT_EQ(node.records.node.sums.burstable.pods, 1);
  }

  FakeNode node{core::CgroupVersion::kV2};
};

/// What happens in the pod, and what it has then.
struct PartialPodCase {
  const char* name;
  std::int64_t milli_cpu;
  const char* memory;
  void (*happens)(PodOfJobs& pod);
};
class PartialPod : public TestWithParam<PartialPodCase> {};

TEST_P(PartialPod, HasWhatItsContainersNeededAtMost) {
  PodOfJobs pod;
  GetParam().happens(pod);
  pod.expect(GetParam().milli_cpu, GetParam().memory);
}

const std::vector<PartialPodCase> kPartialPodCases = {
    {"TwoAtOnceCountWhenBothHaveEnded", 300, kThree,
     [](PodOfJobs& pod) {
       pod.run_two();
       pod.node.stop(job("a"), Pid{11});
       pod.node.stop(job("b"), Pid{12});
       pod.node.run(job("c"), Pid{13});
     }},
    {"JobsWhoseEndIsNeverReportedCountAsOne", 200, kTwo,
     [](PodOfJobs& pod) { pod.run_five([] {}); }},
    {"ReconcileForgetsWhatHasEnded", 200, kTwo,
     [](PodOfJobs& pod) { pod.run_five([&] { pod.reconcile(); }); }},
    {"ReconcileKeepsWhatRanAtOnce", 300, kThree,
     [](PodOfJobs& pod) {
       pod.run_two();
       pod.node.tree.end(Pid{11});
       pod.node.tree.end(Pid{12});
       pod.reconcile();
     }},
    {"CreationsThatFailCountForNothing", 100, kOne,
     [](PodOfJobs& pod) {
       for (int count = 1; count <= 20; ++count) {
         pod.node.fail_to_create(job("failed" + std::to_string(count)), Pid{1100 + count});
         EXPECT_EQ(pod.node.memory(kPodOfJobs), kTwo);
       }
       pod.expire();
     }},
    // Its runtime reports the end: the process that placed it runs poststop.
    {"ACreationThatIsReportedAsFailedCountsForNothing", 100, kOne,
     [](PodOfJobs& pod) {
       ASSERT_TRUE(pod.node.admit(job("failed"), Pid{1011}));
       ASSERT_TRUE(pod.node.end(job("failed"), IfStillDying::kLeave, Pid{1011}));
     }},
    // The cgroup of a container that cannot be made: what was written for it is taken back.
    {"AContainerThatCannotBePlacedCountsForNothing", 100, kOne,
     [](PodOfJobs& pod) {
       pod.node.refuses = [](const std::string& change) { return change.contains("podj"); };
       ASSERT_FALSE(pod.node.admit(job("failed")));
       pod.node.refuses = {};
       pod.reconcile();
     }},
    {"OneWithoutALimitThatNeverStartedLeavesTheLimit", 100, kOne,
     [](PodOfJobs& pod) {
       pod.node.fail_to_create(unlimited());
       pod.expire();
     }},
    // A creation that failed and has not expired yet when a job ends.
    {"WhatAPendingContainerClaimsIsNotKept", 200, kTwo,
     [](PodOfJobs& pod) {
       pod.node.run(job("job"), Pid{11});
       pod.node.fail_to_create(job("bad", "cpu=8,memory=1Gi"));
       pod.node.stop(job("job"), Pid{11});
     }},
    {"ReconcileKeepsNothingOfAPendingContainer", 200, kTwo,
     [](PodOfJobs& pod) {
       pod.node.run(job("job"), Pid{11});
       pod.node.fail_to_create(job("bad", "cpu=8,memory=1Gi"));
       pod.node.tree.end(Pid{11});
       pod.reconcile();
     }},
    {"APendingContainerWithoutALimitLeavesThePodItsOwn", 200, kTwo,
     [](PodOfJobs& pod) {
       pod.node.run(job("job"), Pid{11});
       pod.node.fail_to_create(unlimited());
       pod.node.stop(job("job"), Pid{11});
     }},
    {"ContainersWithOneNameCountApart", 1200, kReplicas,
     [](PodOfJobs& pod) {
       pod.node.run(replica("1", "cpu=1,memory=1Gi"), Pid{11});
       pod.node.run(replica("2"), Pid{12});
       pod.expect(1200, kReplicas);
       pod.node.stop(replica("2"), Pid{12});
       pod.expect(1200, kReplicas);
       pod.reconcile();
     }},
    {"OneOfANameThatNeverStartsLeavesTheOthersTheirs", 200, kTwo,
     [](PodOfJobs& pod) {
       pod.node.run(replica("1"), Pid{11});
       pod.node.fail_to_create(replica("2", "cpu=1,memory=1Gi"));
       pod.expire();
     }},
    // As precreate and createRuntime announce one container.
    {"OneThatIsAnnouncedTwiceCountsOnce", 200, kTwo,
     [](PodOfJobs& pod) {
       pod.node.run(replica("1"), Pid{11});
       ASSERT_TRUE(pod.node.admit(replica("2")));
       pod.node.stop(replica("1"), Pid{11});
       ASSERT_TRUE(pod.node.admit(replica("2")));
     }},
    {"ARestartedContainerWithALowerLimitDoesNotShrinkIt", 1100, kThree,
     [](PodOfJobs& pod) {
       pod.node.run(job("a", "cpu=1,memory=128Mi"), Pid{11});
       pod.node.tree.end(Pid{11});
       pod.node.run(job("a"), Pid{12});
     }},
};
INSTANTIATE_TEST_SUITE_P(Table, PartialPod, ValuesIn(kPartialPodCases),
                         [](const TestParamInfo<PartialPodCase>& row) { return row.param.name; });

TEST(PartialPods, CountShortJobsOneAfterAnotherAsOne) {
  PodOfJobs pod;
  for (int count = 1; count <= 300; ++count) {
    const FakeContainer each = job("job" + std::to_string(count));
    pod.node.run(each, Pid{11});
    EXPECT_EQ(pod.node.tree.processes.at(Pid{11}).cgroup, cat(kPodOfJobs, "/", each.id));
    pod.node.stop(each, Pid{11});
    if (::testing::Test::HasFailure()) return;
  }
  pod.expect(200, kTwo);
  const auto preview = pod.node.preview();
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_THAT(preview->plan, IsEmpty());
}

/// Its processes were killed, but the kernel has not ended them yet.
TEST(PartialPods, RemoveAKilledContainerOnlyOnceItsRuntimeWaitsNoLonger) {
  constexpr Pid kKilled{1 << 23};  // beyond PID_MAX_LIMIT: /proc knows it no more
  PodOfJobs pod;
  pod.node.run(job("killed"), kKilled);
  for (const auto if_still_dying : {IfStillDying::kLeave, IfStillDying::kDrop}) {
    pod.expect(200, kTwo);
    ASSERT_TRUE(pod.node.end(job("killed"), if_still_dying));
    EXPECT_EQ(pod.node.records.pods.at("j").contains("/run/killed"),
              if_still_dying == IfStillDying::kLeave);
  }
}

/// What runs may use more than the pod may have without the failed container.
TEST(PartialPods, KeepTheirLimitAboveTheirUsage) {
  PodOfJobs pod;
  pod.node.fail_to_create(job("failed"));
  pod.node.tree.cgroups.at(kPodOfJobs).usage = 100LL << 20U;
  pod.expire();
  EXPECT_EQ(pod.node.memory(kPodOfJobs), std::to_string(116LL << 20U));
}

TEST(PartialPods, AreUnlimitedFromTheFirstContainerWithoutALimit) {
  PodOfJobs pod;
  pod.node.run(unlimited(), Pid{11});
  EXPECT_EQ(pod.node.memory(kPodOfJobs), "max");
  pod.node.stop(unlimited(), Pid{11});
  pod.node.run(job("a"), Pid{12});
  EXPECT_EQ(pod.node.memory(kPodOfJobs), "max");
}

/// A spec that is not believed names no container either.
TEST(PartialPods, CountContainersWithARefusedSpecApart) {
  PodOfJobs pod;
  const auto refused = [](const std::string& id, std::int64_t limit) {
    FakeContainer out{.id = id,
                      .uid = "j",
                      .annotations = {{"podqos.io/pod", R"({"containers": [{"name": "web",
                                           "resources": {"limits": {"memory": "8Gi"}}}]})"}},
                      .named = false};
    out.resources.memory_limit = limit << 20U;
    return out;
  };
  pod.node.run(refused("1", 128), Pid{11});
  pod.node.run(refused("2", 64), Pid{12});
  EXPECT_EQ(pod.node.memory(kPodOfJobs), std::to_string(256LL << 20U));
}

}  // namespace
}  // namespace podqos::app

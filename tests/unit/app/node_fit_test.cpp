// Pods that the node has no room for, on a machine in memory.

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kDatabaseContainer;
using containers::kLogContainer;
using containers::kWebContainer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A node of 1200m, on which "db" of pod c has requested 1.
class FullNode : public ::testing::Test {
 protected:
  FullNode() {
    node_.capacity.cpu = MilliCpu{1200};
    node_.settings.admission.cpu = core::AdmissionPolicy::kEnforce;
    node_.settings.log_sink = temporary_.path("log");
    node_.run(kDatabaseContainer, Pid{10});
    node_.tree.start(Pid{99}, "/");
  }
  [[nodiscard]] std::string log() const { return temporary_.read("log"); }

  TemporaryDirectory temporary_;
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(FullNode, RefusesAPodAndKeepsNothingOfIt) {
  const FakeRecords before = node_.records;
  const auto changes = node_.changes.size();
  const auto refused = node_.admit(kWebContainer, Pid{99});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("pod a: requests cpu 500m, of which 200m is free: 1200m is "
                              "allocatable, and other pods have 1, most of it pod c with 1; "),
                    HasSubstr("set admission.cpu to \"warn\"")));
  EXPECT_EQ(node_.changes.size(), changes);
  EXPECT_EQ(node_.records.tiers, before.tiers);
  EXPECT_EQ(node_.records.pods, before.pods);
  EXPECT_EQ(node_.records.index, before.index);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(FullNode, RefusesTheFirstPodOfATree) {
  node_.driver = core::Driver::kSystemd;
  const auto trees = node_.records.tiers.trees.size();
  EXPECT_FALSE(node_.admit(kWebContainer, Pid{99}));
  EXPECT_EQ(node_.records.tiers.trees.size(), trees);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(FullNode, WarnsOnlyIfThatIsSet) {
  node_.settings.admission.cpu = core::AdmissionPolicy::kWarn;
  ASSERT_TRUE(node_.admit(kWebContainer, Pid{99}));
  EXPECT_THAT(log(), HasSubstr("pod a requests cpu 500m, of which 200m counts: other pods have "));
  EXPECT_EQ(node_.records.tiers.sums.burstable.cpu, MilliCpu{200});
}

TEST_F(FullNode, SaysNothingWhereThatIsOff) {
  node_.settings.admission.cpu = core::AdmissionPolicy::kOff;
  ASSERT_TRUE(node_.admit(kWebContainer, Pid{99}));
  EXPECT_THAT(log(), Not(HasSubstr("of which")));
}

/// Each decides under the lock from the sums that the one before has written, although neither has
/// started.
TEST_F(FullNode, TwoPodsDoNotTakeTheLastBytesTogether) {
  node_.capacity.cpu = MilliCpu{1500};
  ASSERT_TRUE(node_.admit(kWebContainer, Pid{99}));
  const FakeContainer other{
      .id = "other", .uid = "o", .annotations = {{"podqos.io/requests", "cpu=500m"}}};
  const auto refused = node_.admit(other, Pid{99});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("requests cpu 500m, of which 0 is free"));
  EXPECT_EQ(node_.records.tiers.sums.burstable.pods, 1);
}

TEST_F(FullNode, TakesAPodAgainWhenAnotherHasEnded) {
  EXPECT_FALSE(node_.admit(kWebContainer, Pid{99}));
  node_.tree.end(Pid{10});
  ASSERT_TRUE(node_.end(kDatabaseContainer));
  EXPECT_TRUE(node_.admit(kWebContainer, Pid{99}));
}

/// Its end was not reported, so that its pod still counts.
TEST_F(FullNode, TakesAContainerOfACountedPodAgain) {
  node_.capacity.cpu = MilliCpu{100};
  node_.tree.end(Pid{10});
  const auto admitted = node_.admit(kDatabaseContainer, Pid{99});
  EXPECT_TRUE(admitted) << admitted.error().message;
}

TEST_F(FullNode, RefusesAContainerThatMakesItsPodTooLarge) {
  node_.capacity.cpu = MilliCpu{1600};
  node_.run(kWebContainer, Pid{11});
  const auto refused = node_.admit(kLogContainer, Pid{99});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("requests cpu 750m, of which 600m is free"));
  EXPECT_THAT(node_.records.pods.at("a"), Not(HasSubstr("log")));
  EXPECT_EQ(node_.records.tiers.sums.burstable.cpu, MilliCpu{500});
}

TEST_F(FullNode, TakesABestEffortPod) {
  node_.capacity.cpu = MilliCpu{1000};
  EXPECT_TRUE(node_.admit(kBatchContainer, Pid{99}));
}

TEST_F(FullNode, TakesAKubeletsPod) {
  node_.tree.make("/kubepods/burstable/pod7");
  const auto admitted =
      node_.admit({.id = "theirs",
                   .uid = "7",
                   .annotations = {{"io.kubernetes.cri.container-type", "container"},
                                   {"io.kubernetes.cri.sandbox-id", "sandbox"},
                                   {"io.kubernetes.cri.sandbox-uid", "7"},
                                   {"podqos.io/requests", "cpu=5"}}},
                  Pid{99}, "/kubepods/burstable/pod7/theirs");
  ASSERT_TRUE(admitted) << admitted.error().message;
  ASSERT_TRUE(*admitted);
  EXPECT_TRUE((*admitted)->record.adopted);
}

/// createRuntime: the container exists already.
TEST_F(FullNode, OnlyWarnsOfAContainerThatRuns) {
  node_.tree.make("/elsewhere/web");
  node_.tree.start(Pid{12}, "/elsewhere/web");
  core::ContainerFacts facts;
  facts.id = "web";
  facts.bundle = "/run/web";
  facts.annotations = kWebContainer.annotations;
  facts.annotations["podqos.io/pod-uid"] = "a";
  auto request = admission_request(facts, node_.settings, "/elsewhere/web");
  ASSERT_TRUE(request && *request);
  const Init init{.process = {.pid = Pid{12}, .start_time = StartTime{120}},
                  .cgroup = "/elsewhere/web"};
  {
    Transaction transaction = node_.begin();
    AdmissionRequest undone = **request;
    undone.undone_if_refused = true;
    const auto refused = count_running(transaction, std::move(undone), init);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  }
  Transaction transaction = node_.begin();
  const auto counted = count_running(transaction, std::move(**request), init);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_THAT(log(), HasSubstr("pod a requests cpu 500m, of which 200m counts"));
}

TEST_F(FullNode, CountsTheLimitsOfProcesses) {
  node_.settings.pod_pids_limit = 16'385;  // of 32768
  ASSERT_TRUE(node_.admit(kBatchContainer, Pid{99}));
  EXPECT_THAT(log(), HasSubstr("pod b: podPidsLimit 16385 for each of 2 pods is more than the "
                               "node's 32768 processes"));
  node_.settings.admission.pids = core::AdmissionPolicy::kEnforce;
  const auto refused = node_.admit({.id = "d", .uid = "d"}, Pid{99});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
}

/// A container, or the sandbox, of a pod that requests 10Gi, as a CRI engine describes it.
FakeContainer made_by_cri(const std::string& uid, const std::string& type) {
  FakeContainer made{.id = uid + type,
                     .uid = uid,
                     .annotations = {{"io.kubernetes.cri.container-type", type},
                                     {"io.kubernetes.cri.sandbox-id", uid + "sandbox"},
                                     {"io.kubernetes.cri.sandbox-uid", uid},
                                     {"podqos.io/pod", R"({"containers":[{"name":"c","resources":{)"
                                                       R"("requests":{"memory":"10Gi"},)"
                                                       R"("limits":{"memory":"10Gi"}}}]})"}}};
  if (type == "container") made.resources.memory_limit = std::int64_t{10} << 30U;
  return made;
}

/// With qosReserved a request counts as far as limits back it, which no sandbox's does. It is
/// requested all the same.
TEST(ReservedMemory, IsRequestedBeforeAnythingBacksIt) {
  FakeNode node{core::CgroupVersion::kV2};
  node.settings.admission.memory = core::AdmissionPolicy::kEnforce;
  node.settings.reserve_memory_percent = 100;
  node.tree.start(Pid{99}, "/");
  node.run(made_by_cri("1", "sandbox"), Pid{10});
  const FakeContainer second = made_by_cri("2", "sandbox");
  const auto refused = node.admit(second, Pid{99});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("pod 2: requests memory 10Gi, of which 6Gi is free: 16Gi is allocatable, "
                        "and other pods have 10Gi, most of it pod 1 with 10Gi; "));
  node.run(made_by_cri("1", "container"), Pid{11});
  EXPECT_FALSE(node.admit(second, Pid{99}));
  for (const int init : {11, 10}) {
    node.tree.end(Pid{init});
    ASSERT_TRUE(node.end(made_by_cri("1", init == 10 ? "sandbox" : "container")));
  }
  EXPECT_TRUE(node.admit(second, Pid{99}));
}

}  // namespace
}  // namespace podqos::app

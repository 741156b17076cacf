// Pods that the node has no room for, on a machine in memory.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/container_start.h"
#include "common/codec/record_json.h"
#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kDatabaseContainer;
using containers::kLogContainer;
using containers::kWebContainer;
using containers::requesting;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A node of 1200m, on which "db" of pod c has requested 1.
class FullNode : public ::testing::Test {
 protected:
  FullNode() {
    node_.capacity.cpu = MilliCpu{1200};
    node_.settings.admission.cpu = core::AdmissionPolicy::kEnforce;
    node_.settings.log_sink = temporary_.path("log");
    node_.run(kDatabaseContainer, Pid{10});
  }
  [[nodiscard]] std::string log() const { return temporary_.read("log"); }

  TemporaryDirectory temporary_;
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(FullNode, RefusesAPodAndKeepsNothingOfIt) {
  const FakeRecords before = node_.records;
  const auto changes = node_.changes.size();
  const auto refused = node_.admit(kWebContainer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("pod a: requests cpu 500m, of which 200m is free: 1200m is "
                              "allocatable, and other pods have 1, most of it pod c with 1; "),
                    HasSubstr("set admission.cpu to \"warn\"")));
  EXPECT_EQ(node_.changes.size(), changes);
  EXPECT_EQ(node_.records, before);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(FullNode, RefusesTheFirstPodOfATree) {
  node_.driver = core::Driver::kSystemd;
  const auto trees = node_.records.node.trees.size();
  EXPECT_FALSE(node_.admit(kWebContainer));
  EXPECT_EQ(node_.records.node.trees.size(), trees);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(FullNode, WarnsOnlyIfThatIsSet) {
  node_.settings.admission.cpu = core::AdmissionPolicy::kWarn;
  ASSERT_TRUE(node_.admit(kWebContainer));
  EXPECT_THAT(log(), HasSubstr("pod a: requests cpu 500m, of which 200m is free: 1200m is "));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{500});
}

/// Each decides under the lock from the sums that the one before has written, although neither has
/// started.
TEST_F(FullNode, TwoPodsDoNotTakeTheLastBytesTogether) {
  node_.capacity.cpu = MilliCpu{1500};
  ASSERT_TRUE(node_.admit(kWebContainer));
  const auto refused = node_.admit(requesting("other", "cpu=500m"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("requests cpu 500m, of which 0 is free"));
  EXPECT_EQ(node_.records.node.sums.burstable.pods, 1);
}

TEST_F(FullNode, TakesAPodAgainWhenAnotherHasEnded) {
  EXPECT_FALSE(node_.admit(kWebContainer));
  node_.stop(kDatabaseContainer, Pid{10});
  EXPECT_TRUE(node_.admit(kWebContainer));
}

/// Its end was not reported, so that its pod counts until it is in the way of another.
TEST_F(FullNode, LooksAtThePodsInTheWayBeforeItRefuses) {
  node_.tree.end(Pid{10});
  const auto admitted = node_.admit(kWebContainer);
  ASSERT_TRUE(admitted) << admitted.error().message;
  EXPECT_FALSE(node_.records.pods.contains("c"));
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(FullNode, NamesThePodOnceWhereThatDoesNotHelp) {
  node_.tree.end(Pid{10});
  node_.capacity.cpu = MilliCpu{400};
  const auto refused = node_.admit(kWebContainer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              StartsWith("pod a: requests cpu 500m, of which 400m is free"));
  EXPECT_FALSE(node_.records.pods.contains("c"));
}

/// Its end was not reported, so that its pod still counts.
TEST_F(FullNode, TakesAContainerOfACountedPodAgain) {
  node_.capacity.cpu = MilliCpu{100};
  node_.tree.end(Pid{10});
  const auto admitted = node_.admit(kDatabaseContainer);
  EXPECT_TRUE(admitted) << admitted.error().message;
}

TEST_F(FullNode, RefusesAContainerThatMakesItsPodTooLarge) {
  node_.capacity.cpu = MilliCpu{1600};
  node_.run(kWebContainer, Pid{11});
  const auto refused = node_.admit(kLogContainer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("requests cpu 750m, of which 600m is free"));
  EXPECT_THAT(node_.records.pods.at("a"), Not(HasSubstr("log")));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{500});
}

/// createRuntime: the container exists already.
TEST_F(FullNode, OnlyWarnsOfAContainerThatRuns) {
  node_.tree.start(Pid{12}, "/elsewhere/web");
  const Init init = node_.started(Pid{12});
  auto request = node_.request_of(kWebContainer, init.cgroup);
  ASSERT_TRUE(request && *request);
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
  EXPECT_THAT(log(), HasSubstr("pod a: requests cpu 500m, of which 200m is free"));
}

TEST_F(FullNode, CountsTheLimitsOfProcesses) {
  node_.settings.pod_pids_limit = 16'385;  // of 32768
  ASSERT_TRUE(node_.admit(kBatchContainer));
  EXPECT_THAT(log(), HasSubstr("pod b: podPidsLimit 16385 for each of 2 pods is more than the "
                               "node's 32768 processes"));
  node_.settings.admission.pids = core::AdmissionPolicy::kEnforce;
  const auto refused = node_.admit({.id = "d", .uid = "d"});
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
  node.run(made_by_cri("1", "sandbox"), Pid{10});
  const FakeContainer second = made_by_cri("2", "sandbox");
  const auto refused = node.admit(second);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("pod 2: requests memory 10Gi, of which 6Gi is free: 16Gi is allocatable, "
                        "and other pods have 10Gi, most of it pod 1 with 10Gi; "));
  node.run(made_by_cri("1", "container"), Pid{11});
  EXPECT_FALSE(node.admit(second));
  node.stop(made_by_cri("1", "container"), Pid{11});
  node.stop(made_by_cri("1", "sandbox"), Pid{10});
  EXPECT_TRUE(node.admit(second));
}

/// A pod whose author claims more for container "b" than its engine gives it.
class SandboxClaim : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  static FakeContainer made(const std::string& name, core::EngineResources limits) {
    const bool is_sandbox = name == "sandbox";
    FakeContainer out{
        .id = name,
        .uid = "1",
        .annotations = {{"io.kubernetes.cri.container-type", is_sandbox ? name : "container"},
                        {"io.kubernetes.cri.sandbox-id", "sandbox"},
                        {"io.kubernetes.cri.sandbox-uid", "1"},
                        {"podqos.io/pod", R"({"priorityClassName":"system-node-critical",)"
                                          R"("containers":[{"name":"a","resources":{)"
                                          R"("limits":{"cpu":"100m","memory":"32Mi"}}},)"
                                          R"({"name":"b","resources":{)"
                                          R"("limits":{"cpu":"4","memory":"8Gi"}}}]})"}},
        .resources = std::move(limits),
        .named = false};
    if (!is_sandbox) out.annotations["io.kubernetes.cri.container-name"] = name;
    return out;
  }
  /// What a CRI engine makes of 100m and this limit.
  static core::EngineResources cri_limits(std::int64_t mebibytes) {
    core::EngineResources out;
    out.cpu_shares = 102;
    out.cpu_quota = 10'000;
    out.cpu_period = 100'000;
    out.memory_limit = mebibytes << 20U;
    return out;
  }
  [[nodiscard]] core::PodRecord record() const {
    auto read = codec::parse_pod_record(node_.records.pods.at("1"));
    EXPECT_TRUE(read);
    return std::move(read).value_or(core::PodRecord{});
  }
  void expect_values(std::int64_t shares, std::int64_t quota, std::int64_t mebibytes) const {
    EXPECT_EQ(node_.shares(kClaimingPod), node_.written(shares));
    EXPECT_EQ(node_.file(kClaimingPod, node_.tree.is_v2() ? "cpu.max" : "cpu.cfs_quota_us"),
              cat(quota, node_.tree.is_v2() ? " 100000" : ""));
    EXPECT_EQ(node_.memory(kClaimingPod), std::to_string(mebibytes << 20U));
  }

  static constexpr const char* kClaimingPod = "/podqos/kubepods/pod1";
  FakeNode node_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(, SandboxClaim,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const auto& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST_P(SandboxClaim, HoldsWhileContainersAgree) {
  node_.run(made("sandbox", {}), Pid{10});
  node_.run(made("a", cri_limits(32)), Pid{11});
  EXPECT_EQ(record().qos_class, core::QosClass::kGuaranteed);
  expect_values(4198, 410'000, 8192 + 32);  // 4100m * 1024 / 1000
}

/// As if it had never been: without a sandbox the engine's 100m and 64Mi are all that counts.
TEST_P(SandboxClaim, IsTakenBackWhereAContainersLimitsContradictIt) {
  node_.run(made("sandbox", {}), Pid{10});
  node_.run(made("b", cri_limits(64)), Pid{12});
  expect_values(102, 10'000, 64);
  const core::PodRecord pod = record();
  EXPECT_EQ(pod.qos_class, core::QosClass::kBurstable);
  EXPECT_FALSE(pod.complete);
  EXPECT_EQ(pod.pod.priority_class_name, "");
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{100});
  EXPECT_EQ(node_.records.node.sums.guaranteed.cpu, MilliCpu{0});
  EXPECT_TRUE(node_.reconcile()->changes.empty());
}

TEST_P(SandboxClaim, OnceTakenBackIsNotMadeAgainByAContainerThatAgrees) {
  node_.run(made("sandbox", {}), Pid{10});
  node_.run(made("b", cri_limits(64)), Pid{12});
  node_.run(made("a", cri_limits(32)), Pid{11});
  expect_values(204, 20'000, 96);
  EXPECT_EQ(record().qos_class, core::QosClass::kBurstable);
}

TEST_P(SandboxClaim, LeavesContainersThatHaveAgreedTheirs) {
  node_.run(made("sandbox", {}), Pid{10});
  node_.run(made("a", cri_limits(32)), Pid{11});
  node_.run(made("b", cri_limits(64)), Pid{12});
  expect_values(204, 20'000, 96);
  EXPECT_EQ(record().qos_class, core::QosClass::kBurstable);
}

/// Who came first does not matter, nor that the first alone has requested all there is.
TEST(Overcommitment, CountsWhatAllPodsRequest) {
  FakeNode node{core::CgroupVersion::kV2};
  node.capacity.cpu = MilliCpu{2000};
  node.run(requesting("first", "cpu=2"), Pid{10});
  node.run(requesting("second", "cpu=1500m"), Pid{11});
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{3500});
  EXPECT_EQ(node.file("/podqos/kubepods/burstable/podfirst", "cpu.weight"), node.written(2048));
  EXPECT_EQ(node.file("/podqos/kubepods/burstable/podsecond", "cpu.weight"), node.written(1536));
  EXPECT_EQ(node.file("/podqos/kubepods/burstable", "cpu.weight"), node.written(3584));
  EXPECT_TRUE(node.reconcile()->changes.empty());
  node.stop({.id = "first", .uid = "first"}, Pid{10});
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{1500});
}

/// With a node that has become larger or smaller what one pod may claim is another.
TEST(Overcommitment, CountsByTheNodeAsItIs) {
  FakeNode node{core::CgroupVersion::kV2};
  node.capacity.cpu = MilliCpu{2000};
  node.run(requesting("large", "cpu=3"), Pid{10});
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{2000});
  node.capacity.cpu = MilliCpu{4000};
  ASSERT_TRUE(node.reconcile());
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{3000});
}

/// Its record cannot be read when all is compared, and can be when it ends: what is known of it
/// counts on.
TEST(Sums, KeepAPodWhoseRecordCannotBeRead) {
  FakeNode node{core::CgroupVersion::kV2};
  node.run(requesting("a", "cpu=2"), Pid{10});
  node.run(requesting("unreadable", "cpu=2"), Pid{11});
  const std::string text = node.records.pods.at("unreadable");
  std::string& stored = node.records.pods.at("unreadable");
  stored.replace(stored.find("\"version\":1"), 11, "\"version\":2");
  node.records.lose_some();
  node.run(requesting("c", "cpu=1"), Pid{12});
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{5000});
  stored = text;
  node.stop({.id = "unreadable", .uid = "unreadable"}, Pid{11});
  EXPECT_FALSE(node.records.pods.contains("unreadable"));
  EXPECT_EQ(node.records.node.sums.burstable.cpu, MilliCpu{3000});
  EXPECT_EQ(node.records.node.sums.burstable.pods, 2);
}

}  // namespace
}  // namespace podqos::app

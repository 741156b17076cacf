// Reconciliations on a machine in memory.

#include <cstdint>
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
using containers::kDatabaseContainer;
using containers::kDatabasePod;
using containers::kWebContainer;
using containers::kWebPod;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::StartsWith;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::Values;

class Reconcile : public ::testing::Test {
 protected:
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(Reconcile, ReleasesWhatHasEnded) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  node_.tree.end(Pid{10});
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->released, 1);
  EXPECT_EQ(report->pods, 1);
  EXPECT_THAT(report->changes, Contains("pod a released"));
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
  EXPECT_EQ(node_.shares(kBurstable), "1");
}

/// No event of a container comes for it any more.
TEST_F(Reconcile, LeavesAPodWhoseProcessesEndLaterToTheNextEvent) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  node_.tree.make("/podqos/kubepods/burstable/poda/left");
  node_.tree.start(Pid{12}, "/podqos/kubepods/burstable/poda/left");
  node_.tree.end(Pid{10});
  ASSERT_TRUE(node_.reconcile());
  ASSERT_THAT(node_.records.pods, Contains(Key("a")));
  ASSERT_THAT(node_.records.due(), ElementsAre("a"));
  node_.tree.end(Pid{12});
  node_.records.come_due();
  node_.stop(kBatchContainer, Pid{11});
  EXPECT_THAT(node_.records.pods, IsEmpty());
}

TEST_F(Reconcile, MakesGoodWhatWasCorrupt) {
  node_.run(kWebContainer, Pid{10});
  node_.records.pods.at("a") = "garbage";
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 1);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(Reconcile, FindsAContainerThatWasMovedAfterALossOfTheState) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  const FakeRecords before = node_.records;
  node_.tree.make("/mine");
  node_.tree.processes.at(Pid{10}).cgroup = "/mine";
  // As systemd does with a scope that is empty.
  node_.tree.cgroups.erase("/podqos/kubepods/burstable/poda/web");
  node_.records = {};
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 2);
  EXPECT_EQ(node_.records.pods, before.pods);
  EXPECT_EQ(node_.records.node.sums, before.node.sums);
  EXPECT_THAT(report->warnings,
              ElementsAre(HasSubstr(
                  "another program moved container web to cgroup /mine, where its limits do not "
                  "apply: restart it, or make "
                  "/sys/fs/cgroup/podqos/kubepods/burstable/poda/web again and write its pids to "
                  "cgroup.procs there")));
  node_.tree.end(Pid{10});
  node_.records = {};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
}

TEST_F(Reconcile, RemovesWhatARuntimeHasLeftBare) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.make("/podqos/kubepods/burstable/podgone");
  node_.tree.make("/podqos/kubepods/burstable/podmade/crio-1");
  node_.tree.make("/podqos/kubepods/burstable/podbound");
  node_.tree.cgroups.at("/podqos/kubepods/burstable/podbound").files["memory.max"] = "4096";
  ASSERT_TRUE(node_.reconcile());
  EXPECT_FALSE(node_.tree.cgroups.contains("/podqos/kubepods/burstable/podgone"));
  EXPECT_TRUE(node_.tree.cgroups.contains("/podqos/kubepods/burstable/podmade/crio-1"));
  EXPECT_TRUE(node_.tree.cgroups.contains("/podqos/kubepods/burstable/podbound"));
}

TEST_F(Reconcile, TellsAContainerThatWasMovedTheWayBack) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.make("/mine");
  node_.tree.processes.at(Pid{10}).cgroup = "/mine";
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->warnings,
              ElementsAre(HasSubstr("restart it, or write its pids to "
                                    "/podqos/kubepods/burstable/poda/web/cgroup.procs")));
}

/// Weights that an operator sets while pods run: the io controller is enabled from the root down.
TEST_F(Reconcile, SetsTheWeightsOfDisks) {
  node_.tree.layout.io = core::CgroupVersion::kV2;
  node_.run(kWebContainer, Pid{10});
  node_.run(kDatabaseContainer, Pid{11});
  EXPECT_EQ(node_.file(kBurstable, "io.weight"), "");
  EXPECT_FALSE(node_.tree.cgroups.at("/").enables_io);

  node_.settings.io_weight = {.guaranteed = 400, .burstable = 100, .besteffort = 10};
  const auto preview = node_.preview();
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_THAT(preview->plan, Contains(StartsWith("mkdir  /podqos/kubepods +io")));
  EXPECT_THAT(preview->plan, Contains(StartsWith("write  /podqos/kubepods/podc/io.weight = 400")));
  EXPECT_THAT(preview->report.changes,
              AllOf(Contains("pod c: /podqos/kubepods/podc/io.weight: unknown → 400"),
                    Contains("tier BestEffort: /podqos/kubepods/besteffort/io.weight: "
                             "unknown → 10")));
  EXPECT_FALSE(node_.tree.cgroups.at("/").enables_io);
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(node_.tree.cgroups.at("/").enables_io);
  EXPECT_EQ(node_.file(kDatabasePod, "io.weight"), "400");
  EXPECT_EQ(node_.file(kBestEffort, "io.weight"), "10");
  EXPECT_EQ(node_.file(kWebPod, "io.weight"), "");

  node_.settings.io_weight = {};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.file(kDatabasePod, "io.weight"), "100");
  EXPECT_EQ(node_.file(kBestEffort, "io.weight"), "100");
}

constexpr std::int64_t kMi = std::int64_t{1} << 20U;
constexpr const char* kUpdatedPod = containers::kWebPod;

core::EngineResources resources(std::int64_t memory, std::int64_t quota, std::int64_t shares) {
  core::EngineResources out;
  out.cpu_shares = shares;
  out.cpu_quota = quota;
  out.cpu_period = 100'000;
  out.memory_limit = memory;
  return out;
}

/// 500m and 64Mi, and 250m and 32Mi.
const FakeContainer kUpdatedWeb{
    .id = "web", .uid = "a", .resources = resources(64 * kMi, 50'000, 512)};
const FakeContainer kUpdatedLog{
    .id = "log", .uid = "a", .resources = resources(32 * kMi, 25'000, 256)};

class RuntimeUpdate : public TestWithParam<core::CgroupVersion> {
 protected:
  void SetUp() override {
    node_.run(kUpdatedWeb, Pid{10});
    node_.run(kUpdatedLog, Pid{11});
    expect_unchanged();
  }

  struct Values {
    std::int64_t memory;
    std::int64_t quota;
    std::int64_t milli_cpu;  ///< requests
  };
  void expect_pod(const Values& wanted) {
    const bool v2 = node_.tree.is_v2();
    const std::string quota = std::to_string(wanted.quota);
    EXPECT_EQ(node_.memory(kUpdatedPod), std::to_string(wanted.memory));
    EXPECT_EQ(node_.file(kUpdatedPod, v2 ? "cpu.max" : "cpu.cfs_quota_us"),
              v2 ? quota + " 100000" : quota);
    // As a kubelet: shares of a pod and of its tier are those of the sum of requests.
    for (const char* cgroup : {kUpdatedPod, containers::kBurstable})
      EXPECT_EQ(node_.shares(cgroup), node_.written(wanted.milli_cpu * 1024 / 1000)) << cgroup;
    EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{wanted.milli_cpu});
  }
  /// The pod is as before any update.
  void expect_unchanged() { expect_pod({.memory = 96 * kMi, .quota = 75'000, .milli_cpu = 750}); }

  /// Reconciles, and once more, which must change nothing.
  ReconcileReport reconcile() {
    const auto report = node_.reconcile();
    EXPECT_TRUE(report) << report.error().message;
    const auto preview = node_.preview();
    EXPECT_TRUE(preview) << preview.error().message;
    EXPECT_THAT(preview->plan, IsEmpty());
    EXPECT_THAT(preview->report.changes, IsEmpty());
    return *report;
  }

  FakeNode node_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(, RuntimeUpdate,
                         Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

/// 768 shares are 750m. They are weight 30, which begins at 763 shares, 746m.
TEST_P(RuntimeUpdate, ReconcileFollowsItUpAndDown) {
  node_.update(Pid{10}, resources(256 * kMi, 75'000, 768));
  EXPECT_THAT(reconcile().changes, Contains(StartsWith("pod a: follows container web")));
  expect_pod({.memory = 288 * kMi, .quota = 100'000, .milli_cpu = node_.tree.is_v2() ? 996 : 1000});
  node_.update(Pid{10}, resources(32 * kMi, 20'000, 512));
  EXPECT_THAT(reconcile().changes, Contains(StartsWith("pod a: follows container web")));
  expect_pod({.memory = 64 * kMi, .quota = 45'000, .milli_cpu = 450});
}

/// As Docker runs --cpus 0.5, which sets no shares: those of a new cgroup are no update, also where
/// the limit is no longer the request.
TEST_P(RuntimeUpdate, SharesThatAreNotSetAreNoUpdate) {
  core::EngineResources unset = resources(64 * kMi, 50'000, 0);
  unset.cpu_shares.reset();
  node_.run({.id = "api", .uid = "b", .resources = unset}, Pid{12});
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{1250});
  unset.cpu_quota = 200'000;
  node_.update(Pid{12}, unset);
  EXPECT_THAT(reconcile().changes,
              Contains("pod b: follows container api, updated to CPU limit 2"));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{1250});
}

TEST_P(RuntimeUpdate, ARecoveryReadsNoContainer) {
  node_.update(Pid{10}, resources(256 * kMi, 75'000, 1024));
  ASSERT_TRUE(node_.begin().begin("a"));  // and is interrupted
  Transaction transaction = node_.begin();
  ASSERT_TRUE(reconcile_interrupted(transaction));
  ASSERT_TRUE(transaction.finish());
  expect_unchanged();
}

TEST_P(RuntimeUpdate, AContainerThatCannotBeReadKeepsItsResources) {
  const std::string own = std::string{kUpdatedPod} + "/web";
  node_.tree.on_read = [&](const std::string& what) -> Status {
    if (what.starts_with("read " + own)) return fail(ErrorCode::kIo, "cannot be read");
    return {};
  };
  node_.update(Pid{10}, resources(256 * kMi, 75'000, 1024));
  EXPECT_THAT(reconcile().changes, IsEmpty());
  expect_unchanged();
}

TEST_P(RuntimeUpdate, ALostCgroupThatWasMadeAgainBoundsThePodAsBefore) {
  node_.tree.cgroups.erase(std::string{kUpdatedPod} + "/web");
  node_.tree.make(std::string{kUpdatedPod} + "/web");
  const ReconcileReport report = reconcile();
  EXPECT_THAT(report.changes, IsEmpty());
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("container web has no limits any more")));
  expect_unchanged();
}

/// maxPodClaim of 10 %: 800m of 8 CPUs.
TEST_P(RuntimeUpdate, RequestsCountUpToWhatOnePodMayClaim) {
  node_.settings.max_pod_claim_percent = 10;
  node_.update(Pid{10}, resources(64 * kMi, 200'000, 2048));
  const ReconcileReport report = reconcile();
  EXPECT_THAT(report.changes, Contains(StartsWith("pod a: follows container web")));
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("maxPodClaim")));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{800});
}

/// Beside a first container without any: 100m and 64Mi of its engine.
TEST_P(RuntimeUpdate, AContainerWhoseAnnotationsStateItsResourcesKeepsThem) {
  core::EngineResources loose = resources(1024 * kMi, -1, 512);
  node_.run({.id = "first", .uid = "b", .resources = resources(64 * kMi, 10'000, 102)}, Pid{12});
  node_.run({.id = "db",
             .uid = "b",
             .annotations = {{"podqos.io/limits.db", "cpu=250m,memory=200Mi"}},
             .resources = loose},
            Pid{13});
  const auto before = node_.records;
  EXPECT_THAT(reconcile().changes, IsEmpty());
  EXPECT_EQ(node_.records, before);
  EXPECT_EQ(node_.memory("/podqos/kubepods/burstable/podb"), std::to_string(264 * kMi));
  node_.update(Pid{12}, resources(128 * kMi, 10'000, 102));
  EXPECT_THAT(reconcile().changes, Contains(StartsWith("pod b: follows container first")));
  EXPECT_EQ(node_.memory("/podqos/kubepods/burstable/podb"), std::to_string(328 * kMi));
}

TEST_P(RuntimeUpdate, APodWhoseAnnotationsStateItsResourcesStays) {
  const FakeContainer stated{.id = "db",
                             .uid = "b",
                             .annotations = {{"podqos.io/limits", "cpu=1,memory=128Mi"},
                                             {"podqos.io/requests", "cpu=500m,memory=64Mi"}},
                             .resources = resources(128 * kMi, 100'000, 512)};
  node_.run(stated, Pid{12});
  const auto before = node_.records;
  node_.update(Pid{12}, resources(256 * kMi, 100'000, 512));
  const ReconcileReport report = reconcile();
  EXPECT_THAT(report.changes, IsEmpty());
  EXPECT_THAT(report.warnings,
              ElementsAre("pod b: container db: its memory limit 256Mi is above its pod's 128Mi, "
                          "so it has no effect: the pod's annotations state its resources: change "
                          "them and recreate the pod"));
  EXPECT_EQ(node_.records.pods, before.pods);
}

}  // namespace
}  // namespace podqos::app

// Reconciliations on a machine in memory.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kDatabaseContainer;
using containers::kRoot;
using containers::kWebContainer;
using containers::weight_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::StartsWith;

class Reconcile : public ::testing::Test {
 protected:
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(Reconcile, RestoresWhatWasChanged) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at("/podqos/kubepods/burstable/poda").files.at("cpu.weight") = "9";
  node_.tree.cgroups.at(kRoot + std::string{"/besteffort"}).files.at("cpu.weight") = "100";
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "cpu.weight"), weight_of(512));
  EXPECT_EQ(node_.file("/podqos/kubepods/besteffort", "cpu.weight"), "1");
  EXPECT_EQ(report->pods, 1);
}

TEST_F(Reconcile, ReleasesWhatHasEnded) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  node_.tree.end(Pid{10});
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->released, 1);
  EXPECT_THAT(report->changes, Contains("pod a released"));
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), "1");
}

TEST_F(Reconcile, HasNothingToDoOnAHealthyNode) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  const auto preview = node_.preview();
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_THAT(preview->plan, IsEmpty());
}

TEST_F(Reconcile, MakesGoodWhatWasCorrupt) {
  node_.run(kWebContainer, Pid{10});
  node_.records.pods.at("a") = "garbage";
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 1);
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(Reconcile, BringsRecordsBackFromTheCgroups) {
  node_.run(kWebContainer, Pid{10});
  const FakeRecords before = node_.records;
  node_.records = {};
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 1);
  EXPECT_EQ(node_.records.pods, before.pods);
  EXPECT_EQ(node_.records.tiers.sums, before.tiers.sums);
  EXPECT_EQ(node_.records.index, before.index);
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
  EXPECT_EQ(node_.records.tiers.sums, before.tiers.sums);
  EXPECT_THAT(report->warnings,
              ElementsAre(HasSubstr(
                  "container web runs in cgroup /mine, not in /podqos/kubepods/burstable/poda/web, "
                  "where it was started: another program has moved it, and its limits no longer "
                  "apply; restart it, or make its cgroup again (mkdir -p "
                  "/sys/fs/cgroup/podqos/kubepods/burstable/poda/web) and write the pids of its "
                  "processes to cgroup.procs there: then the limits of its pod apply again")));
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
              ElementsAre(HasSubstr("restart it, or write the pids of its processes to "
                                    "cgroup.procs of that cgroup")));
}

/// Weights that an operator sets while pods run: the io controller is enabled from the root down.
TEST_F(Reconcile, SetsTheWeightsOfDisks) {
  node_.tree.layout.io = core::CgroupVersion::kV2;
  node_.run(kWebContainer, Pid{10});
  node_.run(kDatabaseContainer, Pid{11});
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "io.weight"), "");
  EXPECT_FALSE(node_.tree.cgroups.at("/").enables_io);

  node_.settings.io_weight = {.guaranteed = 400, .burstable = 100, .besteffort = 10};
  const auto preview = node_.preview();
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_THAT(preview->plan, Contains(StartsWith("mkdir  /podqos/kubepods +io")));
  EXPECT_THAT(preview->plan, Contains(StartsWith("write  /podqos/kubepods/podc/io.weight = 400")));
  EXPECT_FALSE(node_.tree.cgroups.at("/").enables_io);
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(node_.tree.cgroups.at("/").enables_io);
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "io.weight"), "400");
  EXPECT_EQ(node_.file("/podqos/kubepods/besteffort", "io.weight"), "10");
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "io.weight"), "");

  node_.settings.io_weight = {};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "io.weight"), "100");
  EXPECT_EQ(node_.file("/podqos/kubepods/besteffort", "io.weight"), "100");
}

}  // namespace
}  // namespace podqos::app

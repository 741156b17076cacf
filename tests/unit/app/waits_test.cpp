// What an event does for pods other than its own, and what it waits for.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/transaction.h"
#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kWebContainer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

/// A node whose systemd holds the slices of ended pods.
class Waits : public ::testing::Test {
 protected:
  Waits() {
    node_.tree.on_read = [this](const std::string& what) -> Status {
      reads_.push_back(what);
      return {};
    };
  }

  static FakeContainer numbered(int number) {
    return containers::requesting(cat("n", number), "cpu=10m");
  }
  static std::string slice_of(const std::string& uid) {
    return cat(
        "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
        "podqos-kubepods-burstable-pod",
        uid, ".slice");
  }

  /// Runs a container and ends it while systemd holds the slice of its pod.
  Result<EndResult> end_held(const FakeContainer& container, Pid init) {
    node_.run(container, init);
    EXPECT_TRUE(node_.tree.cgroups.contains(slice_of(container.uid)));
    node_.tree.held_by_systemd.insert(slice_of(container.uid));
    node_.tree.end(init);
    return node_.end(container);
  }

  void retry(EndResult& ended) {
    Transaction transaction = node_.begin();
    ASSERT_TRUE(retry_unfinished(transaction, ended.unfinished));
  }

  /// Containers that are placed, each by a process of its own that ends at once.
  void leave_pending(int count) {
    for (int number = 0; number < count; ++number)
      ASSERT_TRUE(node_.admit(numbered(number), Pid{2000 + number}));
    for (int number = 0; number < count; ++number)
      node_.tree.end(Pid{2000 + number});
    ASSERT_EQ(node_.records.pending().size(), static_cast<std::size_t>(count));
  }

  /// Other pods come, each of which looks for few creators.
  void run_others(int count) {
    for (; count > 0; --count, ++others_) {
      reads_.clear();
      node_.run({.id = cat("later", others_), .uid = cat("later", others_)}, Pid{100 + others_});
      EXPECT_LE(std::ranges::count_if(
                    reads_, [](const auto& read) { return read.starts_with("start time"); }),
                20);
    }
  }

  FakeNode node_{core::CgroupVersion::kV2, core::Driver::kSystemd};
  std::vector<std::string> reads_;
  int others_ = 0;
};

TEST_F(Waits, AStartLeavesTheHeldCgroupOfAnotherPod) {
  ASSERT_TRUE(end_held(kWebContainer, Pid{10}));
  node_.tree.on_wait = [] {
    ADD_FAILURE() << "waited for another pod";
    return false;
  };
  reads_.clear();
  node_.changes.clear();
  node_.run(kBatchContainer, Pid{11});
  EXPECT_THAT(reads_, Not(Contains(HasSubstr(slice_of("a")))));
  EXPECT_THAT(node_.changes, Not(Contains(HasSubstr(slice_of("a")))));
}

TEST_F(Waits, APodThatComesAgainIsMadeAnewWhenItsDelayIsOver) {
  ASSERT_TRUE(end_held(kWebContainer, Pid{10}));
  node_.tree.held_by_systemd.clear();
  node_.changes.clear();
  node_.run(kWebContainer, Pid{11});
  EXPECT_THAT(node_.changes, Contains(HasSubstr(cat("rmdir  ", slice_of("a")))));
}

TEST_F(Waits, AnEndFollowsUpItsOwnPodOnly) {
  ASSERT_TRUE(end_held(kWebContainer, Pid{10}));
  node_.run(kBatchContainer, Pid{11});
  node_.tree.end(Pid{11});
  const auto ended = node_.end(kBatchContainer);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_THAT(ended->unfinished, IsEmpty());
  EXPECT_TRUE(node_.tree.cgroups.contains(slice_of("a")));
}

TEST_F(Waits, AnEndIsFollowedUpUntilItsOwnPodHasGone) {
  for (int number = 0; number < 10; ++number)
    ASSERT_TRUE(end_held(numbered(number), Pid{10 + number}));
  auto ended = end_held(kWebContainer, Pid{30});
  ASSERT_TRUE(ended) << ended.error().message;
  ASSERT_EQ(ended->unfinished.size(), 1U);
  for (int number = 0; number < 10; ++number)
    node_.tree.held_by_systemd.erase(slice_of(cat("n", number)));
  retry(*ended);
  ASSERT_EQ(ended->unfinished.size(), 1U);
  EXPECT_THAT(ended->unfinished.front().error.message, HasSubstr(slice_of("a")));
  node_.tree.held_by_systemd.clear();
  retry(*ended);
  EXPECT_THAT(ended->unfinished, IsEmpty());
  EXPECT_THAT(node_.tree.cgroups, Not(Contains(Key(slice_of("a")))));
}

TEST_F(Waits, AnEventExpiresFewOfManyAndComesToAll) {
  leave_pending(100);
  run_others(1);
  EXPECT_EQ(node_.records.pending().size(), 96U);
  run_others(24);
  EXPECT_THAT(node_.records.pending(), IsEmpty());
}

TEST_F(Waits, LivingCreatorsHideNoneThatHasGone) {
  leave_pending(100);
  for (int number = 0; number < 99; ++number)
    node_.tree.start(Pid{2000 + number}, "/");
  run_others(60);
  EXPECT_EQ(node_.records.pending().size(), 99U);
  EXPECT_THAT(node_.records.pods, Not(Contains(Key("n99"))));
}

/// cgroup v1 refuses a quota below that of a child, such as a container that is being removed.
/// @param marked  whether the cgroup could be marked as one that lacks values
void expect_completed(bool marked) {
  FakeNode node{core::CgroupVersion::kV1};
  const FakeContainer second{
      .id = "two", .uid = "a", .annotations = {{"podqos.io/limits.two", "cpu=200m"}}};
  node.run({.id = "one", .uid = "a", .annotations = {{"podqos.io/limits.one", "cpu=500m"}}},
           Pid{10});
  const std::string pod = containers::kWebPod;
  ASSERT_EQ(node.file(pod, "cpu.cfs_quota_us"), "50000");
  node.tree.cgroups.at(pod).files.at("cpu.cfs_quota_us") = "700000";
  node.tree.make(pod + "/slow");
  node.tree.cgroups.at(pod + "/slow").files.at("cpu.cfs_quota_us") = "600000";
  if (!marked) node.tree.cgroups.at(pod).attributes.clear();
  node.refuses = [=](const std::string& change) { return !marked && change.starts_with("attr "); };
  const auto admission = node.admit(second);
  node.refuses = {};
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_EQ(node.file(pod, "cpu.cfs_quota_us"), "700000");
  node.tree.cgroups.erase(pod + "/slow");
  node.tree.start(Pid{11}, (*admission)->container.cgroup);
  node.tree.end(Pid{99});
  ASSERT_TRUE(node.confirm(second, Pid{11}));
  EXPECT_EQ(node.file(pod, "cpu.cfs_quota_us"), "70000");
  EXPECT_THAT(node.records.due(), IsEmpty());
}

TEST(WaitsOnV1, AConfirmationCompletesItsOwnPod) {
  expect_completed(true);
  expect_completed(false);
}

TEST(StartTimeLimit, FollowsTheLocksDeadlineWithinWhatRuntimesWait) {
  using std::chrono::milliseconds;
  core::Settings settings;
  EXPECT_EQ(start_time_limit(settings), milliseconds{5'000});
  for (const auto& [deadline, limit] :
       {std::pair{10, 5'000}, std::pair{12'000, 12'000}, std::pair{60'000, 25'000}}) {
    settings.lock_deadline_ms = deadline;
    EXPECT_EQ(start_time_limit(settings), milliseconds{limit}) << deadline;
  }
}

class NestedCgroups : public ::testing::Test {
 protected:
  NestedCgroups() { node_.tree.most_nested = 2; }

  /// The container nests cgroups in its own, and is killed with its runtime.
  void run_and_kill(const FakeContainer& container, Pid init, int nested) {
    node_.run(container, init);
    for (int i = 0; i < nested; ++i)
      node_.tree.make(cat(node_.tree.processes.at(init).cgroup, "/", i));
    node_.tree.processes.erase(init);
  }
  /// Time passes, and another container comes and goes.
  void next_event() {
    ++node_.settings.release_delay_seconds;  // so that what is tried again comes later
    node_.records.come_due();
    node_.run(kBatchContainer, Pid{99});
    node_.stop(kBatchContainer, Pid{99});
  }

  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(NestedCgroups, CountNoMoreAndAreRemovedEventByEvent) {
  run_and_kill(kWebContainer, Pid{10}, 5);
  ASSERT_TRUE(node_.end(kWebContainer));
  EXPECT_EQ(node_.records.node.sums.burstable.pods, 0);
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("a")));
  next_event();
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("a")));
  next_event();
  EXPECT_THAT(node_.records.pods, IsEmpty());
  EXPECT_FALSE(node_.tree.cgroups.contains("/podqos"));
}

/// It is tried again a releaseDelay later, not by each container that starts meanwhile.
TEST_F(NestedCgroups, DoNotDelayEachEvent) {
  node_.settings.release_delay_seconds = 30;
  run_and_kill(kWebContainer, Pid{10}, 7);
  ASSERT_TRUE(node_.end(kWebContainer));
  node_.changes.clear();
  node_.run(kBatchContainer, Pid{11});
  for (const std::string& change : node_.changes)
    EXPECT_THAT(change, Not(HasSubstr("poda")));
}

/// Four pods a transaction: the others are not held up by four that are never removed.
TEST_F(NestedCgroups, ThatAreNeverRemovedDoNotStarveOthers) {
  node_.refuses = [](const std::string& change) {
    return change.starts_with("rmdir") && !change.contains("podp4");
  };
  for (int i = 0; i < 5; ++i) {
    const FakeContainer container{.id = cat("c", i), .uid = cat("p", i)};
    run_and_kill(container, Pid{10 + i}, i == 4 ? 3 : 1);
    ASSERT_TRUE(node_.end(container));
  }
  EXPECT_EQ(node_.records.pods.size(), 5U);
  next_event();
  next_event();
  EXPECT_FALSE(node_.records.pods.contains("p4"));
}

TEST_F(NestedCgroups, AReconciliationSaysWhichPodsAreLeft) {
  run_and_kill(kWebContainer, Pid{10}, 7);
  Transaction transaction = node_.begin();
  const auto report = reconcile_node(transaction);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->failed, IsEmpty());
  EXPECT_THAT(transaction.partly_removed(), ElementsAre("a"));
}

}  // namespace
}  // namespace podqos::app

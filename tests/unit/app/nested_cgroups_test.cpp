// Pods whose containers have nested more cgroups than one transaction removes.

#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kWebContainer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

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
  void end(const FakeContainer& container) {
    const auto ended = node_.end(container);
    ASSERT_TRUE(ended) << ended.error().message;
  }
  /// Time passes, and another container comes and goes.
  void next_event() {
    for (core::RetainedEntry& entry : node_.records.tiers.retained)
      entry.until = BootSeconds{0};
    node_.run(kBatchContainer, Pid{99});
    node_.tree.end(Pid{99});
    end(kBatchContainer);
  }

  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(NestedCgroups, CountNoMoreAndAreRemovedEventByEvent) {
  run_and_kill(kWebContainer, Pid{10}, 5);
  end(kWebContainer);
  EXPECT_EQ(node_.records.tiers.sums.burstable.pods, 0);
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
  end(kWebContainer);
  node_.changes.clear();
  node_.run(kBatchContainer, Pid{11});
  for (const std::string& change : node_.changes)
    EXPECT_THAT(change, Not(HasSubstr("poda")));
}

/// Four pods a transaction: the others are not held up by four that are never removed.
TEST_F(NestedCgroups, ThatAreNeverRemovedDoNotStarveOthers) {
  std::vector<FakeContainer> pods;
  for (int i = 0; i < 5; ++i)
    pods.push_back({.id = cat("c", i), .uid = cat("p", i)});
  for (int i = 0; i < 5; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    run_and_kill(pods[at], Pid{10 + i}, i == 4 ? 3 : 1);
    node_.refuses = [](const std::string& change) {
      return change.starts_with("rmdir") && !change.contains("podp4");
    };
    end(pods[at]);
  }
  EXPECT_EQ(node_.records.pods.size(), 5U);
  next_event();
  next_event();
  EXPECT_FALSE(node_.records.pods.contains("p4"));
}

TEST_F(NestedCgroups, AReconciliationSaysWhichPodsAreLeft) {
  run_and_kill(kWebContainer, Pid{10}, 7);
  Transaction transaction = node_.begin();
  const auto report = recompute(transaction);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->failed, IsEmpty());
  EXPECT_THAT(transaction.partly_removed(), ElementsAre("a"));
}

}  // namespace
}  // namespace podqos::app

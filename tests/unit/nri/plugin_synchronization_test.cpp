#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/exposition.h"
#include "nri/plugin.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PluginTest, TakesInWhatLivesAtTheSynchronization) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  run_in(below("engine"), app);
  const auto answer = plugin().synchronize(state_of({sandbox}, {app}), kNoBudget);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(is_known("1"));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_THAT(log(), HasSubstr("app-of-1"));
}

TEST_F(PluginTest, ReleasesAtTheSynchronizationWhatIsGone) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  EXPECT_TRUE(is_known("1"));
  end_processes();
  ASSERT_TRUE(plugin().synchronize(NodeState{}, kNoBudget));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PluginTest, SynchronizesTheOthersWhenOneIsBroken) {
  const auto odd = broken(pod("1", start_process()));
  const auto good = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of({odd, good}), kNoBudget));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  EXPECT_THAT(log(), HasSubstr("podqos.io/pod"));
  EXPECT_THAT(test::text_of(metrics()),
              HasSubstr("podqos_errors_total{code=\"invalid-argument\"} 1\n"));
}

TEST_F(PluginTest, TakesInContainersWithTheAnnotationsOfTheirPod) {
  auto ignored = pod("1", start_process(), kSmall);
  (*ignored.mutable_annotations())["podqos.io/ignore"] = "true";
  auto app = container(ignored, "app", kSmall);
  auto other = container(ignored, "other", kSmall);
  (*other.mutable_annotations())["podqos.io/ignore"] = "false";
  run_in(below("engine"), app);
  run_in(below("engine"), other);
  ASSERT_TRUE(plugin().synchronize(state_of({ignored}, {app, other}), kNoBudget));
  housekeep();
  EXPECT_THAT(temporary().read("state/pods/1.json"), HasSubstr("other-of-1"));
  EXPECT_THAT(temporary().read("state/pods/1.json"), Not(HasSubstr("app-of-1")));
}

/// Without what it says it would be a pod of its own.
TEST_F(PluginTest, TakesNothingInOfWhichItCannotReadTheIdentity) {
  reconfigure(R"(, "scope": "all")");
  auto odd = pod("1", start_process(), kSmall);
  odd.set_name("a/b");
  auto app = container(odd, "app", kSmall);
  run_in(below("engine"), app);
  const auto good = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of({odd, good}, {app}), kNoBudget));
  housekeep();
  EXPECT_TRUE(is_known("2"));
  const std::filesystem::directory_iterator records{temporary().path("state/pods")};
  EXPECT_EQ(std::distance(begin(records), end(records)), 1);
  EXPECT_THAT(log(), HasSubstr("the runtime's pod name"));
}

TEST_F(PluginTest, SaysWhenEverythingIsKnown) {
  const auto shown = [&] { return test::text_of(metrics()); };
  const auto known = HasSubstr("\npodqos_last_reconcile_timestamp_seconds ");
  // Everything is recomputed, but nobody has told what runs.
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("2", start_process(), kSmall)), kNoBudget));
  housekeep();
  ASSERT_TRUE(plugin().synchronize(state_of({pod("1", start_process(), kSmall)}), kNoBudget));
  EXPECT_THAT(shown(), Not(known));
  housekeep();
  EXPECT_THAT(shown(), known);
  EXPECT_THAT(log(), HasSubstr("synchronized 1 sandboxes and containers"));
}

TEST_F(PluginTest, TendsManySandboxesInTurn) {
  constexpr int kMany = 150;
  const Pid lives{::getpid()};
  std::vector<api::PodSandbox> sandboxes;
  for (int i = 0; i < kMany; ++i)
    sandboxes.push_back(pod(std::to_string(1000 + i), lives));
  sandboxes.push_back(pod("2000", start_process(), kSmall));
  ASSERT_TRUE(plugin().synchronize(state_of(sandboxes), kNoBudget));
  housekeep();
  EXPECT_TRUE(is_known("2000"));
  end_processes();
  int rounds = 0;
  while (is_known("2000") && rounds < 10) {
    housekeep();
    ++rounds;
  }
  EXPECT_LE(rounds, 3);
}

TEST_F(PluginTest, TendsThoseThatAnEarlierOneHasTakenIn) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  Plugin next{configuration(), metrics()};
  ASSERT_TRUE(next.synchronize(state_of({sandbox}), kNoBudget));
  end_processes();
  housekeep(next);
  EXPECT_FALSE(is_known("1"));
}

}  // namespace
}  // namespace podqos::nri

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(PluginTest, PlacesAContainerBeforeItExists) {
  const auto sandbox = pod("1");
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_EQ(adjustment->linux().cgroups_path(), pod_path("burstable", "1") + "/app-of-1");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  // The engine's own values stay its own.
  EXPECT_FALSE(adjustment->linux().has_resources());
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, AddsWhatTheEngineLeavesOpen) {
  auto sandbox = pod("1");
  (*sandbox.mutable_annotations())["podqos.io/pod"] =
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "200m", "memory": "128Mi"}}}]})";
  const auto adjustment = create(sandbox, container(sandbox, "app"));
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_EQ(adjustment->linux().cgroups_path(), pod_path("", "1") + "/app-of-1");
  const auto& resources = adjustment->linux().resources();
  EXPECT_EQ(resources.cpu().shares().value(), 204U);
  EXPECT_EQ(resources.cpu().quota().value(), 20'000);
  EXPECT_EQ(resources.cpu().period().value(), 100'000U);
  EXPECT_EQ(resources.memory().limit().value(), 134'217'728);
  EXPECT_TRUE(adjustment->linux().has_oom_score_adj());
}

TEST_F(PluginTest, LeavesAKubeletsContainerInItsPlace) {
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(below("kubelet/kubepods/burstable/pod1/app-of-1"));
  const auto adjustment = create(sandbox, app);
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->linux().cgroups_path(), IsEmpty());
  EXPECT_TRUE(is_known("1"));
  // What a kubelet writes, podqos does not.
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
  EXPECT_FALSE(has_cgroup(below("kubelet")));
}

/// Which the kernel gives no container of a pod on cgroup v1.
TEST_F(PluginTest, LeavesAContainerWithRealtimeRuntimeWhereItsEnginePutsIt) {
  if (is_v2(core::Controller::kCpu)) GTEST_SKIP() << "cgroup v2 has no realtime runtime";
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_realtime_runtime()->set_value(
      9500);
  const auto adjustment = create(sandbox, app);
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_EQ(adjustment->ByteSizeLong(), 0U);
  EXPECT_THAT(log(), HasSubstr("create container: container app-of-1: pod 1: "
                               "linux.resources.cpu.realtimeRuntime 9500: on cgroup v1"));
  // Nor is it counted as soon as it runs.
  run_in(below("engine/app-of-1"), app);
  EXPECT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
  reconfigure(R"(, "onError": "reject")");
  EXPECT_FALSE(create(sandbox, app));
}

TEST_F(PluginTest, LeavesAContainerAloneThatOptsOut) {
  auto sandbox = pod("1");
  (*sandbox.mutable_annotations())["podqos.io/ignore"] = "true";
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment);
  EXPECT_EQ(adjustment->ByteSizeLong(), 0U);
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, LeavesAllAloneWhereItIsSwitchedOff) {
  reconfigure(R"(, "enabled": false)");
  const auto sandbox = pod("1");
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment);
  EXPECT_EQ(adjustment->ByteSizeLong(), 0U);
}

TEST_F(PluginTest, WritesTheScoreThatNoEngineCarries) {
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app");
  const auto running = started(sandbox, app);
  // BestEffort, as nothing is asked for.
  const auto score = sys::oom_score_adj_of(Pid{static_cast<pid_t>(running.pid())});
  ASSERT_TRUE(score);
  EXPECT_EQ(*score, 1000);
}

TEST_F(PluginTest, ConfirmsAContainerThatHasStarted) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  EXPECT_THAT(temporary().read("state/pods/1.json"), HasSubstr(cat("\"pid\":", running.pid())));
  EXPECT_THAT(log(), Not(HasSubstr("error")));
}

TEST_F(PluginTest, PassesOverAContainerWithoutAProcess) {
  const auto sandbox = pod("1");
  ASSERT_TRUE(plugin().start_container(event(sandbox, container(sandbox, "app")), kNoBudget));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, BoundsAContainerThatItDidNotPlaceWhereItRuns) {
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(below("engine/app-of-1"));
  const Pid init = run(app);
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  const auto now = cgroupfs().cgroup_of(init);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, below("engine/app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_THAT(log(), HasSubstr("register podqos-runtime"));
}

TEST_F(PluginTest, ResizesAContainersPod) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  const auto answer = update(sandbox, running, kLarge);
  ASSERT_TRUE(answer) << answer.error().message;
  // The runtime itself changes the container.
  EXPECT_EQ(quota(pod_path("burstable", "1")), "60000");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "201326592");
}

/// cgroup v1 lets no cgroup have less than one below it, and runtimes change theirs after the
/// answer.
TEST_F(PluginTest, LowersAPodOnceItsContainerHasBeen) {
  reconfigure(R"(, "onError": "reject")");
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kLarge));
  set_quota(running, "60000");
  const auto answer = update(sandbox, running, kSmall);
  ASSERT_TRUE(answer) << answer.error().message;
  set_quota(running, "20000");
  housekeep();
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  EXPECT_THAT(log(), Not(HasSubstr("] error: ")));
}

TEST_F(PluginTest, LetsThePodGrowWithAContainerThatReplacesASmallerOne) {
  const auto sandbox = pod("1", Pid{::getpid()}, kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  static_cast<void>(started(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  end_processes();
  // Its engine resized it while it did not run: of that nothing is told.
  auto again = container(sandbox, "app", kLarge);
  again.set_id("app-again");
  ASSERT_TRUE(create(sandbox, again));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "201326592");
  EXPECT_EQ(quota(pod_path("burstable", "1")), "60000");
}

/// Resized by an update, then replaced by one with its spec's values.
TEST_F(PluginTest, GivesThePodItsSpecAgainWithAContainerThatReplacesAResizedOne) {
  auto sandbox = pod("1", Pid{::getpid()});
  (*sandbox.mutable_annotations())["podqos.io/pod"] =
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "600m", "memory": "192Mi"}}}]})";
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  const auto running = started(sandbox, container(sandbox, "app", kLarge));
  const std::string cgroup = base() + "/kubepods/pod1";
  EXPECT_EQ(memory(cgroup), "201326592");
  set_quota(running, "20000");
  ASSERT_TRUE(update(sandbox, running, kSmall));
  EXPECT_EQ(memory(cgroup), "134217728");
  end_processes();
  auto again = container(sandbox, "app", kLarge);
  again.set_id("app-again");
  ASSERT_TRUE(create(sandbox, again));
  EXPECT_EQ(memory(cgroup), "201326592");
  EXPECT_THAT(log(), Not(HasSubstr("differs from the first container's")));
}

TEST_F(PluginTest, ReleasesAContainerThatHasStopped) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  end_processes();
  api::StopContainerRequest request;
  *request.mutable_pod() = sandbox;
  *request.mutable_container() = running;
  const auto answer =
      plugin().stop_container(test::event_of(Request::kStopContainer, request), kNoBudget);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ReleasesAContainerThatIsRemoved) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  end_processes();
  ASSERT_TRUE(plugin().remove_container(event(sandbox, running), kNoBudget));
  EXPECT_FALSE(is_known("1"));
}

}  // namespace
}  // namespace podqos::nri

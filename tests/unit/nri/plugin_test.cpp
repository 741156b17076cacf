#include "nri/plugin.h"

#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::tell;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(PluginTest, TakesTheConfigurationOfTheRuntimeThatStartsIt) {
  ConfigureRequest request;
  request.runtime_name = "containerd";
  request.runtime_version = "v2.1.0";
  request.config = R"({"podPidsLimit": 77})";
  ASSERT_TRUE(plugin().configure(request));
  EXPECT_EQ(configuration().settings().pod_pids_limit, 77);
  EXPECT_THAT(log(), HasSubstr("configured by containerd v2.1.0"));
}

TEST_F(PluginTest, RefusesABadConfigurationOfTheRuntime) {
  ConfigureRequest request;
  request.config = R"({"podPidLimit": 77})";
  const auto refused = plugin().configure(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podPidsLimit"));
  EXPECT_EQ(configuration().settings().pod_pids_limit, std::nullopt);
}

TEST_F(PluginTest, CountsEachRequestOfTheRuntime) {
  EXPECT_TRUE(plugin().configure({}));
  EXPECT_TRUE(plugin().synchronize({}));
  for (std::size_t i = 2; i < kRequests.size(); ++i)
    EXPECT_TRUE(plugin().handle(static_cast<Request>(i), {}, kNoBudget));
  const std::string shown = test::text_of(metrics());
  for (const RequestKind& request : kRequests)
    EXPECT_THAT(shown, HasSubstr(cat("podqos_nri_request_duration_seconds_count{request=\"",
                                     request.name, "\"} 1\n")));
}

TEST_F(PluginTest, CountsAConfigurationThatItRefuses) {
  ConfigureRequest request;
  request.config = "{";
  const auto refused = plugin().configure(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(test::text_of(metrics()),
              HasSubstr(cat("podqos_errors_total{code=\"", format_error_code(refused.error().code),
                            "\"} 1\n")));
}

TEST_F(PluginTest, AdmitsWhatItCannotPlace) {
  const auto sandbox = broken(pod("1", start_process()));
  const auto adjustment = adjusted(sandbox, container(sandbox, "app", kSmall));
  EXPECT_EQ(adjustment.ByteSizeLong(), 0U);
  EXPECT_TRUE(ask(kRunPodSandbox, sandbox));
  EXPECT_THAT(log(), HasSubstr("CreateContainer: "));
  EXPECT_THAT(log(), HasSubstr("RunPodSandbox: "));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, RejectsWhatItCannotPlaceIfItShall) {
  reconfigure(R"(, "onError": "reject")");
  const auto sandbox = broken(pod("1", start_process()));
  const auto refused = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podqos.io/pod"));
  EXPECT_FALSE(ask(kRunPodSandbox, sandbox));
  auto app = container(sandbox, "app");
  app.set_pid(sandbox.pid());
  EXPECT_FALSE(update(sandbox, app, {}));
}

TEST_F(PluginTest, PlacesAContainerBeforeItExists) {
  const auto sandbox = pod("1");
  const auto adjustment = adjusted(sandbox, container(sandbox, "app", kSmall));
  EXPECT_EQ(adjustment.linux().cgroups_path(), pod_path("burstable", "1") + "/app-of-1");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  // The engine's own values stay its own.
  EXPECT_FALSE(adjustment.linux().has_resources());
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, AddsWhatTheEngineLeavesOpen) {
  auto sandbox = pod("1");
  (*sandbox.mutable_annotations())["podqos.io/pod"] =
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "200m", "memory": "128Mi"}}}]})";
  const auto adjustment = adjusted(sandbox, container(sandbox, "app"));
  EXPECT_EQ(adjustment.linux().cgroups_path(), pod_path("", "1") + "/app-of-1");
  const auto& resources = adjustment.linux().resources();
  EXPECT_EQ(resources.cpu().shares().value(), 204U);
  EXPECT_EQ(resources.cpu().quota().value(), 20'000);
  EXPECT_EQ(resources.cpu().period().value(), 100'000U);
  EXPECT_EQ(resources.memory().limit().value(), 134'217'728);
  EXPECT_TRUE(adjustment.linux().has_oom_score_adj());
}

TEST_F(PluginTest, LeavesAKubeletsContainerInItsPlace) {
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(below("kubelet/kubepods/burstable/pod1/app-of-1"));
  const auto adjustment = adjusted(sandbox, app);
  EXPECT_THAT(adjustment.linux().cgroups_path(), IsEmpty());
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
  const auto adjustment = adjusted(sandbox, app);
  EXPECT_EQ(adjustment.ByteSizeLong(), 0U);
  EXPECT_THAT(log(), HasSubstr("CreateContainer: container app-of-1: pod 1: "
                               "linux.resources.cpu.realtimeRuntime 9500: on cgroup v1"));
  // Nor is it counted as soon as it runs.
  run_in(below("engine/app-of-1"), app);
  EXPECT_TRUE(ask(kStartContainer, sandbox, app));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
  reconfigure(R"(, "onError": "reject")");
  EXPECT_FALSE(create(sandbox, app));
}

TEST_F(PluginTest, LeavesAContainerAloneThatOptsOut) {
  auto sandbox = pod("1");
  (*sandbox.mutable_annotations())["podqos.io/ignore"] = "true";
  const auto adjustment = adjusted(sandbox, container(sandbox, "app", kSmall));
  EXPECT_EQ(adjustment.ByteSizeLong(), 0U);
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, LeavesAllAloneWhereItIsSwitchedOff) {
  reconfigure(R"(, "enabled": false)");
  const auto sandbox = pod("1");
  const auto adjustment = adjusted(sandbox, container(sandbox, "app", kSmall));
  EXPECT_EQ(adjustment.ByteSizeLong(), 0U);
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
  ASSERT_TRUE(ask(kStartContainer, sandbox, container(sandbox, "app")));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, BoundsAContainerThatItDidNotPlaceWhereItRuns) {
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(below("engine/app-of-1"));
  const Pid init = run(app);
  ASSERT_TRUE(ask(kStartContainer, sandbox, app));
  const auto now = cgroupfs().cgroup_of(init);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, below("engine/app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_THAT(log(), HasSubstr("register podqos-runtime"));
}

/// Also where all other errors are only logged: the administrator has asked for it.
TEST_F(PluginTest, RefusesAContainerThatItDidNotPlaceIfThatIsToFail) {
  reconfigure(R"(, "placement": {"onMisplaced": "fail"})");
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  run_in(below("engine/app-of-1"), app);
  const auto refused = ask(kStartContainer, sandbox, app);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("onMisplaced"));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ResizesAContainersPod) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  const auto answer = update(sandbox, running, kLarge);
  ASSERT_TRUE(answer) << answer.error().message;
  // The runtime itself changes the container.
  expect_limits(pod_path("burstable", "1"), "60000", "201326592");
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
  const auto sandbox = ran(pod("1", Pid{::getpid()}, kSmall));
  static_cast<void>(started(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  end_processes();
  // Its engine resized it while it did not run: of that nothing is told.
  auto again = container(sandbox, "app", kLarge);
  again.set_id("app-again");
  ASSERT_TRUE(create(sandbox, again));
  expect_limits(pod_path("burstable", "1"), "60000", "201326592");
}

/// Resized by an update, then replaced by one with its spec's values.
TEST_F(PluginTest, GivesThePodItsSpecAgainWithAContainerThatReplacesAResizedOne) {
  auto sandbox = pod("1", Pid{::getpid()});
  (*sandbox.mutable_annotations())["podqos.io/pod"] =
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "600m", "memory": "192Mi"}}}]})";
  ASSERT_TRUE(ask(kRunPodSandbox, sandbox));
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
  const auto answer = ask(kStopContainer, sandbox, running);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ReleasesAContainerThatIsRemoved) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  end_processes();
  ASSERT_TRUE(ask(kRemoveContainer, sandbox, running));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, MakesThePodsCgroupWhenItsSandboxRuns) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process(), kSmall)));
  expect_limits(pod_path("burstable", "1"), "20000", "134217728");
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, LeavesTheSandboxsProcessWhereItIs) {
  reconfigure(R"(, "placement": {"onMisplaced": "fail"})");
  const Pid init = start_process();
  put(init, below("engine/sandbox"));
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", init, kSmall)));
  const auto now = cgroupfs().cgroup_of(init);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, below("engine/sandbox"));
}

TEST_F(PluginTest, MakesAPodWithoutProcessForItsFirstContainer) {
  const auto sandbox = ran(pod("1", {}, kSmall));
  EXPECT_FALSE(is_known("1"));
  ASSERT_TRUE(ask(kCreateContainer, sandbox, container(sandbox, "app", kSmall)));
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
}

TEST_F(PluginTest, MakesNothingForAPodOfWhichNothingIsKnown) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process())));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
}

/// On an error the runtime undoes the sandbox, and does not create the container.
TEST_F(PluginTest, RefusesAPodThatDoesNotFitIfThatIsEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}}, "admission": {"cpu": "enforce"})");
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process(), kSmall)));
  const auto refused = ask(kRunPodSandbox, pod("2", start_process(), kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("pod 2: requests cpu 100m, of which 50m is free: 150m is allocatable, and "
                        "other pods have 100m, most of it pod 1 (web/front) with 100m"));
  const auto sandbox = pod("3");
  const auto created = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("pod 3: requests cpu 100m, of which 50m is free"));
  for (const char* uid : {"2", "3"}) {
    EXPECT_FALSE(is_known(uid));
    EXPECT_FALSE(has_cgroup(pod_path("burstable", uid)));
  }
}

/// It is asked for without the lock at first.
TEST_F(PluginTest, RefusesAContainerThatMakesItsPodTooLarge) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}}, "admission": {"cpu": "enforce"})");
  const auto sandbox = ran(pod("1", start_process(), kSmall));
  const auto created = create(sandbox, container(sandbox, "app", kLarge));
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("requests cpu 300m, of which 150m is free"));
  EXPECT_TRUE(create(sandbox, container(sandbox, "app", kSmall)));
}

TEST_F(PluginTest, WarnsOfAPodThatDoesNotFitIfThatIsNotEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}})");
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process(), kSmall)));
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  const auto sandbox = pod("3");
  ASSERT_TRUE(create(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_THAT(log(), HasSubstr("pod 2 (web/front) requests cpu 100m, of which 50m counts"));
  EXPECT_THAT(log(), HasSubstr("pod 3 (web/front) requests cpu 100m, of which 0 counts"));
}

/// Its runtime has created it, and would start it despite an error.
TEST_F(PluginTest, OnlyWarnsOfAContainerThatItHasNotPlaced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3950m"}}, "admission": {"cpu": "enforce"})");
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  run_in(below("engine/app"), app);
  ASSERT_TRUE(ask(kStartContainer, sandbox, app));
  EXPECT_TRUE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("pod 1 (web/front) requests cpu 100m, of which 50m counts"));
}

TEST_F(PluginTest, ResizesAPod) {
  const auto sandbox = ran(pod("1", start_process(), kSmall));
  api::UpdatePodSandboxRequest request;
  *request.mutable_pod() = sandbox;
  tell(*request.mutable_linux_resources(), kLarge);
  ASSERT_TRUE(plugin().handle(Request::kUpdatePodSandbox,
                              test::event_of(Request::kUpdatePodSandbox, request), kNoBudget));
  expect_limits(pod_path("burstable", "1"), "60000", "201326592");
}

TEST_F(PluginTest, ReleasesAPodThatHasStopped) {
  const auto sandbox = ran(pod("1", start_process(), kSmall));
  end_processes();
  ASSERT_TRUE(ask(kStopPodSandbox, sandbox));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
  // As every runtime does; there is nothing left to do.
  ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
}

TEST_F(PluginTest, ReleasesAPodThatNobodyHasStopped) {
  const auto sandbox = ran(pod("1", start_process(), kSmall));
  end_processes();
  ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, TendsSandboxesThatEndWithoutAWord) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process(), kSmall)));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  end_processes();
  housekeep();
  EXPECT_FALSE(is_known("1"));
}

}  // namespace
}  // namespace podqos::nri

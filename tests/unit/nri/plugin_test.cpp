#include "nri/plugin.h"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/store/event_file.h"
#include "common/sys/process.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::tell;
using test::text_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kHeld = 144 << 20;

/// Stops until it is in its cgroup, and again once it holds so much memory there.
void hold_memory() {
  ::raise(SIGSTOP);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
  if (::mmap(nullptr, kHeld, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) ::_exit(1);
  ::raise(SIGSTOP);
  ::pause();
}

/// Starts a process with this pid. @return false where the kernel leaves nobody the choice
bool start_as(pid_t pid) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
  args.set_tid_size = 1;
  const long started = ::syscall(SYS_clone3, &args, sizeof args);
  if (started == 0) {
    ::pause();
    ::_exit(0);
  }
  return started == pid;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(PluginTest, CountsEachRequestOfTheRuntime) {
  EXPECT_TRUE(plugin().configure({}));
  EXPECT_TRUE(plugin().synchronize({}));
  for (std::size_t i = 2; i < kRequests.size(); ++i)
    EXPECT_TRUE(plugin().handle(static_cast<Request>(i), {}, kNoBudget));
  const std::string shown = text_of(metrics());
  for (const RequestKind& request : kRequests)
    EXPECT_THAT(shown, HasSubstr(cat("podqos_nri_request_duration_seconds_count{request=\"",
                                     request.name, "\"} 1\n")));
}

TEST_F(PluginTest, AdmitsOrRejectsWhatItCannotPlace) {
  pod_ = annotated(pod("1", start_process()), "{");
  EXPECT_EQ(adjusted(app(kSmall)).ByteSizeLong(), 0U);
  EXPECT_TRUE(ask(kRunPodSandbox));
  EXPECT_THAT(log(), HasSubstr("CreateContainer: "));
  EXPECT_THAT(log(), HasSubstr("RunPodSandbox: "));
  EXPECT_FALSE(temporary().has("state/pods"));
  const auto journal = store::read_events(temporary().path("state"));
  ASSERT_TRUE(journal);
  ASSERT_EQ(journal->events.size(), 2U);
  EXPECT_EQ(journal->events[0].kind, core::EventKind::kFailed);
  EXPECT_EQ(journal->events[0].program, "podqos-nri");
  EXPECT_EQ(journal->events[0].uid, "1");
  EXPECT_EQ(journal->events[0].pod_namespace, "web");
  EXPECT_EQ(journal->events[0].pod_name, "front");
  EXPECT_EQ(journal->events[0].container, "app");
  EXPECT_THAT(journal->events[0].text, HasSubstr("podqos.io/pod"));
  EXPECT_THAT(journal->events[1].container_id, HasSubstr("sandbox"));
  reconfigure(R"(, "onError": "reject")");
  const auto refused = create(pod_, app(kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podqos.io/pod"));
  EXPECT_FALSE(ask(kRunPodSandbox));
  auto running = app();
  running.set_pid(pod_.pid());
  EXPECT_FALSE(update(running, {}));
}

TEST_F(PluginTest, PlacesAContainerBeforeItExists) {
  const auto adjustment = adjusted(app(kSmall));
  EXPECT_EQ(adjustment.linux().cgroups_path(), pod_path("burstable", "1") + "/app-of-1");
  expect_pod(kSmall);
  // The engine's own values stay its own.
  EXPECT_FALSE(adjustment.linux().has_resources());
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, AddsWhatTheEngineLeavesOpen) {
  pod_ = annotated(
      pod_,
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "200m", "memory": "128Mi"}}}]})");
  const auto adjustment = adjusted(app());
  EXPECT_EQ(adjustment.linux().cgroups_path(), pod_path("", "1") + "/app-of-1");
  const auto& resources = adjustment.linux().resources();
  EXPECT_EQ(resources.cpu().shares().value(), 204U);
  EXPECT_EQ(resources.cpu().quota().value(), 20'000);
  EXPECT_EQ(resources.cpu().period().value(), 100'000U);
  EXPECT_EQ(resources.memory().limit().value(), 134'217'728);
  EXPECT_TRUE(adjustment.linux().has_oom_score_adj());
}

TEST_F(PluginTest, LeavesAKubeletsContainerInItsPlace) {
  const auto adjustment =
      adjusted(at(below("kubelet/kubepods/burstable/pod1/app-of-1"), app(kSmall)));
  EXPECT_THAT(adjustment.linux().cgroups_path(), IsEmpty());
  EXPECT_TRUE(is_known("1"));
  // What a kubelet writes, podqos does not.
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
  EXPECT_FALSE(has_cgroup(below("kubelet")));
}

/// Which the kernel gives no container of a pod on cgroup v1.
TEST_F(PluginTest, LeavesAContainerWithRealtimeRuntimeWhereItsEnginePutsIt) {
  if (is_v2(core::Controller::kCpu)) GTEST_SKIP() << "cgroup v2 has no realtime runtime";
  auto realtime = app(kSmall);
  realtime.mutable_linux()
      ->mutable_resources()
      ->mutable_cpu()
      ->mutable_realtime_runtime()
      ->set_value(9500);
  EXPECT_EQ(adjusted(realtime).ByteSizeLong(), 0U);
  EXPECT_THAT(log(), HasSubstr("CreateContainer: container app-of-1: pod 1: "
                               "linux.resources.cpu.realtimeRuntime 9500: on cgroup v1"));
  // Nor is it counted as soon as it runs.
  run_in(below("engine/app-of-1"), realtime);
  EXPECT_TRUE(ask(kStartContainer, realtime));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
  reconfigure(R"(, "onError": "reject")");
  EXPECT_FALSE(create(pod_, realtime));
}

TEST_F(PluginTest, LeavesAContainerAloneThatOptsOutOrWhereItIsSwitchedOff) {
  for (const auto& [ignored, settings] :
       {std::pair{"true", ""}, {"false", R"(, "enabled": false)"}}) {
    reconfigure(settings);
    pod_ = annotated(pod_, ignored, "podqos.io/ignore");
    EXPECT_EQ(adjusted(app(kSmall)).ByteSizeLong(), 0U) << settings;
    EXPECT_FALSE(temporary().has("state")) << settings;
  }
}

TEST_F(PluginTest, ConfirmsAContainerThatHasStarted) {
  const auto running = started(app(kSmall));
  EXPECT_THAT(record(), HasSubstr(cat("\"pid\":", running.pid())));
  EXPECT_THAT(log(), Not(HasSubstr("error")));
}

TEST_F(PluginTest, WritesTheScoreThatNoEngineCarries) {
  const auto running = started(app());
  // BestEffort, as nothing is asked for.
  const auto score = sys::oom_score_adj_of(Pid{static_cast<pid_t>(running.pid())});
  ASSERT_TRUE(score);
  EXPECT_EQ(*score, 1000);
}

TEST_F(PluginTest, PassesOverAContainerWithoutAProcess) {
  ASSERT_TRUE(ask(kStartContainer, app()));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, BoundsAContainerThatItDidNotPlaceWhereItRuns) {
  auto stranger = at(below("engine/app-of-1"), app(kSmall));
  const Pid init = run(stranger);
  ASSERT_TRUE(ask(kStartContainer, stranger));
  EXPECT_EQ(cgroupfs().cgroup_of(init), below("engine/app-of-1"));
  expect_pod(kSmall);
  EXPECT_THAT(log(), HasSubstr("register podqos-runtime"));
}

/// Also where all other errors are only logged: the administrator has asked for it.
TEST_F(PluginTest, RefusesAContainerThatItDidNotPlaceIfThatIsToFail) {
  reconfigure(R"(, "placement": {"onMisplaced": "fail"})");
  auto stranger = app(kSmall);
  run_in(below("engine/app-of-1"), stranger);
  const auto refused = ask(kStartContainer, stranger);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("onMisplaced"));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ResizesAContainersPod) {
  const auto running = started(app(kSmall));
  const auto answer = update(running, kLarge);
  ASSERT_TRUE(answer) << answer.error().message;
  // The runtime itself changes the container.
  expect_pod(kLarge);
}

/// cgroup v1 lets no cgroup have less than one below it, and runtimes change theirs after the
/// answer.
TEST_F(PluginTest, LowersAPodOnceItsContainerHasBeen) {
  reconfigure(R"(, "onError": "reject")");
  const auto running = started(app(kLarge));
  set_quota(running, "60000");
  const auto answer = update(running, kSmall);
  ASSERT_TRUE(answer) << answer.error().message;
  set_quota(running, "20000");
  housekeep();
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  EXPECT_THAT(log(), Not(HasSubstr("] error: ")));
}

/// The kernel refuses a quota below the burst.
TEST_F(PluginTest, LowersTheBurstBeforeTheRuntimeLowersTheQuota) {
  reconfigure(R"(, "cpuBurst": {"burstable": "100%"})");
  auto running = placed(app(kLarge));
  run(running);
  set_quota(running, "60000");
  ASSERT_TRUE(ask(kStartContainer, pod_, running));
  const std::string& own = running.linux().cgroups_path();
  EXPECT_EQ(burst(own), "60000");
  EXPECT_EQ(burst(pod_path("burstable", "1")), "60000");
  ASSERT_TRUE(update(running, kSmall));
  EXPECT_EQ(burst(own), "20000");
  set_quota(running, "20000");
  EXPECT_EQ(quota(own), "20000");
  housekeep();
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  EXPECT_EQ(burst(pod_path("burstable", "1")), "20000");
}

/// There cgroup v2 kills, and v1 refuses.
TEST_F(PluginTest, LowersNoPodBelowTheMemoryInUse) {
  auto holder = placed(app(kLarge));
  const Pid init = start_process(hold_memory);
  const auto pid = static_cast<pid_t>(init.value());
  ASSERT_EQ(::waitpid(pid, nullptr, WUNTRACED), pid);
  put(init, holder.linux().cgroups_path());
  holder.set_pid(static_cast<std::uint32_t>(pid));
  ASSERT_TRUE(ask(kStartContainer, pod_, holder));
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ASSERT_EQ(::waitpid(pid, nullptr, WUNTRACED), pid);
  ASSERT_TRUE(update(holder, kSmall));
  const auto limit = std::stoll(memory(pod_path("burstable", "1")));
  EXPECT_GE(limit, kHeld);
  EXPECT_LT(limit, kLarge.memory);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "has been killed";
}

TEST_F(PluginTest, LetsThePodGrowWithAContainerThatReplacesASmallerOne) {
  pod_ = ran(pod("1", Pid{::getpid()}, kSmall));
  static_cast<void>(started(app(kSmall)));
  expect_pod(kSmall);
  end_processes();
  // Its engine resized it while it did not run: of that nothing is told.
  auto again = app(kLarge);
  again.set_id("app-again");
  ASSERT_TRUE(create(pod_, again));
  expect_pod(kLarge);
}

/// Resized by an update, then replaced by one with its spec's values.
TEST_F(PluginTest, GivesThePodItsSpecAgainWithAContainerThatReplacesAResizedOne) {
  pod_ = ran(annotated(
      pod("1", Pid{::getpid()}),
      R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "600m", "memory": "192Mi"}}}]})"));
  const auto running = started(app(kLarge));
  expect_pod(kLarge, "1", "");
  set_quota(running, "20000");
  ASSERT_TRUE(update(running, kSmall));
  expect_pod(kSmall, "1", "");
  end_processes();
  auto again = app(kLarge);
  again.set_id("app-again");
  ASSERT_TRUE(create(pod_, again));
  expect_pod(kLarge, "1", "");
  EXPECT_THAT(log(), Not(HasSubstr("differs from the first container's")));
}

TEST_F(PluginTest, ReleasesAContainerThatHasStoppedOrIsRemoved) {
  for (const Request end : {kStopContainer, kRemoveContainer}) {
    const auto running = started(app(kSmall));
    end_processes();
    const auto answer = ask(end, running);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(is_known("1"));
  }
}

TEST_F(PluginTest, MakesThePodsCgroupWhenItsSandboxRuns) {
  run_pod(kSmall);
  expect_pod(kSmall);
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, LeavesTheSandboxsProcessWhereItIs) {
  reconfigure(R"(, "placement": {"onMisplaced": "fail"})");
  const Pid init = start_process();
  put(init, below("engine/sandbox"));
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", init, kSmall)));
  EXPECT_EQ(cgroupfs().cgroup_of(init), below("engine/sandbox"));
}

TEST_F(PluginTest, MakesAPodWithoutProcessForItsFirstContainer) {
  pod_ = ran(pod("1", {}, kSmall));
  EXPECT_FALSE(is_known("1"));
  ASSERT_TRUE(ask(kCreateContainer, app(kSmall)));
  EXPECT_TRUE(is_known("1"));
  expect_pod(kSmall);
}

TEST_F(PluginTest, MakesNothingForAPodOfWhichNothingIsKnown) {
  run_pod();
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
}

/// On an error the runtime undoes the sandbox, and does not create the container.
TEST_F(PluginTest, RefusesAPodThatDoesNotFitIfThatIsEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}}, "admission": {"cpu": "enforce"})");
  run_pod(kSmall);
  const auto refused = ask(kRunPodSandbox, pod("2", start_process(), kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("pod 2: requests cpu 100m, of which 50m is free: 150m is allocatable, and "
                        "other pods have 100m, most of it pod 1 (web/front) with 100m"));
  const auto created = create(pod("3"), container(pod("3"), "app", kSmall));
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("pod 3: requests cpu 100m, of which 50m is free"));
  for (const char* uid : {"2", "3"}) {
    EXPECT_FALSE(is_known(uid));
    EXPECT_FALSE(has_cgroup(pod_path("burstable", uid)));
  }
  // Nor a container that makes its pod too large.
  const auto larger = create(pod_, app(kLarge));
  ASSERT_FALSE(larger);
  EXPECT_THAT(larger.error().message, HasSubstr("requests cpu 300m, of which 150m is free"));
  EXPECT_TRUE(create(pod_, app(kSmall)));
}

TEST_F(PluginTest, WarnsOfAPodThatDoesNotFitIfThatIsNotEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}})");
  run_pod(kSmall);
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  ASSERT_TRUE(create(pod("3"), container(pod("3"), "app", kSmall)));
  EXPECT_THAT(log(), HasSubstr("pod 2 (web/front): requests cpu 100m, of which 50m is free"));
  EXPECT_THAT(log(), HasSubstr("pod 3 (web/front): requests cpu 100m, of which 0 is free"));
}

/// Its runtime has created it, and would start it despite an error.
TEST_F(PluginTest, OnlyWarnsOfAContainerThatItHasNotPlaced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3950m"}}, "admission": {"cpu": "enforce"})");
  auto stranger = app(kSmall);
  run_in(below("engine/app"), stranger);
  ASSERT_TRUE(ask(kStartContainer, stranger));
  EXPECT_TRUE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("pod 1 (web/front): requests cpu 100m, of which 50m is free"));
}

TEST_F(PluginTest, ResizesAPod) {
  run_pod(kSmall);
  api::UpdatePodSandboxRequest request;
  *request.mutable_pod() = pod_;
  tell(*request.mutable_linux_resources(), kLarge);
  const std::string tier = base() + "/kubepods/burstable";
  for (const bool resized : {false, true}) {
    if (resized) {
      ASSERT_TRUE(plugin().handle(kUpdatePodSandbox, test::event_of(kUpdatePodSandbox, request),
                                  kNoBudget));
    }
    expect_pod(resized ? kLarge : kSmall);
    // 102 and 307 shares as a weight: 1 + (shares - 2) * 9999 / 262142. The tier has no other pod.
    for (const std::string& cgroup : {pod_path("burstable", "1"), tier})
      EXPECT_EQ(value(cgroup, core::Controller::kCpu, "cpu.shares", "cpu.weight"),
                is_v2(core::Controller::kCpu) ? (resized ? "12" : "4") : (resized ? "307" : "102"));
  }
}

TEST_F(PluginTest, ReleasesAPodThatHasStoppedOrIsRemoved) {
  for (const Request end : {kStopPodSandbox, kRemovePodSandbox}) {
    run_pod(kSmall);
    end_processes();
    ASSERT_TRUE(ask(end));
    EXPECT_FALSE(is_known("1"));
    EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
    // As every runtime does after a stop; there is nothing left to do.
    ASSERT_TRUE(ask(kRemovePodSandbox));
  }
}

TEST_F(PluginTest, TendsSandboxesThatEndWithoutAWord) {
  run_pod(kSmall);
  housekeep();
  EXPECT_TRUE(is_known("1"));
  end_processes();
  housekeep();
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ReleasesASandboxWhosePidAnotherProcessHas) {
  run_pod(kSmall);
  housekeep();
  const auto pid = static_cast<pid_t>(pod_.pid());
  const auto before = sys::start_time_of(Pid{pid});
  ASSERT_TRUE(before && *before);
  end_processes();
  bool started = start_as(pid);
  // The kernel tells start times in hundredths of a second.
  while (started && sys::start_time_of(Pid{pid}) == before) {
    end(pid);
    started = start_as(pid);
  }
  if (!started) GTEST_SKIP() << "nobody may choose a pid here";
  housekeep();
  EXPECT_FALSE(is_known("1"));
  end(pid);
}

}  // namespace
}  // namespace podqos::nri

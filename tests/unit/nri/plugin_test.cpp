#include "nri/plugin.h"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/process.h"
#include "nri/exposition.h"
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

constexpr const char* kBroken = "podqos.io/pod";

api::PodSandbox broken(api::PodSandbox pod) {
  (*pod.mutable_annotations())[kBroken] = "{";
  return pod;
}

// ---- the connection

TEST_F(PluginTest, SaysWhyTheRuntimeRefusesIt) {
  plugin().registered({});
  EXPECT_THAT(log(), IsEmpty());
  plugin().registered(fail(ErrorCode::kIo, "no such plugin wanted"));
  EXPECT_THAT(log(), HasSubstr("the runtime rejected the plugin: no such plugin wanted"));
}

TEST_F(PluginTest, TakesTheConfigurationOfTheRuntimeThatStartsIt) {
  api::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version("v2.1.0");
  request.set_config(R"({"podPidsLimit": 77})");
  ASSERT_TRUE(plugin().configure(request, kNoBudget));
  EXPECT_EQ(configuration().settings().pod_pids_limit, 77);
  EXPECT_THAT(log(), HasSubstr("configured by containerd v2.1.0"));
}

TEST_F(PluginTest, RefusesABadConfigurationOfTheRuntime) {
  api::ConfigureRequest request;
  request.set_config(R"({"podPidLimit": 77})");
  const auto refused = plugin().configure(request, kNoBudget);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podPidsLimit"));
  EXPECT_EQ(configuration().settings().pod_pids_limit, std::nullopt);
}

TEST_F(PluginTest, TakesInWhatLivesAtTheSynchronization) {
  const auto sandbox = pod("1", start_process(), kSmall);
  api::SynchronizeRequest request;
  *request.add_pods() = sandbox;
  auto app = container(sandbox, "app", kSmall);
  const Pid init = start_process();
  app.set_pid(static_cast<std::uint32_t>(init.value()));
  put(init, below("engine"));
  *request.add_containers() = app;
  const auto answer = plugin().synchronize(state_of(request), kNoBudget);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->update_size(), 0);
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
  api::SynchronizeRequest request;
  *request.add_pods() = broken(pod("1", start_process()));
  *request.add_pods() = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of(request), kNoBudget));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  EXPECT_THAT(log(), HasSubstr("podqos.io/pod"));
}

/// Without what it says it would be a pod of its own.
TEST_F(PluginTest, TakesNothingInOfWhichItCannotReadTheIdentity) {
  reconfigure(R"(, "scope": "all")");
  api::SynchronizeRequest request;
  auto odd = pod("1", start_process(), kSmall);
  odd.set_name("a/b");
  *request.add_pods() = odd;
  auto app = container(odd, "app", kSmall);
  const Pid init = start_process();
  app.set_pid(static_cast<std::uint32_t>(init.value()));
  put(init, below("engine"));
  *request.add_containers() = app;
  *request.add_pods() = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of(request), kNoBudget));
  housekeep();
  EXPECT_TRUE(is_known("2"));
  const std::filesystem::directory_iterator records{temporary().path("state/pods")};
  EXPECT_EQ(std::distance(begin(records), end(records)), 1);
  EXPECT_THAT(log(), HasSubstr("the runtime's pod name"));
}

TEST_F(PluginTest, SaysThatItCannotReadWhatTheRuntimeHas) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  NodeState state;
  ASSERT_TRUE(state.add("\x0a\x02\xff\xff"));
  ASSERT_TRUE(plugin().synchronize(std::move(state), kNoBudget));
  end_processes();
  housekeep();
  EXPECT_THAT(log(), HasSubstr("synchronize: not a SynchronizeRequest"));
  EXPECT_THAT(log(), Not(HasSubstr("sandboxes and containers")));
  // What has ended is found nevertheless.
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, SaysWhenEverythingIsKnown) {
  const auto shown = [&] { return format_exposition(metrics().collect()); };
  const auto known = HasSubstr("\npodqos_last_reconcile_timestamp_seconds ");
  api::SynchronizeRequest request;
  *request.add_pods() = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of(request), kNoBudget));
  EXPECT_THAT(shown(), Not(known));
  housekeep();
  EXPECT_THAT(shown(), known);
  EXPECT_THAT(log(), HasSubstr("synchronized 1 sandboxes and containers"));
}

TEST_F(PluginTest, CountsEachRequestOfTheRuntime) {
  for (std::size_t i = 0; i < kRequestNames.size(); ++i)
    plugin().handled(static_cast<Request>(i), std::chrono::milliseconds{1});
  const std::string shown = format_exposition(metrics().collect());
  for (const std::string_view request : kRequestNames)
    EXPECT_THAT(shown, HasSubstr(cat("podqos_nri_request_duration_seconds_count{request=\"",
                                     request, "\"} 1\n")));
}

TEST_F(PluginTest, CountsAConfigurationThatItRefuses) {
  api::ConfigureRequest request;
  request.set_config("{");
  const auto refused = plugin().configure(request, kNoBudget);
  ASSERT_FALSE(refused);
  EXPECT_THAT(format_exposition(metrics().collect()),
              HasSubstr(cat("podqos_errors_total{code=\"", format_error_code(refused.error().code),
                            "\"} 1\n")));
}

// ---- pods

TEST_F(PluginTest, MakesThePodsCgroupWhenItsSandboxRuns) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, LeavesTheSandboxsProcessWhereItIs) {
  reconfigure(R"(, "placement": {"onMisplaced": "move"})");
  const Pid init = start_process();
  put(init, below("engine/sandbox"));
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", init, kSmall)), kNoBudget));
  const auto now = cgroupfs().cgroup_of(init);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, below("engine/sandbox"));
}

TEST_F(PluginTest, MakesAPodWithoutProcessForItsFirstContainer) {
  const auto sandbox = pod("1", {}, kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  EXPECT_FALSE(is_known("1"));
  api::CreateContainerRequest request;
  *request.mutable_pod() = sandbox;
  *request.mutable_container() = container(sandbox, "app", kSmall);
  ASSERT_TRUE(plugin().create_container(request, kNoBudget));
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
}

TEST_F(PluginTest, MakesNothingForAPodOfWhichNothingIsKnown) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process())), kNoBudget));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
}

TEST_F(PluginTest, ResizesAPod) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  api::UpdatePodSandboxRequest request;
  *request.mutable_pod() = sandbox;
  tell(*request.mutable_linux_resources(), kLarge);
  ASSERT_TRUE(plugin().update_pod_sandbox(request, kNoBudget));
  EXPECT_EQ(quota(pod_path("burstable", "1")), "60000");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "201326592");
}

TEST_F(PluginTest, ReleasesAPodThatHasStopped) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  end_processes();
  ASSERT_TRUE(plugin().stop_pod_sandbox(event(sandbox), kNoBudget));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
  // As every runtime does; there is nothing left to do.
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
}

TEST_F(PluginTest, ReleasesAPodThatNobodyHasStopped) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  end_processes();
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, TendsSandboxesThatEndWithoutAWord) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  end_processes();
  housekeep();
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, TendsManySandboxesInTurn) {
  constexpr int kMany = 150;
  const Pid lives{::getpid()};
  api::SynchronizeRequest request;
  for (int i = 0; i < kMany; ++i)
    *request.add_pods() = pod(std::to_string(1000 + i), lives);
  const auto ends = pod("2000", start_process(), kSmall);
  *request.add_pods() = ends;
  ASSERT_TRUE(plugin().synchronize(state_of(request), kNoBudget));
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
  api::SynchronizeRequest request;
  *request.add_pods() = sandbox;
  ASSERT_TRUE(next.synchronize(state_of(request), kNoBudget));
  end_processes();
  housekeep(next);
  EXPECT_FALSE(is_known("1"));
}

// ---- containers

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

TEST_F(PluginTest, MovesAContainerThatItDidNotPlace) {
  reconfigure(R"(, "placement": {"onMisplaced": "move"})");
  const auto sandbox = pod("1");
  auto app = container(sandbox, "app", kSmall);
  const Pid init = start_process();
  put(init, below("engine/app-of-1"));
  app.mutable_linux()->set_cgroups_path(below("engine/app-of-1"));
  app.set_pid(static_cast<std::uint32_t>(init.value()));
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  const auto now = cgroupfs().cgroup_of(init);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, pod_path("burstable", "1") + "/app-of-1");
}

TEST_F(PluginTest, ResizesAContainersPod) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  const auto answer = update(sandbox, running, kLarge);
  ASSERT_TRUE(answer) << answer.error().message;
  // The runtime itself changes the container.
  EXPECT_EQ(answer->update_size(), 0);
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

TEST_F(PluginTest, ReleasesAContainerThatHasStopped) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  end_processes();
  api::StopContainerRequest request;
  *request.mutable_pod() = sandbox;
  *request.mutable_container() = running;
  const auto answer = plugin().stop_container(request, kNoBudget);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->update_size(), 0);
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, ReleasesAContainerThatIsRemoved) {
  const auto sandbox = pod("1");
  const auto running = started(sandbox, container(sandbox, "app", kSmall));
  end_processes();
  ASSERT_TRUE(plugin().remove_container(event(sandbox, running), kNoBudget));
  EXPECT_FALSE(is_known("1"));
}

TEST_F(PluginTest, DoesNothingAfterTheFact) {
  const auto sandbox = pod("1", start_process(), kSmall);
  const auto both = event(sandbox, container(sandbox, "app", kSmall));
  EXPECT_TRUE(plugin().post_create_container(both, kNoBudget));
  EXPECT_TRUE(plugin().post_start_container(both, kNoBudget));
  EXPECT_TRUE(plugin().post_update_container(both, kNoBudget));
  EXPECT_TRUE(plugin().post_update_pod_sandbox(event(sandbox), kNoBudget));
  plugin().shutdown();
  EXPECT_FALSE(temporary().has("state"));
}

// ---- what goes wrong

TEST_F(PluginTest, AdmitsWhatItCannotPlace) {
  const auto sandbox = broken(pod("1", start_process()));
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment);
  EXPECT_EQ(adjustment->ByteSizeLong(), 0U);
  EXPECT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  EXPECT_THAT(log(), HasSubstr("create container: "));
  EXPECT_THAT(log(), HasSubstr("run pod: "));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, RejectsWhatItCannotPlaceIfItShall) {
  reconfigure(R"(, "onError": "reject")");
  const auto sandbox = broken(pod("1", start_process()));
  const auto refused = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podqos.io/pod"));
  EXPECT_FALSE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  api::UpdateContainerRequest update;
  *update.mutable_pod() = sandbox;
  *update.mutable_container() = container(sandbox, "app");
  update.mutable_container()->set_pid(sandbox.pid());
  EXPECT_FALSE(plugin().update_container(update, kNoBudget));
}

}  // namespace
}  // namespace podqos::nri

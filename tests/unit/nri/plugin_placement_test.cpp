// Where a pod's containers are placed: those that start, those that never do, and those of others.

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/place.h"
#include "common/base/text.h"
#include "common/core/cgroups/plan.h"
#include "common/store/store.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using std::chrono::seconds;
using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::tell;
using test::Told;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kBurstable =
    R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},)"
    R"( "limits": {"cpu": "200m", "memory": "128Mi"}}}, {"name": "log"}]})";
/// Containers that are created in a pod whose sandbox runs.
class PlacementTest : public PluginTest {
 protected:
  [[nodiscard]] api::PodSandbox running_pod(const std::string& uid, const char* spec) {
    api::PodSandbox sandbox = pod(uid, start_process());
    (*sandbox.mutable_annotations())["podqos.io/pod"] = spec;
    EXPECT_TRUE(ask(kRunPodSandbox, sandbox));
    return sandbox;
  }
  /// Has it been written down?
  [[nodiscard]] bool is_counted(const std::string& uid, const std::string& id) const {
    return temporary().read("state/pods/" + uid + ".json").contains("\"id\":\"" + id + "\"");
  }
};

TEST_F(PlacementTest, RecordsTheStart) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  EXPECT_TRUE(is_counted("1", app.id()));
  EXPECT_THAT(temporary().read("state/pods/1.json"), HasSubstr(cat("\"pid\":", app.pid())));
  EXPECT_THAT(log(), Not(HasSubstr("warning")));
}

/// The runtime was asked for its values before. To tell systemd of a scope's limit once more would
/// take memory.oom.group from a container of runc's.
TEST_F(PlacementTest, WritesNoValuesOfAContainerInItsPlace) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  EXPECT_NE(memory(app.linux().cgroups_path()), "134217728");
  EXPECT_NE(quota(app.linux().cgroups_path()), "20000");
}

TEST_F(PlacementTest, LetsThePodGrow) {
  const auto sandbox = ran(pod("1", start_process()));
  static_cast<void>(adjusted(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  static_cast<void>(adjusted(sandbox, container(sandbox, "log", kSmall)));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "268435456");
}

TEST_F(PlacementTest, WarnsOfAContainerThatTheSpecLacks) {
  const auto sandbox = running_pod("1", kBurstable);
  static_cast<void>(adjusted(sandbox, container(sandbox, "strange")));
  EXPECT_TRUE(is_counted("1", "strange-of-1"));
  EXPECT_THAT(log(), HasSubstr("has no container \"strange\""));
}

TEST_F(PlacementTest, RefusesOneThatRuns) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  const std::string before = temporary().read("state/pods/1.json");
  static_cast<void>(adjusted(sandbox, app));
  EXPECT_EQ(temporary().read("state/pods/1.json"), before);
  EXPECT_THAT(log(), HasSubstr("runs already"));
}

TEST_F(PlacementTest, MakesAnInterruptedEventGood) {
  const auto sandbox = running_pod("1", kBurstable);
  {
    auto store = store::Store::open({.path = temporary().path("state")});
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->begin());
  }
  static_cast<void>(adjusted(sandbox, container(sandbox, "app")));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_FALSE(temporary().has("state/dirty"));
}

TEST_F(PlacementTest, SeesWhatOthersHaveChanged) {
  const auto sandbox = running_pod("1", kBurstable);
  Plugin other{configuration(), metrics()};
  end_processes();
  ASSERT_TRUE(other.handle(Request::kStopPodSandbox, event(sandbox), kNoBudget));
  ASSERT_FALSE(is_known("1"));
  // Gone for the other: only an event makes it anew.
  static_cast<void>(adjusted(sandbox, container(sandbox, "log")));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_TRUE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PlacementTest, SeesTheEndOfWhatOthersHaveCounted) {
  const auto sandbox = running_pod("1", kBurstable);
  Plugin other{configuration(), metrics()};
  ASSERT_TRUE(other.handle(Request::kRemoveContainer,
                           event(sandbox, container(sandbox, "stranger")), kNoBudget));
  const auto app = started(sandbox, container(sandbox, "app"));
  ASSERT_TRUE(is_counted("1", app.id()));
  end_processes();
  ASSERT_TRUE(other.handle(Request::kRemoveContainer, event(sandbox, app), kNoBudget));
  EXPECT_FALSE(is_counted("1", app.id()));
}

TEST_F(PlacementTest, KeepsAPodInWhichAContainerIsMade) {
  const auto sandbox = running_pod("1", kBurstable);
  // Its first look is at everything, and finds nobody alive.
  housekeep();
  const auto app = container(sandbox, "app");
  static_cast<void>(adjusted(sandbox, app));
  end_processes();
  ASSERT_TRUE(ask(kStopPodSandbox, sandbox));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(ask(kRemoveContainer, sandbox, app));
  housekeep();
  EXPECT_FALSE(is_known("1"));
}

constexpr const char* kBounded =
    R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "512Mi"},)"
    R"( "limits": {"cpu": "200m", "memory": "512Mi"}}}, {"name": "log", "resources": {"requests": )"
    R"({"cpu": "100m", "memory": "16Mi"}, "limits": {"cpu": "200m", "memory": "16Mi"}}}]})";

/// The node's memory decides about scores from the moment on at which the operator changes it.
TEST_F(PlacementTest, TakesTheNodeAsTheSettingsHaveIt) {
  const auto sandbox = running_pod("1", kBounded);
  const auto before = adjusted(sandbox, container(sandbox, "app"));
  EXPECT_EQ(before.linux().oom_score_adj().value(), 750);
  std::string settings = temporary().read("podqos.json");
  const std::string_view old = R"("nodeMemory": "2Gi")";
  settings.replace(settings.find(old), old.size(), R"("nodeMemory": "4Gi")");
  temporary().write("podqos.json", settings);
  ASSERT_TRUE(configuration().reload());
  const auto after = adjusted(sandbox, container(sandbox, "app"));
  EXPECT_EQ(after.linux().oom_score_adj().value(), 875);
}

/// A runtime may update what it has made and not started.
TEST_F(PlacementTest, FollowsAnUpdateBeforeTheStart) {
  constexpr const char* kOne =
      R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": )"
      R"("64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}}]})";
  const auto sandbox = running_pod("1", kOne);
  auto app = container(sandbox, "app");
  app.mutable_linux()->set_cgroups_path(adjusted(sandbox, app).linux().cgroups_path());
  ASSERT_TRUE(is_counted("1", app.id()));
  tell(*app.mutable_linux()->mutable_resources(), kSmall);
  constexpr Told kMore{.shares = 307, .quota = 60'000, .memory = 201'326'592};
  ASSERT_TRUE(update(sandbox, app, kMore));
  tell(*app.mutable_linux()->mutable_resources(), kMore);
  run(app);
  ASSERT_TRUE(ask(kStartContainer, sandbox, app));
  expect_limits(pod_path("burstable", "1"), "60000", "201326592");
}

class CreationTest : public PluginTest {
 protected:
  /// A container whose pod comes with it; how it was placed.
  api::Container created(const api::PodSandbox& sandbox, const std::string& name = "app") {
    api::Container made = placed(sandbox, container(sandbox, name, kSmall));
    EXPECT_TRUE(is_known(sandbox.uid()));
    return made;
  }
  void expect_nothing_left(const std::string& uid) {
    EXPECT_FALSE(is_known(uid));
    EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
    EXPECT_THAT(temporary().read("state/tiers.json"), HasSubstr("\"pending\":[]"));
  }
  /// The runtime starts the container where it was placed.
  void start(const api::PodSandbox& sandbox, api::Container& made) {
    run(made);
    const auto done = ask(kStartContainer, sandbox, made);
    EXPECT_TRUE(done) << done.error().message;
  }
  /// A container that is created while the runtime lists it to the plugin.
  void create_listed(const api::PodSandbox& sandbox) {
    auto app = created(sandbox);
    app.set_state(api::CONTAINER_CREATED);
    ASSERT_TRUE(plugin().synchronize(state_of({sandbox}, {app})));
    housekeep();
  }
};

// Longer than a runtime takes to create a container: containerd only notes it down.
constexpr seconds kLong{600};

TEST_F(CreationTest, EndsWithItsSandbox) {
  const auto sandbox = pod("1");
  static_cast<void>(created(sandbox));
  static_cast<void>(created(sandbox, "log"));
  ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
  expect_nothing_left("1");
}

TEST_F(CreationTest, LeavesThoseInOtherSandboxesAlone) {
  const auto first = pod("1");
  const auto second = pod("2");
  static_cast<void>(created(first));
  static_cast<void>(created(second));
  ASSERT_TRUE(ask(kRemovePodSandbox, first));
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  EXPECT_EQ(memory(pod_path("burstable", "2")), "134217728");
}

TEST_F(CreationTest, IsGivenUpAfterATime) {
  static_cast<void>(created(pod("1")));
  housekeep();
  pass(seconds{20});
  housekeep();
  EXPECT_TRUE(is_known("1"));
  pass(kLong);
  housekeep();
  expect_nothing_left("1");
}

TEST_F(CreationTest, IsTakenInWhereItStartsAfterThatTime) {
  const auto sandbox = pod("1");
  auto app = created(sandbox);
  pass(kLong);
  housekeep();
  expect_nothing_left("1");
  start(sandbox, app);
  EXPECT_TRUE(is_known("1"));
  expect_limits(pod_path("burstable", "1"), "20000", "134217728");
  end_processes();
  ASSERT_TRUE(ask(kStopContainer, {}, app));
  expect_nothing_left("1");
}

TEST_F(CreationTest, IsKeptWhereItsProcessIsThereAlready) {
  // As CRI-O has it, which starts the container later.
  const auto app = created(pod("1"));
  put(start_process(), app.linux().cgroups_path());
  pass(kLong);
  housekeep();
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
}

TEST_F(CreationTest, IsGoneWhereTheRuntimeListsItNoMore) {
  static_cast<void>(created(pod("1")));
  ASSERT_TRUE(plugin().synchronize(NodeState{}));
  housekeep();
  expect_nothing_left("1");
}

TEST_F(CreationTest, IsKeptWhereTheRuntimeListsItAndEndsWithItsSandbox) {
  const auto sandbox = pod("1");
  ASSERT_NO_FATAL_FAILURE(create_listed(sandbox));
  pass(seconds{20});
  housekeep();
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
  expect_nothing_left("1");
}

TEST_F(CreationTest, OfAPluginBeforeIsGivenUpAfterATimeToo) {
  ASSERT_NO_FATAL_FAILURE(create_listed(pod("1")));
  pass(kLong);
  housekeep();
  expect_nothing_left("1");
}

class ForeignPodTest : public PluginTest {
 protected:
  [[nodiscard]] std::string theirs() const { return pod_path("burstable", "1"); }
  /// Another program makes the cgroup of pod "1" and bounds it, with no tier beside.
  void make_theirs() {
    const bool newer = is_v2(core::Controller::kMemory);
    static_cast<void>(
        execute({core::EnsureCgroup{theirs()},
                 core::WriteFile{.path = theirs(),
                                 .controller = core::Controller::kMemory,
                                 .file = newer ? "memory.max" : "memory.limit_in_bytes",
                                 .value = "67108864"},
                 core::WriteFile{.path = theirs(),
                                 .controller = core::Controller::kCpu,
                                 .file = newer ? "cpu.max" : "cpu.cfs_quota_us",
                                 .value = newer ? "30000 100000" : "30000"}}));
    expect_theirs_unchanged();
  }
  void expect_theirs_unchanged() { expect_limits(theirs(), "30000", "67108864"); }
  /// Pod "1", as its engine runs it in that cgroup, from its start to its end.
  void run_pod_in_theirs() {
    const Pid pause = start_process();
    put(pause, theirs() + "/sandbox-1");
    auto sandbox = pod("1", pause, kSmall);
    sandbox.mutable_linux()->set_cgroups_path(theirs() + "/sandbox-1");
    ASSERT_TRUE(ask(kRunPodSandbox, sandbox));
    auto app = container(sandbox, "app", kSmall);
    app.mutable_linux()->set_cgroups_path(theirs() + "/app-of-1");
    const auto adjustment = adjusted(sandbox, app);
    EXPECT_THAT(adjustment.linux().cgroups_path(), IsEmpty());
    run(app);
    ASSERT_TRUE(ask(kStartContainer, sandbox, app));
    EXPECT_TRUE(is_known("1"));
    expect_theirs_unchanged();
    ASSERT_TRUE(update(sandbox, app, kLarge));
    expect_theirs_unchanged();
    end_processes();
    ASSERT_TRUE(ask(kRemoveContainer, sandbox, app));
    ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
    recompute();
    EXPECT_FALSE(is_known("1"));
    expect_theirs_unchanged();
  }
  /// Everything, as each five minutes.
  void recompute() {
    pass(seconds{301});
    housekeep();
  }
};

TEST_F(ForeignPodTest, IsNeitherResetNorRemovedWithoutATierBeside) {
  make_theirs();
  run_pod_in_theirs();
  EXPECT_FALSE(has_cgroup(base() + "/kubepods/besteffort"));
}

TEST_F(ForeignPodTest, IsNeitherResetNorRemovedBesidePodsOfPodqos) {
  const auto sandbox = ran(pod("2", start_process(), kSmall));
  static_cast<void>(started(sandbox, container(sandbox, "app", kSmall)));
  ASSERT_TRUE(has_cgroup(pod_path("burstable", "2")));
  make_theirs();
  run_pod_in_theirs();
  ASSERT_TRUE(ask(kRemovePodSandbox, sandbox));
  recompute();
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "2")));
  expect_theirs_unchanged();
}

TEST_F(ForeignPodTest, TakesNoContainerThatItsEngineHasElsewhere) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  make_theirs();
  const auto sandbox = pod("1");
  const auto adjustment = adjusted(sandbox, container(sandbox, "app", kSmall));
  EXPECT_THAT(adjustment.linux().cgroups_path(), IsEmpty());
  EXPECT_THAT(log(), HasSubstr(theirs() + " exists but was not created by podqos"));
  recompute();
  expect_theirs_unchanged();
}

class HeadlessPluginTest : public PluginTest {
 protected:
  /// Pod "1" with such a container, and without a process of its sandbox, as CRI-O may run it.
  void run_headless_pod() {
    const auto sandbox = pod("1");
    auto app = container(sandbox, "app", kSmall);
    const auto adjustment = adjusted(sandbox, app);
    const Pid init = start_process([] {
      ::raise(SIGSTOP);
      std::thread{[] { ::pause(); }}.detach();
      ::syscall(SYS_exit, 0);
    });
    wait_for_state(init, "T");
    put(init, adjustment.linux().cgroups_path());
    app.mutable_linux()->set_cgroups_path(adjustment.linux().cgroups_path());
    app.set_pid(static_cast<std::uint32_t>(init.value()));
    ASSERT_TRUE(ask(kStartContainer, sandbox, app));
    ::kill(static_cast<pid_t>(init.value()), SIGCONT);
    wait_for_state(init, "Z");
  }
  static void wait_for_state(Pid pid, std::string_view state) {
    while (!content(cat("/proc/", pid.value(), "/stat")).contains(cat(") ", state, " ")))
      std::this_thread::yield();
  }
  /// The wrapper places a container of another sandbox, which claims the uid of pod "1" by an
  /// annotation. @return whether that is refused
  [[nodiscard]] bool is_refused_to_claimant() {
    const auto placed =
        app::place(configuration().settings(), configuration().log(),
                   {.id = "claimant",
                    .bundle = "/b",
                    .config = R"({"linux": {"cgroupsPath": "/engine/claimant"}, "annotations": {
                                  "io.container.manager": "libpod", "podqos.io/pod-uid": "1",
                                  "io.kubernetes.cri-o.SandboxID": "another"}})",
                    .creator = start_process(),
                    .driver = core::Driver::kCgroupfs,
                    .hooks = {}});
    if (placed) return false;
    EXPECT_EQ(placed.error().code, ErrorCode::kConflict) << placed.error().message;
    EXPECT_THAT(placed.error().message, HasSubstr("names a pod of sandbox \"sandbox-1\""));
    return true;
  }
  [[nodiscard]] std::string record() const { return temporary().read("state/pods/1.json"); }
};

TEST_F(HeadlessPluginTest, KeepsItsPodFromAnotherSandbox) {
  run_headless_pod();
  const std::string before = record();
  EXPECT_TRUE(is_refused_to_claimant());
  EXPECT_EQ(record(), before);
}

TEST_F(HeadlessPluginTest, LeavesItsPodToOthersOnceItsLastThreadHasEnded) {
  run_headless_pod();
  end_processes();
  EXPECT_FALSE(is_refused_to_claimant());
  EXPECT_THAT(record(), HasSubstr("claimant"));
}

}  // namespace
}  // namespace podqos::nri

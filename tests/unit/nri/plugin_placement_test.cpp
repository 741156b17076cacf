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
using test::event_of;
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
  /// Has it been written down?
  [[nodiscard]] bool is_counted(const std::string& id) const {
    return record().contains("\"id\":\"" + id + "\"");
  }
};

TEST_F(PlacementTest, RecordsTheStart) {
  run_pod(kBurstable);
  const auto running = started(app());
  EXPECT_TRUE(is_counted("app-of-1"));
  EXPECT_THAT(record(), HasSubstr(cat("\"pid\":", running.pid())));
  EXPECT_THAT(log(), Not(HasSubstr("warning")));
}

/// The runtime was asked for its values before. To tell systemd of a scope's limit once more would
/// take memory.oom.group from a container of runc's.
TEST_F(PlacementTest, WritesNoValuesOfAContainerInItsPlace) {
  run_pod(kBurstable);
  const auto running = started(app());
  EXPECT_NE(memory(running.linux().cgroups_path()), "134217728");
  EXPECT_NE(quota(running.linux().cgroups_path()), "20000");
}

TEST_F(PlacementTest, LetsThePodGrow) {
  run_pod();
  static_cast<void>(adjusted(app(kSmall)));
  EXPECT_TRUE(is_counted("app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  static_cast<void>(adjusted(app(kSmall, "log")));
  EXPECT_TRUE(is_counted("log-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "268435456");
}

TEST_F(PlacementTest, WarnsOfAContainerThatTheSpecLacks) {
  run_pod(kBurstable);
  static_cast<void>(adjusted(app({}, "strange")));
  EXPECT_TRUE(is_counted("strange-of-1"));
  EXPECT_THAT(log(), HasSubstr("has no container \"strange\""));
}

TEST_F(PlacementTest, RecordsTheEngineThatConfigureNames) {
  ConfigureRequest request;
  request.runtime_name = "cri-o";
  ASSERT_TRUE(plugin().configure(request));
  run_pod(kBurstable);
  static_cast<void>(adjusted(app()));
  EXPECT_THAT(record(), HasSubstr(R"("engine":"cri-o")"));
}

TEST_F(PlacementTest, RefusesOneThatRuns) {
  run_pod(kBurstable);
  const auto running = started(app());
  const std::string before = record();
  static_cast<void>(adjusted(running));
  EXPECT_EQ(record(), before);
  EXPECT_THAT(log(), HasSubstr("runs already"));
}

TEST_F(PlacementTest, MakesAnInterruptedEventGood) {
  run_pod(kBurstable);
  {
    auto store = store::Store::open({.path = temporary().path("state")});
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->begin("1"));
  }
  static_cast<void>(adjusted(app()));
  EXPECT_TRUE(is_counted("app-of-1"));
  EXPECT_FALSE(state().is_marked());
}

TEST_F(PlacementTest, SeesWhatOthersHaveChanged) {
  run_pod(kBurstable);
  Plugin other{configuration(), metrics()};
  end_processes();
  ASSERT_TRUE(other.handle(kStopPodSandbox, event_of(pod_), kNoBudget));
  ASSERT_FALSE(is_known("1"));
  // Gone for the other: only an event makes it anew.
  static_cast<void>(adjusted(app({}, "log")));
  EXPECT_TRUE(is_counted("log-of-1"));
  EXPECT_TRUE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PlacementTest, SeesTheEndOfWhatOthersHaveCounted) {
  run_pod(kBurstable);
  Plugin other{configuration(), metrics()};
  ASSERT_TRUE(other.handle(kRemoveContainer, event_of(pod_, app({}, "stranger")), kNoBudget));
  const auto running = started(app());
  ASSERT_TRUE(is_counted("app-of-1"));
  end_processes();
  ASSERT_TRUE(other.handle(kRemoveContainer, event_of(pod_, running), kNoBudget));
  EXPECT_FALSE(is_counted("app-of-1"));
}

TEST_F(PlacementTest, KeepsAPodInWhichAContainerIsMade) {
  run_pod(kBurstable);
  // Its first look is at everything, and finds nobody alive.
  housekeep();
  static_cast<void>(adjusted(app()));
  end_processes();
  ASSERT_TRUE(ask(kStopPodSandbox));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(ask(kRemoveContainer, app()));
  housekeep();
  EXPECT_FALSE(is_known("1"));
}

constexpr const char* kBounded =
    R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "512Mi"},)"
    R"( "limits": {"cpu": "200m", "memory": "512Mi"}}}, {"name": "log", "resources": {"requests": )"
    R"({"cpu": "100m", "memory": "16Mi"}, "limits": {"cpu": "200m", "memory": "16Mi"}}}]})";

/// The node's memory decides about scores from the moment on at which the operator changes it.
TEST_F(PlacementTest, TakesTheNodeAsTheSettingsHaveIt) {
  run_pod(kBounded);
  EXPECT_EQ(adjusted(app()).linux().oom_score_adj().value(), 750);
  std::string settings = temporary().read("podqos.json");
  const std::string_view old = R"("nodeMemory": "2Gi")";
  settings.replace(settings.find(old), old.size(), R"("nodeMemory": "4Gi")");
  temporary().write("podqos.json", settings);
  EXPECT_EQ(adjusted(app()).linux().oom_score_adj().value(), 875);
}

/// A runtime may update what it has made and not started.
TEST_F(PlacementTest, FollowsAnUpdateBeforeTheStart) {
  run_pod(R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": )"
          R"("64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}}]})");
  auto created = placed(app());
  ASSERT_TRUE(is_counted("app-of-1"));
  tell(*created.mutable_linux()->mutable_resources(), kSmall);
  ASSERT_TRUE(update(created, kLarge));
  tell(*created.mutable_linux()->mutable_resources(), kLarge);
  run(created);
  ASSERT_TRUE(ask(kStartContainer, created));
  expect_pod(kLarge);
}

class CreationTest : public PluginTest {
 protected:
  /// A container whose pod comes with it; how it was placed.
  api::Container created(const api::PodSandbox& sandbox, const std::string& name = "app") {
    api::Container made = placed(sandbox, container(sandbox, name, kSmall));
    EXPECT_TRUE(is_known(sandbox.uid()));
    return made;
  }
  void expect_nothing_left() {
    EXPECT_FALSE(is_known("1"));
    EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
    EXPECT_THAT(state().node().rows, IsEmpty());
  }
  /// A container that is created while the runtime lists it to the plugin.
  void create_listed() {
    auto listed = created(pod_);
    listed.set_state(api::CONTAINER_CREATED);
    ASSERT_TRUE(plugin().synchronize(state_of({pod_}, {listed})));
    housekeep();
  }
  void pass_and_housekeep(seconds time) {
    pass(time);
    housekeep();
  }
};

// Longer than a runtime takes to create a container: containerd only notes it down.
constexpr seconds kLong{600};

TEST_F(CreationTest, EndsWithItsSandbox) {
  static_cast<void>(created(pod_));
  static_cast<void>(created(pod_, "log"));
  ASSERT_TRUE(ask(kRemovePodSandbox));
  expect_nothing_left();
}

TEST_F(CreationTest, LeavesThoseInOtherSandboxesAlone) {
  static_cast<void>(created(pod_));
  static_cast<void>(created(pod("2")));
  ASSERT_TRUE(ask(kRemovePodSandbox));
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  expect_pod(kSmall, "2");
}

TEST_F(CreationTest, IsGivenUpAfterATimeAndTakenInWhereItStartsAfterThat) {
  auto late = created(pod_);
  housekeep();
  pass_and_housekeep(seconds{20});
  EXPECT_TRUE(is_known("1"));
  pass_and_housekeep(kLong);
  expect_nothing_left();
  run(late);
  ASSERT_TRUE(ask(kStartContainer, late));
  EXPECT_TRUE(is_known("1"));
  expect_pod(kSmall);
  end_processes();
  ASSERT_TRUE(ask(kStopContainer, {}, late));
  expect_nothing_left();
}

TEST_F(CreationTest, IsKeptWhereItsProcessIsThereAlready) {
  // As CRI-O has it, which starts the container later.
  put(start_process(), created(pod_).linux().cgroups_path());
  pass_and_housekeep(kLong);
  EXPECT_TRUE(is_known("1"));
  expect_pod(kSmall);
}

TEST_F(CreationTest, IsGoneWhereTheRuntimeListsItNoMore) {
  static_cast<void>(created(pod_));
  ASSERT_TRUE(plugin().synchronize(NodeState{}));
  housekeep();
  expect_nothing_left();
}

TEST_F(CreationTest, IsKeptWhereTheRuntimeListsItAndEndsWithItsSandbox) {
  ASSERT_NO_FATAL_FAILURE(create_listed());
  pass_and_housekeep(seconds{20});
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(ask(kRemovePodSandbox));
  expect_nothing_left();
}

TEST_F(CreationTest, OfAPluginBeforeIsGivenUpAfterATimeToo) {
  ASSERT_NO_FATAL_FAILURE(create_listed());
  pass_and_housekeep(kLong);
  expect_nothing_left();
}

class ForeignPodTest : public PluginTest {
 protected:
  static constexpr Told kTheirs{.quota = 30'000, .memory = 67'108'864};
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
    expect_pod(kTheirs);
  }
  /// Pod "1", as its engine runs it in that cgroup, from its start to its end.
  void run_pod_in_theirs() {
    const Pid pause = start_process();
    put(pause, theirs() + "/sandbox-1");
    pod_ = pod("1", pause, kSmall);
    pod_.mutable_linux()->set_cgroups_path(theirs() + "/sandbox-1");
    ASSERT_TRUE(ask(kRunPodSandbox));
    auto running = at(theirs() + "/app-of-1", app(kSmall));
    EXPECT_THAT(adjusted(running).linux().cgroups_path(), IsEmpty());
    run(running);
    ASSERT_TRUE(ask(kStartContainer, running));
    EXPECT_TRUE(is_known("1"));
    expect_pod(kTheirs);
    ASSERT_TRUE(update(running, kLarge));
    expect_pod(kTheirs);
    end_processes();
    ASSERT_TRUE(ask(kRemoveContainer, running));
    ASSERT_TRUE(ask(kRemovePodSandbox));
    reconcile_node();
    EXPECT_FALSE(is_known("1"));
    expect_pod(kTheirs);
  }
  /// Everything, as each five minutes.
  void reconcile_node() {
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
  const auto ours = ran(pod("2", start_process(), kSmall));
  static_cast<void>(started(ours, container(ours, "app", kSmall)));
  ASSERT_TRUE(has_cgroup(pod_path("burstable", "2")));
  make_theirs();
  run_pod_in_theirs();
  ASSERT_TRUE(ask(kRemovePodSandbox, ours));
  reconcile_node();
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "2")));
  expect_pod(kTheirs);
}

TEST_F(ForeignPodTest, TakesNoContainerThatItsEngineHasElsewhere) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  make_theirs();
  EXPECT_THAT(adjusted(app(kSmall)).linux().cgroups_path(), IsEmpty());
  EXPECT_THAT(log(), HasSubstr(theirs() + " exists but was not created by podqos"));
  reconcile_node();
  expect_pod(kTheirs);
}

class HeadlessPluginTest : public PluginTest {
 protected:
  /// Pod "1" with such a container, and without a process of its sandbox, as CRI-O may run it.
  void run_headless_pod() {
    auto headless = placed(app(kSmall));
    const Pid init = start_process([] {
      ::raise(SIGSTOP);
      std::thread{[] { ::pause(); }}.detach();
      ::syscall(SYS_exit, 0);
    });
    wait_for_state(init, "T");
    put(init, headless.linux().cgroups_path());
    headless.set_pid(static_cast<std::uint32_t>(init.value()));
    ASSERT_TRUE(ask(kStartContainer, headless));
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
                    .hooks = {.path = "/podqos-hook", .args = {}}});
    if (placed) return false;
    EXPECT_EQ(placed.error().code, ErrorCode::kConflict) << placed.error().message;
    EXPECT_THAT(placed.error().message, HasSubstr("names a pod of sandbox \"sandbox-1\""));
    return true;
  }
};

TEST_F(HeadlessPluginTest, KeepsItsPodFromAnotherSandboxUntilItsLastThreadHasEnded) {
  run_headless_pod();
  const std::string before = record();
  EXPECT_TRUE(is_refused_to_claimant());
  EXPECT_EQ(record(), before);
  end_processes();
  EXPECT_FALSE(is_refused_to_claimant());
  EXPECT_THAT(record(), HasSubstr("claimant"));
}

}  // namespace
}  // namespace podqos::nri

// The cgroup of a pod in podqos's own tree that podqos did not make.

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/plan.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using std::chrono::seconds;
using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  void expect_theirs_unchanged() {
    EXPECT_EQ(memory(theirs()), "67108864");
    EXPECT_EQ(quota(theirs()), "30000");
  }
  /// Pod "1", as its engine runs it in that cgroup, from its start to its end.
  void run_pod_in_theirs() {
    const Pid pause = start_process();
    put(pause, theirs() + "/sandbox-1");
    auto sandbox = pod("1", pause, kSmall);
    sandbox.mutable_linux()->set_cgroups_path(theirs() + "/sandbox-1");
    ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
    auto app = container(sandbox, "app", kSmall);
    app.mutable_linux()->set_cgroups_path(theirs() + "/app-of-1");
    const auto adjustment = create(sandbox, app);
    ASSERT_TRUE(adjustment) << adjustment.error().message;
    EXPECT_THAT(adjustment->linux().cgroups_path(), IsEmpty());
    run(app);
    ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
    EXPECT_TRUE(is_known("1"));
    expect_theirs_unchanged();
    ASSERT_TRUE(update(sandbox, app, kLarge));
    expect_theirs_unchanged();
    end_processes();
    ASSERT_TRUE(plugin().remove_container(event(sandbox, app), kNoBudget));
    ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
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
  const auto sandbox = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  static_cast<void>(started(sandbox, container(sandbox, "app", kSmall)));
  ASSERT_TRUE(has_cgroup(pod_path("burstable", "2")));
  make_theirs();
  run_pod_in_theirs();
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
  recompute();
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "2")));
  expect_theirs_unchanged();
}

TEST_F(ForeignPodTest, TakesNoContainerThatItsEngineHasElsewhere) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("2", start_process(), kSmall)), kNoBudget));
  make_theirs();
  const auto sandbox = pod("1");
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->linux().cgroups_path(), IsEmpty());
  EXPECT_THAT(log(), HasSubstr(theirs() + " exists but was not created by podqos"));
  recompute();
  expect_theirs_unchanged();
}

}  // namespace
}  // namespace podqos::nri

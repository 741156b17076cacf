// What becomes of a container that the plugin has placed and that never starts.

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using std::chrono::seconds;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;

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
    const auto done = plugin().start_container(event(sandbox, made), kNoBudget);
    EXPECT_TRUE(done) << done.error().message;
  }
  /// A container that is created while the runtime lists it to the plugin.
  void create_listed(const api::PodSandbox& sandbox) {
    auto app = created(sandbox);
    app.set_state(api::CONTAINER_CREATED);
    ASSERT_TRUE(plugin().synchronize(state_of({sandbox}, {app}), kNoBudget));
    housekeep();
  }
};

// Longer than a runtime takes to create a container: containerd only notes it down.
constexpr seconds kLong{600};

TEST_F(CreationTest, EndsWithItsSandbox) {
  const auto sandbox = pod("1");
  static_cast<void>(created(sandbox));
  static_cast<void>(created(sandbox, "log"));
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
  expect_nothing_left("1");
}

TEST_F(CreationTest, LeavesThoseInOtherSandboxesAlone) {
  const auto first = pod("1");
  const auto second = pod("2");
  static_cast<void>(created(first));
  static_cast<void>(created(second));
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(first), kNoBudget));
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
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  end_processes();
  api::StopContainerRequest stopped;
  *stopped.mutable_container() = app;
  ASSERT_TRUE(plugin().stop_container(test::event_of(Request::kStopContainer, stopped), kNoBudget));
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
  ASSERT_TRUE(plugin().synchronize(NodeState{}, kNoBudget));
  housekeep();
  expect_nothing_left("1");
}

TEST_F(CreationTest, IsKeptWhereTheRuntimeListsItAndEndsWithItsSandbox) {
  const auto sandbox = pod("1");
  ASSERT_NO_FATAL_FAILURE(create_listed(sandbox));
  pass(seconds{20});
  housekeep();
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(plugin().remove_pod_sandbox(event(sandbox), kNoBudget));
  expect_nothing_left("1");
}

TEST_F(CreationTest, OfAPluginBeforeIsGivenUpAfterATimeToo) {
  ASSERT_NO_FATAL_FAILURE(create_listed(pod("1")));
  pass(kLong);
  housekeep();
  expect_nothing_left("1");
}

}  // namespace
}  // namespace podqos::nri

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kLarge;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::tell;
using ::testing::HasSubstr;

TEST_F(PluginTest, MakesThePodsCgroupWhenItsSandboxRuns) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  EXPECT_EQ(quota(pod_path("burstable", "1")), "20000");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_TRUE(is_known("1"));
}

TEST_F(PluginTest, LeavesTheSandboxsProcessWhereItIs) {
  reconfigure(R"(, "placement": {"onMisplaced": "fail"})");
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
  ASSERT_TRUE(
      plugin().create_container(test::event_of(Request::kCreateContainer, request), kNoBudget));
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
}

TEST_F(PluginTest, MakesNothingForAPodOfWhichNothingIsKnown) {
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process())), kNoBudget));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
}

/// On an error the runtime undoes the sandbox, and does not create the container.
TEST_F(PluginTest, RefusesAPodThatDoesNotFitIfThatIsEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}}, "admission": {"cpu": "enforce"})");
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  const auto refused =
      plugin().run_pod_sandbox(event(pod("2", start_process(), kSmall)), kNoBudget);
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
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  const auto created = create(sandbox, container(sandbox, "app", kLarge));
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("requests cpu 300m, of which 150m is free"));
  EXPECT_TRUE(create(sandbox, container(sandbox, "app", kSmall)));
}

TEST_F(PluginTest, WarnsOfAPodThatDoesNotFitIfThatIsNotEnforced) {
  reconfigure(R"(, "reserved": {"system": {"cpu": "3850m"}})");
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("1", start_process(), kSmall)), kNoBudget));
  ASSERT_TRUE(plugin().run_pod_sandbox(event(pod("2", start_process(), kSmall)), kNoBudget));
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
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  EXPECT_TRUE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("pod 1 (web/front) requests cpu 100m, of which 50m counts"));
}

TEST_F(PluginTest, ResizesAPod) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  api::UpdatePodSandboxRequest request;
  *request.mutable_pod() = sandbox;
  tell(*request.mutable_linux_resources(), kLarge);
  ASSERT_TRUE(
      plugin().update_pod_sandbox(test::event_of(Request::kUpdatePodSandbox, request), kNoBudget));
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

}  // namespace
}  // namespace podqos::nri

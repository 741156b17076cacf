#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/store.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::tell;
using test::Told;
using ::testing::HasSubstr;
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
    EXPECT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
    return sandbox;
  }
  /// Has it been written down?
  [[nodiscard]] bool is_counted(const std::string& uid, const std::string& id) const {
    return temporary().read("state/pods/" + uid + ".json").contains("\"id\":\"" + id + "\"");
  }
  [[nodiscard]] api::ContainerAdjustment created(const api::PodSandbox& pod,
                                                 const api::Container& container) {
    auto adjustment = create(pod, container);
    EXPECT_TRUE(adjustment) << adjustment.error().message;
    return adjustment ? *adjustment : api::ContainerAdjustment{};
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
  const auto sandbox = pod("1", start_process());
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  static_cast<void>(created(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  static_cast<void>(created(sandbox, container(sandbox, "log", kSmall)));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "268435456");
}

TEST_F(PlacementTest, WarnsOfAContainerThatTheSpecLacks) {
  const auto sandbox = running_pod("1", kBurstable);
  static_cast<void>(created(sandbox, container(sandbox, "strange")));
  EXPECT_TRUE(is_counted("1", "strange-of-1"));
  EXPECT_THAT(log(), HasSubstr("has no container \"strange\""));
}

TEST_F(PlacementTest, RefusesOneThatRuns) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  const std::string before = temporary().read("state/pods/1.json");
  static_cast<void>(created(sandbox, app));
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
  static_cast<void>(created(sandbox, container(sandbox, "app")));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_FALSE(temporary().has("state/dirty"));
}

TEST_F(PlacementTest, SeesWhatOthersHaveChanged) {
  const auto sandbox = running_pod("1", kBurstable);
  Plugin other{configuration(), metrics()};
  end_processes();
  ASSERT_TRUE(other.stop_pod_sandbox(event(sandbox), kNoBudget));
  ASSERT_FALSE(is_known("1"));
  // Gone for the other: only an event makes it anew.
  static_cast<void>(created(sandbox, container(sandbox, "log")));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_TRUE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PlacementTest, SeesTheEndOfWhatOthersHaveCounted) {
  const auto sandbox = running_pod("1", kBurstable);
  Plugin other{configuration(), metrics()};
  ASSERT_TRUE(other.remove_container(event(sandbox, container(sandbox, "stranger")), kNoBudget));
  const auto app = started(sandbox, container(sandbox, "app"));
  ASSERT_TRUE(is_counted("1", app.id()));
  end_processes();
  ASSERT_TRUE(other.remove_container(event(sandbox, app), kNoBudget));
  EXPECT_FALSE(is_counted("1", app.id()));
}

TEST_F(PlacementTest, KeepsAPodInWhichAContainerIsMade) {
  const auto sandbox = running_pod("1", kBurstable);
  // Its first look is at everything, and finds nobody alive.
  housekeep();
  const auto app = container(sandbox, "app");
  static_cast<void>(created(sandbox, app));
  end_processes();
  ASSERT_TRUE(plugin().stop_pod_sandbox(event(sandbox), kNoBudget));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  ASSERT_TRUE(plugin().remove_container(event(sandbox, app), kNoBudget));
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
  const auto before = created(sandbox, container(sandbox, "app"));
  EXPECT_EQ(before.linux().oom_score_adj().value(), 750);
  std::string settings = temporary().read("podqos.json");
  const std::string_view old = R"("nodeMemory": "2Gi")";
  settings.replace(settings.find(old), old.size(), R"("nodeMemory": "4Gi")");
  temporary().write("podqos.json", settings);
  ASSERT_TRUE(configuration().reload());
  const auto after = created(sandbox, container(sandbox, "app"));
  EXPECT_EQ(after.linux().oom_score_adj().value(), 875);
}

/// A runtime may update what it has made and not started.
TEST_F(PlacementTest, FollowsAnUpdateBeforeTheStart) {
  constexpr const char* kOne =
      R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": )"
      R"("64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}}]})";
  const auto sandbox = running_pod("1", kOne);
  auto app = container(sandbox, "app");
  app.mutable_linux()->set_cgroups_path(created(sandbox, app).linux().cgroups_path());
  ASSERT_TRUE(is_counted("1", app.id()));
  tell(*app.mutable_linux()->mutable_resources(), kSmall);
  constexpr Told kMore{.shares = 307, .quota = 60'000, .memory = 201'326'592};
  ASSERT_TRUE(update(sandbox, app, kMore));
  tell(*app.mutable_linux()->mutable_resources(), kMore);
  run(app);
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "201326592");
  EXPECT_EQ(quota(pod_path("burstable", "1")), "60000");
}

}  // namespace
}  // namespace podqos::nri

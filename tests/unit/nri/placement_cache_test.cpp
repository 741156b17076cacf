#include "common/app/placement_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
using ::testing::TestParamInfo;
using ::testing::ValuesIn;

constexpr const char* kBurstable =
    R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},)"
    R"( "limits": {"cpu": "200m", "memory": "128Mi"}}}, {"name": "log"}]})";
constexpr const char* kGuaranteed =
    R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]})";
constexpr const char* kBestEffort = R"({"containers": [{"name": "app"}]})";

/// A pod whose sandbox runs.
class PlacementCacheTest : public PluginTest {
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

struct CachedPlacement {
  const char* name;
  const char* spec;
  Told told = {};  ///< what the engine says of the container itself
  std::function<void(api::Container&)> more = {};
};
class ForeseenTest : public PlacementCacheTest,
                     public ::testing::WithParamInterface<CachedPlacement> {};

/// Of a pod whose sandbox nobody has told of, joining decides; of the other, placement_cache.
TEST_P(ForeseenTest, IsWhatJoiningWouldComeTo) {
  const auto sandbox = running_pod("0a", GetParam().spec);
  auto strange = pod("0b");
  (*strange.mutable_annotations())["podqos.io/pod"] = GetParam().spec;
  std::vector<std::string> answers;
  for (const auto& of : {sandbox, strange}) {
    auto app = container(of, "app", GetParam().told);
    if (GetParam().more) GetParam().more(app);
    std::string answer = created(of, app).SerializeAsString();
    for (std::size_t at = 0; (at = answer.find(of.uid(), at)) != std::string::npos;)
      answer.replace(at, of.uid().size(), "##");
    answers.push_back(std::move(answer));
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_THAT(answers[0], HasSubstr("pod##/app-of-##"));
  EXPECT_FALSE(is_counted("0a", "app-of-0a"));
  EXPECT_TRUE(is_counted("0b", "app-of-0b"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ForeseenTest,
    ValuesIn<CachedPlacement>({
        {.name = "Burstable", .spec = kBurstable},
        {.name = "Guaranteed", .spec = kGuaranteed},
        {.name = "BestEffort", .spec = kBestEffort},
        {.name = "WithTheEnginesOwnValues", .spec = kBurstable, .told = kSmall},
        {.name = "WithTheEnginesOwnScore",
         .spec = kBurstable,
         .more =
             [](api::Container& app) {
               app.mutable_linux()->mutable_oom_score_adj()->set_value(500);
             }},
        {.name = "WithAnUnifiedValue",
         .spec = kBurstable,
         .more =
             [](api::Container& app) {
               (*app.mutable_linux()->mutable_resources()->mutable_unified())["memory.max"] = "1";
             }},
    }),
    [](const TestParamInfo<CachedPlacement>& row) { return std::string{row.param.name}; });

TEST_F(PlacementCacheTest, LeavesTheCountingToTheStart) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  EXPECT_TRUE(is_counted("1", app.id()));
  EXPECT_THAT(temporary().read("state/pods/1.json"), HasSubstr(cat("\"pid\":", app.pid())));
  EXPECT_THAT(log(), Not(HasSubstr("warning")));
}

/// The runtime was asked for its values before. To tell systemd of a scope's limit once more would
/// take memory.oom.group from a container of runc's.
TEST_F(PlacementCacheTest, WritesNoValuesOfAContainerInItsPlace) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  EXPECT_NE(memory(app.linux().cgroups_path()), "134217728");
  EXPECT_NE(quota(app.linux().cgroups_path()), "20000");
}

TEST_F(PlacementCacheTest, NeedsNoLock) {
  const auto sandbox = running_pod("1", kBurstable);
  const int file = ::open(temporary().path("state/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(created(sandbox, container(sandbox, "app")).linux().cgroups_path(),
            pod_path("burstable", "1") + "/app-of-1");
  ::close(file);
}

TEST_F(PlacementCacheTest, WritesNothing) {
  const auto sandbox = running_pod("1", kBurstable);
  const std::string record = temporary().read("state/pods/1.json");
  const std::string tiers = temporary().read("state/tiers.json");
  static_cast<void>(created(sandbox, container(sandbox, "app")));
  EXPECT_EQ(temporary().read("state/pods/1.json"), record);
  EXPECT_EQ(temporary().read("state/tiers.json"), tiers);
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1") + "/app-of-1"));
}

// ---- what only joining can tell

TEST_F(PlacementCacheTest, LeavesAPodThatGrowsToJoining) {
  const auto sandbox = pod("1", start_process());
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  static_cast<void>(created(sandbox, container(sandbox, "app", kSmall)));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  static_cast<void>(created(sandbox, container(sandbox, "log", kSmall)));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "268435456");
}

TEST_F(PlacementCacheTest, LeavesAContainerThatTheSpecLacksToJoining) {
  const auto sandbox = running_pod("1", kBurstable);
  static_cast<void>(created(sandbox, container(sandbox, "strange")));
  EXPECT_TRUE(is_counted("1", "strange-of-1"));
  EXPECT_THAT(log(), HasSubstr("has no container \"strange\""));
}

TEST_F(PlacementCacheTest, LeavesOneThatRunsToJoiningWhichRefusesIt) {
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  const std::string before = temporary().read("state/pods/1.json");
  static_cast<void>(created(sandbox, app));
  EXPECT_EQ(temporary().read("state/pods/1.json"), before);
  EXPECT_THAT(log(), HasSubstr("runs already"));
}

TEST_F(PlacementCacheTest, LeavesAnotherSandboxOfThatUidToJoining) {
  const auto sandbox = running_pod("1", kBurstable);
  auto other = sandbox;
  other.set_id("another");
  static_cast<void>(created(other, container(other, "app")));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
}

TEST_F(PlacementCacheTest, LeavesItToJoiningToMakeAnInterruptedEventGood) {
  const auto sandbox = running_pod("1", kBurstable);
  {
    auto store = store::Store::open({.path = temporary().path("state")});
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->begin());
  }
  static_cast<void>(created(sandbox, container(sandbox, "app")));
  EXPECT_TRUE(is_counted("1", "app-of-1"));
  EXPECT_THAT(temporary().read("state/tiers.json"), HasSubstr("\"dirty\":0"));
}

TEST_F(PlacementCacheTest, SeesWhatOthersHaveChanged) {
  const auto sandbox = running_pod("1", kBurstable);
  static_cast<void>(created(sandbox, container(sandbox, "app")));
  Plugin other{configuration(), metrics()};
  end_processes();
  ASSERT_TRUE(other.stop_pod_sandbox(event(sandbox), kNoBudget));
  ASSERT_FALSE(is_known("1"));
  // Gone for the other: only an event makes it anew.
  static_cast<void>(created(sandbox, container(sandbox, "log")));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
  EXPECT_TRUE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PlacementCacheTest, KnowsWhoseEndChangesNothing) {
  app::PlacementCache placement_cache;
  core::Settings settings = configuration().settings();
  EXPECT_FALSE(placement_cache.is_foreign(settings, "stranger"))
      << "where there is no state nobody knows";
  const auto sandbox = running_pod("1", kBurstable);
  const auto app = started(sandbox, container(sandbox, "app"));
  EXPECT_TRUE(placement_cache.is_foreign(settings, "stranger"));
  EXPECT_FALSE(placement_cache.is_foreign(settings, app.id()));
  EXPECT_FALSE(placement_cache.is_foreign(settings, sandbox.id()));
  {
    auto store = store::Store::open({.path = settings.state_dir});
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->checkpoint());
  }
  EXPECT_FALSE(placement_cache.is_foreign(settings, "stranger")) << "an event was interrupted";
  settings.state_dir = temporary().path("elsewhere");
  EXPECT_FALSE(placement_cache.is_foreign(settings, "stranger"));
}

/// Pods of one kind differ in nothing but the uid.
TEST_F(PlacementCacheTest, ReadsAnnotationsOfEachPodAsItsOwn) {
  app::PlacementCache placement_cache;
  core::Annotations first{{"podqos.io/pod", kBurstable}, {"podqos.io/pod-uid", "1"}, {"x", "y"}};
  for (int round = 0; round < 2; ++round) {
    for (const char* uid : {"1", "2", ""}) {
      core::Annotations annotations = first;
      annotations["podqos.io/pod-uid"] = uid;
      if (*uid == '\0') annotations.erase("podqos.io/pod-uid");
      const auto read = placement_cache.read(annotations);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->pod_uid, *uid == '\0' ? std::nullopt : std::optional<std::string>{uid});
      ASSERT_TRUE(read->pod);
      EXPECT_EQ(read->pod->containers.size(), 2U);
    }
  }
  core::Annotations bad = first;
  bad["podqos.io/pod-uid"] = "../1";
  const auto refused = placement_cache.read(bad);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podqos.io/pod-uid"));
  core::Annotations more = first;
  more["podqos.io/qos-class"] = "BestEffort";
  const auto another = placement_cache.read(more);
  ASSERT_TRUE(another);
  EXPECT_EQ(another->qos_class, core::QosClass::kBestEffort);
  more["podqos.io/pod"] = kGuaranteed;
  EXPECT_EQ(placement_cache.read(more)->pod->containers.size(), 1U);
  first.erase("podqos.io/pod");
  EXPECT_EQ(placement_cache.read(first)->pod, nullptr);
}

/// What it has read of the state it does not read anew.
TEST_F(PlacementCacheTest, TellsOfAnEndAtOnce) {
  app::PlacementCache placement_cache;
  const core::Settings& settings = configuration().settings();
  static_cast<void>(running_pod("1", kBurstable));
  ASSERT_TRUE(placement_cache.is_foreign(settings, "stranger"));
  struct stat before{};
  ASSERT_EQ(::stat(temporary().path("state/tiers.json").c_str(), &before), 0);
  // In place, so that only its content is another.
  std::string text = temporary().read("state/tiers.json");
  const std::string marked = text.replace(text.find("\"dirty\":0"), 9, "\"dirty\":1");
  temporary().write("state/tiers.json", marked);
  const std::array<timespec, 2> times{before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, temporary().path("state/tiers.json").c_str(), times.data(), 0),
            0);
  EXPECT_TRUE(placement_cache.is_foreign(settings, "another"));
}

TEST_F(PlacementCacheTest, SeesTheEndOfWhatOthersHaveCounted) {
  const auto sandbox = running_pod("1", kBurstable);
  Plugin other{configuration(), metrics()};
  // It looks at all that there is now.
  ASSERT_TRUE(other.remove_container(event(sandbox, container(sandbox, "stranger")), kNoBudget));
  const auto app = started(sandbox, container(sandbox, "app"));
  ASSERT_TRUE(is_counted("1", app.id()));
  end_processes();
  ASSERT_TRUE(other.remove_container(event(sandbox, app), kNoBudget));
  EXPECT_FALSE(is_counted("1", app.id()));
}

TEST_F(PlacementCacheTest, SeesThatTheStateIsAnother) {
  const auto sandbox = running_pod("1", kBurstable);
  static_cast<void>(created(sandbox, container(sandbox, "app")));
  std::filesystem::rename(temporary().path("state"), temporary().path("gone"));
  static_cast<void>(created(sandbox, container(sandbox, "log")));
  EXPECT_TRUE(is_counted("1", "log-of-1"));
}

// ---- what must not be otherwise than with joining

TEST_F(PlacementCacheTest, KeepsAPodInWhichAContainerIsMade) {
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
TEST_F(PlacementCacheTest, TakesTheNodeAsTheSettingsHaveIt) {
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

/// A runtime may update what it has made and not started: the pod follows, as one that has joined.
class UpdatedBeforeStartTest : public PlacementCacheTest,
                               public ::testing::WithParamInterface<bool> {};

TEST_P(UpdatedBeforeStartTest, FollowsTheUpdate) {
  constexpr const char* kOne =
      R"({"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": )"
      R"("64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}}]})";
  const bool foreseen = GetParam();
  auto sandbox = foreseen ? running_pod("1", kOne) : pod("1");
  (*sandbox.mutable_annotations())["podqos.io/pod"] = kOne;
  auto app = container(sandbox, "app");
  app.mutable_linux()->set_cgroups_path(created(sandbox, app).linux().cgroups_path());
  ASSERT_EQ(is_counted("1", app.id()), !foreseen);
  tell(*app.mutable_linux()->mutable_resources(), kSmall);
  constexpr Told kMore{.shares = 307, .quota = 60'000, .memory = 201'326'592};
  ASSERT_TRUE(update(sandbox, app, kMore));
  tell(*app.mutable_linux()->mutable_resources(), kMore);
  run(app);
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "201326592");
  EXPECT_EQ(quota(pod_path("burstable", "1")), "60000");
}

INSTANTIATE_TEST_SUITE_P(Table, UpdatedBeforeStartTest, ::testing::Bool(),
                         [](const TestParamInfo<bool>& row) {
                           return std::string{row.param ? "CachedPlacement" : "Joined"};
                         });

}  // namespace
}  // namespace podqos::nri

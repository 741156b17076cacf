#include "ctl/describe.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/store/event_file.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/ctl/stored.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// The pod default/web with the container app, which was throttled, and whose limit was changed.
class Describe : public ::testing::Test {
 protected:
  Describe() {
    configuration_.settings.state_dir = directory_.path() + "/state";
    configuration_.settings.node_memory = Bytes{8LL << 30};
    core::PodRecord record;
    record.pod.uid = "u-1";
    record.pod.pod_namespace = "default";
    record.pod.name = "web";
    record.qos_class = core::QosClass::kBurstable;
    record.cgroup = "/pod";
    for (const char* name : {"app", "log"}) {
      core::ContainerRecord container;
      container.id = std::string{name} + "-id";
      container.name = name;
      container.cgroup = std::string{"/pod/"} + name;
      record.containers.push_back(container);
    }
    records_.pods = {record};
    tree_.make("/pod");
    tree_.make("/pod/app");
    tree_.make("/pod/log");
    auto& files = tree_.cgroups.at("/pod/app").files;
    files["cpu.max"] = "50000 100000";
    files["cpu.stat"] = "usage_usec 12345678\nnr_periods 38\nnr_throttled 37\n";
    files["memory.events"] = "low 0\noom_kill 2\n";
    tree_.cgroups.at("/pod").files["memory.max"] = "209715200";
  }
  Json describe(std::string_view selector) {
    const auto selected = select(records_.pods, selector);
    store_records(configuration_.settings, records_);
    auto json = selected ? describe_json(configuration_, records_, machine_, *selected)
                         : fail(selected.error());
    if (!json) ADD_FAILURE() << json.error().message;
    return json.value_or(Json{});
  }

  TemporaryDirectory directory_;
  app::ConfigurationReport configuration_;
  NodeRecords records_;
  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  cgroup::FakeMachine machine_{
      tree_, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
};

TEST_F(Describe, HasWhatTheKernelCountsOfAContainer) {
  const Json pod = describe("default/web");
  const Json& app = pod.at("containers").at(0);
  EXPECT_EQ(app.at("cpuUsageNs"), 12'345'678'000);
  EXPECT_EQ(app.at("cpuPeriods"), 38);
  EXPECT_EQ(app.at("cpuThrottledPeriods"), 37);
  EXPECT_EQ(app.at("oomKills"), 2);
  EXPECT_TRUE(pod.at("cpuPeriods").is_null());
  EXPECT_EQ(pod.at("events"), Json::array());
  const std::string text = describe_text(pod, {.width = 80});
  EXPECT_THAT(text, HasSubstr("500m, throttled in 37 of 38 periods\n"));
  EXPECT_THAT(text, HasSubstr("12.3s\n"));
  EXPECT_THAT(text, ContainsRegex("\n  OOM kills +2\n"));
}

TEST_F(Describe, HasOnlyTheContainerThatIsNamed) {
  const std::string text = describe_text(describe("default/web/log"), {.width = 80});
  EXPECT_THAT(text, ContainsRegex("\ncontainer +log, dead\n"));
  EXPECT_THAT(text, Not(HasSubstr("app")));
}

/// Its own ten, and not its sibling's; also a failure from before its pod was known.
TEST_F(Describe, HasTheEventsOfTheContainerThatIsNamed) {
  ASSERT_TRUE(store::make_state_directory(configuration_.settings.state_dir));
  const auto state = sys::Directory::open(configuration_.settings.state_dir);
  ASSERT_TRUE(state);
  store::EventWriter journal{Bytes{1 << 20}};
  ASSERT_TRUE(journal.append(
      *state, {.kind = core::EventKind::kFailed, .container_id = "app-id", .text = "early"}));
  for (int each = 1; each <= 11; ++each)
    ASSERT_TRUE(journal.append(
        *state, {.uid = "u-1", .container = "log", .container_id = cat("log-", each)}));
  const Json events = describe("web/app").at("events");
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0]["text"], "early");
}

/// As events does.
TEST_F(Describe, HasTheTimesOfEventsAsPeopleReadThem) {
  Json pod = describe("default/web");
  pod["events"] = {{{"time", "2026-01-31T12:00:00.000Z"}, {"event", "placed"}, {"text", "a"}}};
  EXPECT_THAT(describe_text(pod, {.width = 80}),
              ContainsRegex("\n[A-Z][a-z]+ [0-9]+ [0-9]+:[0-9]+:00  placed +a\n"));
}

/// Of this pod, not of another engine's with the same name.
TEST_F(Describe, HasTheWarningsAboutThePod) {
  core::PodRecord other = records_.pods.front();
  other.pod.uid = "u-12";
  other.cgroup = "/gone";
  records_.pods.push_back(other);
  for (const Json& warning : describe("u-1").at("warnings"))
    EXPECT_THAT(warning.get<std::string>(), Not(HasSubstr("/gone")));
  EXPECT_THAT(dump(describe("u-1").at("warnings")),
              HasSubstr("memory limit is 200Mi, the rule says unlimited"));
}

}  // namespace
}  // namespace podqos::ctl

#include "ctl/view/describe.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
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
  Description described(std::string_view selector) {
    const auto selected = select(records_.pods, selector);
    store_records(configuration_.settings, records_);
    auto found = selected ? describe(configuration_, records_, machine_, *selected, events_)
                          : fail(selected.error());
    if (found) return *std::move(found);
    ADD_FAILURE() << found.error().message;
    return {
        .pod = {.record = {}, .cgroup = {.held = {machine_, ""}}}, .findings = {}, .events = {}};
  }
  std::string text(std::string_view selector) {
    return describe_text(described(selector), {.width = 80});
  }

  std::vector<core::Event> events_;
  TemporaryDirectory directory_;
  app::ConfigurationReport configuration_;
  NodeRecords records_;
  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  cgroup::FakeMachine machine_{
      tree_, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
};

TEST_F(Describe, HasWhatTheKernelCountsOfAContainer) {
  const Json pod = describe_json(described("default/web"));
  const Json& app = pod.at("containers").at(0);
  EXPECT_EQ(app.at("cpuUsageNs"), 12'345'678'000);
  EXPECT_EQ(app.at("cpuPeriods"), 38);
  EXPECT_EQ(app.at("cpuThrottledPeriods"), 37);
  EXPECT_EQ(app.at("oomKills"), 2);
  EXPECT_TRUE(pod.at("cpuPeriods").is_null());
  EXPECT_EQ(pod.at("events"), Json::array());
  const std::string text = Describe::text("default/web");
  EXPECT_THAT(text, ContainsRegex("\n  CPU limit +500m\n  throttled +in 37 of 38 periods\n"));
  EXPECT_THAT(text, HasSubstr("12.3s\n"));
  EXPECT_THAT(text, ContainsRegex("\n  OOM kills +2\n"));
}

/// As status does in place of a name.
TEST_F(Describe, HasTheIdThatTheEngineShows) {
  core::PodRecord& record = records_.pods.front();
  record.pod.name = record.pod.pod_namespace = "";
  record.engine = core::Engine::kPodman;
  record.pod_id = "b31e07e7a953";
  EXPECT_THAT(text("u-1"), ContainsRegex("\nuid +u-1\nid +b31e07e7a953\n"));
}

TEST_F(Describe, HasOnlyTheContainerThatIsNamed) {
  const std::string text = Describe::text("default/web/log");
  EXPECT_THAT(text, ContainsRegex("\ncontainer +log, dead\n"));
  EXPECT_THAT(text, Not(HasSubstr("app")));
}

/// Its own ten, and not its sibling's; also a failure from before its pod was known.
TEST_F(Describe, HasTheEventsOfTheContainerThatIsNamed) {
  events_.push_back({.kind = core::EventKind::kFailed, .container_id = "app-id", .text = "early"});
  for (int each = 1; each <= 11; ++each)
    events_.push_back({.uid = "u-1", .container = "log", .container_id = cat("log-", each)});
  EXPECT_EQ(described("web/log").events.size(), 10);
  const Json events = describe_json(described("web/app")).at("events");
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0]["text"], "early");
}

/// As events does.
TEST_F(Describe, HasTheTimesOfEventsAsPeopleReadThem) {
  events_ = {{.time = UnixMillis{1'769'860'800'000}, .uid = "u-1", .text = "a"}};
  EXPECT_THAT(text("default/web"),
              ContainsRegex("\n[A-Z][a-z]+ [0-9]+ [0-9]+:[0-9]+:00  placed +a\n"));
}

/// Of this pod, not of another engine's with the same name.
TEST_F(Describe, HasTheWarningsAboutThePod) {
  core::PodRecord other = records_.pods.front();
  other.pod.uid = "u-12";
  other.cgroup = "/gone";
  records_.pods.push_back(other);
  const Json warnings = describe_json(described("u-1")).at("warnings");
  for (const Json& warning : warnings)
    EXPECT_THAT(warning.get<std::string>(), Not(HasSubstr("/gone")));
  EXPECT_THAT(dump(warnings), HasSubstr("memory limit is 200Mi, the rule says unlimited"));
}

}  // namespace
}  // namespace podqos::ctl

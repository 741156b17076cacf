// Memory QoS of containers that run, on a machine in memory.
#include "common/app/follow_memory_qos.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

const FakeContainer kThrottled{.id = "web",
                               .uid = "a",
                               .annotations = {{"podqos.io/requests.web", "memory=64Mi"},
                                               {"podqos.io/limits.web", "memory=128Mi"}}};
const std::string kThrottledCgroup = "/podqos/kubepods/burstable/poda/web";
// 64Mi + (128Mi - 64Mi) / 2, and a quarter more.
constexpr const char* kRule = "100663296";
constexpr const char* kRaised = "125829120";

/// A container that has been throttled at its memory.high since a minute ago.
class ThrottledContainer : public ::testing::Test {
 protected:
  auto& files() { return node_.tree.cgroups.at(kThrottledCgroup).files; }
  void SetUp() override {
    node_.settings.memory_throttling_thousandths = 500;
    node_.run(kThrottled, Pid{10});
    files()["memory.max"] = "134217728";
    write_events("0", "0");
    reconcile();
    EXPECT_EQ(files()["memory.high"], kRule);
    auto record = *codec::parse_pod_record(node_.records.pods.at("a"));
    const BootSeconds ago{sys::seconds_since_boot() - 60};
    record.containers.at(0).throttling = core::Throttling{.since = ago, .last = ago};
    node_.records.pods.at("a") = codec::format_pod_record(record);
  }

  void write_events(const char* own, const char* with_those_below) {
    files()["memory.events.local"] = cat("low 0\nhigh ", own, "\nmax 0");
    files()["memory.events"] = cat("low 0\nhigh ", with_those_below, "\nmax 0");
  }
  void reconcile() {
    const auto report = node_.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->failed.empty());
  }

  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(ThrottledContainer, IsRaisedAndStaysSo) {
  write_events("9", "9");
  reconcile();
  EXPECT_EQ(files()["memory.high"], kRaised);
  reconcile();
  EXPECT_EQ(files()["memory.high"], kRaised);
  files()["memory.high"] = "max";
  reconcile();
  EXPECT_EQ(files()["memory.high"], kRaised);
}

// The program dies after the record, or before it.
TEST_F(ThrottledContainer, IsRaisedAfterAnInterruptedRaise) {
  write_events("9", "9");
  const auto tree = node_.tree;
  const auto records = node_.records;
  for (int allowed = 0; allowed < 10; ++allowed) {
    SCOPED_TRACE(allowed);
    node_.tree = tree;
    node_.records = records;
    node_.allow(allowed);
    static_cast<void>(node_.reconcile().has_value());
    node_.allow_all();
    reconcile();
    EXPECT_EQ(files()["memory.high"], kRaised);
  }
}

TEST_F(ThrottledContainer, GetsBackWhatOthersHaveChanged) {
  for (const char* other : {"max", kRaised, "0"}) {
    files()["memory.high"] = other;
    reconcile();
    EXPECT_EQ(files()["memory.high"], kRule);
  }
}

// A container may make cgroups below its own, and throttle itself there.
TEST_F(ThrottledContainer, DoesNotGoByItsOwnCgroups) {
  write_events("0", "9");
  reconcile();
  EXPECT_EQ(files()["memory.high"], kRule);
}

// crun gives it to the cgroup "container" that it makes below the scope, and not to the scope,
// which bounds what protects the cgroups below it: mm/page_counter.c effective_protection().
TEST(MemoryQosOfAScope, IsThereFromTheStart) {
  FakeNode node{core::CgroupVersion::kV2, core::Driver::kSystemd};
  node.settings.reserve_memory = true;
  node.settings.memory_throttling_thousandths = 500;
  const auto admission = node.admit(kThrottled);
  ASSERT_TRUE(admission);
  const std::string scope = (*admission)->container.cgroup;
  node.tree.start(Pid{10}, scope + "/container");
  auto& below = node.tree.cgroups.at(scope + "/container").files;
  below["memory.low"] = "67108864";
  below["memory.high"] = kRule;
  ASSERT_TRUE(node.confirm(kThrottled, Pid{10}));
  EXPECT_EQ(node.file(scope, "memory.low"), "67108864");
  EXPECT_EQ(node.file(scope, "memory.high"), kRule);
  EXPECT_TRUE(node.preview()->report.changes.empty());

  // What status says is what reconcile would write.
  const auto described = [&] {
    cgroup::FakeMachine machine{
        node.tree, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
    return describe_memory_qos(machine, *codec::parse_pod_record(node.records.pods.at("a")),
                               {.reserves = true, .throttling_thousandths = 500});
  };
  EXPECT_THAT(described(), testing::IsEmpty());
  node.tree.cgroups.at(scope).files["memory.low"] = "0";
  below["memory.high"] = "max";
  EXPECT_THAT(described(),
              testing::ElementsAre(
                  cat("container web, cgroup ", scope, ": memory.low is 0, the rule says 64Mi"),
                  cat("container web, cgroup ", scope,
                      "/container: memory.high is max, the rule says 96Mi")));
  EXPECT_EQ(node.preview()->report.changes.size(), 2U);
}

}  // namespace
}  // namespace podqos::app

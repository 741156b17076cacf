#include "common/app/node_metrics.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/samples.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_of_node(const std::optional<NodeFigures>& figures) {
  codec::Exposition out;
  write_node_metrics(figures, out);
  return std::move(out).release();
}

/// A machine with a Burstable tier, as Linux 6.1 shows it on cgroup v2.
cgroup::FakeTree with_burstable() {
  cgroup::FakeTree tree{core::CgroupVersion::kV2};
  tree.make("/kubepods/burstable");
  auto& tier = tree.cgroups.at("/kubepods/burstable");
  tier.usage = 1234567890123;
  tier.files = {{"cpu.weight", "39"},
                {"cpu.max", "max 100000"},
                {"cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000"},
                {"cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000"},
                {"memory.max", "2147483648"},
                {"memory.events", "low 0\nhigh 5\nmax 7\noom 3\noom_kill 2"},
                {"memory.events.local", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0"},
                {"memory.pressure",
                 "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=250000"},
                {"pids.current", "17"}};
  return tree;
}

TEST(NodeMetrics, AreInTheBaseUnits) {
  NodeFigures figures;
  figures.own.burstable = {.pods = 3, .cpu = MilliCpu{1250}, .memory = Bytes{1LL << 30}};
  figures.kubelets.guaranteed = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{4096}};
  cgroup::FakeTree tree = with_burstable();
  figures.machine = std::make_unique<cgroup::FakeMachine>(
      tree, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; });
  figures.tiers.push_back({.qos_class = core::QosClass::kBurstable,
                           .wanted_memory_limit = Bytes{1LL << 30},
                           .floor = {},
                           .cgroup = {*figures.machine, "/kubepods/burstable"}});
  figures.unreadable = 1;
  const std::string tier = R"({tier="burstable",cgroup="/kubepods/burstable")";
  expect_samples(
      text_of_node(std::move(figures)),
      {{R"(pods{qos_class="Burstable",owner="podqos"})", "3"},
       {R"(pod_requests_cpu_cores{qos_class="Burstable",owner="podqos"})", "1.25"},
       {R"(pod_requests_memory_bytes{qos_class="Burstable",owner="podqos"})", "1073741824"},
       {R"(pods{qos_class="Guaranteed",owner="kubelet"})", "1"},
       {R"(pods{qos_class="BestEffort",owner="podqos"})", "0"},
       {"tier_cpu_weight" + tier + "}", "39"},
       {"tier_cpu_usage_seconds_total" + tier + "}", "1.5"},
       {"tier_memory_limit_bytes" + tier + "}", "2147483648"},
       {"tier_memory_limit_wanted_bytes" + tier + "}", "1073741824"},
       {"tier_memory_limit_gap_bytes" + tier + "}", "1073741824"},
       {"tier_memory_usage_bytes" + tier + "}", "1234567890123"},
       {"tier_memory_throttlings_total" + tier + "}", "5"},
       {"tier_oom_kills_total" + tier + "}", "2"},
       {"tier_threads" + tier + "}", "17"},
       {"tier_pressure_waiting_seconds_total" + tier + R"(,resource="cpu"})", "2.5"},
       {"tier_pressure_stalled_seconds_total" + tier + R"(,resource="cpu"})", ""},
       {"tier_pressure_stalled_seconds_total" + tier + R"(,resource="memory"})", "0.25"},
       // The machine has none of these.
       {"tier_cpu_shares" + tier + "}", ""},
       {"tier_cpu_limit_cores" + tier + "}", ""},
       {"tier_memory_min_bytes" + tier + "}", ""},
       {"collector_success", "1"},
       {"state_unreadable_records", "1"}});
}

TEST(NodeMetrics, SayThatThereAreNone) {
  const std::string text = text_of_node(std::nullopt);
  EXPECT_EQ(value_of(text, "podqos_collector_success"), "0");
  EXPECT_THAT(text, Not(HasSubstr("podqos_pods")));
}

/// A pod of two containers, as Linux 6.1 shows it on cgroup v2.
cgroup::FakeTree with_pod() {
  cgroup::FakeTree tree{core::CgroupVersion::kV2};
  for (const char* path : {"/pod", "/pod/app", "/pod/proxy"})
    tree.make(path);
  auto& pod = tree.cgroups.at("/pod");
  pod.usage = 100 << 20;
  pod.files = {{"cpu.max", "150000 100000"},
               {"cpu.stat", "usage_usec 2500000\nnr_periods 40\nnr_throttled 0"},
               {"memory.max", "268435456"},
               {"memory.stat", "inactive_file 20971520"}};
  tree.cgroups.at("/pod/app").files = {{"cpu.stat", "nr_periods 40\nnr_throttled 30"}};
  tree.cgroups.at("/pod/proxy").files = {{"cpu.stat", "nr_periods 0\nnr_throttled 0"}};
  return tree;
}

TEST(NodeMetrics, HaveSeriesOfSinglePods) {
  NodeFigures figures;
  cgroup::FakeTree tree = with_pod();
  figures.machine = std::make_unique<cgroup::FakeMachine>(
      tree, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; });
  cgroup::Machine& machine = *figures.machine;
  figures.pods.push_back({.pod_namespace = "shop",
                          .name = "web\n\"1\"",
                          .uid = "u-1",
                          .qos_class = core::QosClass::kBurstable,
                          .cpu_request = MilliCpu{250},
                          .memory_request = {},
                          .oom_kills = 2,
                          .cgroup = {machine, "/pod"},
                          .quotas = {{"", {machine, "/pod"}},
                                     {"app", {machine, "/pod/app"}},
                                     {"proxy", {machine, "/pod/proxy"}}}});
  const std::string pod = R"({namespace="shop",pod="web\n\"1\"",uid="u-1",qos_class="Burstable")";
  expect_samples(text_of_node(std::move(figures)),
                 {{"pod_cpu_usage_seconds_total" + pod + "}", "2.5"},
                  {"pod_cpu_request_cores" + pod + "}", "0.25"},
                  {"pod_cpu_limit_cores" + pod + "}", "1.5"},
                  {"pod_memory_usage_bytes" + pod + "}", "104857600"},
                  {"pod_memory_working_set_bytes" + pod + "}", "83886080"},
                  {"pod_memory_request_bytes" + pod + "}", ""},
                  {"pod_memory_limit_bytes" + pod + "}", "268435456"},
                  {"pod_oom_kills_total" + pod + "}", "2"},
                  {"pod_cpu_cfs_periods_total" + pod + R"(,container=""})", "40"},
                  {"pod_cpu_cfs_throttled_periods_total" + pod + R"(,container=""})", "0"},
                  {"pod_cpu_cfs_throttled_periods_total" + pod + R"(,container="app"})", "30"},
                  {"pod_cpu_cfs_periods_total" + pod + R"(,container="proxy"})", ""}});
}

NodeMetrics metrics_of(std::string state_dir) {
  core::Settings settings;
  settings.state_dir = std::move(state_dir);
  return node_metrics(settings);
}

TEST(ReadNodeMetrics, WithoutStateHaveNoPods) {
  const TemporaryDirectory temporary;
  const NodeMetrics metrics = metrics_of(temporary.path("absent"));
  EXPECT_FALSE(metrics.error);
  EXPECT_EQ(metrics.incidents, "");
  EXPECT_THAT(metrics.text, AllOf(StartsWith("# HELP podqos_build_info "),
                                  HasSubstr("\npodqos_collector_success 1\n")));
}

TEST(ReadNodeMetrics, SayWhyThereAreNone) {
  const TemporaryDirectory temporary;
  temporary.write("state", "no directory");
  const NodeMetrics metrics = metrics_of(temporary.path("state"));
  ASSERT_TRUE(metrics.error);
  EXPECT_THAT(metrics.error->message, StartsWith("metrics omit pods and tiers: "));
  EXPECT_THAT(metrics.text, HasSubstr("\npodqos_collector_success 0\n"));
}

}  // namespace
}  // namespace podqos::app

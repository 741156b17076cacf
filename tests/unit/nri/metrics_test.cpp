#include "nri/metrics.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "nri/pages.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::text_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_of_node(const std::optional<app::NodeFigures>& figures) {
  Exposition out;
  write_node_metrics(figures, out);
  return std::move(out).release();
}

/// The value of a sample, as it is written; "" if there is none.
std::string value_of(std::string_view text, std::string_view sample) {
  const std::string start = "\n" + std::string{sample} + " ";
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + start.size();
  return std::string{text.substr(begin, text.find('\n', begin) - begin)};
}

/// Samples of podqos, and their values as they are written; "" for one that is not there.
using Samples = std::map<std::string, std::string>;
void expect_samples(std::string_view text, const Samples& samples) {
  for (const auto& [sample, value] : samples)
    EXPECT_EQ(value_of(text, "podqos_" + sample), value) << sample;
}

TEST(Metrics, AreAllThereFromTheStart) {
  Samples want{{"last_reconcile_timestamp_seconds", ""}};
  for (const RequestKind& request : kRequests)
    want.emplace(cat("nri_request_duration_seconds_count{request=\"", request.name, "\"}"), "0");
  for (const char* tier : {"burstable", "besteffort"})
    want.emplace(cat("evictions_total{tier=\"", tier, "\"}"), "0");
  for (const char* operation : {"create", "update", "destroy"})
    want.emplace(cat("cgroup_manager_duration_seconds_count{operation_type=\"", operation, "\"}"),
                 "0");
  for (const char* code :
       {"invalid-argument", "not-found", "already-exists", "permission", "refused", "conflict",
        "too-large", "corrupt", "busy", "timeout", "unsupported", "io"})
    want.emplace(cat("errors_total{code=\"", code, "\"}"), "0");
  expect_samples(text_of(Metrics{}), want);
}

TEST(Metrics, CountRequestsAsAKubeletsOperationsAndErrorsByKind) {
  Metrics metrics;
  metrics.handled(Request::kCreateContainer, 3ms);
  metrics.handled(Request::kRunPodSandbox, 4ms);
  metrics.handled(Request::kUpdateContainer, 300us);
  metrics.handled(Request::kSynchronize, 1s);
  for (const ErrorCode code : {ErrorCode::kTimeout, ErrorCode::kTimeout, ErrorCode::kIo})
    metrics.failed(code);
  expect_samples(
      text_of(metrics),
      {{R"(cgroup_manager_duration_seconds_count{operation_type="create"})", "2"},
       {R"(cgroup_manager_duration_seconds_sum{operation_type="create"})", "0.007"},
       {R"(cgroup_manager_duration_seconds_bucket{operation_type="create",le="0.0025"})", "0"},
       {R"(cgroup_manager_duration_seconds_bucket{operation_type="create",le="0.005"})", "2"},
       {R"(cgroup_manager_duration_seconds_bucket{operation_type="create",le="+Inf"})", "2"},
       {R"(cgroup_manager_duration_seconds_count{operation_type="update"})", "1"},
       {R"(cgroup_manager_duration_seconds_count{operation_type="destroy"})", "0"},
       {R"(nri_request_duration_seconds_count{request="CreateContainer"})", "1"},
       {R"(nri_request_duration_seconds_count{request="Synchronize"})", "1"},
       {R"(errors_total{code="timeout"})", "2"},
       {R"(errors_total{code="io"})", "1"}});
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
  app::NodeFigures figures;
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

class PagesTest : public ::testing::Test {
 protected:
  PagesTest() {
    temporary_.write("podqos.json", R"({"stateDir": ")" + temporary_.path("state") +
                                        R"(", "log": {"sink": ")" + temporary_.path("log") +
                                        R"("}})");
    auto loaded = Configuration::load(temporary_.path("podqos.json"));
    EXPECT_TRUE(loaded);
    configuration_.emplace(std::move(*loaded));
    pages_.emplace(*configuration_, metrics_, clock_);
  }
  TemporaryDirectory temporary_;
  std::optional<Configuration> configuration_;
  Metrics metrics_;
  LeapingClock clock_;
  std::optional<Pages> pages_;
  ConnectionStatus status_;
};

TEST_F(PagesTest, ShowHealthWhileTheLoopRunsAndReadinessWithTheReason) {
  const auto expect = [&](const char* path, std::string_view status, std::string_view body) {
    const HttpAnswer answer = pages_->answer(path, status_);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, body);
  };
  status_.obstacle = "connect to /x: No such file or directory";
  expect("/healthz", kHttpOk, "ok\n");
  expect("/readyz", kHttpUnavailable, "connect to /x: No such file or directory\n");
  status_.standby = true;
  expect("/readyz", kHttpOk, "standby\n");
  status_.standby = false;
  status_.synchronized = true;
  expect("/readyz", kHttpOk, "ok\n");
}

TEST_F(PagesTest, ShowMetricsOfANodeWithoutState) {
  status_.connected = true;
  status_.connections = 4;
  const HttpAnswer answer = pages_->answer("/metrics", status_);
  EXPECT_EQ(answer.status, kHttpOk);
  EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(
      answer.body,
      AllOf(StartsWith("# HELP podqos_build_info "),
            HasSubstr("\npodqos_build_info{version=\"" PODQOS_VERSION "\"} 1\n"),
            HasSubstr("\npodqos_nri_connected 1\n"), HasSubstr("\npodqos_nri_synchronized 0\n"),
            HasSubstr("\npodqos_nri_connections_total 4\n"),
            HasSubstr("\npodqos_collector_success 1\n"), Not(HasSubstr("podqos_tier_"))));
}

TEST_F(PagesTest, LookAtTheNodeOnceASecondAndSayWhyPodsAreMissing) {
  const std::string before = pages_->answer("/metrics", status_).body;
  temporary_.write("state", "no directory");
  EXPECT_EQ(pages_->answer("/metrics", status_).body, before);
  clock_.pass(999ms);
  EXPECT_EQ(pages_->answer("/metrics", status_).body, before);
  clock_.pass(1ms);
  EXPECT_THAT(pages_->answer("/metrics", status_).body,
              HasSubstr("\npodqos_collector_success 0\n"));
  EXPECT_THAT(temporary_.read("log"), HasSubstr("metrics omit pods and tiers: "));
}

TEST_F(PagesTest, ShowNothingElse) {
  for (const char* path : {"/", "", "/metrics/", "/Metrics", "/debug/pprof/"})
    EXPECT_EQ(pages_->answer(path, status_).status, kHttpNotFound) << path;
}

std::string written(double value) {
  Exposition out;
  out.single("gauge", "n", "", value);
  return std::move(out).release();
}

// Each expectation is a text that the format's page allows: what Go's ParseFloat reads.
TEST(ExpositionOfMetrics, HasThemOneAfterAnother) {
  Exposition out;
  out.metric("counter", "a_total", "What a is.");
  out.sample({{"x", "1"}}, 3);
  out.sample({{"x", "2"}, {"y", ""}}, 0.5);
  out.metric("gauge", "none", "Nothing.");
  out.single("gauge", "b", "B.", -1);
  EXPECT_EQ(std::move(out).release(),
            "# HELP a_total What a is.\n"
            "# TYPE a_total counter\n"
            "a_total{x=\"1\"} 3\n"
            "a_total{x=\"2\",y=\"\"} 0.5\n"
            "# HELP b B.\n"
            "# TYPE b gauge\n"
            "b -1\n");
  EXPECT_EQ(Exposition{}.release(), "");
}

TEST(ExpositionOfMetrics, EscapesWhatEndsALineOrALabel) {
  Exposition out;
  out.metric("gauge", "n", "a \"b\" \\ c\ne");
  out.sample({{"l", "a\"b\\c\ne}"}}, 1);
  EXPECT_EQ(std::move(out).release(),
            "# HELP n a \"b\" \\\\ c\\ne\n"
            "# TYPE n gauge\n"
            "n{l=\"a\\\"b\\\\c\\ne}\"} 1\n");
}

TEST(ExpositionOfMetrics, LosesNoDigit) {
  for (const auto& [value, text] : {std::pair{0.0, "0"},
                                    {1073741824, "1073741824"},
                                    {9007199254740992.0, "9007199254740992"},
                                    {0.1, "0.1"},
                                    {1795278653.25, "1795278653.25"},
                                    {9223372036854775808.0, "9.223372036854776e+18"},
                                    {0.000001, "0.000001"},
                                    {0.0000001, "1e-07"},
                                    {1e300, "1e+300"}})
    EXPECT_EQ(value_of(written(value), "n"), text);
}

TEST(HistogramOfTimes, CountsUpToEachBound) {
  Histogram histogram;
  histogram.observe(100us);  // the first bound itself
  histogram.observe(101us);
  histogram.observe(1h);
  Exposition out;
  out.metric("histogram", "h", "H.");
  histogram.write(out, {"x", "y"});
  std::string want = "# HELP h H.\n# TYPE h histogram\nh_bucket{x=\"y\",le=\"0.0001\"} 1\n";
  for (const char* bound : {"0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025",
                            "0.05", "0.1", "0.25", "0.5", "1", "2.5"})
    want += cat("h_bucket{x=\"y\",le=\"", bound, "\"} 2\n");
  want += "h_bucket{x=\"y\",le=\"+Inf\"} 3\nh_sum{x=\"y\"} 3600.000201\nh_count{x=\"y\"} 3\n";
  EXPECT_EQ(std::move(out).release(), want);
}

}  // namespace
}  // namespace podqos::nri

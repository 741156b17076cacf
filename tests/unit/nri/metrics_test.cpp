#include "nri/metrics.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Metrics, AreAllThereFromTheStart) {
  const std::string text = text_of(Metrics{});
  for (const RequestKind& request : kRequests)
    EXPECT_EQ(value_of(text, "podqos_nri_request_duration_seconds_count{request=\"" +
                                 std::string{request.name} + "\"}"),
              "0");
  for (const std::string operation : {"create", "update", "destroy"})
    EXPECT_EQ(value_of(text, "podqos_cgroup_manager_duration_seconds_count{operation_type=\"" +
                                 operation + "\"}"),
              "0");
  for (const std::string code :
       {"invalid-argument", "not-found", "already-exists", "permission", "refused", "conflict",
        "too-large", "corrupt", "busy", "timeout", "unsupported", "io"})
    EXPECT_EQ(value_of(text, "podqos_errors_total{code=\"" + code + "\"}"), "0") << code;
  EXPECT_THAT(text, Not(HasSubstr("\npodqos_last_reconcile_timestamp_seconds ")));
}

TEST(Metrics, CountRequestsAsAKubeletsOperations) {
  Metrics metrics;
  metrics.handled(Request::kCreateContainer, 3ms);
  metrics.handled(Request::kRunPodSandbox, 4ms);
  metrics.handled(Request::kUpdateContainer, 300us);
  metrics.handled(Request::kSynchronize, 1s);
  const std::string text = text_of(metrics);
  const std::string create = R"(podqos_cgroup_manager_duration_seconds)";
  EXPECT_EQ(value_of(text, create + R"(_count{operation_type="create"})"), "2");
  EXPECT_EQ(value_of(text, create + R"(_sum{operation_type="create"})"), "0.007");
  EXPECT_EQ(value_of(text, create + R"(_bucket{operation_type="create",le="0.0025"})"), "0");
  EXPECT_EQ(value_of(text, create + R"(_bucket{operation_type="create",le="0.005"})"), "2");
  EXPECT_EQ(value_of(text, create + R"(_bucket{operation_type="create",le="+Inf"})"), "2");
  EXPECT_EQ(value_of(text, create + R"(_count{operation_type="update"})"), "1");
  EXPECT_EQ(value_of(text, create + R"(_count{operation_type="destroy"})"), "0");
  const std::string request = "podqos_nri_request_duration_seconds_count";
  EXPECT_EQ(value_of(text, request + R"({request="CreateContainer"})"), "1");
  EXPECT_EQ(value_of(text, request + R"({request="Synchronize"})"), "1");
}

TEST(Metrics, CountErrorsByKind) {
  Metrics metrics;
  metrics.failed(ErrorCode::kTimeout);
  metrics.failed(ErrorCode::kTimeout);
  metrics.failed(ErrorCode::kIo);
  const std::string text = text_of(metrics);
  EXPECT_EQ(value_of(text, R"(podqos_errors_total{code="timeout"})"), "2");
  EXPECT_EQ(value_of(text, R"(podqos_errors_total{code="io"})"), "1");
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
                {"memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2"},
                {"memory.pressure",
                 "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=250000"},
                {"pids.current", "17"}};
  return tree;
}

TEST(NodeMetrics, AreInTheBaseUnits) {
  app::NodeFigures figures;
  figures.own.burstable = {.pods = 3, .cpu = MilliCpu{1250}, .memory = Bytes{1LL << 30}};
  figures.adopted.guaranteed = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{4096}};
  cgroup::FakeTree tree = with_burstable();
  figures.machine = std::make_unique<cgroup::FakeMachine>(
      tree, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; });
  figures.tiers.push_back({.qos_class = core::QosClass::kBurstable,
                           .wanted_memory_limit = Bytes{1LL << 30},
                           .cgroup = {*figures.machine, "/kubepods/burstable"}});
  figures.unreadable = 1;
  const std::string text = text_of_node(std::move(figures));
  const auto sample = [&](const std::string& name, const std::string& labels) {
    return value_of(text, "podqos_" + name + "{" + labels + "}");
  };
  const std::string own = R"(qos_class="Burstable",owner="podqos")";
  EXPECT_EQ(sample("pods", own), "3");
  EXPECT_EQ(sample("pod_requests_cpu_cores", own), "1.25");
  EXPECT_EQ(sample("pod_requests_memory_bytes", own), "1073741824");
  EXPECT_EQ(sample("pods", R"(qos_class="Guaranteed",owner="kubelet")"), "1");
  EXPECT_EQ(sample("pods", R"(qos_class="BestEffort",owner="podqos")"), "0");
  const std::string tier = R"(tier="burstable",cgroup="/kubepods/burstable")";
  EXPECT_EQ(sample("tier_cpu_weight", tier), "39");
  EXPECT_EQ(sample("tier_cpu_usage_seconds_total", tier), "1.5");
  EXPECT_EQ(sample("tier_memory_limit_bytes", tier), "2147483648");
  EXPECT_EQ(sample("tier_memory_limit_wanted_bytes", tier), "1073741824");
  EXPECT_EQ(sample("tier_memory_usage_bytes", tier), "1234567890123");
  EXPECT_EQ(sample("tier_oom_kills_total", tier), "2");
  EXPECT_EQ(sample("tier_threads", tier), "17");
  EXPECT_EQ(sample("tier_pressure_waiting_seconds_total", tier + R"(,resource="cpu")"), "2.5");
  EXPECT_EQ(sample("tier_pressure_stalled_seconds_total", tier + R"(,resource="cpu")"), "");
  EXPECT_EQ(sample("tier_pressure_stalled_seconds_total", tier + R"(,resource="memory")"), "0.25");
  // The machine has none of these.
  EXPECT_EQ(sample("tier_cpu_shares", tier), "");
  EXPECT_EQ(sample("tier_cpu_limit_cores", tier), "");
  EXPECT_EQ(sample("tier_memory_min_bytes", tier), "");
  EXPECT_EQ(value_of(text, "podqos_collector_success"), "1");
  EXPECT_EQ(value_of(text, "podqos_state_unreadable_records"), "1");
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

TEST_F(PagesTest, ShowHealthWhileTheLoopRuns) {
  const HttpAnswer answer = pages_->answer("/healthz", status_);
  EXPECT_EQ(answer.status, kHttpOk);
  EXPECT_EQ(answer.body, "ok\n");
}

TEST_F(PagesTest, ShowReadinessWithTheReason) {
  status_.obstacle = "connect to /x: No such file or directory";
  HttpAnswer answer = pages_->answer("/readyz", status_);
  EXPECT_EQ(answer.status, kHttpUnavailable);
  EXPECT_EQ(answer.body, "connect to /x: No such file or directory\n");
  status_.standby = true;
  answer = pages_->answer("/readyz", status_);
  EXPECT_EQ(answer.status, kHttpOk);
  EXPECT_EQ(answer.body, "standby\n");
  status_.standby = false;
  status_.synchronized = true;
  answer = pages_->answer("/readyz", status_);
  EXPECT_EQ(answer.status, kHttpOk);
  EXPECT_EQ(answer.body, "ok\n");
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

TEST_F(PagesTest, SayWhyPodsAreMissing) {
  temporary_.write("state", "no directory");
  EXPECT_THAT(pages_->answer("/metrics", status_).body,
              HasSubstr("\npodqos_collector_success 0\n"));
  EXPECT_THAT(temporary_.read("log"), HasSubstr("metrics omit pods and tiers: "));
}

TEST_F(PagesTest, LookAtTheNodeOnceASecond) {
  const std::string before = pages_->answer("/metrics", status_).body;
  temporary_.write("state", "no directory");
  EXPECT_EQ(pages_->answer("/metrics", status_).body, before);
  clock_.pass(999ms);
  EXPECT_EQ(pages_->answer("/metrics", status_).body, before);
  clock_.pass(1ms);
  EXPECT_THAT(pages_->answer("/metrics", status_).body,
              HasSubstr("\npodqos_collector_success 0\n"));
}

TEST_F(PagesTest, ShowNothingElse) {
  for (const char* path : {"/", "", "/metrics/", "/Metrics", "/debug/pprof/"})
    EXPECT_EQ(pages_->answer(path, status_).status, kHttpNotFound) << path;
}

/// The line of a sample with this value.
std::string written(double value) {
  Exposition out;
  out.single("gauge", "n", "", value);
  const std::string text = std::move(out).release();
  return text.substr(text.find("\nn ") + 3);
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
  EXPECT_EQ(written(0), "0\n");
  EXPECT_EQ(written(1073741824), "1073741824\n");
  EXPECT_EQ(written(9007199254740992.0), "9007199254740992\n");
  EXPECT_EQ(written(0.1), "0.1\n");
  EXPECT_EQ(written(1795278653.25), "1795278653.25\n");
  EXPECT_EQ(written(9223372036854775808.0), "9.223372036854776e+18\n");
  EXPECT_EQ(written(0.000001), "0.000001\n");
  EXPECT_EQ(written(0.0000001), "1e-07\n");
  EXPECT_EQ(written(1e300), "1e+300\n");
}

TEST(HistogramOfTimes, CountsUpToEachBound) {
  Histogram histogram;
  histogram.observe(100us);  // the first bound itself
  histogram.observe(101us);
  histogram.observe(1h);
  Exposition out;
  out.metric("histogram", "h", "H.");
  histogram.write(out, {"x", "y"});
  EXPECT_EQ(std::move(out).release(),
            "# HELP h H.\n"
            "# TYPE h histogram\n"
            "h_bucket{x=\"y\",le=\"0.0001\"} 1\n"
            "h_bucket{x=\"y\",le=\"0.00025\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.0005\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.001\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.0025\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.005\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.01\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.025\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.05\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.1\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.25\"} 2\n"
            "h_bucket{x=\"y\",le=\"0.5\"} 2\n"
            "h_bucket{x=\"y\",le=\"1\"} 2\n"
            "h_bucket{x=\"y\",le=\"2.5\"} 2\n"
            "h_bucket{x=\"y\",le=\"+Inf\"} 3\n"
            "h_sum{x=\"y\"} 3600.000201\n"
            "h_count{x=\"y\"} 3\n");
}

}  // namespace
}  // namespace podqos::nri

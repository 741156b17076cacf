#include "nri/plugin_metrics.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "nri/pages.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/samples.h"
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
      AllOf(StartsWith("# HELP podqos_nri_connected "),
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

TEST(HistogramOfTimes, CountsUpToEachBound) {
  Histogram histogram;
  histogram.observe(100us);  // the first bound itself
  histogram.observe(101us);
  histogram.observe(1h);
  codec::Exposition out;
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

#include "nri/exposition.h"

#include <chrono>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;

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
  out.sample({{.name = "x", .value = "1"}}, 3);
  out.sample({{.name = "x", .value = "2"}, {.name = "y", .value = ""}}, 0.5);
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
  out.sample({{.name = "l", .value = "a\"b\\c\ne}"}}, 1);
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
  histogram.write(out, {.name = "x", .value = "y"});
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

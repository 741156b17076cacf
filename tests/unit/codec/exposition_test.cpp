#include "common/codec/exposition.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/samples.h"

namespace podqos::codec {
namespace {

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

}  // namespace
}  // namespace podqos::codec

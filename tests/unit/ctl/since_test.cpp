#include "ctl/cli/since.h"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/temporary_variable.h"

namespace podqos::ctl {
namespace {

struct SinceCase {
  std::string text;
  std::optional<UnixMillis> want;
};

/// 2026-01-31 12:00:00 UTC, 13:00 in the time zone of the test.
constexpr UnixMillis kNow{1'769'860'800'000};
constexpr std::int64_t kHourMillis = 3'600'000;

class Since : public ::testing::Test {
 protected:
  Since() { ::tzset(); }
  TemporaryVariable zone_{"TZ", "CET-1"};
};

TEST_F(Since, TakesWhatJournalctlTakes) {
  const std::vector<SinceCase> cases = {
      {"10s", UnixMillis{kNow.value() - 10'000}},
      {"10m", UnixMillis{kNow.value() - 600'000}},
      {"10min", UnixMillis{kNow.value() - 600'000}},
      {"-2h", UnixMillis{kNow.value() - 2 * kHourMillis}},
      {"2h ago", UnixMillis{kNow.value() - 2 * kHourMillis}},
      {"1d", UnixMillis{kNow.value() - 24 * kHourMillis}},
      {"1w", UnixMillis{kNow.value() - 168 * kHourMillis}},
      {"today", UnixMillis{kNow.value() - 13 * kHourMillis}},
      {"yesterday", UnixMillis{kNow.value() - 37 * kHourMillis}},
      {"12:30", UnixMillis{kNow.value() - kHourMillis / 2}},
      {"12:59:59", UnixMillis{kNow.value() - 1000}},
      {"2026-01-31", UnixMillis{kNow.value() - 13 * kHourMillis}},
      {"2026-01-31 12:00", UnixMillis{kNow.value() - kHourMillis}},
      {"2026-01-31T12:00:00", UnixMillis{kNow.value() - kHourMillis}},
      {"2026-01-31T12:00:00.000Z", kNow},
      {"@1769860800", kNow},
  };
  for (const SinceCase& each : cases)
    EXPECT_EQ(parse_since(each.text, kNow), each.want) << each.text;
}

TEST_F(Since, TakesNothingElse) {
  for (const char* text : {"", "10", "m", "10x", "-", "@", "@x", "tomorrow ago", "2026-13-01",
                           "2026-01-31 12", "12:61", "99999999999999999999m", "9999999999999w"})
    EXPECT_EQ(parse_since(text, kNow), std::nullopt) << text;
}

TEST_F(Since, IsShownInLocalTime) {
  EXPECT_EQ(format_local(kNow), "Jan 31 13:00:00");
}

}  // namespace
}  // namespace podqos::ctl

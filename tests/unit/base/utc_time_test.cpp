#include "common/base/utc_time.h"

#include <gtest/gtest.h>

namespace podqos {
namespace {

TEST(FormatUtc, IsRfc3339WithMilliseconds) {
  EXPECT_EQ(format_utc(UnixMillis{0}), "1970-01-01T00:00:00.000Z");
  // RFC 3339, section 5.8: 20 minutes and 50.52 seconds after the 23rd hour of April 12th, 1985.
  EXPECT_EQ(format_utc(UnixMillis{482196050520}), "1985-04-12T23:20:50.520Z");
  EXPECT_EQ(format_utc(UnixMillis{1772323199999}), "2026-02-28T23:59:59.999Z");
}

TEST(ParseUtc, ReadsWhatIsFormatted) {
  EXPECT_EQ(parse_utc("1985-04-12T23:20:50.520Z"), UnixMillis{482196050520});
}

TEST(ParseUtc, TakesNoOtherForm) {
  for (const char* text :
       {"", "1985-04-12T23:20:50Z", "1985-04-12T23:20:50.520+", "1985-04-12 23:20:50.520Z",
        "1985-02-30T23:20:50.520Z", "1985-13-12T23:20:50.520Z", "1985-04-12T24:20:50.520Z",
        "1985-04-12T23:60:50.520Z", "1985-04-12T23:20:60.520Z", "-985-04-12T23:20:50.520Z",
        "1985-04-12T23:20:-5.520Z", "1985-04-12T23:20:50.520Z\n"})
    EXPECT_EQ(parse_utc(text), std::nullopt) << text;
}

}  // namespace
}  // namespace podqos

#include "common/codec/rows.h"

#include <cstddef>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/base/units.h"

namespace podqos::codec {
namespace {

const std::string kLongest(128, 'u');

constexpr std::size_t kBeingChanged = offsetof(core::PodRow, being_changed);

core::PodRow full_row() {
  return {.uid = std::string_view{kLongest},
          .tree = 0xffff'ffff'ffff'ffff,
          .requested_cpu = MilliCpu{kInt64Max},
          .due = BootSeconds{0},
          .creator = {.pid = Pid{4'194'304}, .start_time = StartTime{kInt64Max}},
          .pending_since = BootSeconds{7},
          .qos_class = core::QosClass::kBurstable,
          .kubelets_own = 1,
          .counts = 1,
          .being_changed = 1,
          .is_pending = 1};
}

core::PodRow plain_row() {
  return {.uid = "a"};
}

TEST(ParseRows, ReadsWhatWasWritten) {
  const std::string text = format_rows_head(true, 3) + format_row(full_row()) +
                           format_row(core::PodRow{}) + format_row(plain_row());
  EXPECT_EQ(text.size(), 4 * kRowSize);
  const auto rows = parse_rows(text);
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->is_whole);
  ASSERT_EQ(rows->rows.size(), 3U);
  EXPECT_EQ(rows->rows[0], full_row());
  EXPECT_TRUE(rows->rows[1].uid.empty()) << "free";
  EXPECT_EQ(rows->rows[2], plain_row());
}

TEST(ParseRows, TellsThatSomeAreLost) {
  const auto rows = parse_rows(format_rows_head(false, 0));
  ASSERT_TRUE(rows);
  EXPECT_FALSE(rows->is_whole);
}

/// It would be looked for at each event, and never found.
TEST(ParseRows, RefusesADamagedRowOfAPodThatIsBeingChanged) {
  std::string text = format_rows_head(true, 1) + format_row(full_row());
  text[kRowSize + 10] = 'x';  // of the uid
  EXPECT_EQ(parse_rows(text), std::nullopt);
}

TEST(ParseRows, RefusesAllElse) {
  const std::string row = format_row(plain_row());
  EXPECT_EQ(parse_rows(""), std::nullopt);
  EXPECT_EQ(parse_rows(row), std::nullopt) << "no head";
  EXPECT_EQ(parse_rows(format_rows_head(true, 1)), std::nullopt) << "a row is missing";
  EXPECT_EQ(parse_rows(format_rows_head(true, 1) + row + row), std::nullopt);
  EXPECT_EQ(parse_rows(format_rows_head(true, 1) + row.substr(1)), std::nullopt);
  std::string newer = format_rows_head(true, 0);
  newer.replace(newer.find(" 1,"), 3, " 2,");
  EXPECT_EQ(parse_rows(newer), std::nullopt);
}

/// No byte makes it read beyond a field.
TEST(ParseRows, TakesAnyBytesOfARow) {
  for (const char byte : {'\x01', '\x7f', '\xff'}) {
    std::string row(kRowSize, byte);
    row[kBeingChanged] = 0;
    const auto rows = parse_rows(format_rows_head(true, 1) + row);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->rows.at(0).uid.view(), std::string(128, byte));
  }
}

}  // namespace
}  // namespace podqos::codec

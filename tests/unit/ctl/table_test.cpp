#include "ctl/table.h"

#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

TEST(FormatBytes, TakesTheLargestUnit) {
  EXPECT_EQ(format_bytes(Bytes{0}), "0");
  EXPECT_EQ(format_bytes(Bytes{1023}), "1023");
  EXPECT_EQ(format_bytes(Bytes{64LL << 20U}), "64Mi");
  EXPECT_EQ(format_bytes(Bytes{3LL << 30U}), "3Gi");
  EXPECT_EQ(format_bytes(Bytes{3LL << 29U}), "1.5Gi");
  EXPECT_EQ(format_bytes(Bytes{(1LL << 30U) + (1LL << 27U)}), "~1.1Gi");
}

TEST(FormatTable, AlignsColumns) {
  EXPECT_EQ(format_table({{cell("POD"), cell("CLASS")}, {cell("a-long-name"), cell("x")}, {}},
                         ColourMode::kPlain),
            "POD          CLASS\na-long-name  x\n\n");
}

TEST(FormatTable, CountsCharactersNotBytes) {
  EXPECT_EQ(
      format_table({{cell("└─ é"), cell("1")}, {cell("abcd"), cell("2")}}, ColourMode::kPlain),
      "└─ é  1\nabcd  2\n");
}

TEST(FormatTable, LeavesNoBlanksBehindTheLastCell) {
  EXPECT_EQ(format_table({{cell("a"), cell("")}, {cell("bb"), cell("c")}}, ColourMode::kPlain),
            "a\nbb  c\n");
}

TEST(FormatTable, ColoursTakeNoRoom) {
  EXPECT_EQ(format_table({{cell("a", Colour::kRed), cell("b")}, {cell("cc"), cell("d")}},
                         ColourMode::kColoured),
            "\x1b[31ma\x1b[0m   b\ncc  d\n");
}

TEST(ColourModes, FollowTheOption) {
  EXPECT_EQ(colour_mode("always"), ColourMode::kColoured);
  EXPECT_EQ(colour_mode("never"), ColourMode::kPlain);
}

TEST(Join, SeparatesTexts) {
  EXPECT_EQ(join({"", "a", ""}, ", "), ", a, ");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Fold, BreaksBetweenWordsOnly) {
  EXPECT_EQ(fold("  one two three", "  ", 9), "  one two\n  three\n");
  EXPECT_EQ(fold("one two three", "", 7), "one two\nthree\n");
  EXPECT_EQ(fold(" a abcdefghijkl b", " ", 6), " a\n abcdefghijkl\n b\n");
  EXPECT_EQ(fold("", "  ", 6), "\n");
}

}  // namespace
}  // namespace podqos::ctl

#include "ctl/view/top_view.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/usage_sample.h"

namespace podqos::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::size_t> order_of(const TopView& view) {
  std::vector<std::size_t> order;
  for (const TopRow& row : rows_of(sample().entries, view))
    order.push_back(row.entry);
  return order;
}

// Rows: see sample().

TEST(RowsOf, SortsWithinTiersAndPods) {
  EXPECT_THAT(order_of({}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(order_of({.reversed = true}), ElementsAre(0, 1, 2, 3, 4, 5, 7, 6, 8, 9, 10));
}

TEST(RowsOf, ListsContainersWithoutATree) {
  EXPECT_THAT(order_of({.tree = false}), ElementsAre(6, 7, 3, 10)) << "no CPU known comes last";
  EXPECT_THAT(order_of({.reversed = true, .tree = false}), ElementsAre(3, 7, 6, 10));
  EXPECT_THAT(order_of({.sort = find_column("memory"), .tree = false}), ElementsAre(6, 3, 7, 10));
  EXPECT_THAT(order_of({.sort = std::nullopt, .tree = false}), ElementsAre(3, 6, 7, 10));
  EXPECT_THAT(order_of({.sort = std::nullopt, .reversed = true, .tree = false}),
              ElementsAre(10, 7, 6, 3));
}

TEST(RowsOf, KnowsHowDeepRowsAre) {
  std::vector<std::size_t> depths;
  for (const TopRow& row : rows_of(sample().entries, {}))
    depths.push_back(row.depth);
  EXPECT_THAT(depths, ElementsAre(0, 1, 2, 3, 1, 2, 3, 3, 1, 2, 3));
}

TEST(FormatTop, ShowsAllColumnsWhereThereIsRoom) {
  const auto lines = format_top(sample(), {}, Screen::kUnlimited, ColourMode::kPlain);
  ASSERT_THAT(lines, SizeIs(13));
  EXPECT_EQ(lines[0], "podqos top: 3 pods, 4 containers, 2 s, by cpu");
  EXPECT_EQ(
      lines[1],
      "NAME                      >CPU  /REQ  /LIM  THR  CPSI    MEM   WSET  /REQ  /LIM  MPSI   "
      "SWAP  PIDS  OOM  CREQ  CLIM   MREQ   MLIM");
  EXPECT_EQ(
      lines[7],
      "  shop/web                250m   83%   50%  12%    3%  100Mi   90Mi  >9k%     -    0%   "
      "   0    12    1  300m  500m     64      -");
  EXPECT_EQ(
      lines[8],
      "   app                    200m  100%   40%  95%     -   99Mi   89Mi  >9k%     -     -   "
      "   -     -    -  200m  500m     64      -");
}

TEST(FormatTop, FitsEachWidth) {
  UsageSample long_name = sample();
  for (UsageEntry& entry : long_name.entries)
    entry.name += std::string(60, 'x');
  for (const bool tree : {true, false})
    for (std::size_t sort = 0; sort < top_columns().size(); ++sort)
      for (const std::size_t width : {1UL, 24UL, 40UL, 64UL, 80UL, 199UL})
        for (const std::string& line :
             format_top(long_name, {.sort = sort, .tree = tree}, width, ColourMode::kPlain))
          EXPECT_LE(line.size(), width) << line;
}

TEST(FormatTop, ShowsTheColumnThatSorts) {
  const auto lines =
      format_top(sample(), {.sort = find_column("limited-memory")}, 80, ColourMode::kPlain);
  EXPECT_THAT(lines[1], HasSubstr(">MLIM"));
}

TEST(FormatTop, ShowsWhatIsWrongInColour) {
  const auto lines = format_top(sample(), {}, 80, ColourMode::kColoured);
  EXPECT_THAT(lines[8], HasSubstr("\x1b[31m 95%\x1b[0m")) << "throttled";
  EXPECT_THAT(lines[7], HasSubstr("\x1b[33m 12%\x1b[0m"));
  EXPECT_THAT(lines[7], HasSubstr("\x1b[31m   1\x1b[0m")) << "OOM kills";
}

TEST(FormatTop, MakesHostileNamesPrintable) {
  UsageSample hostile = sample();
  for (UsageEntry& entry : hostile.entries)
    entry.name = entry.pod_namespace = "\x1b[2J\n\xff";
  for (const bool tree : {true, false})
    for (const std::string& line : format_top(hostile, {.tree = tree, .filter = {.text = "\x1b"}},
                                              Screen::kUnlimited, ColourMode::kPlain))
      EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) << line;
}

TEST(FormatTop, TellsThatThereAreNoPods) {
  EXPECT_THAT(format_top({}, {}, 80, ColourMode::kPlain),
              ElementsAre("podqos top: 0 pods, 0 containers, 0 s, by cpu", "no pods"));
}

struct TextCase {
  const char* column;
  std::int64_t value;
  const char* text;
};

class ColumnText : public ::testing::TestWithParam<TextCase> {};

TEST_P(ColumnText, HasAFewColumns) {
  const auto& [word, value, text] = GetParam();
  const TopColumn& column = top_columns()[*find_column(word)];
  EXPECT_EQ(column.text(value), text);
  EXPECT_LE(column.text(value).size(), column.width);
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Table, ColumnText,
    ::testing::Values(TextCase{"cpu", 0, "0m"}, TextCase{"cpu", 9999, "9999m"},
                      TextCase{"cpu", 10'000, "10.0"}, TextCase{"cpu", 12'560, "12.5"},
                      TextCase{"cpu", 128'000, "128"}, TextCase{"memory", 0, "0"},
                      TextCase{"memory", 1023, "1023"}, TextCase{"memory", 1024, "1Ki"},
                      TextCase{"memory", 10'000, "9.7Ki"}, TextCase{"memory", 1'048'575, "1023Ki"},
                      TextCase{"memory", kMost, "7.9Ei"}, TextCase{"throttled", 999, "99%"},
                      TextCase{"throttled", 1000, "100%"}, TextCase{"cpu-limit", 99'999, "9999%"},
                      TextCase{"cpu-limit", 100'000, ">9k%"}, TextCase{"oom", 9999, "9999"},
                      TextCase{"oom", 10'000, "10k"}, TextCase{"pids", 4'194'304, "4M"}));

TEST(Columns, HaveHeadingsThatFit) {
  for (const TopColumn& column : top_columns())
    EXPECT_LT(column.heading.size(), column.width) << column.word;
}

TEST(DrawTop, FillsTheScreen) {
  for (const ScreenSize size : {ScreenSize{80, 24}, ScreenSize{200, 50}, ScreenSize{40, 5},
                                ScreenSize{1, 3}, ScreenSize{80, 1}})
    for (const TopMode mode : {TopMode::kRows, TopMode::kHelp, TopMode::kFilterPrompt}) {
      const TopScreen screen =
          draw_top(sample(), {.mode = mode, .input = "x"}, size, ColourMode::kPlain);
      EXPECT_THAT(screen.lines, SizeIs(size.height));
      for (const std::string& line : screen.lines)
        EXPECT_LE(line.size(), size.width) << line;
    }
}

TEST(DrawTop, HelpFitsTheSmallestUsualScreen) {
  const TopScreen screen =
      draw_top(sample(), {.mode = TopMode::kHelp}, {80, 24}, ColourMode::kPlain);
  EXPECT_THAT(screen.lines, ::testing::Contains(HasSubstr("CREQ, CLIM, MREQ, MLIM")));
  EXPECT_EQ(screen.lines.back(), "any key: back");
}

TEST(DrawTop, ScrollsToTheLastPage) {
  constexpr ScreenSize kSize{80, 7};
  TopScreen screen = draw_top(sample(), {.first = 2}, kSize, ColourMode::kPlain);
  EXPECT_THAT(screen.lines[2], StartsWith("  default/db"));
  EXPECT_EQ(screen.lines.back(), "h help  q quit  3-6 of 11");
  screen = draw_top(sample(), {.first = 1000}, kSize, ColourMode::kPlain);
  EXPECT_EQ(screen.first, 7U);
  EXPECT_THAT(screen.lines[5], StartsWith("   0123456789abcdef "));
}

TEST(ParseDelay, TakesTenthsOfSeconds) {
  EXPECT_EQ(parse_delay("0.5"), std::chrono::milliseconds{500});
  EXPECT_EQ(parse_delay("3600"), std::chrono::seconds{3600});
  for (const char* refused : {"", "0", "0.09", "3601", "-1", "x", "1s"}) {
    const auto delay = parse_delay(refused);
    ASSERT_FALSE(delay) << refused;
    EXPECT_THAT(delay.error().message, HasSubstr("expected 0.1 to 3600"));
  }
}

KeyPress character(char c) {
  return {.key = TopKey::kCharacter, .character = c};
}

TEST(ParseKeys, KnowsWhatTerminalsSend) {
  EXPECT_THAT(parse_keys("q/\r\n\b\x7f"),
              ElementsAre(character('q'), character('/'), KeyPress{TopKey::kEnter},
                          KeyPress{TopKey::kEnter}, KeyPress{TopKey::kBackspace},
                          KeyPress{TopKey::kBackspace}));
  EXPECT_THAT(
      parse_keys("\x1b[A\x1bOB\x1b[C\x1b[D\x1b[5~\x1b[6~\x1b[H\x1bOF\x1b"),
      ElementsAre(KeyPress{TopKey::kUp}, KeyPress{TopKey::kDown}, KeyPress{TopKey::kRight},
                  KeyPress{TopKey::kLeft}, KeyPress{TopKey::kPageUp}, KeyPress{TopKey::kPageDown},
                  KeyPress{TopKey::kHome}, KeyPress{TopKey::kEnd}, KeyPress{TopKey::kEscape}));
}

TEST(IsCutOff, TellsWhereASequenceHasNoEnd) {
  for (const char* bytes : {"\x1b", "a\x1b[", "\x1bO", "\x1b[5"})
    EXPECT_TRUE(is_cut_off(bytes)) << bytes;
  for (const char* bytes : {"", "a", "\x1b[A", "\x1bOA", "\x1b[5~", "\x1bx"})
    EXPECT_FALSE(is_cut_off(bytes)) << bytes;
}

TEST(ParseKeys, LeavesOutWhatItDoesNotKnow) {
  EXPECT_THAT(parse_keys("\x1b[15~\x1b[1;5Q\x01\xc3\xa4\x1b["), IsEmpty());
}

/// The view after keys are pressed.
TopView after(std::string_view bytes, TopView view = {}) {
  constexpr std::size_t kPage = 21;
  for (const KeyPress& press : parse_keys(bytes))
    EXPECT_EQ(apply_key(press, kPage, view), TopAction::kDraw) << bytes;
  return view;
}

TEST(ApplyKey, SortsByColumns) {
  EXPECT_EQ(after("M").sort, find_column("memory"));
  EXPECT_EQ(after("MP").sort, find_column("cpu"));
  EXPECT_EQ(after("T").sort, find_column("throttled"));
  EXPECT_EQ(after("O").sort, find_column("oom"));
  EXPECT_EQ(after("N").sort, std::nullopt);
  EXPECT_EQ(after(">").sort, find_column("cpu-request"));
  EXPECT_EQ(after("\x1b[C").sort, find_column("cpu-request"));
  EXPECT_EQ(after("<").sort, std::nullopt);
  EXPECT_EQ(after("<<").sort, find_column("limited-memory"));
  EXPECT_EQ(after("<<>>").sort, find_column("cpu"));
  EXPECT_TRUE(after("R").reversed);
  EXPECT_FALSE(after("t").tree);
}

TEST(ApplyKey, FiltersByTypedText) {
  const TopView typed = after("/web x\x7f\x7f");
  EXPECT_EQ(typed.mode, TopMode::kFilterPrompt);
  EXPECT_EQ(typed.input, "web");
  EXPECT_EQ(typed.filter.text, "") << "before Enter";
  EXPECT_EQ(after("\r", typed).filter.text, "web");
  EXPECT_EQ(after("\r", typed).mode, TopMode::kRows);
  EXPECT_EQ(after("\x1b", typed).filter.text, "");
  EXPECT_EQ(after("\r\x1b", typed).filter, UsageFilter{}) << "Esc shows all again";
  EXPECT_THAT(after("/" + std::string(100, 'x')).input, SizeIs(64));
}

TEST(ApplyKey, ShowsOneTierAfterTheOther) {
  EXPECT_EQ(after("c").filter.tier, core::QosClass::kGuaranteed);
  EXPECT_EQ(after("cc").filter.tier, core::QosClass::kBurstable);
  EXPECT_EQ(after("ccc").filter.tier, core::QosClass::kBestEffort);
  EXPECT_EQ(after("cccc").filter.tier, std::nullopt);
}

TEST(ApplyKey, Scrolls) {
  EXPECT_EQ(after("\x1b[B\x1b[B\x1b[A").first, 1U);
  EXPECT_EQ(after("\x1b[A").first, 0U);
  EXPECT_EQ(after("\x1b[6~\x1b[B").first, 22U);
  EXPECT_EQ(after("\x1b[6~\x1b[5~").first, 0U);
  EXPECT_GT(after("\x1b[F").first, 1'000'000U);
  EXPECT_EQ(after("\x1b[F\x1b[H").first, 0U);
}

TEST(ApplyKey, ShowsHelpUntilTheNextKey) {
  EXPECT_EQ(after("h").mode, TopMode::kHelp);
  EXPECT_EQ(after("?").mode, TopMode::kHelp);
  EXPECT_EQ(after("hq").mode, TopMode::kRows) << "q only leaves the help";
}

TEST(ApplyKey, QuitsAndRefreshes) {
  TopView view;
  EXPECT_EQ(apply_key(character('q'), 1, view), TopAction::kQuit);
  EXPECT_EQ(apply_key(character(' '), 1, view), TopAction::kSample);
  EXPECT_EQ(view, TopView{});
}

}  // namespace
}  // namespace podqos::ctl

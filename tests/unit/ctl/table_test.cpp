#include "ctl/cli/table.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/temporary_variable.h"

namespace podqos::ctl {
namespace {

TEST(FormatTable, AlignsColumns) {
  EXPECT_EQ(
      format_table({{cell("POD"), cell("CLASS")}, {cell("a-long-name"), cell("x")}, {}}, Screen{}),
      "POD          CLASS\na-long-name  x\n\n");
}

TEST(FormatTable, CountsCharactersNotBytes) {
  EXPECT_EQ(format_table({{cell("└─ é"), cell("1")}, {cell("abcd"), cell("2")}}, Screen{}),
            "└─ é  1\nabcd  2\n");
}

TEST(FormatTable, LeavesNoBlanksBehindTheLastCell) {
  EXPECT_EQ(format_table({{cell("a"), cell("")}, {cell("bb"), cell("c")}}, Screen{}), "a\nbb  c\n");
}

TEST(FormatTable, ColoursTakeNoRoom) {
  EXPECT_EQ(format_table({{cell("a", Colour::kRed), cell("b")}, {cell("cc"), cell("d")}},
                         {.colour = ColourMode::kColoured}),
            "\x1b[31ma\x1b[0m   b\ncc  d\n");
}

/// Columns in their order: the first that may be cut is cut as far as it may, then the next.
TEST(FormatTable, CutsColumnsThatAreTooWide) {
  const std::vector<Row> rows = {{cell("NAME"), cell("CLASS"), cell("N")},
                                 {cell("a-long-name"), cell("Burstable (partial)"), cell("1")}};
  constexpr std::array kCuts = {Cut{.column = 1, .least = 11}, Cut{.column = 0, .least = 6}};
  EXPECT_EQ(format_table(rows, {.width = 35}, kCuts),
            "NAME         CLASS                N\na-long-name  Burstable (partial)  1\n");
  EXPECT_EQ(format_table(rows, {.width = 30}, kCuts),
            "NAME         CLASS           N\na-long-name  Burstable (pa…  1\n");
  EXPECT_EQ(format_table(rows, {.width = 24}, kCuts),
            "NAME      CLASS        N\na-long-…  Burstable …  1\n");
  EXPECT_EQ(format_table(rows, {.width = 3}, kCuts),
            "NAME\n  CLASS\n  N\na-lon…\n  Burstable …\n  1\n");
}

TEST(FormatTable, CutsNamesInTheMiddle) {
  constexpr std::array kCuts = {Cut{.column = 0, .least = 15, .in_the_middle = true}};
  EXPECT_EQ(format_table(
                {{cell("POD"), cell("N")}, {cell("x/payment-gateway-7f9c4d8b6f-00007"), cell("1")}},
                {.width = 21}, kCuts),
            "POD                 N\nx/pay…4d8b6f-00007  1\n");
}

/// Nothing is lost, and columns stay aligned.
TEST(FormatTable, GoesOnInAFurtherLineWhereThereIsNoRoom) {
  const std::vector<Row> rows = {
      heading({"POD", "ENGINE", "CLASS", "RUNNING", "CPU req/limit", "MEM now/req/limit"}),
      {cell("shop/web"), cell("podman"), cell("Burstable"), cell("1/1"), cell("10m/-"),
       cell("184Ki/16Mi/-")}};
  EXPECT_EQ(format_table(rows, {.width = 40}),
            "POD       ENGINE  CLASS      RUNNING\n"
            "  CPU req/limit  MEM now/req/limit\n"
            "shop/web  podman  Burstable  1/1\n"
            "  10m/-          184Ki/16Mi/-\n");
}

TEST(FormatTable, FoldsTheLastColumn) {
  EXPECT_EQ(format_table({{cell("a"), cell("one two three four five six")}, {cell("b"), cell("x")}},
                         {.width = 23}),
            "a  one two three four\n   five six\nb  x\n");
}

TEST(Shorten, CountsCharacters) {
  EXPECT_EQ(shorten("äöü", 3), "äöü");
  EXPECT_EQ(shorten("äöüa", 3), "äö…");
  EXPECT_EQ(shorten("ab", 1), "…");
  EXPECT_EQ(shorten("", 0), "");
  EXPECT_EQ(shorten("a", 0), "");
}

TEST(Abbreviate, ShortensIdsAndPaths) {
  const std::string id = "0679360e958ab25c79753d04705ac9e53d5209fd276b025befb31acc1004a140";
  EXPECT_EQ(abbreviate("container web runs in /mine"), "container web runs in /mine");
  EXPECT_EQ(abbreviate("container (" + id + "): x"), "container (0679360e958a): x");
  EXPECT_EQ(abbreviate("in /podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
                       "podqos-kubepods-burstable-podweb_1.slice/libpod-" +
                       id + ".scope, where"),
            "in …/libpod-0679360e958a….scope, where");
  EXPECT_EQ(abbreviate("/podqos/kubepods/burstable/pod11111111-2222-3333-4444-555555555555"),
            "…/pod11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(
      abbreviate("/podqos/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/cpu.shares:"),
      "…/pod11111111-2222-3333-4444-555555555555/cpu.shares:");
  EXPECT_EQ(abbreviate("/" + std::string(50, 'x')), "/" + std::string(50, 'x'));
  EXPECT_EQ(abbreviate(""), "");
}

/// The "d" of "pod" is a hexadecimal digit, too.
TEST(Abbreviate, CutsTheIdOfAPodsCgroupAtItsEnd) {
  const std::string id = "e0c38d2436cab110d97d1a4381b2c3d4e5f60718293a4b5c6d7e8f90a1b1f7ae";
  EXPECT_EQ(abbreviate("/podqos/kubepods/burstable/pod" + id),
            "…/kubepods/burstable/pode0c38d2436ca…");
  EXPECT_EQ(abbreviate("pod " + id), "pod e0c38d2436ca");
}

TEST(ShortenMiddle, KeepsTheLastPart) {
  EXPECT_EQ(shorten_middle("prod/ns/pod/app", 15), "prod/ns/pod/app");
  EXPECT_EQ(shorten_middle("prod/ns/pod/app", 14), "prod/ns/p…/app");
  EXPECT_EQ(shorten_middle("11111111-2222-3333-4444-555555555555/web-1", 26),
            "11111111-222…5555555/web-1");
  EXPECT_EQ(shorten_middle("infra-monitoring/checkout-frontend-5f7b9c-01eef/app", 16),
            "infra-m…1eef/app");
  EXPECT_EQ(shorten_middle("p/a-very-long-name-of-a-web-server", 12), "p/a…b-server");
  EXPECT_EQ(shorten_middle("öööööööööö", 6), "ööö…öö");
  EXPECT_EQ(shorten_middle("web", 0), "");
}

/// The longest that there is, of Podman's ids.
TEST(Abbreviate, LeavesThreeLinesOfAWarning) {
  const std::string id = "2a21f8ac3788f2caa840f13ae1132677208f9bfd3adf777b5264fe31c64b04e0";
  EXPECT_EQ(
      fold(abbreviate("warning: pod web-1: another program moved container web (" + id +
                      ") to cgroup /mine, where its limits do not apply: restart it, or write its "
                      "pids to /podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
                      "podqos-kubepods-burstable-podweb_1.slice/libpod-" +
                      id + ".scope/cgroup.procs"),
           "  ", 80),
      "warning: pod web-1: another program moved container web (2a21f8ac3788) to cgroup\n"
      "  /mine, where its limits do not apply: restart it, or write its pids to\n"
      "  …/libpod-2a21f8ac3788….scope/cgroup.procs\n");
}

/// watch(1) sets it, for a command whose output is a pipe.
TEST(ScreenWidth, IsThatOfTheEnvironmentWithoutATerminal) {
  if (::isatty(STDOUT_FILENO) != 0) GTEST_SKIP() << "standard output is a terminal";
  const TemporaryVariable columns{"COLUMNS", "72"};
  EXPECT_EQ(screen_width(), 72U);
}

TEST(ColourModes, FollowTheOption) {
  EXPECT_EQ(colour_mode("always"), ColourMode::kColoured);
  EXPECT_EQ(colour_mode("never"), ColourMode::kPlain);
}

TEST(Join, SeparatesTexts) {
  EXPECT_EQ(join({"", "a", ""}, ", "), ", a, ");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Fold, BreaksBetweenWordsAndLongWords) {
  EXPECT_EQ(fold("  one two three", "  ", 9), "  one two\n  three\n");
  EXPECT_EQ(fold("one two three", "", 7), "one two\nthree\n");
  EXPECT_EQ(fold(" a abcdefghijkl b", " ", 6), " a\n abcde\n fghij\n kl b\n");
  EXPECT_EQ(fold("abcde…", "  ", 6), "abcde…\n");
  EXPECT_EQ(fold("abcde…f", "  ", 6), "abcde…\n  f\n");
  EXPECT_EQ(fold("abcd", "  ", 0), "abc\n  d\n");
  EXPECT_EQ(fold("", "  ", 6), "\n");
}

TEST(FormatChange, PutsWhatTheValueIsForAtTheEnd) {
  const Screen wide;
  EXPECT_EQ(format_change("root: /podqos/kubepods/cpu.weight: 20 → 39", wide),
            "/podqos/kubepods/cpu.weight: 20 → 39 (root)\n");
  EXPECT_EQ(format_change("pod a: follows container web: /x is left", wide),
            "pod a: follows container web: /x is left\n");
  EXPECT_EQ(format_change("mkdir  /podqos/kubepods +io", wide), "mkdir  /podqos/kubepods +io\n");
  EXPECT_EQ(format_change("a", {.colour = ColourMode::kColoured}), "a\n");
}

}  // namespace
}  // namespace podqos::ctl

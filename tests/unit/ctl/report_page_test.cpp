#include "ctl/report_page.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/doctor_checks.h"
#include "ctl/not_managed.h"
#include "tests/unit/ctl/usage_sample.h"

namespace podqos::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What a browser would run, were it not escaped; with both quotes and control bytes.
constexpr const char* kHostile = "\"'><script>alert(1)</script>\x1b[31m\n&amp;";
constexpr const char* kEscaped =
    "&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\x0a&amp;amp;";

/// sample() on a node of 2 CPUs and 1 GiB, of which 100 MiB are reserved, in good order.
Report report() {
  constexpr std::int64_t kMi = 1 << 20;
  Report made{.host = "node-1",
              .time = UnixMillis{1'767'225'600'000},
              .diagnosis = {.checks = {{"kernel", "swap", Outcome::kOk, "can be limited"}}},
              .usage = sample(),
              .events = {}};
  made.diagnosis.inventory = {{"errors", Json::array()},
                              {"enabled", true},
                              {"files", {"/etc/podqos/podqos.json"}},
                              {"trees", {{{"kubepods", "/podqos/kubepods"}}}},
                              {"node",
                               {{"cgroupVersion", 2},
                                {"capacity", {{"cpuMilli", 2000}, {"memoryBytes", 1024 * kMi}}},
                                {"allocatable", {{"cpuMilli", 2000}, {"memoryBytes", 924 * kMi}}}}},
                              {"warnings", Json::array()},
                              {"notManaged", Json::array()}};
  return made;
}

/// The row of the table that has this name.
std::string row_of(const std::string& page, const std::string& name) {
  const auto at = page.find(cat("><td>", name));
  if (at == std::string::npos) return {};
  const auto begin = page.rfind("<tr", at);
  return page.substr(begin, page.find("</tr>", at) - begin);
}

TEST(FormatReport, BeginsWithTheNode) {
  EXPECT_THAT(format_report(report()),
              AllOf(HasSubstr("<title>podqos on node-1</title>"),
                    HasSubstr("<time datetime=\"2026-01-01T00:00:00.000Z\">"),
                    HasSubstr("<dt>podqos</dt><dd>on</dd>"),
                    HasSubstr("<dt>configuration</dt><dd>/etc/podqos/podqos.json</dd>"),
                    HasSubstr("<dt>cgroups</dt><dd>v2: /podqos/kubepods (cgroupfs)</dd>"),
                    HasSubstr("<dt>allocatable</dt><dd>cpu 2, memory 924Mi</dd>")));
}

TEST(FormatReport, ForbidsScriptsAndOtherFiles) {
  EXPECT_THAT(format_report(report()),
              AllOf(HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'\""),
                    Not(HasSubstr("<script")), Not(HasSubstr("src=\"")), Not(HasSubstr("href=")),
                    Not(HasSubstr("url(")), Not(HasSubstr("@import"))));
}

TEST(FormatReport, EscapesTextOfOthers) {
  Report made = report();
  made.host = kHostile;
  made.diagnosis.checks = {{kHostile, "a", Outcome::kProblem, "b", "c"},
                           {"d", kHostile, Outcome::kProblem, "e", "f"},
                           {"g", "h", Outcome::kWarning, kHostile, "i"},
                           {"j", "k", Outcome::kWarning, "l", kHostile},
                           {"m", "n", Outcome::kOk, kHostile}};
  made.diagnosis.inventory["warnings"] = {cat(kHostile, " warning")};
  made.diagnosis.inventory["notManaged"] = {
      {{"title", kHostile}, {"why", kHostile}, {"remedy", kHostile}, {"pid", 1}}};
  made.diagnosis.inventory["files"] = {kHostile};
  made.diagnosis.inventory["trees"][0]["kubepods"] = kHostile;
  made.usage->entries[0].cgroup = kHostile;
  made.usage->entries[5].pod_namespace = kHostile;
  made.usage->entries[7].name = kHostile;
  made.usage->entries[9].uid = kHostile;
  made.usage->entries[10].id = kHostile;
  made.events = std::vector{core::Event{.pod_name = kHostile, .uid = "u", .text = kHostile},
                            core::Event{.uid = "u", .container = kHostile, .text = "x"}};
  std::string page = format_report(made);
  EXPECT_THAT(
      page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\x1b")), Not(HasSubstr("alert(1)</"))));
  std::size_t count = 0;
  for (auto at = page.find("&lt;script"); at != std::string::npos;
       at = page.find("&lt;script", at + 1))
    ++count;
  EXPECT_GE(count, 14U);
  EXPECT_THAT(page, HasSubstr(cat("<br>fix: <code>", kEscaped, "</code>")));
}

TEST(FormatReport, DrawsUseAgainstRequestAndLimit) {
  const std::string page = format_report(report());
  const std::string web = row_of(page, "shop/web");
  EXPECT_THAT(web, AllOf(HasSubstr("<tr class=\"pod\">"), HasSubstr("<small>podman"),
                         HasSubstr("<rect class=\"limit\" height=\"10\" width=\"1000\"/>"),
                         HasSubstr("<rect class=\"use \" y=\"2\" height=\"6\" width=\"500\"/>"),
                         HasSubstr("<rect class=\"request\" height=\"10\" width=\"6\" x=\"600\"/>"),
                         HasSubstr("class=\"bar\">250m / 300m / 500m<svg")));
  // Memory has no limit: 90 MiB of the 924 MiB that the node has for pods, and no bar of a limit.
  EXPECT_THAT(web, AllOf(HasSubstr("<rect class=\"use \" y=\"2\" height=\"6\" width=\"97\"/>"),
                         HasSubstr("class=\"bar\">90Mi / 64 / -<svg")));
  EXPECT_THAT(web, AllOf(HasSubstr("data-name=\"Throttled\" class=\"number yellow\">12%"),
                         HasSubstr("data-name=\"CPU pressure\" class=\"number \">3%"),
                         HasSubstr("data-name=\"OOM kills\" class=\"number red\">1")));
  EXPECT_THAT(row_of(page, "all pods"),
              AllOf(HasSubstr("class=\"bar\">300m / 500m / 2000m<svg"),
                    HasSubstr("data-name=\"Swap\" class=\"number unset\">-")));
}

TEST(FormatReport, ColoursWhatNearsItsLimit) {
  Report made = report();
  made.usage->entries[5].usage.cpu = MilliCpu{600};
  EXPECT_THAT(row_of(format_report(made), "shop/web"),
              AllOf(HasSubstr("<rect class=\"use red\" y=\"2\" height=\"6\" width=\"1000\"/>"),
                    HasSubstr("<rect class=\"limit\" height=\"10\" width=\"833\"/>")));
}

TEST(FormatReport, PutsProblemsBeforeWarnings) {
  Report made = report();
  made.diagnosis.checks.insert(
      made.diagnosis.checks.begin(),
      {{"state", "records", Outcome::kWarning, "interrupted (and 1 more)"},
       {"docker", "known", Outcome::kProblem, "not read yet", "systemctl reload docker.service"}});
  made.diagnosis.inventory["warnings"] = {"interrupted", "pod web: moved"};
  made.diagnosis.inventory["notManaged"] = {
      {{"title", "shop/web"}, {"why", "not read yet"}, {"remedy", "recreate it"}, {"pid", 1}}};
  const std::string page = format_report(made);
  const auto items = page.substr(page.find("<ul>"), page.find("</ul>") - page.find("<ul>"));
  EXPECT_EQ(
      items,
      "<ul>\n"
      "<li class=\"red\"><b>docker: known</b> <span>not read yet<br>fix: <code>systemctl reload "
      "docker.service</code></span></li>\n"
      "<li class=\"red\"><b>status: not managed</b> <span>shop/web: not read yet<br>fix: "
      "<code>recreate it</code></span></li>\n"
      "<li class=\"yellow\"><b>state: records</b> <span>interrupted (and 1 more)</span></li>\n"
      "<li class=\"yellow\"><b>status: warning</b> <span>pod web: moved</span></li>\n");
  EXPECT_THAT(page, HasSubstr("<summary>1 other check</summary>"));
}

TEST(FormatReport, SaysOnceThatAContainerIsMissed) {
  Report made = report();
  const NotManaged missed{
      .container = {.uid = "u-1"}, .why = "annotation = \"x\"", .remedy = "correct it"};
  made.diagnosis.checks = {check_missed({.containers = {missed}})};
  EXPECT_EQ(made.diagnosis.checks[0].text, "u-1: annotation = \"x\"");
  made.diagnosis.inventory["notManaged"] = json_of(std::vector{missed});
  EXPECT_THAT(format_report(made),
              HasSubstr("<ul>\n<li class=\"red\"><b>status: not managed</b> <span>u-1: annotation "
                        "= &quot;x&quot;<br>fix: <code>correct it</code></span></li>\n</ul>"));
  made.diagnosis.inventory = nullptr;
  EXPECT_THAT(format_report(made), HasSubstr("<li class=\"red\"><b>pods: missed</b>"));
}

TEST(FormatReport, SaysThatNothingIsWrong) {
  EXPECT_THAT(format_report(report()),
              AllOf(HasSubstr("No check has found anything."), HasSubstr("<p>No events.</p>")));
}

TEST(FormatReport, ShowsTheNewestEventFirst) {
  Report made = report();
  made.events = std::vector{
      core::Event{.kind = core::EventKind::kPlaced, .pod_name = "web", .uid = "u", .text = "old"},
      core::Event{.time = UnixMillis{1'767'225'600'000},
                  .kind = core::EventKind::kOomKilled,
                  .pod_namespace = "shop",
                  .pod_name = "web",
                  .uid = "u",
                  .container = "app",
                  .text = "OOM-killed by its own limit (64Mi)"}};
  const std::string page = format_report(made);
  EXPECT_LT(page.find("OOM-killed by its own limit"), page.find(">old<"));
  EXPECT_THAT(page,
              HasSubstr("</time></td><td class=\"time red\">oom-killed</td><td>shop/web/app</td>"
                        "<td class=\"what\">OOM-killed by its own limit (64Mi)</td></tr>"));
}

TEST(FormatReport, SaysWhatCannotBeRead) {
  Report made = report();
  made.diagnosis.inventory = nullptr;
  made.usage = fail(ErrorCode::kIo, "open <pods>");
  made.events = fail(ErrorCode::kIo, "read events");
  EXPECT_THAT(format_report(made),
              AllOf(HasSubstr("<li class=\"red\">usage: open &lt;pods&gt;</li>"),
                    HasSubstr("<li class=\"red\">events: read events</li>")));
  made = report();
  made.usage = UsageSample{};
  EXPECT_THAT(format_report(made), HasSubstr("<p>No pods.</p>"));
}

}  // namespace
}  // namespace podqos::ctl

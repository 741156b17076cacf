#include "ctl/view/report_page.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/node/node_checks.h"
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
  Node& node = made.diagnosis.node.emplace(Node{.configuration = {}});
  node.configuration.files = {"/etc/podqos/podqos.json"};
  node.version = core::CgroupVersion::kV2;
  node.capacity = {.cpu = MilliCpu{2000}, .memory = Bytes{1024 * kMi}};
  node.allocatable = {.cpu = MilliCpu{2000}, .memory = Bytes{924 * kMi}};
  node.trees = {{.kubepods = "/podqos/kubepods"}};
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
  Node& node = made.diagnosis.node.value();
  node.findings = {finding_of("limits", cat(kHostile, " warning"))};
  node.missed = {
      {.container = {.pod_name = kHostile, .uid = "u"}, .why = kHostile, .remedy = kHostile}};
  node.configuration.files = {kHostile};
  node.trees[0].kubepods = kHostile;
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

/// Each that was found of the node, where doctor has the first of a kind.
TEST(FormatReport, PutsProblemsBeforeWarnings) {
  Report made = report();
  made.diagnosis.checks.insert(
      made.diagnosis.checks.begin(),
      {{"state", "records", Outcome::kProblem, "interrupted (and 1 more)"},
       {"pods", "missed", Outcome::kProblem, "shop/web: not read yet"},
       {"docker", "known", Outcome::kProblem, "not read yet", "systemctl reload docker.service"}});
  made.diagnosis.node->findings = {finding_of("records", "interrupted"),
                                   finding_of("records", "lost"),
                                   finding_of("limits", "pod web: above its rule")};
  made.diagnosis.node->missed = {{.container = {.pod_namespace = "shop", .pod_name = "web"},
                                  .why = "not read yet",
                                  .remedy = "recreate it"}};
  const std::string page = format_report(made);
  const auto items = page.substr(page.find("<ul>"), page.find("</ul>") - page.find("<ul>"));
  EXPECT_EQ(
      items,
      "<ul>\n"
      "<li class=\"red\"><b>docker: known</b> <span>not read yet<br>fix: <code>systemctl reload "
      "docker.service</code></span></li>\n"
      "<li class=\"red\"><b>state: records</b> <span>interrupted</span></li>\n"
      "<li class=\"red\"><b>state: records</b> <span>lost</span></li>\n"
      "<li class=\"red\"><b>pods: missed</b> <span>shop/web: not read yet<br>fix: "
      "<code>recreate it</code></span></li>\n"
      "<li class=\"yellow\"><b>pods: limits</b> <span>pod web: above its rule</span></li>\n");
  EXPECT_THAT(page, HasSubstr("<summary>1 other check</summary>"));
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
  made.diagnosis.node.reset();
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

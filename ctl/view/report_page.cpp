#include "ctl/view/report_page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/base/utc_time.h"
#include "common/core/pods/pod_name.h"
#include "ctl/cli/since.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/node_checks.h"
#include "ctl/view/node_text.h"
#include "ctl/view/report_style.h"
#include "ctl/view/top_view.h"

namespace podqos::ctl {
namespace {

/// Untrusted text, escaped for an element or an attribute in double quotes.
std::string html(std::string_view text) {
  std::string out;
  for (const char c : app::one_line(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view class_of(Colour colour) {
  return colour == Colour::kRed ? "red" : colour == Colour::kYellow ? "yellow" : "";
}

std::string failure(std::string_view what, const Error& error) {
  return cat("<ul><li class=\"red\">", what, ": ", html(error.message), "</li></ul>\n");
}

// what is wrong

std::string item_of(const Finding& check) {
  const bool red = check.outcome == Outcome::kProblem;
  return cat("<li class=\"", red ? "red" : "yellow", "\"><b>", html(check.group), ": ",
             html(check.name), "</b> <span>", html(check.text),
             check.remedy.empty() ? "" : cat("<br>fix: <code>", html(check.remedy), "</code>"),
             "</span></li>\n");
}

/// The checks that are well, or do not concern this machine.
std::string others_of(const Findings& checks) {
  std::string rows;
  std::int64_t count = 0;
  for (const Finding& check : checks) {
    if (check.outcome != Outcome::kOk && check.outcome != Outcome::kSkipped) continue;
    ++count;
    rows += cat("<tr><td>", html(check.group), ": ", html(check.name), "</td><td>",
                check.outcome == Outcome::kOk ? "OK" : "-", "</td><td class=\"what\">",
                html(check.text), "</td></tr>\n");
  }
  return cat("<details><summary>", format_count(count, "other check"),
             "</summary>\n<table><tbody>\n", rows, "</tbody></table></details>\n");
}

/// What was found, and of the node each, where doctor has the first of a kind.
Findings findings_of(const Diagnosis& diagnosis) {
  Findings checks = diagnosis.checks;
  if (!diagnosis.node) return checks;
  std::erase_if(checks, [](const Finding& check) {
    return check.outcome != Outcome::kOk &&
           std::ranges::any_of(kNodeChecks, [&](const NodeCheck& kind) {
             return kind.group == check.group && kind.name == check.name;
           });
  });
  std::ranges::copy(diagnosis.node->findings, std::back_inserter(checks));
  for (const NotManaged& each : diagnosis.node->missed)
    checks.push_back({"pods", "missed", Outcome::kProblem,
                      cat(name_of(each.container), ": ", each.why), each.remedy});
  return checks;
}

/// Problems, then warnings.
std::string problems_of(const Diagnosis& diagnosis) {
  const Findings checks = findings_of(diagnosis);
  std::string items;
  for (const Outcome outcome : {Outcome::kProblem, Outcome::kWarning})
    for (const Finding& check : checks)
      if (check.outcome == outcome) items += item_of(check);
  return cat(
      "<h2>What is wrong</h2>\n",
      items.empty() ? "<p>No check has found anything.</p>\n" : cat("<ul>\n", items, "</ul>\n"),
      others_of(checks));
}

// usage

/// A column of `podqosctl top` by its word.
const TopColumn& column(std::string_view word) {
  return top_columns()[find_column(word).value_or(0)];
}

/// What a bar shows, as columns of `podqosctl top`.
struct Resource {
  const char* name;
  const char* use;
  const char* request;
  const char* limit;
  const char* of_limit;  ///< the use as a share of the limit, which gives the bar its colour
};
constexpr std::array kResourceRows = {
    Resource{"CPU", "cpu", "requested-cpu", "limited-cpu", "cpu-limit"},
    Resource{"Memory", "working-set", "requested-memory", "limited-memory", "memory-limit"}};

/// What is a number.
struct Figure {
  const char* name;
  const char* word;  ///< of a column of `podqosctl top`
};
constexpr std::array kFigures = {Figure{"Throttled", "throttled"},
                                 Figure{"CPU pressure", "cpu-pressure"},
                                 Figure{"Memory pressure", "memory-pressure"},
                                 Figure{"Swap", "swap"},
                                 Figure{"Processes", "pids"},
                                 Figure{"OOM kills", "oom"}};

/// The rows of the node, its trees, tiers, pods and containers.
class UsageTable {
 public:
  UsageTable(const std::vector<UsageEntry>& entries, const std::optional<Node>& node)
      : entries_(entries) {
    for (const UsageEntry& entry : entries | std::views::filter([](const UsageEntry& each) {
                                     return each.kind == EntryKind::kTree;
                                   })) {
      add(node_.requests.cpu, entry.requests.cpu);
      add(node_.requests.memory, entry.requests.memory);
      add(node_.usage.cpu, entry.usage.cpu);
      add(node_.usage.working_set, entry.usage.working_set);
    }
    // Others would be columns of dashes, as PSI on cgroup v1.
    std::ranges::copy_if(kFigures, std::back_inserter(figures_), [&](const Figure& figure) {
      return std::ranges::any_of(entries, [&](const UsageEntry& entry) {
        return column(figure.word).value(entry).has_value();
      });
    });
    if (node) node_.limits = {.cpu = node->allocatable.cpu, .memory = node->allocatable.memory};
  }

  [[nodiscard]] std::string text() const {
    std::string head = "<th>Name</th>";
    for (const Resource& resource : kResourceRows)
      head += cat("<th class=\"bar\">", resource.name,
                  "<br><small>in use / request / limit</small>", "</th>");
    for (const Figure& figure : figures_)
      head += cat("<th class=\"number\" title=\"", column(figure.word).meaning, "\">", figure.name,
                  "</th>");
    std::string rows = row("node", "all pods", "of what is allocatable", node_);
    for (const TopRow& each : rows_of(entries_, {.sort = std::nullopt})) {
      const UsageEntry& entry = entries_[each.entry];
      rows += row(kKinds.at(static_cast<std::size_t>(entry.kind)), label_of(entries_, each.entry),
                  detail_of(entry), entry);
    }
    return cat("<table class=\"usage\">\n<thead><tr>", head, "</tr></thead>\n<tbody>\n", rows,
               "</tbody>\n</table>\n");
  }

 private:
  static constexpr std::array kKinds = {"tree", "tier", "pod", "container"};

  template <class Value>
  static void add(std::optional<Value>& sum, const std::optional<Value>& part) {
    if (part) sum = sum.value_or(Value{}) + *part;
  }

  static std::string detail_of(const UsageEntry& entry) {
    if (entry.kind != EntryKind::kPod) return "";
    const std::string engine{core::format_engine(entry.engine)};
    return cat(engine, engine.empty() ? "" : " ", entry.kubelets_own ? "kubelet's" : "");
  }

  [[nodiscard]] std::string row(std::string_view kind, std::string_view name,
                                std::string_view detail, const UsageEntry& entry) const {
    std::string out =
        cat("<tr class=\"", kind, "\"><td>", html(name), detail.empty() ? "" : " <small>",
            html(detail), detail.empty() ? "" : "</small>", "</td>");
    for (const Resource& resource : kResourceRows)
      out += bar(entry, resource);
    for (const Figure& figure : figures_) {
      const TopColumn& shown = column(figure.word);
      const auto value = shown.value(entry);
      out += cat("<td data-name=\"", figure.name, "\" class=\"number ",
                 value ? class_of(colour_of(shown, *value)) : "unset", "\">",
                 value ? shown.text(*value) : "-", "</td>");
    }
    return cat(out, "</tr>\n");
  }

  /// The limit of an entry, or else of what it is in; 0 if none is known.
  [[nodiscard]] std::int64_t room_of(const UsageEntry& entry, const TopColumn& limit) const {
    const UsageEntry* each = &entry;
    while (!limit.value(*each) && each != &node_)
      each = each->parent == UsageEntry::kNoParent ? &node_ : &entries_[each->parent];
    return limit.value(*each).value_or(0);
  }

  /// Drawn from 0 to the limit: what is in use, and a line at the request.
  [[nodiscard]] std::string bar(const UsageEntry& entry, const Resource& resource) const {
    constexpr std::int64_t kWidth = 1000;
    const TopColumn& in_use = column(resource.use);
    const TopColumn& limited = column(resource.limit);
    const auto use = in_use.value(entry);
    const auto request = column(resource.request).value(entry);
    const auto limit = limited.value(entry);
    const std::int64_t whole =
        std::max({room_of(entry, limited), use.value_or(0), request.value_or(0), std::int64_t{1}});
    const auto place = [&](std::int64_t value) { return mul_div(value, kWidth, whole); };
    const TopColumn& share = column(resource.of_limit);
    const auto shown = [&](const std::optional<std::int64_t>& value) {
      return value ? in_use.text(*value) : std::string{"-"};
    };
    return cat(
        "<td data-name=\"", resource.name, "\" class=\"bar\">", shown(use), " / ", shown(request),
        " / ", shown(limit),
        "<svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        limit ? cat("<rect class=\"limit\" height=\"10\" width=\"", place(*limit), "\"/>") : "",
        use ? cat("<rect class=\"use ", class_of(colour_of(share, share.value(entry).value_or(0))),
                  "\" y=\"2\" height=\"6\" width=\"", place(*use), "\"/>")
            : "",
        request ? cat("<rect class=\"request\" height=\"10\" width=\"6\" x=\"",
                      std::min(place(*request), kWidth - 6), "\"/>")
                : "",
        "</svg></td>");
  }

  const std::vector<UsageEntry>& entries_;
  std::vector<Figure> figures_;
  UsageEntry node_;  ///< the sums of all trees, with what is allocatable as limits
};

std::string usage_of(const Report& report) {
  constexpr std::string_view kTitle = "<h2>Tiers and pods</h2>\n";
  if (!report.usage) return cat(kTitle, failure("usage", report.usage.error()));
  const UsageSample& sample = *report.usage;
  if (sample.entries.empty()) return cat(kTitle, "<p>No pods.</p>\n");
  return cat(kTitle, "<p class=\"dim\">Over ", sample.interval_ms,
             " ms. A bar ends at the limit, its own or else that of what it is in; the line is the "
             "request. Memory is the working set.</p>\n",
             UsageTable{sample.entries, report.diagnosis.node}.text());
}

// events

std::string events_of(const Report& report) {
  constexpr std::string_view kTitle = "<h2>Events</h2>\n";
  if (!report.events) return cat(kTitle, failure("events", report.events.error()));
  if (report.events->empty()) return cat(kTitle, "<p>No events.</p>\n");
  std::string rows;
  for (const core::Event& event : *report.events | std::views::reverse)
    rows += cat("<tr><td class=\"time\"><time datetime=\"", format_utc(event.time), "\">",
                format_local(event.time), "</time></td><td class=\"time ",
                class_of(colour_of(event.kind)), "\">", core::format_event_kind(event.kind),
                "</td><td>", html(name_of(event)), "</td><td class=\"what\">", html(event.text),
                "</td></tr>\n");
  return cat(
      kTitle,
      "<table>\n<thead><tr><th>Time</th><th>Event</th><th>Pod</th><th>What</th></tr></thead>\n"
      "<tbody>\n",
      rows, "</tbody>\n</table>\n");
}

std::string facts_of(const std::optional<Node>& node) {
  if (!node) return "";
  auto facts = node_facts(*node);
  for (const auto& [name, sum] :
       {std::pair{"capacity", node->capacity}, std::pair{"allocatable", node->allocatable}})
    facts.emplace_back(name, shown(Amounts{.cpu = sum.cpu, .memory = sum.memory}));
  std::string out;
  for (const auto& [name, fact] : facts)
    out += cat("<dt>", name, "</dt><dd>", html(fact), "</dd>\n");
  return cat("<dl>\n", out, "</dl>\n");
}

}  // namespace

std::string format_report(const Report& report) {
  const std::string host = html(report.host);
  return cat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n",
             "<title>podqos on ", host, "</title>\n<style>", kReportStyle,
             "</style>\n</head>\n<body>\n<h1>podqos on ", host, "</h1>\n<p class=\"dim\">",
             "<time datetime=\"", format_utc(report.time), "\">", format_local(report.time),
             "</time>, podqosctl " PODQOS_VERSION "</p>\n", facts_of(report.diagnosis.node),
             problems_of(report.diagnosis), usage_of(report), events_of(report),
             "</body>\n</html>\n");
}

}  // namespace podqos::ctl

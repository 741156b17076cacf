#include "ctl/describe.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "ctl/event_pods.h"
#include "ctl/explanation.h"
#include "ctl/node_json.h"
#include "ctl/node_text.h"

namespace podqos::ctl {
namespace {

/// Adds what the kernel has counted of a cgroup since it was made; null for what it does not count.
void add_counters(Json& json, const cgroup::CgroupView& cgroup) {
  json["cpuUsageNs"] = json_of(cgroup.cpu_usage_ns());
  json["cpuPeriods"] = json_of(cgroup.cpu_periods());
  json["cpuThrottledPeriods"] = json_of(cgroup.cpu_throttled_periods());
}

/// "12.3s", of nanoseconds.
std::string shown_seconds(std::int64_t nanoseconds) {
  constexpr std::int64_t kNanosPerTenth = 100'000'000;
  const std::int64_t tenths = nanoseconds / kNanosPerTenth;
  return cat(tenths / 10, ".", tenths % 10, "s");
}

/// The lines about a pod.
class Lines {
 public:
  explicit Lines(const Screen& screen) : screen_(screen) {}

  void add(std::string_view name, std::string_view value) {
    rows_.push_back({cell(cat(indent_, name), Colour::kDim), cell(fitted(value, screen_))});
  }
  void begin_container(std::string title) {
    rows_.push_back({cell("container", Colour::kDim), cell(std::move(title), Colour::kBold)});
    indent_ = "  ";
  }

  /// Values of the kernel, with those of the rule where they differ, usage, and what was counted.
  void add_values(const Entry& entry, const std::optional<std::int64_t>& oom_kills) {
    const cgroup::CgroupView& held = entry.held;
    add("cgroup", printable(held.path(), kLongestPath));
    add(held.cpu_weight() ? "cpu weight" : "cpu shares", share_of(entry));
    add("cpu limit",
        cat(shown_quota(held), held.cpu_periods().value_or(0) == 0
                                   ? ""
                                   : cat(", throttled in ", shown(held.cpu_throttled_periods()),
                                         " of ", *held.cpu_periods(), " periods")));
    if (const auto used = held.cpu_usage_ns()) add("cpu time", shown_seconds(*used));
    add("memory", cat(shown(held.memory_usage()), " in use, limit ", memory_limit_of(entry)));
    for (const Protection& each : kProtections)
      if (const auto text = shown(each, entry); !text.empty()) add(each.file, text);
    add("processes", cat(shown(held.pids()), ", limit ", shown(held.pids_limit())));
    if (oom_kills) add("OOM kills", cat(*oom_kills));
  }

  void add_container(const ContainerEntry& container) {
    const core::ContainerRecord& record = container.record;
    begin_container(cat(core::display_name(record), record.sandbox ? " (sandbox)" : "", ", ",
                        word_of(container.status), container.paused ? ", paused" : "",
                        container.is_throttled() ? ", throttled" : ""));
    add("id", printable(record.id));
    if (container.status != ContainerStatus::kDead)
      add("pid",
          cat(record.pid.value(), ", OOM score adjustment ", shown(container.oom_score_adj)));
    add_values(container.cgroup, container.cgroup.held.oom_kills_of_container());
  }

  [[nodiscard]] std::string text() const { return format_table(rows_, screen_); }

 private:
  static constexpr std::size_t kLongestPath = 4096;

  const Screen& screen_;
  std::string_view indent_;
  std::vector<Row> rows_;
};

/// The last events of the pod, as a table.
std::string events_text(const std::vector<core::Event>& events, const Screen& screen) {
  if (events.empty()) return "";
  std::vector<Row> rows = {heading({"TIME", "EVENT", "WHAT"})};
  for (const core::Event& event : events) {
    Row& row = rows.emplace_back(row_of(event, screen));
    row.erase(row.begin() + 2);
  }
  return cat("\n", format_table(rows, screen));
}

}  // namespace

Result<Description> describe(const app::ConfigurationReport& configuration,
                             const NodeRecords& records, cgroup::Machine& cgroups,
                             const Selection& selected, std::vector<core::Event> events) {
  const core::PodRecord& record = *selected.pod;
  const std::string& uid = record.pod.uid;
  PODQOS_ASSIGN(Node node, read_checked_node(configuration, records, cgroups, uid));
  if (node.pods.empty())
    return fail(ErrorCode::kNotFound, cat("pod ", core::display_name(record), " has ended"));
  Description found{.pod = std::move(node.pods.front()), .findings = {}, .events = {}};
  std::ranges::copy_if(node.findings, std::back_inserter(found.findings),
                       [&](const Finding& each) { return each.subject == uid; });
  if (selected.container != nullptr)
    std::erase_if(found.pod.containers, [&](const ContainerEntry& container) {
      return container.record.id != selected.container->id;
    });
  constexpr std::ptrdiff_t kMost = 10;
  found.events = std::move(events);
  std::erase_if(found.events, [&](const core::Event& event) { return !is_about(event, selected); });
  if (const auto surplus = std::ssize(found.events) - kMost; surplus > 0)
    found.events.erase(found.events.begin(), found.events.begin() + surplus);
  return found;
}

Json describe_json(const Description& description) {
  Json json = pod_json(description.pod, description.findings);
  add_counters(json, description.pod.cgroup.held);
  for (std::size_t each = 0; each < description.pod.containers.size(); ++each)
    add_counters(json.at("containers").at(each), description.pod.containers[each].cgroup.held);
  json["weightFormula"] = word_of(description.pod.cgroup.formula);
  json["events"] = Json::array();
  for (const core::Event& event : description.events)
    json["events"].push_back(Json::parse(codec::format_event(event)));
  return json;
}

std::string describe_text(const Description& description, const Screen& screen) {
  const core::PodRecord& record = description.pod.record;
  Lines lines{screen};
  lines.add("pod", core::display_name(record));
  lines.add("uid", printable(record.pod.uid));
  const std::string_view engine = core::format_engine(record.engine);
  lines.add("engine", engine.empty() ? "-" : engine);
  lines.add("class", cat(shown_class(record), ", by ", core::format_source(record.class_source)));
  lines.add("requests", shown(requests_of(record)));
  lines.add("limits", shown(limits_in(description.pod.cgroup.held)));
  lines.add_values(description.pod.cgroup, description.pod.oom_kills);
  for (const ContainerEntry& container : description.pod.containers)
    lines.add_container(container);
  return cat(lines.text(), events_text(description.events, screen));
}

}  // namespace podqos::ctl

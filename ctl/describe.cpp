#include "ctl/describe.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <utility>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/base/utc_time.h"
#include "common/cgroup/cgroup_view.h"
#include "common/codec/event_json.h"
#include "common/core/events/decide_admission.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "ctl/event_pods.h"
#include "ctl/inventory.h"
#include "ctl/inventory_view.h"
#include "ctl/since.h"

namespace podqos::ctl {
namespace {

/// Adds what the kernel has counted of a cgroup since it was made; null for what it does not count.
/// @param json  with its path in "cgroup"
void add_counters(Json& json, cgroup::Machine& cgroups) {
  const cgroup::CgroupView cgroup{cgroups, json.at("cgroup").get<std::string>()};
  json["cpuUsageNs"] = json_of(cgroup.cpu_usage_ns());
  json["cpuPeriods"] = json_of(cgroup.cpu_periods());
  json["cpuThrottledPeriods"] = json_of(cgroup.cpu_throttled_periods());
}

/// "12.3s", of nanoseconds.
std::string shown_seconds(const Json& nanoseconds) {
  constexpr std::int64_t kNanosPerTenth = 100'000'000;
  const std::int64_t tenths = nanoseconds.get<std::int64_t>() / kNanosPerTenth;
  return cat(tenths / 10, ".", tenths % 10, "s");
}

/// The lines about a pod.
class Description {
 public:
  Description(const Json& view, const Screen& screen) : view_(view), screen_(screen) {}

  void add(std::string_view name, std::string_view value) {
    rows_.push_back({cell(cat(indent_, name), Colour::kDim), cell(fitted(value, screen_))});
  }
  void begin_container(std::string title) {
    rows_.push_back({cell("container", Colour::kDim), cell(std::move(title), Colour::kBold)});
    indent_ = "  ";
  }

  /// Values of the kernel, with those of the rule where they differ, usage, and what was counted.
  void add_values(const Json& cgroup) {
    const Json& rule = cgroup.at("rule");
    add("cgroup", printable(text_in(cgroup, "cgroup"), kLongestPath));
    add(cgroup.at("cpuWeight").is_null() ? "cpu shares" : "cpu weight",
        with_rule(held_share(cgroup), ruled_share(view_, cgroup)));
    const Json& periods = cgroup.at("cpuPeriods");
    const bool throttles = periods.is_number() && periods != 0;
    add("cpu limit",
        cat(shown_quota(cgroup),
            throttles ? cat(", throttled in ", number_in(cgroup, "cpuThrottledPeriods"), " of ",
                            periods.dump(), " periods")
                      : ""));
    if (!cgroup.at("cpuUsageNs").is_null()) add("cpu time", shown_seconds(cgroup.at("cpuUsageNs")));
    add("memory",
        cat(bytes_in(cgroup, "memoryUsageBytes"), " in use, limit ",
            with_rule(bytes_in(cgroup, "memoryLimitBytes"), rule.contains("memoryLimitBytes")
                                                                ? bytes_in(rule, "memoryLimitBytes")
                                                                : "-")));
    for (const auto& [name, key] : kProtections)
      if (is_set(cgroup.at(key)) || is_set(rule.at(key)))
        add(name, with_rule(bytes_in(cgroup, key), bytes_in(rule, key)));
    add("processes", cat(number_in(cgroup, "pids"), ", limit ", number_in(cgroup, "pidsLimit")));
    if (!cgroup.at("oomKills").is_null()) add("OOM kills", number_in(cgroup, "oomKills"));
  }

  [[nodiscard]] std::string text() const { return format_table(rows_, screen_); }

 private:
  static constexpr std::size_t kLongestPath = 4096;

  const Json& view_;
  const Screen& screen_;
  std::string_view indent_;
  std::vector<Row> rows_;
};

/// The last events of the pod, as a table.
std::string events_text(const Json& events, const Screen& screen) {
  std::vector<Row> rows = {heading({"TIME", "EVENT", "WHAT"})};
  for (const Json& event : events)
    rows.push_back({cell(format_local(parse_utc(event.value("time", "")).value_or(UnixMillis{}))),
                    cell(event.value("event", "")),
                    cell(fitted(app::one_line(event.value("text", "")), screen))});
  return rows.size() > 1 ? cat("\n", format_table(rows, screen)) : "";
}

/// The events of the pod or container that the journal still has, the last ten.
Json events_of(const std::string& state_dir, const Selection& selected, Json& warnings) {
  constexpr std::size_t kMost = 10;
  Json list = Json::array();
  const auto journal = store::read_events(state_dir);
  if (!journal) {
    warnings.push_back(journal.error().message);
    return list;
  }
  std::vector<const core::Event*> own;
  for (const core::Event& event : journal->events)
    if (is_about(event, selected)) own.push_back(&event);
  for (const core::Event* event : own | std::views::drop(own.size() - std::min(kMost, own.size())))
    list.push_back(Json::parse(codec::format_event(*event)));
  return list;
}

}  // namespace

Result<Json> describe_json(const app::ConfigurationReport& configuration,
                           const NodeRecords& records, cgroup::Machine& cgroups,
                           const Selection& selected) {
  const core::PodRecord& record = *selected.pod;
  PODQOS_ASSIGN(Json view, checked_inventory(configuration, records, cgroups, record.pod.uid));
  if (view.at("pods").empty())
    return fail(ErrorCode::kNotFound, cat("pod ", core::display_name(record), " has ended"));
  Json pod = std::move(view.at("pods").at(0));
  add_counters(pod, cgroups);
  if (selected.container != nullptr)
    std::erase_if(pod.at("containers").get_ref<Json::array_t&>(), [&](const Json& container) {
      return text_in(container, "id") != selected.container->id;
    });
  for (Json& container : pod.at("containers"))
    add_counters(container, cgroups);
  pod["weightFormula"] = view.at("weightFormula");
  pod["events"] = events_of(configuration.settings.state_dir, selected, pod.at("warnings"));
  return pod;
}

std::string describe_text(const Json& pod, const Screen& screen) {
  Description lines{pod, screen};
  lines.add("pod", pod_title(pod));
  lines.add("uid", printable(text_in(pod, "uid")));
  const std::string& engine = text_in(pod, "engine");
  lines.add("engine", engine.empty() ? "-" : engine);
  lines.add("class", cat(shown_class(pod), ", by ", text_in(pod, "source")));
  lines.add("requests", amounts_in(pod, "requests"));
  lines.add("limits", amounts_in(pod, "limits"));
  lines.add_values(pod);
  for (const Json& container : pod.at("containers")) {
    lines.begin_container(
        cat(container_title(container), container.at("sandbox") ? " (sandbox)" : "", ", ",
            text_in(container, "state"), container.at("throttled") ? ", throttled" : ""));
    lines.add("id", printable(text_in(container, "id")));
    if (container.at("state") != "dead")
      lines.add("pid", cat(number_in(container, "pid"), ", OOM score adjustment ",
                           number_in(container, "oomScoreAdj")));
    lines.add_values(container);
  }
  return cat(lines.text(), events_text(pod.at("events"), screen));
}

}  // namespace podqos::ctl

#include "ctl/view/describe.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "ctl/explain/explanation.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/node_json.h"
#include "ctl/view/node_text.h"

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

  void add_values(const PodEntry& pod, const ContainerEntry* container) {
    for (const Value& each : values_of(pod, container))
      add(each.name, each.text);
  }

  void add_container(const PodEntry& pod, const ContainerEntry& container) {
    const core::ContainerRecord& record = container.record;
    begin_container(cat(core::display_name(record), record.sandbox ? " (sandbox)" : "", ", ",
                        container.status(), container.paused ? ", paused" : "",
                        container.is_throttled() ? ", throttled" : ""));
    add("id", printable(record.id));
    if (container.alive) add("pid", cat(record.pid.value()));
    add_values(pod, &container);
  }

  [[nodiscard]] std::string text() const { return format_table(rows_, screen_); }

 private:
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

std::vector<Value> values_of(const PodEntry& pod, const ContainerEntry* container) {
  constexpr std::size_t kLongestPath = 4096;
  const Entry& entry = container == nullptr ? pod.cgroup : container->cgroup;
  const cgroup::CgroupView& held = entry.held;
  std::vector<Value> values;
  const auto add = [&](std::string_view name, std::string text, std::string sentence = "") {
    values.push_back({name, std::move(text), std::move(sentence)});
  };
  const std::string path = printable(held.path(), kLongestPath);
  add("cgroup", path, cat("cgroup is ", path));
  if (container == nullptr) {
    const std::string requests = shown(requests_of(pod.record));
    add("requests", requests,
        requests == "-" ? "requests are none, so that it has the least share of the CPU"
                        : cat("requests are ", requests));
  }
  const std::string share = share_of(entry);
  if (held.cpu_weight())
    add("CPU weight", share, cat("CPU weight is ", share));
  else
    add("CPU shares", share, cat("CPU shares are ", share));
  const std::string quota = shown_quota(held);
  add("CPU limit", quota, quota == "-" ? "CPU has no limit" : cat("CPU limit is ", quota));
  if (const auto throttled = held.cpu_throttled_periods().value_or(0); throttled > 0) {
    const std::string in = cat("in ", throttled, " of ", shown(held.cpu_periods()), " periods");
    add("throttled", in, cat("CPU limit made it wait ", in));
  }
  if (const auto used = held.cpu_usage_ns()) add("CPU time", shown_seconds(*used));
  const std::string usage = shown(held.memory_usage());
  const std::string limit = memory_limit_of(entry);
  add("memory", cat(usage, " in use, limit ", limit),
      cat(limit == "-" ? "memory has no limit" : cat("memory limit is ", limit), "; ", usage,
          " are in use"));
  for (const Protection& each : kProtections)
    if (const std::string text = shown(each, entry); !text.empty())
      add(each.file, text, cat(each.file, " is ", text, ": ", each.meaning));
  const std::string pids = shown(held.pids_limit());
  add("processes", cat(shown(held.pids()), ", limit ", pids),
      pids == "-" ? "" : cat("limit of processes is ", pids));
  if (container != nullptr && container->oom_score_adj) {
    const std::string score = cat(*container->oom_score_adj);
    add("OOM score", score, cat("OOM score adjustment is ", score));
  }
  const auto kills =
      container == nullptr ? pod.oom_kills : held.oom_kills_of_container().value_or(0);
  if (kills > 0)
    add("OOM kills", cat(kills),
        cat("processes were OOM-killed: ", kills, ", as the kernel counts"));
  return values;
}

std::string reason_of(const core::PodRecord& record) {
  return verdict_of(record, core::whole_pod(record.pod, record.sums)).reason;
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
  if (const std::string& id = core::engine_id(record); !id.empty()) lines.add("id", printable(id));
  const std::string_view engine = core::format_engine(record.engine);
  lines.add("engine", engine.empty() ? "-" : engine);
  lines.add("class", cat(shown_class(record), ": ", reason_of(record), " (by ",
                         core::format_source(record.class_source), ")"));
  lines.add_values(description.pod, nullptr);
  for (const ContainerEntry& container : description.pod.containers)
    lines.add_container(description.pod, container);
  return cat(lines.text(), events_text(description.events, screen));
}

}  // namespace podqos::ctl

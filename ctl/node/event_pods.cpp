#include "ctl/node/event_pods.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/core/pods/pod_name.h"
#include "ctl/cli/since.h"

namespace podqos::ctl {

using core::Event;

const std::string& uid_of(const Event& event) {
  return event.uid.empty() ? event.container_id : event.uid;
}

std::vector<core::PodRecord> pods_in(const std::vector<Event>& events) {
  std::map<std::string, core::PodRecord> pods;
  // By engine, namespace and name the uid of the pod that came last.
  std::map<std::array<std::string, 3>, std::string> newest;
  for (const Event& event : events) {
    if (uid_of(event).empty()) continue;
    core::PodRecord& record = pods[uid_of(event)];
    record.pod.uid = uid_of(event);
    if (!event.pod_name.empty()) {
      if (record.pod.name.empty())
        newest[{event.engine, event.pod_namespace, event.pod_name}] = uid_of(event);
      record.pod.name = event.pod_name;
      record.pod.pod_namespace = event.pod_namespace;
    }
    if (event.qos_class) record.qos_class = *event.qos_class;
    if (const auto engine = core::parse_engine(event.engine)) record.engine = engine;
    if (event.container_id.empty()) continue;
    std::erase_if(record.containers, [&](const core::ContainerRecord& container) {
      return container.id == event.container_id ||
             (!event.container.empty() && container.name == event.container);
    });
    core::ContainerRecord& container = record.containers.emplace_back();
    container.id = event.container_id;
    container.name = event.container;
  }
  std::vector<core::PodRecord> found;
  found.reserve(pods.size());
  for (auto& [uid, record] : pods) {
    const std::string engine{core::format_engine(record.engine)};
    const auto last = newest.find({engine, record.pod.pod_namespace, record.pod.name});
    if (last != newest.end() && last->second != uid)
      record.pod.name = record.pod.pod_namespace = "";
    found.push_back(std::move(record));
  }
  return found;
}

void name_events(std::vector<Event>& events, const NodeRecords& records) {
  std::map<std::string_view, const core::PodRecord*> pods;
  for (const core::PodRecord& pod : records.pods)
    pods.emplace(pod.pod.uid, &pod);
  for (Event& event : events) {
    const auto pod = pods.find(event.uid);
    if (pod == pods.end()) continue;
    if (event.pod_name.empty()) {
      event.pod_name = pod->second->pod.name;
      event.pod_namespace = pod->second->pod.pod_namespace;
    }
    const auto name = records.names.find(event.container_id);
    if (name != records.names.end()) event.container = name->second;
  }
}

void name_events(std::vector<Event>& events, const core::Settings& settings) {
  const auto lacks_name = [](const Event& event) {
    const bool by_id = event.container.empty() || event.container == event.container_id;
    return event.pod_name.empty() || (by_id && !event.container_id.empty());
  };
  if (std::ranges::none_of(events, lacks_name)) return;
  auto records = read_records(settings, store::Opening::kReadUnlocked);
  if (!records) return;
  find_engine_names(*records);
  name_events(events, *records);
}

bool is_about(const Event& event, const Selection& selection) {
  const auto& [pod, container] = selection;
  // A failure may be recorded before the container's pod is known.
  const bool early =
      event.uid.empty() && std::ranges::find(pod->containers, event.container_id,
                                             &core::ContainerRecord::id) != pod->containers.end();
  if (uid_of(event) != pod->pod.uid && !early) return false;
  if (container == nullptr || event.container_id == container->id) return true;
  return !container->name.empty() && event.container == container->name;
}

std::string name_of(const Event& event) {
  core::ContainerRecord container;
  container.id = event.container_id;
  container.name = event.container;
  const bool has_container = !event.container.empty() || !event.container_id.empty();
  if (uid_of(event).empty() && event.pod_name.empty()) return "-";
  if (event.uid.empty() && event.pod_name.empty()) return core::display_name(container);
  const std::string name = core::display_name(
      {.pod_namespace = event.pod_namespace, .name = event.pod_name, .uid = event.uid, .id = {}});
  return has_container ? cat(name, "/", core::display_name(container)) : name;
}

Row row_of(const Event& event, const Screen& screen) {
  return {cell(format_local(event.time)),
          cell(std::string{core::format_event_kind(event.kind)}, colour_of(event.kind)),
          cell(name_of(event)), cell(fitted(app::one_line(event.text), screen))};
}

Colour colour_of(core::EventKind kind) {
  using enum core::EventKind;
  switch (kind) {
    case kFailed:
    case kRefused:
    case kOomKilled:
    case kEvicted: return Colour::kRed;
    case kMisplaced:
    case kMoved:
    case kCorrected:
    case kThrottled: return Colour::kYellow;
    case kPlaced:
    case kRegistered:
    case kResized:
    case kReleased: break;
  }
  return Colour::kNone;
}

}  // namespace podqos::ctl

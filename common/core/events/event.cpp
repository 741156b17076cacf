#include "common/core/events/event.h"

#include <algorithm>
#include <cstddef>

#include "common/base/text.h"
#include "common/core/pods/pod_name.h"

namespace podqos::core {

std::string_view format_event_kind(EventKind kind) {
  return word_at(kEventKinds, static_cast<std::size_t>(kind));
}

Event event_of(EventKind kind, const PodRecord& record, const ContainerRecord* container) {
  Event event{.kind = kind,
              .engine = std::string{format_engine(record.engine)},
              .pod_namespace = record.pod.pod_namespace,
              .pod_name = record.pod.name,
              .uid = record.pod.uid,
              .qos_class = record.qos_class,
              .cgroup = record.cgroup};
  if (container != nullptr) {
    event.container = container->name;
    event.container_id = container->id;
    event.cgroup = container->cgroup;
  }
  return event;
}

bool is_recent(const Event& event, UnixMillis now) {
  constexpr UnixMillis kHour{3'600'000};
  return event.time >= now - kHour;
}

bool has_lately(std::span<const Event> journal, const Event& event, UnixMillis now) {
  return std::ranges::any_of(journal, [&](const Event& earlier) {
    return is_recent(earlier, now) && earlier.kind == event.kind && earlier.uid == event.uid &&
           earlier.container_id == event.container_id && earlier.text == event.text;
  });
}

}  // namespace podqos::core

#include "common/core/event.h"

namespace podqos::core {

Event event_of(EventKind kind, const PodRecord& record, const ContainerRecord* container) {
  Event event{.kind = kind,
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

}  // namespace podqos::core

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// What podqos.io/* annotations say, checked and bounded.
struct PodqosAnnotations {
  bool ignore = false;                   ///< podqos.io/ignore: "true"
  std::optional<std::string> pod_uid;    ///< podqos.io/pod-uid
  std::optional<std::string> container;  ///< podqos.io/container
  std::optional<QosClass> qos_class;     ///< podqos.io/qos-class
  std::shared_ptr<const Pod> pod;        ///< podqos.io/pod, defaulted; null where it is absent
  std::optional<Resources> pod_level;    ///< podqos.io/requests, podqos.io/limits
  std::map<std::string, Resources, std::less<>>
      containers;  ///< podqos.io/requests.<name>, limits.<name>

  [[nodiscard]] bool any_identity_or_resource() const {
    return pod_uid || container || qos_class || pod || pod_level || !containers.empty();
  }
};

/// What the annotations of one container say.
struct ParsedAnnotations {
  PodqosAnnotations podqos;
  EngineAnnotations engine;
};

}  // namespace podqos::core

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// The podqos.io/* annotations of a container, parsed and validated.
struct PodqosAnnotations {
  bool ignore = false;                   ///< podqos.io/ignore: "true"
  std::optional<std::string> pod_uid;    ///< podqos.io/pod-uid
  std::optional<std::string> container;  ///< podqos.io/container
  std::optional<QosClass> qos_class;     ///< podqos.io/qos-class
  std::shared_ptr<const Pod> pod;        ///< podqos.io/pod with API defaults; null if absent
  std::optional<Resources> pod_level;    ///< podqos.io/requests, podqos.io/limits
  std::map<std::string, Resources, std::less<>>
      containers;  ///< podqos.io/requests.<name>, limits.<name>

  /// Whether any annotation except podqos.io/ignore is present.
  [[nodiscard]] bool any_identity_or_resource() const {
    return pod_uid || container || qos_class || pod || pod_level || !containers.empty();
  }
};

/// All annotations of a container that podqos uses.
struct ParsedAnnotations {
  PodqosAnnotations podqos;
  EngineAnnotations engine;
};

}  // namespace podqos::core

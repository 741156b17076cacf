#pragma once

#include <string>

#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

/// A class and the reason for it, e.g. "container \"a\" has no memory limit".
struct QosVerdict {
  QosClass qos_class = QosClass::kBestEffort;
  std::string reason;
};

/// QoS class of a pod with API defaults. status.qosClass overrides the spec. If spec.resources is
/// present, even empty, the containers do not count. Only cpu and memory above 0 count.
/// @note pkg/apis/core/v1/helper/qos/qos.go GetPodQOS.
[[nodiscard]] QosVerdict classify(const Pod& pod);

}  // namespace podqos::core

#pragma once

#include <string>

#include "common/core/pod.h"

namespace podqos::core {

/// A class and the one-sentence reason a person can check, e.g. "container \"a\" has no memory
/// limit".
struct QosVerdict {
  QosClass qos_class = QosClass::kBestEffort;
  std::string reason;
};

/// QoS class of a defaulted pod.
/// @note pkg/apis/core/v1/helper/qos/qos.go GetPodQOS, pod-level resources included.
[[nodiscard]] QosVerdict classify(const Pod& pod);

}  // namespace podqos::core

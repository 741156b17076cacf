#pragma once

#include <cstddef>

#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::core {

/// Maximum size of a pod's record in bytes. Each transaction of the pod reads and writes the record
/// under the lock, so a pod's author must not be able to make it larger.
constexpr std::size_t kMaxPodRecordSize = std::size_t{256} << 10U;
/// Part of the maximum that is reserved for the container being admitted, whose id and paths are
/// not known when the size is checked.
constexpr std::size_t kRecordRoom = std::size_t{64} << 10U;
/// Maximum number of containers of a pod without podqos.io/pod.
constexpr std::size_t kMaxPartialContainers = 256;

/// Upper bound of the record's size as JSON, in bytes. Counts a fixed size per quantity.
[[nodiscard]] std::size_t record_size(const PodRecord& record);

/// Checks that one more container can be admitted.
/// @return kTooLarge beyond the bounds above, with what to change
[[nodiscard]] Status check_record_size(const PodRecord& record);

}  // namespace podqos::core

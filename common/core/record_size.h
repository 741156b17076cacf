#pragma once

#include <cstddef>

#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::core {

/// What a pod's record may take: it is read and written under the lock in each event of the pod,
/// and all others wait, so that no author may make it longer.
constexpr std::size_t kMaxPodRecordSize = std::size_t{256} << 10U;
/// Of these the containers' descriptions and entries may not take the last ones: they are for the
/// container that comes now, whose id and paths are not known yet.
constexpr std::size_t kRecordRoom = std::size_t{64} << 10U;
/// Containers that a pod can have which no podqos.io/pod describes.
constexpr std::size_t kMaxPartialContainers = 256;

/// Bytes that the record takes as JSON, or more: up to 40 for each quantity.
[[nodiscard]] std::size_t record_size(const PodRecord& record);

/// May one more container join?
/// @return kTooLarge beyond the bounds above.
[[nodiscard]] Status check_record_size(const PodRecord& record);

}  // namespace podqos::core

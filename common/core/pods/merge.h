#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/identity.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// The record of a pod with a new container's claim, and warnings about the claim.
struct MergedPod {
  PodRecord record;
  /// The container's name in the record. In an incomplete pod no other container has it, since each
  /// counts for itself: the second "web" is "web-2".
  std::string container;
  std::vector<std::string> warnings;  ///< one sentence each, for the log
};

/// Determines class and resources of a pod to which a container is admitted.
///
/// The class is fixed by the first claim: by the engine's cgroup, by a complete spec, or by the
/// first application container, then Guaranteed only if podqos.io/qos-class says so. Later claims
/// that contradict it give a warning.
/// @param existing  the pod's record without containers that have ended; nullopt for a new pod
/// @return kConflict if the pod belongs to other containers (check_owner()); what check_described()
///         says
[[nodiscard]] Result<MergedPod> merge_claim(const std::optional<PodRecord>& existing,
                                            const Identity& identity, const PodClaim& claim,
                                            const Settings& settings);

/// @return kTooLarge if the record describes more than 256 containers without podqos.io/pod
[[nodiscard]] Status check_described(const PodRecord& record);

}  // namespace podqos::core

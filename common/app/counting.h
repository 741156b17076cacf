#pragma once

#include <optional>

#include "common/app/transaction.h"
#include "common/core/record.h"
#include "common/core/tier.h"

namespace podqos::app {

/// What the other pods have of the node.
/// @param pod  as it has been counted so far
[[nodiscard]] core::TierSums sums_beside(const core::TiersRecord& tiers,
                                         const std::optional<core::PodRecord>& pod);

/// The pod's requests, bounded by what is free beside the others.
/// @param before  the pod as it has been counted so far
void grant_pod(Transaction& transaction, core::PodRecord& record,
               const std::optional<core::PodRecord>& before);

/// Sums without the pod as it was, with it as it is.
void count_pod(Transaction& transaction, const core::PodRecord& record,
               const std::optional<core::PodRecord>& before);

/// Remembers a container that is yet to be confirmed, and forgets one that is.
void note_pending(core::TiersRecord& tiers, const core::PodRecord& record,
                  const core::ContainerRecord& container);

}  // namespace podqos::app

#pragma once

#include <optional>

#include "common/app/transaction.h"
#include "common/core/record.h"

namespace podqos::app {

/// Grants the pod its requests, limited to what the other pods leave free.
/// @param before  the pod as currently included in the sums
void grant_pod(Transaction& transaction, core::PodRecord& record,
               const std::optional<core::PodRecord>& before);

/// Replaces the pod in the tiers' sums: subtracts `before`, adds `record`.
void count_pod(Transaction& transaction, const core::PodRecord& record,
               const std::optional<core::PodRecord>& before);

/// Adds the container to the list of pending containers, or removes it if it is live.
void note_pending(core::TiersRecord& tiers, const core::PodRecord& record,
                  const core::ContainerRecord& container);

}  // namespace podqos::app

#pragma once

#include <optional>

#include "common/app/event.h"
#include "common/core/record.h"

namespace podqos::app {

/// The pod's requests, bounded by what is free beside the others.
/// @param before  the pod as it has been counted so far
void grant_pod(Event& event, core::PodRecord& record, const std::optional<core::PodRecord>& before);

/// Sums without the pod as it was, with it as it is.
void count_pod(Event& event, const core::PodRecord& record,
               const std::optional<core::PodRecord>& before);

}  // namespace podqos::app

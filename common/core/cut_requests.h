#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Enters a pod into the list of those whose requests have been cut, changes its entry, or removes
/// it. A pod beyond the first 64 is not entered.
void note_cut(TiersRecord& tiers, const PodRecord& record, const Settings& settings);
/// Removes a pod from that list.
void forget_cut(TiersRecord& tiers, std::string_view uid);

/// The uids of the pods in the list to which something can be granted now, in their order; at most
/// four, to bound the time under the lock.
[[nodiscard]] std::vector<std::string> grantable(const TiersRecord& tiers, const Settings& settings,
                                                 const NodeCapacity& capacity);

/// Grants a pod its requests anew, and counts it with them.
void grant_again(PodRecord& record, TiersRecord& tiers, const Settings& settings,
                 const NodeCapacity& capacity);

}  // namespace podqos::core

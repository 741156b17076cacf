#pragma once

#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Goes on with the removal of ended pods' cgroups in which containers have nested more than one
/// transaction removes (Transaction::partly_removed()), in transactions of its own, as long as it
/// gets further; the lock is free in between.
/// @return what is not done, one sentence each
[[nodiscard]] std::vector<std::string> remove_rest(const core::Settings& settings, Log& log,
                                                   const std::vector<std::string>& uids);

}  // namespace podqos::app

#pragma once

#include <optional>

#include "common/app/log.h"
#include "common/app/timeouts.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Retries what a transaction left unfinished (Transaction::unfinished()), in transactions of its
/// own for up to 1.3 s; the lock is free in between.
/// @return the reason if it is still unfinished; later transactions retry it.
[[nodiscard]] Status follow_up(const core::Settings& settings, Log& log,
                               std::optional<Error> unfinished, const Timeouts& timeouts = {});

}  // namespace podqos::app

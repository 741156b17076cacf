#pragma once

#include <optional>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Comes back to what an event has left unfinished (Transaction::unfinished()), in events of their
/// own for 1.3 s: others have the lock in between.
/// @return why it is still unfinished; later events come back to it.
[[nodiscard]] Status follow_up(const core::Settings& settings, Log& log,
                               std::optional<Error> unfinished);

}  // namespace podqos::app

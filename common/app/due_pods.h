#pragma once

#include <functional>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// What is looked for again and again, and found seldom.
struct DuePods {
  std::function<bool(cgroup::Machine&, const core::PodRecord&)> is_due;
  /// Does what is to be done. What it changes of the record is saved.
  std::function<void(Transaction&, core::PodRecord&)> handle;
};

/// Handles the pods that are due, but no released ones. They are looked for without the lock, which
/// is not taken if there are none.
/// @return the errors of opening and finishing a transaction
[[nodiscard]] Status handle_due_pods(const core::Settings& settings, Log& log,
                                     const Timeouts& timeouts, const DuePods& due);

}  // namespace podqos::app

#pragma once

#include <string>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/pods/request.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Limits that a runtime is about to give a running container (`runc update`).
struct AnnouncedUpdate {
  std::string id;                ///< of the container
  core::EngineResources values;  ///< what changes
};

/// Lets pod and tiers follow what a runtime is about to change, as core::follow_updates() does with
/// what it has changed: before, since the kernel refuses a quota above the pod's (cgroup v1), and a
/// limit above the pod's has no effect. Values below those that the container still has, which the
/// kernel may refuse, are left to a later transaction. If the runtime fails then, the next
/// reconciliation takes back what has been followed.
/// @return kConflict if several containers have the id
[[nodiscard]] Status follow_announced(const core::Settings& settings, Log& log,
                                      const AnnouncedUpdate& update, const Timeouts& timeouts = {});
/// The same in a transaction, which it finishes.
[[nodiscard]] Status follow_announced(Transaction& transaction, const AnnouncedUpdate& update);

}  // namespace podqos::app

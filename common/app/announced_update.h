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

/// Gives the pod of a container the limits of memory and CPU quota that a runtime is about to
/// raise, and lowers its burst to a lower quota: otherwise the kernel refuses the runtime a quota
/// above the pod's (cgroup v1) or below the burst, and a limit above the pod's has no effect.
/// Whether the runtime succeeds is not known. All else the pod follows at the next reconciliation
/// (core::follow_updates()), which also takes back what the runtime has not done. A pod whose
/// annotations state its resources keeps them, and a kubelet's is its kubelet's.
/// @return kConflict if several containers have the id
[[nodiscard]] Status follow_announced(const core::Settings& settings, Log& log,
                                      const AnnouncedUpdate& update, const Timeouts& timeouts = {});
/// The same in a transaction, which it finishes.
[[nodiscard]] Status follow_announced(Transaction& transaction, const AnnouncedUpdate& update);

}  // namespace podqos::app

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
  std::string id;                     ///< of the container
  core::EngineResources values = {};  ///< what changes; empty once the runtime has ended
};

/// Lets the pod of a container follow what its runtime has changed of it (core::follow_updates()),
/// and gives it the limits of memory and CPU quota that the runtime is about to raise: otherwise
/// the kernel refuses a quota above the pod's (cgroup v1), and a limit above the pod's has no
/// effect. Lowers its burst to a quota that is about to be lower. Once the runtime has ended, what
/// it has not done is taken back. A pod whose annotations state its resources keeps them, and a
/// kubelet's is its kubelet's.
/// @return whether podqos may be concerned; kConflict if several containers have the id
[[nodiscard]] Result<bool> follow_announced(const core::Settings& settings, Log& log,
                                            const AnnouncedUpdate& update,
                                            const Timeouts& timeouts = {});
/// The same in a transaction, which it finishes.
[[nodiscard]] Status follow_announced(Transaction& transaction, const AnnouncedUpdate& update);

}  // namespace podqos::app

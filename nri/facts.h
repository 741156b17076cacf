#pragma once

#include "common/base/error.h"
#include "common/core/pods/request.h"
#include "nri/messages.h"

namespace podqos::nri {

/// The facts of a container that the runtime is about to create or has started. The identity comes
/// from the messages' own fields only: a pod author's annotations with the keys of an engine are
/// ignored. podqos.io/ annotations of the pod apply to each of its containers, which can override
/// them.
/// @return kTooLarge for more than 256 podqos.io/ annotations, or one of more than 256 KiB;
///         kInvalidArgument for a uid, id or name that cannot be part of a cgroup name.
[[nodiscard]] Result<core::ContainerFacts> container_facts(const Reported& pod,
                                                           const Reported& container);

/// The facts of a pod's sandbox, with the pod's resources and overhead as the kubelet passed them
/// to the CRI. Errors as for container_facts().
[[nodiscard]] Result<core::ContainerFacts> sandbox_facts(const Reported& pod);

}  // namespace podqos::nri

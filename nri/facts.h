#pragma once

#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "nri/api.h"

namespace podqos::nri {

/// What the runtime says of a container that it is about to create, or has started. Identity comes
/// from the messages' own fields alone: what an author of a pod writes into its annotations under
/// an engine's names does not count. Annotations of the pod count for each of its containers.
/// @return kTooLarge for more than 256 annotations of podqos's, or one of more than 256 KiB.
[[nodiscard]] Result<core::ContainerFacts> container_facts(const api::PodSandbox& pod,
                                                           const api::Container& container);

/// The same of the pod's sandbox, with the pod's own resources as the kubelet told them.
[[nodiscard]] Result<core::ContainerFacts> sandbox_facts(const api::PodSandbox& pod);

/// `linux.resources`: absent and 0 are nullopt.
[[nodiscard]] core::EngineResources engine_resources(const api::LinuxResources& resources);

}  // namespace podqos::nri

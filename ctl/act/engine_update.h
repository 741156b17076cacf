#pragma once

#include <string>
#include <string_view>

#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"

namespace podqos::ctl {

/// The command by which the engine that has made a container changes it, and starts it again with
/// the same: "docker update"; "" if no engine is known to have it.
[[nodiscard]] std::string_view engine_command(const core::ContainerRecord& container);

/// That command for the container's new values, to be pasted into a shell: "docker update --cpus
/// 0.400 --memory 268435456 ID". It names what the engine has limits of, and nothing else.
/// @param own  what the engine has set of the container itself
/// @return "" if there is nothing to tell it
[[nodiscard]] std::string engine_update(const core::ContainerRecord& container,
                                        const core::EngineResources& own,
                                        const core::CgroupValues& values);

/// What the engine has set of a container itself, by its bundle's config.json: not what podqos has
/// filled in. Nothing where that cannot be told.
/// @param stated  annotations state the pod's resources
/// @param values  the container's, which are the engine's where it names no bundle, as under NRI
[[nodiscard]] core::EngineResources engine_resources(const core::ContainerRecord& container,
                                                     bool stated, const core::CgroupValues& values);

}  // namespace podqos::ctl

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/core/record.h"
#include "common/sys/process.h"

namespace podqos::app {

/// Of the cgroups of a container's process that one in which it should not be: neither in the
/// cgroup that podqos has recorded nor below, nor elsewhere in its pod; nullopt: there is none.
/// Only the hierarchies of CPU and memory count: what bounds a pod is there.
/// @param pod_cgroup  empty for a pod that has none
/// @param recorded    where the container was when it started
[[nodiscard]] std::optional<std::string> stray_cgroup(const std::vector<sys::ProcCgroup>& cgroups,
                                                      const std::string& pod_cgroup,
                                                      const std::string& recorded);

/// Has something else moved a container of the pod out of its cgroup since it started?
/// @return for people: where it runs, where it belongs, and the remedy
[[nodiscard]] std::optional<std::string> describe_stray(const core::PodRecord& record,
                                                        const core::ContainerRecord& container);

}  // namespace podqos::app

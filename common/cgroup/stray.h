#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

/// Finds a cgroup of a container's process that is neither the recorded one nor below it, nor
/// elsewhere in its pod; nullopt if there is none. Only the hierarchies with the cpu or memory
/// controller are checked, because they bound the pod.
/// @param pod_cgroup  empty for a pod without a cgroup
/// @param recorded  cgroup of the container when it started
[[nodiscard]] std::optional<std::string> stray_cgroup(const std::vector<sys::ProcCgroup>& cgroups,
                                                      const std::string& pod_cgroup,
                                                      const std::string& recorded);

/// Checks whether another program has moved a container out of its cgroup since it started.
/// @return a sentence for the operator: where it runs, where it belongs, and the remedy; nullopt if
///         it is in place.
[[nodiscard]] std::optional<std::string> describe_stray(Machine& machine,
                                                        const core::PodRecord& record,
                                                        const core::ContainerRecord& container);

}  // namespace podqos::cgroup

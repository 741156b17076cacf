#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/record.h"

namespace podqos::core {

/// Takes the CPU requests of a kubelet's pods from their cgroups: a kubelet that resizes a pod
/// writes its shares or weight, and a runtime with NRI before 0.10 tells plugins of containers
/// only, wrapper and hooks of nothing. Where its containers together request what the cgroup has,
/// the pod requests that; else, as with pod-level resources, the least that gives the shares or
/// weight, by the formula that the weights of the other pods tell. The share of a new cgroup tells
/// nothing by itself. BestEffort pods request nothing.
/// @param held  by uid, what pods' cgroups hold; those that are not there stay as they are
/// @param formula  of the node's runtimes, which counts if no pod tells the kubelet's
/// @return uids of the pods that request something else now
/// @note KEP-1287; pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod
[[nodiscard]] std::vector<std::string> follow_kubelet(
    PodRecords& records, const std::map<std::string, HeldResources>& held, WeightFormula formula);

}  // namespace podqos::core

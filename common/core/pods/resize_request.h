#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"

// A resize that the node's operator asks for, and that podqos carries out itself.
namespace podqos::core {

/// New requests and limits of one container, or of a pod as a whole.
struct ResizeRequest {
  /// Name in the pod; "": the pod-level resources or, where the pod has none, its only container.
  std::string container;
  Resources wanted;  ///< CPU and memory; what is absent stays as it is
};

/// A pod before, during and after a resize.
struct RequestedResize {
  std::string container;  ///< name in the pod; "" for the pod-level resources
  PodRecord before;
  /// While containers are changed one by one: each amount is the higher one of before and after,
  /// and a limit that only one of them has is not there yet. So neither pod nor tiers are ever
  /// below what a container may use, whichever values it has already.
  /// @note pkg/kubelet/kuberuntime/kuberuntime_manager.go doPodResizeAction: raises the pod's
  ///       cgroup, changes the containers, lowers the pod's cgroup.
  PodRecord raised;
  PodRecord after;
};

/// Decides what becomes of a pod, by Kubernetes' rules: CPU and memory of containers and sidecars
/// change, or those of the pod; the API's rules hold for the result; the class stays the same.
/// @return kRefused for a kubelet's pod, or if the class would change; kNotFound if the pod has no
///         such container that can be resized; kInvalidArgument for amounts that break a rule
/// @note pkg/apis/core/validation/validation.go ValidatePodResize, validateContainerResize.
[[nodiscard]] Result<RequestedResize> decide_resize(const PodRecord& record,
                                                    const ResizeRequest& request);

/// What a resize of this container, or of the pod as a whole (""), changes of the pod.
[[nodiscard]] ResizedAmounts amounts_of(const PodRecord& record, const std::string& container);
/// The pod as it is now, with these amounts; it may have further containers.
[[nodiscard]] PodRecord with_amounts(PodRecord now, const ResizedAmounts& amounts,
                                     const std::string& container);

/// The pod after a resize whose process has gone: CPU and memory each as wanted where its container
/// has got that, otherwise as they were; as it is if something else has changed it since.
/// @param record  with Resizing
/// @param held  in the order of the record's containers; empty where it is not known
[[nodiscard]] PodRecord settle_resize(const PodRecord& record, std::span<const HeldResources> held,
                                      const NodeRules& node);

/// Puts what the container's cgroup has in place of the rule's values before a resize, where the
/// request asks for something else: an earlier resize may have ended before the runtime was told.
/// @param differs  find_update() of the pod after the resize
void assume_held(CgroupValues& before, const EngineResources& differs, const Resources& wanted);

/// What a container's runtime is told: all values that the container's cgroup is known to have,
/// since runc forgets those that an update leaves out. -1: no limit any more.
struct RuntimeUpdate {
  std::vector<EngineResources> steps;  ///< memory first, then CPU; empty: nothing changes
  EngineResources undo;                ///< the values as they were
};
/// @param before  the container's values by the rule (container_cgroup_values()), like `after`
/// @param held  what its cgroup has: values that do not change are these. A limit of memory and
///              swap together (cgroup v1) keeps its distance from that of memory.
/// @param formula  by which its runtime makes a weight of shares
[[nodiscard]] RuntimeUpdate runtime_update(const CgroupValues& before, const CgroupValues& after,
                                           const HeldResources& held, WeightFormula formula);

/// What a resize has changed: "cpu request 200m → 300m, memory limit none → 64Mi" of the pod or,
/// where that is as before, of its containers, each with its name.
[[nodiscard]] std::string describe_resize(const PodRecord& before, const PodRecord& after);

/// Checks that a lowered memory limit is above what is in use, by the margin that podqos keeps for
/// tiers and pods: below it the kernel would invoke the OOM killer.
/// @param usage  nullopt if it is not known, which refuses nothing
/// @return kRefused with usage and the lowest limit
/// @note pkg/kubelet/kuberuntime/kuberuntime_manager.go validateMemoryResizeAction, without margin
[[nodiscard]] Status check_usage(const CgroupValues& before, const CgroupValues& after,
                                 const std::optional<Bytes>& usage);

}  // namespace podqos::core

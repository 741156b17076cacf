#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/cgroups/layout.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Values of a container's cgroup, from its pod's record and podPidsLimit; `unified` stays empty.
/// Empty for a container whose resources are not described, or were inferred from the engine's own
/// values, and for a kubelet's pod, which the kubelet sets.
/// @return the errors of container_cgroup_values() and check_kernel_bounds()
[[nodiscard]] Result<CgroupValues> container_values(const PodRecord& record,
                                                    const std::string& name,
                                                    const Settings& settings);

/// The `unified` values that a kubelet sets on cgroup v2 for each container: memory.swap.max and
/// memory.oom.group, as far as `params` ask for them. Empty in the same cases as above, and if only
/// the claims of other containers describe the pod. The swap share is scaled by the part of the
/// pod's memory request that counts.
[[nodiscard]] UnifiedValues container_unified(const PodRecord& record, const PodClaim& claim,
                                              const std::string& name,
                                              const ContainerMemoryParams& params);

/// The Memory QoS values of a container: the kubelet's, with memory requests scaled as above. Empty
/// for a container that is not described, and for a kubelet's pod.
[[nodiscard]] MemoryQos container_memory_qos(const PodRecord& record, const std::string& name,
                                             const MemoryQosParams& params);

[[nodiscard]] MemoryQosParams memory_qos_params(const Settings& settings,
                                                const NodeCapacity& capacity);

/// Which of these values podqos gives a container, and what: the kernel's default where the rule
/// has none. Not those that its engine has set, also as memory.reservation, which runtimes write to
/// memory.low. Empty where Memory QoS is off, or runtimes use cgroup v1.
/// @note opencontainers/cgroups fs2/memory.go setMemory.
[[nodiscard]] MemoryQos given_memory_qos(const MemoryQos& wanted, const EngineResources& engine,
                                         const CgroupLayout& layout);

[[nodiscard]] ContainerMemoryParams container_memory_params(const Settings& settings,
                                                            const NodeCapacity& capacity,
                                                            const MemoryFiles& files);

/// The quota that limits, in another period; nullopt for none.
[[nodiscard]] std::optional<Micros> quota_in(Micros period, const CgroupValues& values);

/// The wanted values that the engine left unset, restricted to what this machine's controllers and
/// its runtime accept. Of the engine's values only a quota above the wanted one is replaced: on
/// cgroup v1 a runtime cannot write a quota above its pod's. A quota is converted to the engine's
/// period if it has set one.
[[nodiscard]] CgroupValues missing_values(const CgroupValues& wanted, const EngineResources& engine,
                                          const CgroupLayout& layout);

/// Checks that a container in the pod's cgroup can have its realtimeRuntime. Runtimes write it on
/// cgroup v1 only, where a cgroup has at most what its parent has, and the cgroups of pods have
/// none. Without CONFIG_RT_GROUP_SCHED the runtime cannot write it in any cgroup.
/// @note kernel/sched/rt.c tg_rt_schedulable(); opencontainers/cgroups fs/cpu.go SetRtSched().
/// @param cpu  version of the hierarchy of the cpu controller
/// @return kInvalidArgument with the value, the cause and the remedy
[[nodiscard]] Status check_realtime(const EngineResources& resources,
                                    std::optional<CgroupVersion> cpu, std::string_view pod_cgroup);

/// Whether the pod is evicted last, or not at all: it is critical, and its tier has a threshold.
[[nodiscard]] bool is_spared(const PodRecord& record, const Settings& settings);

[[nodiscard]] PodConfigParams pod_config_params(const Settings& settings);

/// Values of the pod's cgroup, as Kubernetes computes them. Two cases differ: an incomplete pod has
/// the limits of its containers whatever its class is, and is unlimited as soon as one has none;
/// a pod that exceeds the node, by requesting more CPU or memory than one pod may claim of it
/// (count_requests()), has the shares of its capped CPU request. Kubernetes has no values for such
/// a pod, since its kubelet would not admit it.
/// @return the errors of pod_cgroup_values() and, unless the pod is a kubelet's,
/// check_kernel_bounds()
[[nodiscard]] Result<CgroupValues> pod_values(const PodRecord& record, const Settings& settings);

/// oom_score_adj of a container, as Kubernetes computes it (qos.h). A container of a pod that
/// exceeds the node (see above) is scored as Burstable without priority, whatever its class,
/// so that excessive claims give no protection.
[[nodiscard]] int container_oom_score_adj(const PodRecord& record, const ContainerRecord& container,
                                          Bytes node_memory);

/// The shares→weight formula to use: the configured one, else the one observed in a container, else
/// kLog.
[[nodiscard]] WeightFormula weight_formula(const Settings& settings,
                                           std::optional<WeightFormula> observed);

// What the classes get of the CPU beyond Kubernetes' rules: cpuBurst and cpuIdle of the
// configuration, and the annotations podqos.io/cpu-burst and podqos.io/cpu-idle, by which a pod
// asks for less.

/// The burst of a cgroup: `percent` of its quota, rounded down. Since the quotas of a pod and of
/// its container are refilled separately, and each throttles what is below it, both need one.
/// @param quota    microseconds; nullopt for none, which gives 0
/// @param percent  0 to 100
/// @return at most what the kernel takes beside the quota: burst <= quota, quota + burst <=
///         kMaxQuota
/// @note kernel/sched/core.c tg_set_cfs_bandwidth(), fair.c __refill_cfs_bandwidth_runtime()
[[nodiscard]] Micros cpu_burst_for(std::optional<Micros> quota, std::int64_t percent);

/// The percentage that counts for the pod: what it was granted, or less if the configuration grants
/// less by now. nullopt: podqos writes no burst, which it has never done for this pod.
[[nodiscard]] std::optional<std::int64_t> burst_percent(const PodRecord& record,
                                                        const Settings& settings);

/// Grants a new pod of podqos's own what its class has. What an earlier pod of the uid had, whose
/// cgroup may still exist, is taken back: a burst of 0, and idle false.
void decide_cpu_class(PodRecord& record, const std::optional<PodRecord>& before,
                      const Settings& settings);

/// Lowers burst and idleness to what the annotations of one of its containers ask for. Nothing
/// raises them again. Ignored with trustAnnotations "none", and for a kubelet's pods.
void apply_cpu_annotations(PodRecord& record, const PodqosAnnotations& annotations,
                           const Settings& settings);

/// Adds burst and idleness to the values of the pod's cgroup.
void set_cpu_class(CgroupValues& values, const PodRecord& record, const Settings& settings);

}  // namespace podqos::core

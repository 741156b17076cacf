#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

// What the classes get of the CPU beyond Kubernetes' rules: cpuBurst and cpuIdle of the
// configuration, and the annotations podqos.io/cpu-burst and podqos.io/cpu-idle, by which a pod
// asks for less.
namespace podqos::core {

/// The burst of a cgroup: `percent` of its quota, rounded down. Since the quotas of a pod and of
/// its container are refilled separately, and each throttles what is below it, both need one.
/// @param quota    microseconds; nullopt for none, which gives 0
/// @param percent  0 to 100
/// @return at most what the kernel takes beside the quota: burst <= quota, quota + burst <=
///         kMaxQuota
/// @note kernel/sched/core.c tg_set_cfs_bandwidth(), fair.c __refill_cfs_bandwidth_runtime()
[[nodiscard]] Micros cpu_burst_for(std::optional<Micros> quota, std::int64_t percent);

/// cpuBurst of the class; nullopt for BestEffort, and where it is not configured.
[[nodiscard]] std::optional<std::int64_t> burst_percent(const CpuBurst& configured,
                                                        QosClass qos_class);

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

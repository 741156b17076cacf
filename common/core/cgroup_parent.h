#pragma once

#include <string>
#include <string_view>

#include "common/core/container_facts.h"
#include "common/core/driver.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Does the container stay where its engine puts it, because its pod has no cgroup parent? By
/// placement.withoutParent; unset, where CRI-O puts it: CRI-O looks for the statistics of such a
/// container there and nowhere else, and 1.35 and 1.36 crash where it is not.
///
/// Such a pod's containers are told by the place that the engine gives them: by CRI-O
/// "/crio/crio-ID" or "system.slice:crio:ID", its sandbox "crio-ID" or, with systemd, none
/// (internal/config/cgmgr, CRI-O 1.20 to 1.36), by containerd's CRI "/k8s.io/ID". No other engine
/// knows cgroup parents of pods.
///
/// @param driver  of the runtime, which takes no path of containerd's there if it uses systemd.
[[nodiscard]] bool stays_without_parent(const ContainerFacts& facts, Driver driver,
                                        const Settings& settings);

/// Is this where such a container lies?
[[nodiscard]] bool is_place_without_parent(std::string_view cgroup, std::string_view id);

/// What an engine is to be given as the cgroup parent, so that its containers lie in the pod's
/// cgroup: the path, with systemd the slice's name.
[[nodiscard]] std::string cgroup_parent_for(const std::string& pod_cgroup);

/// What a person is to be told of a container that stays at `cgroup`: cause and remedy.
[[nodiscard]] std::string words_on_parent(std::string_view id, std::string_view cgroup,
                                          const std::string& pod_cgroup);

/// Does a container that belongs to the pod's cgroup lie elsewhere?
[[nodiscard]] bool lies_outside(const std::string& cgroup, const std::string& pod_cgroup);

}  // namespace podqos::core

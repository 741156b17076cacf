#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Whether the container stays in the cgroup that its engine chose, because its pod has no cgroup
/// parent. placement.withoutParent decides; by default only CRI-O's containers stay, since CRI-O
/// reads their statistics from that cgroup, and CRI-O 1.35 and 1.36 crash if it is missing.
///
/// Such containers are recognised by their cgroupsPath. CRI-O uses "/crio/crio-ID" or
/// "system.slice:crio:ID", for the sandbox "crio-ID" or, with systemd, none (internal/config/cgmgr,
/// CRI-O 1.20 to 1.36). containerd's CRI plugin uses "/k8s.io/ID". Other engines have no cgroup
/// parents of pods.
///
/// @param driver  of the runtime; with systemd it refuses containerd's path, so the container does
///                not stay
[[nodiscard]] bool stays_without_parent(const ContainerFacts& facts, Driver driver,
                                        const Settings& settings);

/// Whether `cgroup` is one in which podqos leaves a container `id` because its pod has no cgroup
/// parent. Elsewhere a container is outside its pod because podqos did not place it.
[[nodiscard]] bool is_left_without_parent(std::string_view cgroup, std::string_view id,
                                          const Settings& settings);

/// Warning about a container that stays at `cgroup`, with cause and remedy: the cgroup parent to
/// configure in its engine is the pod's path, or with systemd the name of its slice.
[[nodiscard]] std::string describe_missing_parent(std::string_view id, std::string_view cgroup,
                                                  const std::string& pod_cgroup);

/// Name of the container's cgroup in `pod_cgroup`: the engine's own name if it contains the id,
/// else the id; with systemd the engine's own scope "prefix-name.scope", else
/// "podqos-ID-HASH.scope".
/// @param known  containers of the pod, which must have other names. Must include those that have
///               ended: their runtimes delete their cgroups later.
/// @return kInvalidArgument for an id that cannot be part of a name, kConflict if another container
///         has the name already
[[nodiscard]] Result<std::string> container_leaf(const ContainerFacts& facts,
                                                 const std::string& pod_cgroup,
                                                 std::span<const ContainerRecord> known);

}  // namespace podqos::core

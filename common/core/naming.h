#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/pod.h"

namespace podqos::core {

/// A cgroup name independent of the driver: its components from the root, e.g. {"kubepods",
/// "burstable", "pod42"}.
using CgroupName = std::vector<std::string>;

/// Formats a name for the cgroupfs driver: "/kubepods/burstable/pod42"; {} and {""} give "/".
/// @return kInvalidArgument for components with '/' or '_', which the kubelet refuses too, and for
///         "." and "..", which the kubelet resolves
/// @note pkg/kubelet/cm/cgroup_manager_linux.go.
[[nodiscard]] Result<std::string> format_cgroupfs(const CgroupName& name);
/// Formats a name for the systemd driver:
/// "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod42.slice". '-' in a component
/// becomes '_'.
/// @return kInvalidArgument as format_cgroupfs()
[[nodiscard]] Result<std::string> format_systemd(const CgroupName& name);

constexpr std::string_view kSlice = ".slice";  ///< suffix of a slice's name

/// Splits a path into its components; "" and "/" give {}.
[[nodiscard]] CgroupName parse_cgroupfs(std::string_view path);

/// Path of a slice: "a-b.slice" → "/a.slice/a-b.slice"; "-.slice" → "/".
/// @return kInvalidArgument for a name without the suffix, with '/' or with an empty part
/// @note opencontainers/cgroups systemd/common.go ExpandSlice.
[[nodiscard]] Result<std::string> expand_slice(std::string_view slice);

/// Name of the root of all pods: "kubepods" below `cgroup_root`.
[[nodiscard]] CgroupName kubepods_name(std::string_view cgroup_root);
/// Name of a tier; the root itself for Guaranteed pods.
[[nodiscard]] CgroupName tier_name(const CgroupName& kubepods, QosClass qos_class);
/// Name of a pod's cgroup: "pod" and its uid below its tier.
[[nodiscard]] CgroupName pod_name(const CgroupName& kubepods, QosClass qos_class,
                                  std::string_view uid);

/// A pod cgroup found in a path.
struct PodCgroup {
  QosClass qos_class = QosClass::kGuaranteed;  ///< by its tier
  std::string uid;                             ///< of the pod; systemd's '_' converted back to '-'
  std::string pod_path;                        ///< the pod's directory, as written in the path
  std::string below;     ///< rest of the path, e.g. "container" or "a/b"; "" for the pod itself
  bool systemd = false;  ///< in the form of the systemd driver
  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

/// Finds the pod cgroup that `path` is or is below, in the form of either driver and under any
/// cgroup root. Checks the parents, which the kubelet's IsPodCgroup does not.
/// @note pkg/kubelet/cm/pod_container_manager_linux.go IsPodCgroup.
[[nodiscard]] std::optional<PodCgroup> find_pod_cgroup(std::string_view path);

/// Checks that `uid` can be part of a cgroup name: 1 to 128 characters of [A-Za-z0-9.-], not only
/// dots.
/// @return kInvalidArgument with the length or the invalid character
[[nodiscard]] Status check_pod_uid(std::string_view uid);
/// Checks that `name` can be the name of one cgroup: 1 to 255 bytes of printable ASCII without '/',
/// other than "." and "..".
/// @return kInvalidArgument with the name or its length
[[nodiscard]] Status check_cgroup_component(std::string_view name);

/// The three fields of a systemd runtime's cgroupsPath "slice:prefix:name".
struct SystemdCgroupsPath {
  std::string slice;
  std::string prefix;
  std::string name;
  friend bool operator==(const SystemdCgroupsPath&, const SystemdCgroupsPath&) = default;
};
/// Parses "slice:prefix:name"; nullopt unless the text has exactly two colons and no '/'.
[[nodiscard]] std::optional<SystemdCgroupsPath> parse_systemd_cgroups_path(std::string_view text);

}  // namespace podqos::core

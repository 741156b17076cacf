#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/settings.h"

namespace podqos::core {

constexpr std::string_view kSlice = ".slice";  ///< suffix of a slice's name

/// Path for the systemd driver of a cgroup with these names, from the root: {"kubepods",
/// "burstable", "pod42"} is
/// "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod42.slice". '-' in a name becomes
/// '_'.
/// @return kInvalidArgument for names with '/' or '_', which the kubelet refuses too, and for "."
///         and "..", which the kubelet resolves
/// @note pkg/kubelet/cm/cgroup_manager_linux.go.
[[nodiscard]] Result<std::string> format_systemd(const std::vector<std::string>& names);

/// Path of a slice: "a-b.slice" → "/a.slice/a-b.slice"; "-.slice" → "/".
/// @return kInvalidArgument for a name without the suffix, with '/' or with an empty part
/// @note opencontainers/cgroups systemd/common.go ExpandSlice.
[[nodiscard]] Result<std::string> expand_slice(std::string_view slice);

/// A pod cgroup found in a path.
struct PodCgroup {
  QosClass qos_class = QosClass::kGuaranteed;  ///< by its tier
  std::string uid;                             ///< of the pod; systemd's '_' converted back to '-'
  std::string pod_path;                        ///< the pod's directory
  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

/// Finds the pod cgroup that `path` is or is below, in the form of either driver and under any
/// cgroup root; "//" counts as "/", as in the kernel. Checks the parents, which the kubelet's
/// IsPodCgroup does not. nullopt for a relative path too, since the runtime chooses what that is
/// relative to.
/// @note pkg/kubelet/cm/pod_container_manager_linux.go IsPodCgroup.
[[nodiscard]] std::optional<PodCgroup> find_pod_cgroup(std::string_view path);

/// Checks that `uid` can be part of a cgroup name: 1 to 128 characters of [A-Za-z0-9.-], not only
/// dots.
[[nodiscard]] Status check_pod_uid(std::string_view uid);
/// Checks that `name` can be the name of one cgroup: 1 to 255 bytes of printable ASCII without '/',
/// other than "." and "..".
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

/// Cgroup driver: cgroups are created by the runtime itself, or through systemd.
enum class Driver : std::uint8_t { kCgroupfs, kSystemd };

/// Returns "cgroupfs" or "systemd".
[[nodiscard]] std::string_view format_driver(Driver driver);

/// The driver that manages a cgroup. A slice at the path that its name stands for, and a scope in
/// such a slice, belong to systemd. A directory elsewhere that only has the suffix does not: a pod
/// author may have chosen its name.
[[nodiscard]] Driver driver_of(std::string_view cgroup);

/// "<cgroup_root>/kubepods"; with systemd the slices of these names ("/podqos.slice/
/// podqos-kubepods.slice").
/// @param cgroup_root  as the configuration allows it.
[[nodiscard]] std::string root_path(std::string_view cgroup_root, Driver driver);
/// Directory of a tier below `kubepods`; Guaranteed pods lie in `kubepods` itself. Which driver it
/// is, the form of `kubepods` tells.
[[nodiscard]] std::string tier_path(std::string_view kubepods, QosClass qos_class);
[[nodiscard]] std::string pod_path(std::string_view kubepods, QosClass qos_class,
                                   std::string_view uid);
/// The root of a pod's cgroup: "/kubepods" for "/kubepods/burstable/pod42"; nullopt if the path is
/// not a pod's.
[[nodiscard]] std::optional<std::string> root_of_pod(std::string_view pod_cgroup);

/// The driver that a container's runtime uses, by its cgroupsPath or by the cgroup of its process.
/// @return nullopt for "" and for a relative path, which tell nothing
[[nodiscard]] std::optional<Driver> detect_driver(std::string_view path);

/// Checks that `cgroupDriver` allows a container of this driver.
/// @return kUnsupported with the engine options to change if it asks for the other driver
[[nodiscard]] Status check_driver(DriverSetting setting, Driver driver);

/// Absolute cgroup of a container with the cgroupsPath "slice:prefix:name"; nullopt for an invalid
/// slice name.
/// @note runc libcontainer/specconv/spec_linux.go; opencontainers/cgroups systemd/common.go.
[[nodiscard]] std::optional<std::string> scope_path(const SystemdCgroupsPath& path);

/// The cgroupsPath that makes a runtime create `cgroup`: the path itself, or "slice:prefix:name"
/// for ".../slice/prefix-name.scope" and the cgroup that crun makes in it.
/// @param id  of the container; if the scope's name ends with "-ID", the name is the id
[[nodiscard]] std::string oci_cgroups_path(std::string_view cgroup, std::string_view id);

/// Name of the scope of a container's cgroup, with or without crun's inner cgroup: "x.scope" for
/// "/a.slice/x.scope" and "/a.slice/x.scope/container"; "" for other cgroups.
[[nodiscard]] std::string_view scope_of(std::string_view cgroup);

/// Name of the systemd unit of a slice, a scope or crun's inner cgroup in a scope.
[[nodiscard]] std::string_view unit_of(std::string_view cgroup);

}  // namespace podqos::core

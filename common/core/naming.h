#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/pod.h"

namespace podqos::core {

/// An abstract cgroup name: its components from the root, e.g. {"kubepods", "burstable", "pod42"}.
using CgroupName = std::vector<std::string>;

/// "/kubepods/burstable/pod42"; {} and {""} give "/". Refuses components with '/' or '_' (as
/// upstream), and "." and ".." (upstream resolves them).
[[nodiscard]] Result<std::string> format_cgroupfs(const CgroupName& name);
/// "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod42.slice"; '-' in a component
/// becomes '_'.
[[nodiscard]] Result<std::string> format_systemd(const CgroupName& name);

/// "c" for "/a/b/c".
[[nodiscard]] std::string_view leaf_of(std::string_view path);
constexpr std::string_view kSlice = ".slice";  ///< what the name of such a unit ends with

[[nodiscard]] CgroupName parse_cgroupfs(std::string_view path);

/// "a-b.slice" → "/a.slice/a-b.slice"; "-.slice" → "/".
/// @note opencontainers/cgroups systemd/common.go ExpandSlice.
[[nodiscard]] Result<std::string> expand_slice(std::string_view slice);

/// Root ("kubepods" below `cgroup_root`), tier and pod names. Guaranteed pods lie directly below
/// the root.
[[nodiscard]] CgroupName kubepods_name(std::string_view cgroup_root);
[[nodiscard]] CgroupName tier_name(const CgroupName& kubepods, QosClass qos_class);
[[nodiscard]] CgroupName pod_name(const CgroupName& kubepods, QosClass qos_class,
                                  std::string_view uid);

/// A pod cgroup recognised in a path: which tier, which pod, and what follows below the pod's
/// directory.
struct PodCgroup {
  QosClass qos_class = QosClass::kGuaranteed;
  std::string uid;       ///< systemd's '_' already turned back into '-'
  std::string pod_path;  ///< path of the pod's own directory, as written in the input
  std::string below;     ///< "" for the pod itself, else "container" or "a/b"
  bool systemd = false;
  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

/// Finds the pod cgroup that `path` is or lies below, in either driver's form, beneath any root:
/// …/kubepods/… Unlike upstream's IsPodCgroup the parents are checked.
/// @note pkg/kubelet/cm/pod_container_manager_linux.go IsPodCgroup.
[[nodiscard]] std::optional<PodCgroup> find_pod_cgroup(std::string_view path);

/// Is `uid` fit to be part of a cgroup name: 1 to 128 of [A-Za-z0-9.-], not all dots?
/// @return kInvalidArgument that names the offending character or length.
[[nodiscard]] Status check_pod_uid(std::string_view uid);
/// Is `name` one plain directory name: 1 to 255 bytes, printable ASCII, no '/', not "." or ".."?
[[nodiscard]] Status check_cgroup_component(std::string_view name);

/// The three fields of a systemd runtime's cgroupsPath "slice:prefix:name".
struct SystemdCgroupsPath {
  std::string slice;
  std::string prefix;
  std::string name;
  friend bool operator==(const SystemdCgroupsPath&, const SystemdCgroupsPath&) = default;
};
/// nullopt unless the text has exactly two colons and no '/'.
[[nodiscard]] std::optional<SystemdCgroupsPath> parse_systemd_cgroups_path(std::string_view text);

}  // namespace podqos::core

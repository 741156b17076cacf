#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/naming.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Who makes the cgroups of a node: the runtime itself, or systemd for it.
enum class Driver : std::uint8_t { kCgroupfs, kSystemd };

/// "cgroupfs", "systemd".
[[nodiscard]] std::string_view format_driver(Driver driver);

/// Whose directory is this? A slice that lies where its name says, and a scope in one, are
/// systemd's; not what only ends like them, which may be a pod author's choice.
[[nodiscard]] Driver driver_of(std::string_view cgroup);

/// What tells the driver of the runtime that runs a container, strongest first.
struct DriverSigns {
  std::optional<Driver> flags = std::nullopt;           ///< the runtime's own
  std::optional<std::string_view> path = std::nullopt;  ///< cgroupsPath
  std::optional<std::string_view> real = std::nullopt;  ///< the cgroup that its process is in
};
/// nullopt: nothing tells, so it is what the machine's engines use unless they are told otherwise.
/// A relative path tells nothing.
[[nodiscard]] std::optional<Driver> detect_driver(const DriverSigns& signs);

/// May podqos manage a container of this driver?
/// @return kUnsupported with what to change where `setting` asks for the other one.
[[nodiscard]] Status check_driver(DriverSetting setting, Driver driver);

/// Does the path belong to a runtime that uses systemd: "slice:prefix:name", a scope, or crun's
/// cgroup "container" in one?
[[nodiscard]] bool is_systemd_path(std::string_view path);

/// Absolute cgroup of a container with the cgroupsPath "slice:prefix:name"; nullopt for a slice
/// that cannot be one.
[[nodiscard]] std::optional<std::string> scope_path(const SystemdCgroupsPath& path);

/// The cgroupsPath that leads a runtime of the driver to `cgroup`: the path itself, or
/// "slice:prefix:name" for ".../slice/prefix-name.scope".
/// @param id  the container's; where the scope's name ends with it, it is the name.
[[nodiscard]] std::string oci_cgroups_path(std::string_view cgroup, std::string_view id);

/// The scope that a container's cgroup is, or is crun's inner cgroup of: "x.scope" for
/// "/a.slice/x.scope" and "/a.slice/x.scope/container"; empty for others.
[[nodiscard]] std::string_view scope_of(std::string_view cgroup);

/// Name of the unit that a slice or scope is, crun's inner cgroup included.
[[nodiscard]] std::string_view unit_of(std::string_view cgroup);

}  // namespace podqos::core

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/naming.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Cgroup driver: cgroups are created by the runtime itself, or through systemd.
enum class Driver : std::uint8_t { kCgroupfs, kSystemd };

/// Returns "cgroupfs" or "systemd".
[[nodiscard]] std::string_view format_driver(Driver driver);

/// The driver that manages a cgroup. A slice at the path that its name stands for, and a scope in
/// such a slice, belong to systemd. A directory elsewhere that only has the suffix does not: a pod
/// author may have chosen its name.
[[nodiscard]] Driver driver_of(std::string_view cgroup);

/// Evidence of the driver that a container's runtime uses, strongest first.
struct DriverSigns {
  std::optional<Driver> flags = std::nullopt;           ///< command-line flags of the runtime
  std::optional<std::string_view> path = std::nullopt;  ///< cgroupsPath
  std::optional<std::string_view> real = std::nullopt;  ///< cgroup of the container's process
};
/// The driver by the strongest evidence. Relative paths are ignored.
/// @return nullopt without evidence: assume the default of the machine's engines
[[nodiscard]] std::optional<Driver> detect_driver(const DriverSigns& signs);

/// Checks that `cgroupDriver` allows a container of this driver.
/// @return kUnsupported with the engine options to change if it asks for the other driver
[[nodiscard]] Status check_driver(DriverSetting setting, Driver driver);

/// Whether a runtime that uses systemd has this path: "slice:prefix:name", a scope, or crun's inner
/// cgroup "container" in a scope.
[[nodiscard]] bool is_systemd_path(std::string_view path);

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

#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/core/cgroups/layout.h"

namespace podqos::cgroup {

/// A mounted cgroup hierarchy.
struct Hierarchy {
  core::CgroupVersion version = core::CgroupVersion::kV2;
  /// v1: "cpu", "cpuacct" … or "name=systemd", possibly among other options of the mount. v2:
  /// cgroup.controllers of the root, filled in when the hierarchy is opened.
  std::vector<std::string> controllers;
  /// Absolute path, escapes decoded.
  std::string mount_point;
  bool writable = true;  ///< false if mounted read-only; set when it is opened
  dev_t device = 0;      ///< device number of the file system; 0 if the text does not tell it
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

/// Finds the hierarchies in the text of /proc/self/mountinfo: cgroup and cgroup2 mounts with root
/// "/", whatever their controllers, also if another mount hides them. One that is mounted twice is
/// returned twice.
/// Octal escapes are decoded; malformed lines are ignored.
/// @note proc_pid_mountinfo(5); v1 controllers are among the super options, see
/// cgroup_show_options() in the kernel.
[[nodiscard]] std::vector<Hierarchy> parse_mountinfo(std::string_view text);

}  // namespace podqos::cgroup

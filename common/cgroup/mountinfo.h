#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/core/layout.h"

namespace podqos::cgroup {

/// One mounted hierarchy.
struct Hierarchy {
  core::CgroupVersion version = core::CgroupVersion::kV2;
  /// v1: "cpu","cpuacct" or "name=systemd"; v2: cgroup.controllers of its root, filled when it is
  /// opened
  std::vector<std::string> controllers;
  std::string mount_point;
  bool writable = true;  ///< false: mounted read-only; filled when it is opened
  dev_t device = 0;      ///< number of its file system
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

/// Finds the hierarchies in the text of /proc/self/mountinfo: cgroup and cgroup2 mounts whose root
/// is "/"; a mount that another one covers is left out, one mounted twice is taken once. Octal
/// escapes are decoded; lines that are malformed are skipped.
/// @note proc_pid_mountinfo(5); v1 controllers are the super options, cgroup_show_options() in the
/// kernel.
[[nodiscard]] std::vector<Hierarchy> parse_mountinfo(std::string_view text);

/// Does parse_mountinfo take a v1 hierarchy with these, "cpu,cpuacct"? Not one that the kernel has
/// got since ("misc").
[[nodiscard]] bool has_known_controller(std::string_view controllers);

/// The lines of the text that are about these hierarchies: from them alone parse_mountinfo finds
/// the same.
[[nodiscard]] std::string lines_about(const std::vector<Hierarchy>& hierarchies,
                                      std::string_view text);

}  // namespace podqos::cgroup

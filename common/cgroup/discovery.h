#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/cgroup/systemd.h"
#include "common/core/cgroups/layout.h"
#include "common/sys/directory.h"

namespace podqos::cgroup {

/// Access requested to the hierarchies. kRead needs no capability; the root of a hierarchy has mode
/// 0555, so that even root needs CAP_DAC_OVERRIDE to write to it.
enum class Access : std::uint8_t { kWrite, kRead };

/// Where to look for hierarchies and how to open them. Tests replace the paths.
struct CgroupfsOptions {
  std::string mountinfo = "/proc/self/mountinfo";
  std::string unified = "/sys/fs/cgroup";  ///< if cgroup2 is mounted here, mountinfo is not read
  std::string hugepages = "/sys/kernel/mm/hugepages";
  sys::Resolve resolve = sys::Resolve::kOpenat2;
  Access access = Access::kWrite;
  /// Hierarchies of cgroup v1 stay open for the next call of this process, until mounts change.
  bool keep = false;
  /// How many control files stay open to be read again (KeptFiles).
  std::size_t most_files = 0;
  SystemdOptions systemd = {};
};

/// Finds the hierarchies in the text of /proc/self/mountinfo: cgroup and cgroup2 mounts with root
/// "/", whatever their controllers, also if another mount hides them. One that is mounted twice is
/// returned twice.
/// Octal escapes are decoded; malformed lines are ignored.
/// @note proc_pid_mountinfo(5); v1 controllers are among the super options, see
/// cgroup_show_options() in the kernel.
[[nodiscard]] std::vector<Hierarchy> parse_mountinfo(std::string_view text);

/// Hierarchies, some of them open; with CgroupfsOptions::keep, for one transaction after the other.
using Hierarchies = std::shared_ptr<std::vector<OpenHierarchy>>;

/// The mounted hierarchies, in mount order. A hierarchy with a controller that podqos uses is left
/// out if it is not usable (OpenHierarchy::is_usable).
/// @return never null; an error with the path if mountinfo cannot be read, or one of those cannot
///         be opened.
[[nodiscard]] Result<Hierarchies> find_hierarchies(const CgroupfsOptions& options);

/// Where the hierarchies of find_hierarchies() are mounted, for rules about paths beneath:
/// `options.unified`, and what is not beneath it; that alone if they cannot be found.
[[nodiscard]] std::vector<std::string> mount_points(const CgroupfsOptions& options);

/// The cgroup version that carries each controller, without huge page sizes.
[[nodiscard]] core::CgroupLayout layout_of(const std::vector<OpenHierarchy>& hierarchies);

/// Labels of the host's huge page sizes ("2MB", "1GB"), in ascending order, from a directory like
/// /sys/kernel/mm/hugepages, with subdirectories like "hugepages-2048kB"; others are ignored. Empty
/// if it cannot be read.
[[nodiscard]] std::vector<std::string> hugepage_labels(const std::string& directory);

/// Whether the hierarchy has this controller. For v2 only valid once the hierarchy is open.
[[nodiscard]] bool carries(const Hierarchy& hierarchy, const core::ControllerRow& row);

/// Whether the hierarchy has a controller that podqos uses in every cgroup
/// (not core::ControllerRow::on_demand). For v2 only valid once the hierarchy is open.
[[nodiscard]] bool has_used_controller(const Hierarchy& hierarchy);

}  // namespace podqos::cgroup

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/core/layout.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"

namespace podqos::cgroup {

/// What the hierarchies are opened for. A program that only looks needs no capability: the root of
/// a hierarchy is closed even to root's write without CAP_DAC_OVERRIDE (mode 0555).
enum class Access : std::uint8_t { kWrite, kRead };

/// Where to look, and how to open; tests name other places.
struct CgroupfsOptions {
  std::string mountinfo = "/proc/self/mountinfo";
  std::string own_cgroups = "/proc/self/cgroup";  ///< one line for each hierarchy there is
  std::string unified =
      "/sys/fs/cgroup";  ///< if a cgroup2 file system is mounted here, mountinfo need not be read
  std::string hugepages = "/sys/kernel/mm/hugepages";
  sys::Resolve resolve = sys::Resolve::kOpenat2;
  Access access = Access::kWrite;
  /// Where what was found in mountinfo is kept for the next event: on a host with many containers
  /// it is long. The caller holds the lock of what lies there. nullptr: it is read each time.
  const sys::Directory* memory = nullptr;
  /// How long systemd may take for an answer, and for all of them.
  std::chrono::milliseconds systemd_answer{2000};
  std::chrono::steady_clock::time_point systemd_end = std::chrono::steady_clock::time_point::max();
  const sys::Clock* clock = &sys::kSteadyClock;  ///< of those waits; never null
};

/// The mounted hierarchies, in the order of the mounts. Of those that carry a controller that
/// podqos uses the unusable ones are left out (OpenHierarchy::is_usable).
[[nodiscard]] Result<std::vector<OpenHierarchy>> find_hierarchies(const CgroupfsOptions& options);

/// Which hierarchy carries each controller; without huge page sizes.
[[nodiscard]] core::CgroupLayout layout_of(const std::vector<OpenHierarchy>& hierarchies);

/// The huge page sizes of the host, from a directory like /sys/kernel/mm/hugepages; none if it
/// cannot be read.
[[nodiscard]] std::vector<std::string> hugepage_labels_of(const std::string& directory);

/// Labels, smallest first, from names like "hugepages-2048kB"; other names are left out.
[[nodiscard]] std::vector<std::string> hugepage_labels(const std::vector<std::string>& names);

/// "cpu" for kCpu.
[[nodiscard]] std::string_view controller_name(core::Controller controller);

/// Has it a controller that podqos writes to (core::Controller)? Told once it is opened.
[[nodiscard]] bool has_used_controller(const Hierarchy& hierarchy);

}  // namespace podqos::cgroup

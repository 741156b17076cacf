#include "common/cgroup/refusal.h"

#include <array>
#include <cerrno>
#include <string>

#include "common/base/text.h"
#include "common/core/cgroups/layout.h"

namespace podqos::cgroup {

namespace {

/// The meaning of an errno for a file.
struct Remedy {
  std::string_view file;  ///< "" matches every file
  int err = 0;
  std::string_view text;
};

/// The first match counts.
/// @note kernel/sched/core.c __cfs_schedulable(), mm/memcontrol.c.
constexpr std::array<Remedy, 9> kRemedies = {{
    {.file = "cpu.cfs_quota_us",
     .err = EINVAL,
     .text = "the quota exceeds the parent's, is below a child's, or is under 1 ms"},
    {.file = "cpu.cfs_period_us",
     .err = EINVAL,
     .text = "with this period the quota exceeds the parent's or is below a child's"},
    {.file = "memory.limit_in_bytes",
     .err = EBUSY,
     .text = "more is in use and cannot be reclaimed"},
    {.file = "memory.limit_in_bytes",
     .err = EINVAL,
     .text = "it exceeds memory.memsw.limit_in_bytes, which must be raised first"},
    {.file = "cpuset.cpus",
     .err = EINVAL,
     .text = "some of these CPUs are offline or not in the parent's cpuset"},
    {.file = "",
     .err = EROFS,
     .text = "the cgroup file system is mounted read-only: remount it read-write"},
    {.file = "",
     .err = EACCES,
     .text = "writing cgroups requires root in the initial user namespace"},
    {.file = "",
     .err = EPERM,
     .text = "writing cgroups requires root in the initial user namespace"},
    {.file = "", .err = ENODEV, .text = "the cgroup was removed meanwhile"},
}};

/// "" if podqos knows no remedy.
std::string remedy_for(const core::WriteFile& step, int err) {
  if (err == ENOENT) {
    const std::string_view controller = core::row_of(step.controller).v2_name;
    return cat(
        "the ", controller,
        " controller is not enabled here, or the kernel lacks this file: on cgroup v2 write +",
        controller, " to the parent's cgroup.subtree_control");
  }
  for (const Remedy& remedy : kRemedies) {
    if (remedy.err == err && (remedy.file.empty() || remedy.file == step.file)) {
      return std::string{remedy.text};
    }
  }
  return {};
}

}  // namespace

Error refusal(const core::WriteFile& step, int err) {
  Error error =
      Error::from_errno(err, cat(step.path, ": write \"", step.value, "\" to ", step.file));
  if (const std::string remedy = remedy_for(step, err); !remedy.empty()) {
    error.message += cat(" (", remedy, ")");
  }
  return error;
}

}  // namespace podqos::cgroup

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/cgroups/layout.h"
#include "common/core/settings.h"

namespace podqos::ctl {

/// What the kernel offers, as far as podqos can use it.
struct KernelFacts {
  core::CgroupLayout layout = {};
  bool has_pressure = false;  ///< /proc/pressure/memory can be read
  bool has_swap = false;      ///< the machine has swap
  bool limits_swap = false;   ///< the swap of a cgroup can be limited
  Bytes hugepages = {};       ///< preallocated, of all sizes
  bool reclaims = false;      ///< memory.reclaim (cgroup v2, Linux 5.19)
};

/// A file's flock(2) as the kernel shows it; proc_locks(5).
struct LockFacts {
  std::optional<Pid> holder = std::nullopt;
  std::string program = {};     ///< the holder's name
  std::chrono::seconds held{};  ///< since the last one took it
  std::int64_t waiters = 0;
};

/// A directory and its file system.
struct DirectoryFacts {
  std::string path = {};
  std::optional<Error> error = std::nullopt;  ///< kNotFound: it does not exist
  uid_t owner = 0;
  mode_t mode = 0;
  bool read_only = false;
  std::int64_t free_bytes = 0;
  std::int64_t free_files = 0;
};

/// Who holds the flock of a file, and how many wait for it, by the text of /proc/locks.
/// @param device, inode  of the file
struct FileLockers {
  std::optional<Pid> holder = std::nullopt;
  std::int64_t waiters = 0;
};
[[nodiscard]] FileLockers parse_locks(std::string_view text, dev_t device, ino_t inode);

[[nodiscard]] KernelFacts read_kernel(cgroup::Machine& cgroups);
[[nodiscard]] DirectoryFacts read_directory(const std::string& path);
[[nodiscard]] LockFacts read_lock(const std::string& path);

}  // namespace podqos::ctl

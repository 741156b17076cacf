#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/discovery.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/core/cgroups/layout.h"
#include "common/sys/fd.h"

namespace podqos::cgroup {

/// What the kernel has counted of a cgroup and those below it since it was made, and what it uses
/// now. nullopt where kernel or machine lack the file.
/// @note Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/memory.rst, cpuacct.rst
struct CgroupUsage {
  std::chrono::steady_clock::time_point at = {};  ///< when it was read
  std::optional<Micros> cpu = {};                 ///< CPU time
  /// Periods of the cgroup's own CPU quota in which it had work; 0 without a quota.
  std::optional<std::int64_t> periods = {};
  std::optional<std::int64_t> throttled_periods = {};  ///< those in which it had to wait
  std::optional<Bytes> memory = {};
  std::optional<Bytes> inactive_file = {};  ///< page cache that was not used lately
  std::optional<Bytes> swap = {};
  /// Processes that the OOM killer has ended: on v1 without those of the cgroups below.
  std::optional<std::int64_t> oom_kills = {};
  std::optional<std::int64_t> pids = {};  ///< processes and threads
  std::optional<Pressure> cpu_pressure = {};
  std::optional<Pressure> memory_pressure = {};
  friend bool operator==(const CgroupUsage&, const CgroupUsage&) = default;
};

/// A file with a part of the usage, and how it is parsed.
struct UsageFile;

/// Adds what the text of a file tells; a file that is not read for CgroupUsage adds nothing.
void parse_usage(core::CgroupVersion version, std::string_view file, std::string_view text,
                 CgroupUsage& usage);

/// Reads the usage of many cgroups again and again. Their files stay open, since opening takes five
/// times as long as reading: on a busy node some seven descriptors a cgroup.
class UsageReader {
 public:
  /// @param most_files  how many descriptors may stay open; what is beyond is opened each time
  /// @return the errors of find_hierarchies()
  static Result<UsageReader> open(std::size_t most_files, const CgroupfsOptions& options = {});

  /// nullopt if the cgroup does not exist in any hierarchy.
  /// @param cgroup  absolute below the hierarchies' mounts
  [[nodiscard]] std::optional<CgroupUsage> read(const std::string& cgroup);
  /// Closes the files of cgroups that were not read since the last call.
  void close_unread();

 private:
  /// A file that is read of each cgroup.
  struct Source {
    const UsageFile* file;
    OpenHierarchy* hierarchy;
  };
  /// The files of one cgroup, in the order of sources_; those that it lacks are not valid.
  struct Files {
    std::vector<sys::UniqueFd> opened;
    bool is_read = true;  ///< since close_unread()
  };

  UsageReader(Hierarchies hierarchies, std::size_t most_files);
  [[nodiscard]] Files open_files(const std::string& cgroup);
  /// nullopt if the cgroup has been removed since the files were opened, or has none of them.
  [[nodiscard]] std::optional<CgroupUsage> read(const Files& files);

  Hierarchies hierarchies_;
  std::vector<Source> sources_;
  std::map<std::string, Files, std::less<>> kept_;  ///< by cgroup
  std::size_t most_kept_ = 0;
  std::vector<char> buffer_;
};

}  // namespace podqos::cgroup

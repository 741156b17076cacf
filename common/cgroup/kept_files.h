#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/sys/fd.h"

namespace podqos::cgroup {

/// Reads control files again and again, and keeps them open: opening takes five times as long as
/// reading.
class KeptFiles {
 public:
  /// @param most  how many may stay open; what is beyond is opened each time
  explicit KeptFiles(std::size_t most) : most_(most) {}

  /// As OpenHierarchy::read().
  [[nodiscard]] Result<std::string> read(OpenHierarchy& hierarchy, std::string_view path,
                                         std::string_view file);
  /// Closes those that were not read since the last call.
  void close_unread();

 private:
  struct File {
    OrErrno<sys::UniqueFd> opened;
    bool is_read = true;  ///< since close_unread()
  };

  std::size_t most_;
  std::map<std::string, File, std::less<>> files_;  ///< by place_of()
};

}  // namespace podqos::cgroup

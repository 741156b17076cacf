#pragma once

#include <chrono>

#include "common/base/error.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::sys {

/// An exclusive flock(2) on a file of `directory`, released when the object goes. The file itself
/// stays, so that no two processes can lock different files of one name.
class FileLock {
 public:
  /// @return kTimeout when the deadline passes, with the path and how long was waited.
  static Result<FileLock> acquire(const Directory& directory, const char* name,
                                  std::chrono::milliseconds patience);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace podqos::sys

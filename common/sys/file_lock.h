#pragma once

#include <chrono>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::sys {

/// An exclusive flock(2) on a file in `directory`, released on destruction. The file is never
/// removed, since two processes could otherwise lock different files of the same name.
class FileLock {
 public:
  /// Acquires the lock, creating the file (mode 0600) if necessary. Waiters are served in order of
  /// arrival, except that a free lock is taken at once. For single-threaded programs: see WakeUp.
  /// @param timeout  maximum wait for one and the same holder; up to 20 s in total while the lock
  /// passes from one process to the next
  /// @param deadline  end of the wait, whichever process holds the lock
  /// @param clock  measures both
  /// @return kTimeout, with the path and the time waited.
  static Result<FileLock> acquire(const Directory& directory, const char* name,
                                  std::chrono::milliseconds timeout,
                                  Clock::TimePoint deadline = Clock::TimePoint::max(),
                                  const Clock& clock = kSteadyClock);

  /// Lets programs that this process starts inherit the lock: it is free once they have ended, too.
  void share_with_children() const;

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace podqos::sys

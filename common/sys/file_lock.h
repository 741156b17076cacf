#pragma once

#include <chrono>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::sys {

/// An exclusive flock(2) on a file of `directory`, released when the object goes. The file itself
/// stays, so that no two processes can lock different files of one name.
class FileLock {
 public:
  /// Waiters are served in the order in which they came, but for one that finds it free. For
  /// programs of one thread: see WakeUp.
  /// @param timeout  how long one and the same holder is waited for; up to 20 s where the lock
  ///                  goes from one to the next meanwhile
  /// @param deadline  of the wait, independent of the holder
  /// @param clock     by which both end
  /// @return kTimeout when the time is over, with the path and how long was waited.
  static Result<FileLock> acquire(const Directory& directory, const char* name,
                                  std::chrono::milliseconds timeout,
                                  Clock::TimePoint deadline = Clock::TimePoint::max(),
                                  const Clock& clock = kSteadyClock);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace podqos::sys

#include "common/sys/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/sys/wake_up.h"

namespace podqos::sys {

namespace {

/// Maximum wait while the lock passes between other processes: the hook's timeout is 30 s.
constexpr std::chrono::seconds kMaxQueueTime{20};

/// The time at which the lock was last acquired: each holder sets the mtime of the file. Holders
/// are told apart once the kernel's coarse clock has advanced, a few milliseconds.
std::pair<time_t, long> last_taken(int fd) {
  struct stat status{};
  static_cast<void>(::fstat(fd, &status));
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

/// Waits in the kernel's queue, which is served in order of arrival.
/// @return errno; EINTR if the time is over.
int wait_for_lock(int fd, Clock::TimePoint end, const Clock& clock) {
  while (true) {
    const auto time = clock.time_until(end);
    if (time == time.zero()) return EINTR;
    const WakeUp wake_up{std::chrono::ceil<std::chrono::microseconds>(time)};
    if (::flock(fd, LOCK_EX) == 0) return 0;
    // Other signals also interrupt flock(2).
    if (const int err = errno; err != EINTR) return err;
  }
}

/// The same, but waits longer while the lock passes from one process to the next.
/// @return errno; ETIMEDOUT if one process holds it; EBUSY if other processes acquired it each
/// time.
int wait_for_turn(int fd, std::chrono::milliseconds timeout, Clock::TimePoint deadline,
                  const Clock& clock) {
  const auto longest = std::max<Clock::TimePoint::duration>(timeout, kMaxQueueTime);
  const auto last = std::min(clock.now() + longest, deadline);
  while (true) {
    const auto before = last_taken(fd);
    const int err = wait_for_lock(fd, std::min(clock.now() + timeout, last), clock);
    if (err != EINTR) return err;
    if (before == last_taken(fd)) return ETIMEDOUT;
    if (clock.now() >= last) return EBUSY;
  }
}

}  // namespace

Result<FileLock> FileLock::acquire(const Directory& directory, const char* name,
                                   std::chrono::milliseconds timeout, Clock::TimePoint deadline,
                                   const Clock& clock) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  const auto path = [&] { return cat(directory.path(), "/", name); };
  UniqueFd fd{::openat(directory.fd(), name, kFlags, 0600)};
  if (const int err = errno; !fd.valid()) return fail_errno(err, cat("open lock ", path()));

  timeout = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now()),
                       std::chrono::milliseconds{0}, timeout);
  // The common case: the lock is free, and no timer is needed.
  int err = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (err == EWOULDBLOCK || err == EINTR) err = wait_for_turn(fd.get(), timeout, deadline, clock);
  if (err == ETIMEDOUT) {
    return fail(ErrorCode::kTimeout,
                cat("lock ", path(), ": another process still holds it after ", timeout.count(),
                    " ms; if it hangs, find it with `fuser -v ", path(), "`"));
  }
  if (err == EBUSY) {
    return fail(ErrorCode::kTimeout,
                cat("lock ", path(),
                    ": other processes held it in turn until the deadline; raise "
                    "lockDeadline, or start fewer containers at once"));
  }
  if (err != 0) return fail_errno(err, cat("lock ", path()));
  // For waiting processes, see last_taken(). If it fails, they wait no longer than their timeout.
  static_cast<void>(::futimens(fd.get(), nullptr));
  return FileLock{std::move(fd)};
}

void FileLock::share_with_children() const {
  ::fcntl(fd_.get(), F_SETFD, 0);
}

}  // namespace podqos::sys

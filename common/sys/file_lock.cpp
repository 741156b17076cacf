#include "common/sys/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
#include <utility>

#include "common/base/text.h"

namespace podqos::sys {

namespace {

using std::chrono::steady_clock;

// An event holds the lock for about a millisecond. The first naps are short so that a lone waiter
// is served at once; they grow so that dozens of waiters do not take the CPU from the one that
// holds it.
constexpr std::chrono::nanoseconds kFirstNap = std::chrono::microseconds{200};
constexpr std::chrono::nanoseconds kLongestNap = std::chrono::milliseconds{5};

void nap(std::chrono::nanoseconds length) {
  const timespec time{.tv_sec = 0, .tv_nsec = length.count()};
  // Woken early by a signal: the caller looks at the lock and at the clock again anyway.
  static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr));
}

}  // namespace

Result<FileLock> FileLock::acquire(const Directory& directory, const char* name,
                                   std::chrono::milliseconds patience) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  const auto path = [&] { return cat(directory.path(), "/", name); };
  UniqueFd fd{::openat(directory.fd(), name, kFlags, 0600)};
  if (const int err = errno; !fd.valid()) return fail_errno(err, cat("open lock ", path()));

  const auto deadline = steady_clock::now() + patience;
  auto length = kFirstNap;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    const int err = errno;
    if (err != EWOULDBLOCK && err != EINTR) return fail_errno(err, cat("lock ", path()));
    const auto left = deadline - steady_clock::now();
    if (left <= steady_clock::duration::zero()) {
      return fail(ErrorCode::kTimeout,
                  cat("lock ", path(), ": another process still holds it after ", patience.count(),
                      " ms; should it hang, fuser -v ", path(), " tells which"));
    }
    nap(std::min<std::chrono::nanoseconds>(length, left));
    length = std::min(length * 2, kLongestNap);
  }
  return FileLock{std::move(fd)};
}

}  // namespace podqos::sys

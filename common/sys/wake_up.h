#pragma once

#include <sys/time.h>

#include <chrono>
#include <csignal>

namespace podqos::sys {

/// Gives a deadline to a system call that has none, such as connect(2) inside a library: from the
/// deadline on the call fails with EINTR, also when it is repeated. Uses SIGALRM and the process's
/// only ITIMER_REAL, and restores both; for single-threaded programs.
class WakeUp {
 public:
  /// @param timeout  a smaller value counts as 1 µs
  explicit WakeUp(std::chrono::microseconds timeout);
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

 private:
  struct sigaction old_action_{};
  sigset_t old_mask_{};
  itimerval old_timer_{};
};

}  // namespace podqos::sys

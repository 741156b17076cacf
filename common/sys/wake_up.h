#pragma once

#include <sys/time.h>

#include <chrono>
#include <csignal>

namespace podqos::sys {

/// Gives a deadline to a system call that has none of its own, such as connect(2) inside a library:
/// from the deadline on, the call ends with EINTR, now and whenever it is made again. Uses the
/// process's only real-time timer and SIGALRM, and puts both back as they were; for programs of one
/// thread.
class WakeUp {
 public:
  /// @param timeout  at least 1 µs is waited.
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

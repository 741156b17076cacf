#include "common/sys/wake_up.h"

#include <algorithm>

namespace podqos::sys {

namespace {

// A signal that arrives just before the call starts does not interrupt it, so that the timer
// repeats every 20 ms.
constexpr std::chrono::microseconds kAgain = std::chrono::milliseconds{20};

timeval time_for(std::chrono::microseconds length) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length);
  return {.tv_sec = seconds.count(), .tv_usec = (length - seconds).count()};
}

void ignore_signal(int /*number*/) {}

}  // namespace

WakeUp::WakeUp(std::chrono::microseconds timeout) {
  struct sigaction action{};
  action.sa_handler = ignore_signal;
  action.sa_flags = 0;  // no SA_RESTART: the call must fail with EINTR
  static_cast<void>(::sigaction(SIGALRM, &action, &old_action_));
  // The parent may have blocked the signal, and the signal mask is inherited.
  sigset_t alarm{};
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  static_cast<void>(::pthread_sigmask(SIG_UNBLOCK, &alarm, &old_mask_));
  const itimerval timer{.it_interval = time_for(kAgain),
                        .it_value = time_for(std::max(timeout, std::chrono::microseconds{1}))};
  static_cast<void>(::setitimer(ITIMER_REAL, &timer, &old_timer_));
}

WakeUp::~WakeUp() {
  static_cast<void>(::setitimer(ITIMER_REAL, &old_timer_, nullptr));
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr));
  static_cast<void>(::sigaction(SIGALRM, &old_action_, nullptr));
}

}  // namespace podqos::sys

#include "common/sys/wake_up.h"

#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "tests/unit/child_process.h"

namespace podqos::sys {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Reads from a pipe into which nobody writes.
int errno_of_endless_read() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  const UniqueFd reading{ends[0]};
  const UniqueFd writing{ends[1]};
  char byte = 0;
  return ::read(reading.get(), &byte, 1) < 0 ? errno : 0;
}

TEST(WakeUp, EndsACallThatWouldWaitForEver) {
  expect_in_child([] {
    const auto start = steady_clock::now();
    const WakeUp wake_up{100ms};
    EXPECT_EQ(errno_of_endless_read(), EINTR);
    EXPECT_GE(steady_clock::now() - start, 100ms);
    // One that begins after the deadline, too: the first signal may come too early for it.
    EXPECT_EQ(errno_of_endless_read(), EINTR);
    EXPECT_EQ(errno_of_endless_read(), EINTR);
  });
}

TEST(WakeUp, WorksWhereTheSignalIsBlocked) {
  expect_in_child([] {
    sigset_t all{};
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    {
      const WakeUp wake_up{0us};
      EXPECT_EQ(errno_of_endless_read(), EINTR);
    }
    sigset_t now{};
    ::sigprocmask(SIG_SETMASK, nullptr, &now);
    EXPECT_EQ(::sigismember(&now, SIGALRM), 1);
  });
}

TEST(WakeUp, PutsBackWhatItFound) {
  expect_in_child([] {
    {
      const WakeUp wake_up{1us};
    }
    // SIGALRM would end the process by now.
    ::usleep(60'000);
    ::signal(SIGALRM, SIG_IGN);
    const itimerval hour{.it_interval = {}, .it_value = {.tv_sec = 3600, .tv_usec = 0}};
    ::setitimer(ITIMER_REAL, &hour, nullptr);
    {
      const WakeUp wake_up{1s};
    }
    itimerval timer{};
    ::getitimer(ITIMER_REAL, &timer);
    EXPECT_GT(timer.it_value.tv_sec, 3500);
    EXPECT_EQ(::signal(SIGALRM, SIG_DFL), SIG_IGN);
    sigset_t now{};
    ::sigprocmask(SIG_SETMASK, nullptr, &now);
    EXPECT_EQ(::sigismember(&now, SIGALRM), 0);
  });
}

}  // namespace
}  // namespace podqos::sys

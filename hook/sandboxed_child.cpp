#include "hook/sandboxed_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "common/sys/sandbox.h"
#include "hook/process.h"

namespace podqos::hook {

namespace {

using std::chrono::milliseconds;
using Clock = app::Timeouts::Clock;

constexpr milliseconds kTick{20};
/// The same once its end of the pipe is closed: the kernel closes it a moment before a process that
/// ends can be waited for.
constexpr milliseconds kTickOfEnd{1};
/// How long a killed child may take to end.
constexpr milliseconds kEnd{1'000};

/// Exit statuses of the child: what was decided, or that Landlock keeps it from seeing other
/// processes.
constexpr int kYes = 0;
constexpr int kNo = 3;
constexpr int kSeesNobody = 4;

enum class Landlock : std::uint8_t { kUse, kLeave };

Status enter(const Sandbox& sandbox, Landlock landlock) {
  if (landlock == Landlock::kUse) {
    PODQOS_ASSIGN(const bool restricted, sys::restrict_writes(sandbox.places));
    if (!restricted) sandbox.log.debug("the kernel has no Landlock: the child may write anywhere");
    const std::string parent = cat("/proc/", ::getppid());
    if (restricted && ::access(parent.c_str(), F_OK) != 0) ::_exit(kSeesNobody);
  }
  return enter_sandbox(sandbox.settings);
}

/// Waits until the child has ended.
/// @param pipe  of which the child has the only writing end; -1: none
/// @return the wait status; nullopt: it has not ended in time
std::optional<int> await_end(pid_t child, int pipe, Clock::time_point deadline) {
  pollfd polled{.fd = pipe, .events = POLLIN, .revents = 0};
  milliseconds tick = kTick;
  do {
    ::poll(&polled, 1, static_cast<int>(tick.count()));
    int status = 0;
    if (::waitpid(child, &status, WNOHANG | __WALL) == child) return status;
    // It may close its end and stay.
    if (polled.revents == 0) continue;
    polled.fd = -1;
    tick = kTickOfEnd;
  } while (Clock::now() < deadline);
  return std::nullopt;
}

/// @return the exit status
Result<int> run(const Sandbox& sandbox, Landlock landlock, Clock::time_point deadline,
                const std::function<bool(const Status&)>& decide) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "create a pipe to a child");
  const sys::UniqueFd ended{ends[0]};
  sys::UniqueFd held{ends[1]};
  // Like fork(2), but without an exit signal: if the engine has blocked SIGCHLD, it would be
  // pending in the runtime. This program has one thread and no fork handlers.
  const pid_t self = ::getpid();
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL));
  if (child < 0) return fail_errno(errno, "fork a child");
  if (child == 0) {
    // An engine that kills this program creates the container again, perhaps from the same bundle.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(kNo);
    ::_exit(decide(enter(sandbox, landlock)) ? kYes : kNo);
  }
  held = sys::UniqueFd{};
  const auto status = await_end(child, ended.get(), deadline);
  if (!status) {
    // One that hangs in the kernel is left to the runtime's parent.
    ::kill(child, SIGKILL);
    await_end(child, -1, Clock::now() + kEnd);
    return fail(
        ErrorCode::kTimeout,
        cat("the child process (pid ", child,
            ") did not end in time and was killed: check whether it was stopped or frozen"));
  }
  if (WIFEXITED(*status)) return WEXITSTATUS(*status);
  return fail(ErrorCode::kCorrupt,
              cat("the child process was killed by signal ", WTERMSIG(*status),
                  WTERMSIG(*status) == SIGSYS ? " (a syscall outside its sandbox)" : ""));
}

}  // namespace

Result<bool> run_in_sandbox(const Sandbox& sandbox, Clock::time_point deadline,
                            const std::function<bool(const Status&)>& decide) {
  PODQOS_ASSIGN(int status, run(sandbox, Landlock::kUse, deadline, decide));
  if (status == kSeesNobody) {
    // Only a child that parses nothing is believed: another one may have been taken over.
    PODQOS_ASSIGN(const int probe,
                  run(sandbox, Landlock::kUse, deadline, [](const Status&) { return true; }));
    if (probe == kSeesNobody) {
      PODQOS_ASSIGN(status, run(sandbox, Landlock::kLeave, deadline, decide));
    }
  }
  if (status == kYes || status == kNo) return status == kYes;
  return fail(ErrorCode::kCorrupt, cat("the child process ended with status ", status));
}

}  // namespace podqos::hook

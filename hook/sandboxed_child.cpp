#include "hook/sandboxed_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>

#include "common/base/text.h"
#include "common/sys/sandbox.h"
#include "hook/programs.h"

namespace podqos::hook {

namespace {

using std::chrono::milliseconds;
using Clock = app::Timeouts::Clock;

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

/// Waits until a child has ended.
/// @param child  its pidfd
/// @return whether it has, in time
bool has_ended(int child, Clock::time_point deadline) {
  pollfd polled{.fd = child, .events = POLLIN, .revents = 0};
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    const int ready = ::poll(&polled, 1, static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

/// @return the exit status
Result<int> run(const Sandbox& sandbox, Landlock landlock, Clock::time_point deadline,
                const std::function<bool(const Status&)>& decide) {
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
  const sys::UniqueFd ended{static_cast<int>(::syscall(SYS_pidfd_open, child, 0U))};
  if (!ended.valid()) {
    const int err = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, __WALL);
    return fail_errno(err, "open a descriptor of a child");
  }
  const bool in_time = has_ended(ended.get(), deadline);
  // One that hangs in the kernel is left to the runtime's parent.
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  if (in_time || has_ended(ended.get(), Clock::now() + kEnd)) ::waitpid(child, &status, __WALL);
  if (!in_time) {
    return fail(
        ErrorCode::kTimeout,
        cat("the child process (pid ", child,
            ") did not end in time and was killed: check whether it was stopped or frozen"));
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(ErrorCode::kCorrupt,
              cat("the child process was killed by signal ", WTERMSIG(status),
                  WTERMSIG(status) == SIGSYS ? " (a syscall outside its sandbox)" : ""));
}

}  // namespace

Result<std::vector<sys::UniqueFd>> open_places(std::vector<std::string> paths) {
  std::vector<sys::UniqueFd> places;
  for (std::string& path : paths) {
    while (path.ends_with('/'))
      path.pop_back();
    constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    sys::UniqueFd place{::open(path.c_str(), kFlags)};
    if (!place.valid() && errno == ENOENT)
      place = sys::UniqueFd{::open(path.substr(0, path.rfind('/') + 1).c_str(), kFlags)};
    const int err = errno;
    if (place.valid())
      places.push_back(std::move(place));
    else if (err != ENOENT)
      return fail_errno(err, cat("open ", path));
  }
  return places;
}

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

#include "ctl/progress.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/sys/clock.h"
#include "ctl/command.h"
#include "ctl/raw_terminal.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// Writes to standard error. A terminal that has gone needs nothing.
void write_line(std::string_view text) {
  static_cast<void>(sys::write_all(STDERR_FILENO, text).has_value());
}

/// Writes the line until the other end of `socket` sends an empty message, or is closed.
void show(int socket, std::string what) {
  using std::chrono::seconds;
  const auto start = sys::kSteadyClock.now();
  seconds passed{0};
  std::array<char, 256> said{};
  while (true) {
    std::array polled = {pollfd{.fd = socket, .events = POLLIN, .revents = 0}};
    if (sys::kSteadyClock.poll(polled, start + passed + seconds{1}) > 0) {
      const ssize_t got = ::read(socket, said.data(), said.size());
      if (got <= 0) break;
      what.assign(said.data(), static_cast<std::size_t>(got));
    }
    const auto now = std::chrono::floor<seconds>(sys::kSteadyClock.now() - start);
    if (now == std::exchange(passed, now)) continue;
    write_line(cat("\r", shorten(cat(passed.count(), " s: ", what), screen_width()), "\x1b[K"));
  }
  if (passed > seconds{0}) write_line("\r\x1b[K");
}

}  // namespace

Progress::Progress(std::string_view what) {
  std::array<int, 2> ends{};
  if (!has_terminal(STDERR_FILENO) ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return;
  sys::UniqueFd mine{ends[0]};
  const sys::UniqueFd its{ends[1]};
  const pid_t pid = ::fork();
  if (pid > 0) other_ = std::move(mine);
  if (pid != 0) return;
  mine = {};
  // What ends podqosctl closes its socket: this process then erases the line.
  sigset_t ends_both;
  ::sigemptyset(&ends_both);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
    ::sigaddset(&ends_both, signal);
  static_cast<void>(::pthread_sigmask(SIG_BLOCK, &ends_both, nullptr));
  if (narrow({}, sys::Filter::kTop)) show(its.get(), std::string{what});
  ::_exit(0);
}

void Progress::say(std::string_view what) const {
  // An empty message would be the end. That the other process has gone changes nothing.
  if (other_.valid() && !what.empty())
    static_cast<void>(::send(other_.get(), what.data(), what.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Progress::wait_for(std::string_view what) const {
  say(cat("waiting for ", what));
}

void Progress::end() {
  if (!other_.valid()) return;
  // waitpid(2) is not on narrow()'s allow-list: the kernel is to reap the process.
  static_cast<void>(std::signal(SIGCHLD, SIG_IGN));
  char none = 0;
  static_cast<void>(::send(other_.get(), &none, 0, MSG_NOSIGNAL));
  // Its end, by which the line is erased.
  static_cast<void>(::read(other_.get(), &none, 1) < 0);
  other_ = {};
}

}  // namespace podqos::ctl

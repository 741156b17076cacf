#include "ctl/configure/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

constexpr std::chrono::milliseconds kPipeInterval{10};
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;
constexpr std::size_t kMostSaid = 2000;                 // of a program that fails
constexpr std::size_t kChunk = std::size_t{64} << 10U;  // what a pipe holds

/// Becomes the program, in a process group of its own, without input and with both outputs to one
/// descriptor.
[[noreturn]] void execute(std::vector<std::string> argv, int output) {
  std::vector<std::string> environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
                                          "HOME=/root", "LC_ALL=C.UTF-8", "TERM=dumb"};
  const auto pointers = [](std::vector<std::string>& words) {
    std::vector<char*> found(words.size() + 1);
    std::ranges::transform(words, found.begin(), [](std::string& each) { return each.data(); });
    return found;
  };
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &none, nullptr));
  if (const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0)
    ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(argv.front().c_str(), pointers(argv).data(), pointers(environment).data());
  const auto why = fail_errno(errno, cat("run ", argv.front()));
  ::dprintf(STDERR_FILENO, "%s\n", why.error().message.c_str());
  ::_exit(127);  // as a shell
}

}  // namespace

bool wait_until(std::chrono::milliseconds patience, std::chrono::milliseconds interval,
                const std::function<bool()>& is_so) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + patience;
  while (!is_so()) {
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(interval);
  }
  return true;
}

Result<std::string> run_program(const std::vector<std::string>& argv, int status,
                                std::chrono::seconds patience) {
  std::array<int, 2> ends{};
  if (::access(argv.front().c_str(), X_OK) != 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail_errno(errno, cat("run ", argv.front()));
  const sys::UniqueFd reader{ends[0]};
  sys::UniqueFd writer{ends[1]};
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  // Where it is ignored, which is inherited, the kernel keeps no exit status.
  static_cast<void>(std::signal(SIGCHLD, SIG_DFL));
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, cat("run ", argv.front()));
  if (pid == 0) execute(argv, writer.get());
  writer = sys::UniqueFd{};
  std::string output;
  std::vector<char> chunk(kChunk);
  const bool ended = wait_until(patience, kPipeInterval, [&] {
    const ssize_t got = ::read(reader.get(), chunk.data(), chunk.size());
    // Read on beyond the limit, so that the program does not wait for a full pipe.
    if (got > 0 && output.size() < kMaxOutput)
      output.append(chunk.data(), static_cast<std::size_t>(got));
    return got == 0;
  });
  if (!ended) ::kill(-pid, SIGKILL);
  int end = 0;
  if (::waitpid(pid, &end, 0) != pid)
    return fail_errno(errno, cat(join(argv, " "), ": wait for its end"));
  if (!ended)
    return fail(ErrorCode::kTimeout,
                cat(join(argv, " "), ": timed out after ", patience.count(), " s"));
  output.resize(without_newline(output).size());
  if (!WIFEXITED(end) || WEXITSTATUS(end) != status)
    return fail(ErrorCode::kRefused, app::one_line(output.substr(0, kMostSaid)));
  return output;
}

}  // namespace podqos::ctl

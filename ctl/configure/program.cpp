#include "ctl/configure/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>

#include "common/app/log.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/cli/raw_terminal.h"
#include "ctl/cli/table.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

constexpr std::chrono::milliseconds kInterval{10};
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;
constexpr std::size_t kMostSaid = 2000;                // of a program that fails
constexpr std::size_t kChunk = std::size_t{1} << 20U;  // the most that a pipe holds

/// Standard output or standard error of a program.
struct Output {
  sys::UniqueFd reader = {};
  sys::UniqueFd writer = {};
  std::string text = {};

  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    reader = sys::UniqueFd{ends[0]};
    writer = sys::UniqueFd{ends[1]};
    return ::fcntl(reader.get(), F_SETFL, O_NONBLOCK) == 0;
  }
  /// Reads all that is there, beyond the limit, too, so that the program waits for no full pipe.
  void read(std::vector<char>& chunk) {
    const ssize_t got = ::read(reader.get(), chunk.data(), chunk.size());
    if (got > 0 && text.size() < kMaxOutput)
      text.append(chunk.data(), static_cast<std::size_t>(got));
  }
};

/// A line on the terminal that says what is waited for, until it is erased.
class WaitingLine {
 public:
  explicit WaitingLine(const std::vector<std::string>& argv)
      : is_shown_(has_terminal(STDERR_FILENO)) {
    // Of systemctl its unit, where it is told but one.
    const bool has_unit = argv.front() == kSystemctl && argv.size() == 3;
    if (is_shown_)
      write(cat("\rwaiting for ", printable(leaf_of(has_unit ? argv.back() : argv.front()))));
  }
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() {
    if (is_shown_) write("\r");
  }

 private:
  /// A terminal that has gone needs nothing.
  static void write(std::string_view text) {
    static_cast<void>(sys::write_all(STDERR_FILENO, cat(text, "\x1b[K")).has_value());
  }
  bool is_shown_;
};

/// Becomes the program, in a process group of its own and without input.
[[noreturn]] void execute(std::vector<std::string> argv, int output, int errors) {
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
  ::dup2(errors, STDERR_FILENO);
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
  Output output;
  Output errors;
  if (::access(argv.front().c_str(), X_OK) != 0 || !output.open() || !errors.open())
    return fail_errno(errno, cat("run ", argv.front()));
  const WaitingLine line{argv};
  // Where it is ignored, which is inherited, the kernel keeps no exit status.
  static_cast<void>(std::signal(SIGCHLD, SIG_DFL));
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, cat("run ", argv.front()));
  if (pid == 0) execute(argv, output.writer.get(), errors.writer.get());
  std::vector<char> chunk(kChunk);
  int end = 0;
  pid_t ended = 0;
  int cause = 0;
  // Not for the end of its outputs, which a process that it leaves behind may keep open.
  wait_until(patience, kInterval, [&] {
    ended = ::waitpid(pid, &end, WNOHANG);
    cause = errno;
    output.read(chunk);
    errors.read(chunk);
    return ended != 0;
  });
  if (ended == 0) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, &end, 0);
    return fail(ErrorCode::kTimeout,
                cat(join(argv, " "), ": timed out after ", patience.count(), " s"));
  }
  if (ended != pid) return fail_errno(cause, cat(join(argv, " "), ": wait for its end"));
  if (!WIFEXITED(end) || WEXITSTATUS(end) != status) {
    const std::string& said = errors.text.empty() ? output.text : errors.text;
    const auto lines = parts_of(std::string_view{said}.substr(0, kMostSaid), '\n');
    return fail(ErrorCode::kRefused, app::one_line(join(lines, "; ")));
  }
  output.text.resize(without_newline(output.text).size());
  return std::move(output.text);
}

}  // namespace podqos::ctl

#include "ctl/configure/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <utility>

#include <spawn.h>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::minutes kTimeout{2};
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;
constexpr int kSignalled = 128;
constexpr std::array<std::string_view, 4> kProgramDirectories = {
    "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"};
constexpr Version kDockerValidates{.major = 23, .minor = 0};

/// Starts the program without input, with both outputs to one descriptor.
/// @return its pid, which is its process group's, too.
Result<pid_t> spawn(std::vector<std::string> argv, int output) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (std::string& word : argv)
    words.push_back(word.data());
  words.push_back(nullptr);
  std::array<std::string, 4> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME=/root", "LC_ALL=C.UTF-8",
      "TERM=dumb"};
  std::array<char*, 5> variables{};
  std::ranges::transform(environment, variables.begin(),
                         [](std::string& each) { return each.data(); });
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  sigset_t not_ignored;
  ::sigemptyset(&not_ignored);
  ::sigaddset(&not_ignored, SIGPIPE);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &not_ignored);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int err =
      ::posix_spawn(&pid, words.front(), &actions, &attributes, words.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (err != 0) return fail_errno(err, cat("run ", argv.front()));
  return pid;
}

/// Reads until the end or the deadline. @return false if the deadline has passed.
bool read_until(int fd, steady_clock::time_point deadline, std::string& output) {
  std::array<char, 4096> chunk{};
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&readable, 1, static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (ready == 0) return false;
    if (ready < 0 && errno != EINTR) return true;
    const ssize_t got = ready < 0 ? -1 : ::read(fd, chunk.data(), chunk.size());
    if (got == 0) return true;
    // Read on beyond the limit, so that the program does not wait for a full pipe.
    if (got > 0 && output.size() < kMaxOutput)
      output.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

/// The status of an ended child.
int wait_for_end(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace

Result<ProgramEnd> run_program(const std::vector<std::string>& argv) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  const sys::UniqueFd reader{ends[0]};
  sys::UniqueFd writer{ends[1]};
  PODQOS_ASSIGN(const pid_t pid, spawn(argv, writer.get()));
  writer = sys::UniqueFd{};
  ProgramEnd end;
  const bool ended = read_until(reader.get(), steady_clock::now() + kTimeout, end.output);
  if (!ended) ::kill(-pid, SIGKILL);
  end.status = wait_for_end(pid);
  end.output.resize(end.output.find_last_not_of('\n') + 1);
  if (!ended) return fail(ErrorCode::kTimeout, cat(join(argv, " "), ": timed out after 2 minutes"));
  return end;
}

Result<std::optional<std::string>> find_program(Engine engine) {
  std::optional<std::string> found;
  struct stat first{};
  for (const std::string_view directory : kProgramDirectories) {
    std::string path = cat(directory, "/", facts_of(engine).program);
    struct stat other{};
    if (::stat(path.c_str(), &other) != 0) continue;
    if (found && (other.st_ino != first.st_ino || other.st_dev != first.st_dev)) {
      return fail(ErrorCode::kConflict,
                  cat("found two binaries (", *found, ", ", path, "): choose one with --program"));
    }
    if (found) continue;
    found = std::move(path);
    first = other;
  }
  return found;
}

Result<Version> version_of(const std::string& program) {
  PODQOS_ASSIGN(const auto end, run_program({program, "--version"}));
  const auto version = parse_version(end.output);
  if (end.status == 0 && version) return *version;
  return fail(ErrorCode::kUnsupported, cat(program, " --version says \"", printable(end.output),
                                           "\": no version found; set it with --engine-version"));
}

std::optional<std::vector<std::string>> check_command(Engine engine, const std::string& program,
                                                      const std::optional<Version>& version) {
  // All without the path of the file: one that does not exist is an error where it is named.
  switch (engine) {
    case Engine::kContainerd: return {{program, "config", "dump"}};
    case Engine::kCrio: return {{program, "config"}};
    case Engine::kPodman: return {{program, "info"}};
    case Engine::kDocker: break;
  }
  if (!version || *version < kDockerValidates) return std::nullopt;
  return {{program, "--validate"}};
}

}  // namespace podqos::ctl

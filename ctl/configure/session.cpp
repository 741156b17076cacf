#include "ctl/configure/session.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <type_traits>
#include <utility>

#include "common/base/text.h"
#include "ctl/command.h"

namespace podqos::ctl {
namespace {

// Both are written in one piece, being shorter than PIPE_BUF, by the program that reads them.
static_assert(std::is_trivially_copyable_v<FilesDone> && std::is_trivially_copyable_v<Verdict>);

template <class Message>
bool send(int fd, const Message& message) {
  return ::write(fd, &message, sizeof message) == static_cast<ssize_t>(sizeof message);
}

template <class Message>
std::optional<Message> receive(int fd) {
  Message message;
  ssize_t got = 0;
  do {
    got = ::read(fd, &message, sizeof message);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof message)) return std::nullopt;
  return message;
}

struct Pipe {
  sys::UniqueFd reader;
  sys::UniqueFd writer;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  return Pipe{.reader = sys::UniqueFd{ends[0]}, .writer = sys::UniqueFd{ends[1]}};
}

}  // namespace

Verdict FilesProcess::report(const FilesDone& done) const {
  if (!send(to_parent_.get(), done)) return {};
  return receive<Verdict>(from_parent_.get()).value_or(Verdict{});
}

Result<FilesProcessHandle> FilesProcessHandle::start(
    const std::function<int(const FilesProcess&)>& run) {
  auto to_parent = make_pipe();
  if (!to_parent) return fail(std::move(to_parent).error());
  auto to_child = make_pipe();
  if (!to_child) return fail(std::move(to_child).error());
  // Whoever has died is noticed by what is read and written.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child > 0)
    return FilesProcessHandle{child, std::move(to_parent->reader), std::move(to_child->writer)};
  to_parent->reader = sys::UniqueFd{};
  to_child->writer = sys::UniqueFd{};
  ::_exit(run(FilesProcess{std::move(to_parent->writer), std::move(to_child->reader)}));
}

std::optional<FilesDone> FilesProcessHandle::wait_for_files() const {
  return receive<FilesDone>(from_child_.get());
}

int FilesProcessHandle::finish(const Verdict& verdict) {
  // A child that has died cannot be told; its status says so.
  static_cast<void>(send(to_child_.get(), verdict));
  return wait();
}

int FilesProcessHandle::wait() const {
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  warn(cat("the process that reads and writes the files was killed by signal ", WTERMSIG(status)));
  return kRefused;
}

}  // namespace podqos::ctl

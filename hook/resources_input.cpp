#include "hook/resources_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::hook {

namespace {

constexpr int kForWriter = 1000;  // milliseconds

std::unexpected<Error> unreadable(std::string_view what) {
  return fail(ErrorCode::kUnsupported,
              cat("the resources cannot be read beside the runtime: ", what));
}

/// The rest of a regular file, whose position stays.
Result<std::string> read_regular(int fd, const std::string& path) {
  const off_t position = ::lseek(fd, 0, SEEK_CUR);
  const sys::UniqueFd own{::open(cat("/proc/self/fd/", fd).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!own.valid()) return fail_errno(errno, cat("open ", path));
  if (position > 0 && ::lseek(own.get(), position, SEEK_SET) < 0)
    return fail_errno(errno, cat("seek in ", path));
  return sys::read_all(own.get(), codec::kMaxConfigSize, path);
}

/// A copy of what a pipe has. Its writer may wait for the runtime to read more than a pipe holds.
Result<std::string> copy_of_pipe(int fd, const std::string& path) {
  pollfd end{.fd = fd, .events = 0, .revents = 0};
  if (::poll(&end, 1, kForWriter) != 1 || (end.revents & POLLHUP) == 0)
    return unreadable(cat(path, " is still open for writing"));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(errno, "make a pipe");
  const sys::UniqueFd reader{ends[0]};
  sys::UniqueFd writer{ends[1]};
  const int capacity = ::fcntl(fd, F_GETPIPE_SZ);
  ::fcntl(writer.get(), F_SETPIPE_SZ, capacity);
  // All that a pipe holds, in one call.
  if (::tee(fd, writer.get(), static_cast<std::size_t>(capacity), SPLICE_F_NONBLOCK) < 0 &&
      errno != EAGAIN)
    return fail_errno(errno, cat("copy ", path));
  writer = sys::UniqueFd{};
  return sys::read_all(reader.get(), codec::kMaxConfigSize, path);
}

}  // namespace

Result<std::string> read_resources(const std::string& file) {
  const bool is_input = file == "-";
  // Opening a named pipe would let its writer go on.
  const sys::UniqueFd named{is_input ? -1 : ::open(file.c_str(), O_PATH | O_CLOEXEC)};
  if (!is_input && !named.valid()) return fail_errno(errno, cat("open ", file));
  const int fd = is_input ? STDIN_FILENO : named.get();
  const std::string path = is_input ? "standard input" : file;
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_errno(errno, cat("stat ", path));
  if (S_ISREG(status.st_mode)) return read_regular(fd, path);
  if (is_input && S_ISFIFO(status.st_mode)) return copy_of_pipe(fd, path);
  return unreadable(cat(path, " is not a regular file"));
}

}  // namespace podqos::hook

#include "nri/connect.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/base/text.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

namespace {

/// Checks that an inherited descriptor is a connected unix stream socket, and sets O_NONBLOCK and
/// FD_CLOEXEC, which it lacks.
Status prepare(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return fail_errno(errno, "SO_TYPE");
  sockaddr_storage peer{};
  size = sizeof peer;
  // The socket calls take every kind of address as a sockaddr.
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return fail_errno(errno, "get its peer address");
  if (type != SOCK_STREAM || peer.ss_family != AF_UNIX)
    return fail(ErrorCode::kInvalidArgument, "not a unix stream socket");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return fail_errno(errno, "set its flags");
  return {};
}

}  // namespace

bool is_later(int err) {
  return err == EAGAIN || err == EINTR;
}

const char* environment_variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the plugin has one thread
}

Result<sys::UniqueFd> connect_to(const std::string& path) {
  PODQOS_ASSIGN(const auto address, sys::UnixAddress::make(path));
  sys::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.valid()) return fail_errno(errno, "create a socket");
  if (::connect(socket.get(), address.get(), address.size()) == 0) return socket;
  const int err = errno;
  auto error = Error::from_errno(err, cat("connect to ", path));
  if (err == ECONNREFUSED) error.code = ErrorCode::kNotFound;
  if (err == EAGAIN) error.code = ErrorCode::kBusy;
  return fail(std::move(error));
}

Result<std::optional<sys::UniqueFd>> inherited_socket() {
  const char* value = environment_variable("NRI_PLUGIN_SOCKET");
  if (value == nullptr) return std::nullopt;
  const std::string context = cat("NRI_PLUGIN_SOCKET=", printable(value));
  const auto number = parse_int(value);
  constexpr std::int64_t kFirstInherited = 3;
  if (!number || *number < kFirstInherited || !std::in_range<int>(*number)) {
    return fail(ErrorCode::kInvalidArgument,
                cat(context,
                    ": expected a file descriptor number as set by a runtime; unset it to "
                    "connect by path"));
  }
  const int fd = static_cast<int>(*number);
  if (auto done = prepare(fd); !done) return fail(std::move(done).error().with_context(context));
  return sys::UniqueFd{fd};
}

Result<Peer> peer_of(int socket) {
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0)
    return fail_errno(errno, "get the peer credentials of the socket");
  return Peer{.pid = found.pid, .uid = found.uid};
}

}  // namespace podqos::nri

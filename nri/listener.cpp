#include "nri/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/text.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

namespace {

/// Connections that wait in the kernel: more than HttpServer serves at once, but few, because a
/// probe waits behind them.
constexpr int kBacklog = 16;
/// Owner and group may connect, which requires write permission (unix(7)).
constexpr mode_t kSocketMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP;

/// A non-blocking, close-on-exec stream socket.
Result<sys::UniqueFd> make_socket(int family) {
  sys::UniqueFd socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int err = errno;
  if (socket.valid()) return socket;
  auto failed = fail_errno(err, "create a socket");
  // RestrictAddressFamilies= of podqos-nri.service.
  if (err == EAFNOSUPPORT && family != AF_UNIX)
    failed.error().message += "; the service needs a drop-in for it, see podqos-nri(8)";
  return failed;
}

/// Removes the socket of a plugin that was killed.
/// @return kConflict if the path is not a socket or a process is listening there.
Status remove_stale(const std::string& path, const sys::UnixAddress& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return fail_errno(errno, path);
  if (!S_ISSOCK(found.st_mode))
    return fail(ErrorCode::kConflict,
                cat(path, " exists and is not a socket: choose another path"));
  PODQOS_ASSIGN(const auto probe, make_socket(AF_UNIX));
  const int connected = ::connect(probe.get(), address.get(), address.size());
  if (connected == 0 || errno != ECONNREFUSED)
    return fail(ErrorCode::kConflict,
                cat("another process is listening on ", path, ": choose another path"));
  if (::unlinkat(AT_FDCWD, path.c_str(), 0) != 0) return fail_errno(errno, cat("remove ", path));
  return {};
}

/// Binds a unix socket, and replaces a stale one.
Status bind_unix(int socket, const std::string& path) {
  PODQOS_ASSIGN(const auto address, sys::UnixAddress::make(path));
  if (::bind(socket, address.get(), address.size()) == 0) return {};
  if (errno != EADDRINUSE) return fail_errno(errno, cat("bind ", path));
  PODQOS_TRY(remove_stale(path, address));
  if (::bind(socket, address.get(), address.size()) == 0) return {};
  return fail_errno(errno, cat("bind ", path));
}

/// Binds to a port, IPv4 or IPv6.
Status bind_port(int socket, const core::TcpPort& port) {
  // Connections of a previous plugin in TIME_WAIT must not block the port.
  const int yes = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
    return fail_errno(errno, "SO_REUSEADDR");
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port.port);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port.port);
  const bool is_six = port.host.contains(':');
  const int known = is_six ? ::inet_pton(AF_INET6, port.host.c_str(), &six.sin6_addr)
                           : ::inet_pton(AF_INET, port.host.c_str(), &four.sin_addr);
  if (known != 1) return fail(ErrorCode::kInvalidArgument, "invalid address");
  // The socket calls take every kind of address as a sockaddr.
  const auto* address =
      is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (::bind(socket, address, is_six ? sizeof six : sizeof four) != 0)
    return fail_errno(errno, "bind");
  return {};
}

/// Starts to listen.
Status listen_on(int socket) {
  if (::listen(socket, kBacklog) != 0) return fail_errno(errno, "listen");
  return {};
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : socket_(std::move(other.socket_)),
      path_(std::exchange(other.path_, {})),
      inode_(other.inode_) {}

Listener::~Listener() {
  struct stat found{};
  // A plugin with another state directory may have replaced the socket.
  if (path_.empty() || ::lstat(path_.c_str(), &found) != 0 || found.st_ino != inode_) return;
  static_cast<void>(::unlinkat(AT_FDCWD, path_.c_str(), 0));
}

Result<Listener> Listener::open(const core::MetricsAddress& address) {
  const auto* socket = std::get_if<core::UnixSocket>(&address);
  auto opened =
      socket != nullptr ? open_unix(socket->path) : open_tcp(std::get<core::TcpPort>(address));
  if (opened) return opened;
  return fail(std::move(opened).error().with_context(core::format_metrics_address(address)));
}

Result<Listener> Listener::open_unix(const std::string& path) {
  PODQOS_ASSIGN(auto socket, make_socket(AF_UNIX));
  // No process can connect before listen(2), so the mode is set in time.
  PODQOS_TRY(bind_unix(socket.get(), path));
  Listener listener{std::move(socket)};
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return fail_errno(errno, path);
  listener.path_ = path;
  listener.inode_ = found.st_ino;
  if (::chmod(path.c_str(), kSocketMode) != 0) return fail_errno(errno, cat("chmod ", path));
  PODQOS_TRY(listen_on(listener.fd()));
  return listener;
}

Result<Listener> Listener::open_tcp(const core::TcpPort& port) {
  PODQOS_ASSIGN(auto socket, make_socket(port.host.contains(':') ? AF_INET6 : AF_INET));
  PODQOS_TRY(bind_port(socket.get(), port));
  PODQOS_TRY(listen_on(socket.get()));
  return Listener{std::move(socket)};
}

}  // namespace podqos::nri

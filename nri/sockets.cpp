#include "nri/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "common/base/text.h"
#include "common/codec/metrics_address.h"
#include "common/sys/process.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

namespace {

/// Connections that wait in the kernel, which bounds it by net.core.somaxconn (4096). HttpServer
/// accepts them within a fraction of a second; one that finds no room would try again in a second.
constexpr int kBacklog = SOMAXCONN;
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

/// Removes the socket that an earlier plugin has left.
/// @return kConflict if the path is not a socket or a process is listening there.
Status remove_stale(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return fail_errno(errno, path);
  if (!S_ISSOCK(found.st_mode))
    return fail(ErrorCode::kConflict,
                cat(path, " exists and is not a socket: choose another path"));
  const auto connected = connect_to(path);
  if (connected || connected.error().code != ErrorCode::kNotFound)
    return fail(ErrorCode::kConflict,
                cat("another process is listening on ", path, ": choose another path"));
  if (::unlinkat(AT_FDCWD, path.c_str(), 0) != 0) return fail_errno(errno, cat("remove ", path));
  return {};
}

/// Binds a unix socket, and replaces a stale one. No process can connect before listen(2), so the
/// mode is set in time.
Result<sys::UniqueFd> bind_at(const core::UnixSocket& at) {
  PODQOS_ASSIGN(const auto address, sys::UnixAddress::make(at.path));
  PODQOS_ASSIGN(auto socket, make_socket(AF_UNIX));
  const auto bind = [&] { return ::bind(socket.get(), address.get(), address.size()) == 0; };
  bool bound = bind();
  if (!bound && errno == EADDRINUSE) {
    PODQOS_TRY(remove_stale(at.path));
    bound = bind();
  }
  if (!bound) return fail_errno(errno, cat("bind ", at.path));
  if (::chmod(at.path.c_str(), kSocketMode) != 0) return fail_errno(errno, cat("chmod ", at.path));
  return socket;
}

/// Binds to a port, IPv4 or IPv6.
Result<sys::UniqueFd> bind_at(const core::TcpPort& port) {
  const bool is_six = port.host.contains(':');
  PODQOS_ASSIGN(auto socket, make_socket(is_six ? AF_INET6 : AF_INET));
  // Connections of a previous plugin in TIME_WAIT must not block the port.
  const int yes = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
    return fail_errno(errno, "SO_REUSEADDR");
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port.port);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port.port);
  const int known = is_six ? ::inet_pton(AF_INET6, port.host.c_str(), &six.sin6_addr)
                           : ::inet_pton(AF_INET, port.host.c_str(), &four.sin_addr);
  if (known != 1) return fail(ErrorCode::kInvalidArgument, "invalid address");
  // The socket calls take every kind of address as a sockaddr.
  const auto* address =
      is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (::bind(socket.get(), address, is_six ? sizeof six : sizeof four) != 0)
    return fail_errno(errno, "bind");
  return socket;
}

}  // namespace

Result<sys::UniqueFd> connect_to(const std::string& path) {
  PODQOS_ASSIGN(const auto address, sys::UnixAddress::make(path));
  PODQOS_ASSIGN(auto socket, make_socket(AF_UNIX));
  if (::connect(socket.get(), address.get(), address.size()) == 0) return socket;
  const int err = errno;
  auto error = Error::from_errno(err, cat("connect to ", path));
  if (err == ECONNREFUSED) error.code = ErrorCode::kNotFound;
  if (err == EAGAIN) error.code = ErrorCode::kBusy;
  return fail(std::move(error));
}

Result<Pid> runtime_at(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail_errno(errno, "get the peer credentials of the socket");
  // A pid of 0 is not visible in this namespace.
  if (peer.pid == 0 || !sys::shares_pid_namespace(Pid{peer.pid})) {
    return fail(ErrorCode::kConflict,
                "the runtime is in a different pid namespace than this plugin, so the pids that it "
                "reports belong to other processes here: run the plugin in the runtime's pid "
                "namespace (in a pod: hostPID: true)");
  }
  if (peer.uid == 0 || peer.uid == ::geteuid()) return Pid{peer.pid};
  return fail(
      ErrorCode::kPermission,
      cat("process ", peer.pid, " of user ", peer.uid,
          " is listening there, but podqos accepts only a runtime of root: stop that process, "
          "and make the socket's directory writable by root only"));
}

Result<sys::UniqueFd> listen_at(const core::MetricsAddress& address) {
  auto socket = std::visit([](const auto& each) { return bind_at(each); }, address);
  if (socket && ::listen(socket->get(), kBacklog) != 0) socket = fail_errno(errno, "listen");
  if (socket) return socket;
  return fail(std::move(socket).error().with_context(codec::format_metrics_address(address)));
}

}  // namespace podqos::nri

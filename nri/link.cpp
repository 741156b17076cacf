#include "nri/link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "nri/connect.h"

namespace podqos::nri {

namespace {

/// Bytes of one read. Most messages fit; longer ones take several turns of the event loop, so that
/// signals and deadlines are handled in between.
constexpr std::size_t kPiece = std::size_t{64} << 10U;

/// Whether an errno means that the peer has closed the connection.
bool is_gone(int err) {
  return err == EPIPE || err == ECONNRESET;
}

/// The error for a connection that the runtime has closed.
Status ended() {
  return fail(ErrorCode::kNotFound, "closed by the runtime");
}

}  // namespace

Link::Link(sys::UniqueFd socket, SessionOptions options, Handler& handler)
    : socket_{std::move(socket)}, session_{std::move(options), handler} {}

Status Link::begin() {
  return session_.begin();
}

short Link::events() const {
  return session_.output().empty() ? POLLIN : POLLIN | POLLOUT;
}

Status Link::serve(short ready) {
  // After POLLHUP or POLLERR, bytes that the runtime sent before can still be read.
  constexpr int kReadable = POLLIN | POLLHUP | POLLERR;
  if ((ready & kReadable) == 0) return send_output();
  // Bytes are peeked, and removed after the answer was sent. Removing them makes room in the
  // socket, which wakes Go's poller in the runtime once more; after the answer it is awake anyway
  // (net/unix/af_unix.c, unix_write_space; Go's runtime/netpoll_epoll.go, netpollopen).
  std::array<char, kPiece> piece;
  const ssize_t size = ::recv(socket_.get(), piece.data(), piece.size(), MSG_PEEK);
  const int err = errno;
  if (size == 0 || (size < 0 && is_gone(err))) return ended();
  if (size < 0 && is_later(err)) return send_output();
  if (size < 0) return fail_errno(err, "read from the runtime");
  const auto length = static_cast<std::size_t>(size);
  if (auto fed = session_.feed({piece.data(), length}); !fed) return fed;
  if (auto sent = send_output(); !sent) return sent;
  return remove({piece.data(), length});
}

Status Link::remove(std::span<char> seen) {
  while (!seen.empty()) {
    const ssize_t size = ::read(socket_.get(), seen.data(), seen.size());
    const int err = errno;
    if (size > 0) {
      seen = seen.subspan(static_cast<std::size_t>(size));
    } else if (size == 0 || is_gone(err)) {
      return ended();
    } else if (err != EINTR) {
      return fail_errno(err, "drain the runtime's socket");
    }
  }
  return {};
}

Status Link::send_output() {
  while (!session_.output().empty()) {
    const std::string_view output = session_.output();
    const ssize_t size = ::send(socket_.get(), output.data(), output.size(), MSG_NOSIGNAL);
    const int err = errno;
    if (size >= 0) {
      session_.sent(static_cast<std::size_t>(size));
    } else if (is_later(err)) {
      return {};
    } else {
      return is_gone(err) ? ended() : Status{fail_errno(err, "write to the runtime")};
    }
  }
  return {};
}

}  // namespace podqos::nri

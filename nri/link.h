#pragma once

#include <span>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "nri/session.h"

namespace podqos::nri {

/// One connection to a runtime: a socket and its session.
class Link {
 public:
  /// @param socket   connected and non-blocking
  /// @param handler  outlives the link
  Link(sys::UniqueFd socket, SessionOptions options, Handler& handler);

  /// Queues the registration of the plugin, which serve() sends. To be called once, before serve().
  /// @return kInvalidArgument: see check_identity().
  [[nodiscard]] Status begin();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The events to poll(2) for.
  [[nodiscard]] short events() const;
  /// Reads once, calls the handler for each complete request, and sends answers without blocking.
  /// @param ready  revents of poll(2)
  /// @return kNotFound: the runtime has closed the connection. After any error the connection is
  ///         unusable.
  [[nodiscard]] Status serve(short ready);

  [[nodiscard]] Progress progress() const { return session_.progress(); }

 private:
  /// Sends as much of the session's output as the socket accepts.
  [[nodiscard]] Status send_output();
  /// Removes the peeked bytes from the socket; `seen` is used as the buffer.
  [[nodiscard]] Status remove(std::span<char> seen);

  sys::UniqueFd socket_;
  Session session_;
};

}  // namespace podqos::nri

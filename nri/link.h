#pragma once

#include <span>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "nri/session.h"

namespace podqos::nri {

/// One connection to a runtime, from the registration to the end: a socket and its session.
class Link {
 public:
  /// @param socket  connected and non-blocking.
  /// @param handler  outlives the link.
  Link(sys::UniqueFd socket, SessionOptions options, Handler& handler);

  /// Registers the plugin, as soon as there is room to say so; to be called once, and first.
  /// @return kInvalidArgument: see check_identity().
  [[nodiscard]] Status begin();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// What to poll(2) for.
  [[nodiscard]] short events() const;
  /// Does what poll(2) says can be done: reads once, calls the handler for what is complete, and
  /// sends what goes without waiting.
  /// @return kNotFound: the runtime has closed the connection. Every error is the connection's end.
  [[nodiscard]] Status serve(short ready);

  [[nodiscard]] Progress progress() const { return session_.progress(); }

 private:
  [[nodiscard]] Status send_output();
  /// Takes from the socket what has been looked at; it may be overwritten.
  [[nodiscard]] Status remove(std::span<char> seen);

  sys::UniqueFd socket_;
  Session session_;
};

}  // namespace podqos::nri

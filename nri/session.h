#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "nri/dispatch.h"
#include "nri/handler.h"
#include "nri/messages.h"
#include "nri/mux.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

/// Identity and limits of a session.
struct SessionOptions {
  std::string index;  ///< two digits; runtimes call plugins in ascending order
  std::string name;   ///< of letters, digits and _.+-
  EventChoice events = EventChoice::kByRuntime;
  NodeStateLimits node_state;
  /// Maximum of unsent bytes; has to exceed one message of 4 MiB.
  std::size_t unsent_bytes = std::size_t{16} << 20U;
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

/// Checks index and name by the rules of containerd/nri (pkg/api/plugin.go).
/// @return kInvalidArgument: an index or name that a runtime would reject.
[[nodiscard]] Status check_identity(const SessionOptions& options);

/// The plugin's side of one connection to a runtime, without the socket: bytes in, calls of a
/// Handler, bytes out. Buffers at most one message per mux connection, the parts of a Synchronize
/// (NodeStateLimits), and unsent bytes (SessionOptions::unsent_bytes).
class Session {
 public:
  /// @param handler  outlives the session
  Session(SessionOptions options, Handler& handler);

  /// Queues RegisterPlugin. To be called once, before feed().
  /// @return kInvalidArgument: see check_identity().
  [[nodiscard]] Status begin();

  /// Processes bytes from the runtime, in pieces of any size, and calls the handler for each
  /// complete request.
  /// @return kTooLarge: the runtime exceeds a limit. The caller has to close the connection; until
  ///         then further calls return the same error without effect.
  [[nodiscard]] Status feed(std::string_view bytes);

  /// The bytes to send; valid until the next call of a non-const function.
  [[nodiscard]] std::string_view output() const;
  /// Removes the first `size` bytes of output(), which have been sent.
  void sent(std::size_t size);

  /// The state of the connection.
  [[nodiscard]] Progress progress() const;

 private:
  [[nodiscard]] Status read(std::string_view bytes);
  [[nodiscard]] Status handle_call(const Message& message);
  /// Handles the answer to RegisterPlugin; ignores all others.
  void read_answer(const Message& message);
  /// Queues a message. @return kTooLarge beyond SessionOptions::unsent_bytes
  [[nodiscard]] Status send(Connection connection, std::string_view message);

  SessionOptions options_;
  Handler* handler_;  ///< never null
  Dispatch dispatch_;
  MuxReader mux_;
  MessageReader calls_;
  MessageReader answers_;
  StreamOrder streams_;
  bool registering_ = false;
  bool refused_ = false;
  Status state_;  ///< the error that ended the session
  std::string output_;
  std::size_t sent_ = 0;  ///< bytes at the front of output_
};

}  // namespace podqos::nri

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "nri/handler.h"
#include "nri/messages.h"
#include "nri/wire.h"

namespace podqos::nri {

/// The state of a connection, from the registration to the first event.
enum class Progress : std::uint8_t {
  kRegistering,
  kConfigured,     ///< Configure was answered with success
  kSynchronizing,  ///< Synchronize was called, and not yet answered with success and in time
  kSynchronized,   ///< the runtime sends events to this plugin
};

/// Identity and limits of a connection.
struct ConnectionOptions {
  std::string index;  ///< two digits; runtimes call plugins in ascending order
  std::string name;   ///< of letters, digits and _.+-
  /// Whether to ask for the events of NRI 0.10 as well, for which an older runtime closes the
  /// connection. One that states its version of NRI, from 0.12 on, is asked for them anyway.
  bool newest_events = true;
  std::size_t node_state_bytes = NodeStateReader::kLimit;  ///< of one Synchronize
  /// Maximum of unsent bytes; has to exceed one message of 4 MiB.
  std::size_t unsent_bytes = std::size_t{16} << 20U;
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

/// One connection to a runtime: its socket, the registration of the plugin, and the requests of the
/// runtime, which are calls of a Handler (the ttrpc service nri.pkg.api.v1alpha1.Plugin). Buffers
/// at most one message per channel, the parts of a Synchronize, and unsent bytes.
class Connection {
 public:
  /// @param socket   connected and non-blocking
  /// @param handler  outlives the connection
  Connection(sys::UniqueFd socket, ConnectionOptions options, Handler& handler);

  /// Queues RegisterPlugin, which serve() sends. To be called once, before serve().
  void begin();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The events to poll(2) for.
  [[nodiscard]] short events() const;
  /// Reads once, calls the handler for each complete request, and sends answers without blocking.
  /// @param ready  revents of poll(2)
  /// @return kNotFound: the runtime has closed the connection; otherwise as feed(). After any error
  ///         the connection is unusable.
  [[nodiscard]] Status serve(short ready);

  [[nodiscard]] Progress progress() const { return progress_; }

  // What serve() does with the bytes, without the socket.

  /// Processes bytes from the runtime, in pieces of any size, and calls the handler for each
  /// complete request.
  /// @return kTooLarge: the runtime exceeds a limit; kConflict: it rejects the plugin's
  ///         registration.
  [[nodiscard]] Status feed(std::string_view bytes);
  /// The bytes to send; valid until the next call of a non-const function.
  [[nodiscard]] std::string_view output() const { return output_; }
  /// Removes the first `size` bytes of output(), which have been sent.
  void sent(std::size_t size);

 private:
  [[nodiscard]] Status handle_call(const Message& message);
  /// Handles the answer to RegisterPlugin; ignores all others.
  [[nodiscard]] Status read_answer(const Message& message);
  /// Sends as much of the output as the socket accepts.
  [[nodiscard]] Status send_output();
  /// Removes the peeked bytes from the socket; `seen` is used as the buffer.
  [[nodiscard]] Status remove(std::span<char> seen);

  /// Answers a call. An unknown service or method is answered with kUnimplemented, and a
  /// StateChange with an unknown event with success; neither reaches the handler.
  /// @return kTooLarge: the node's state exceeds a limit, and the connection has to end.
  [[nodiscard]] Result<Reply> answer(const Call& call);
  [[nodiscard]] Reply configure(const Call& call);
  /// Collects the parts of a Synchronize, and calls the handler after the last one.
  [[nodiscard]] Result<Reply> synchronize(const Call& call);
  /// Answers a request about a pod or container, which a StateChange of NRI up to 0.11 may name.
  [[nodiscard]] Reply handle(const Call& call);

  sys::UniqueFd socket_;
  ConnectionOptions options_;
  Handler* handler_;  ///< never null
  FrameReader frames_;
  MessageReader calls_;
  MessageReader answers_;
  NodeStateReader node_state_;  ///< parts received so far
  Progress progress_ = Progress::kRegistering;
  bool registering_ = false;
  std::string output_;
};

}  // namespace podqos::nri

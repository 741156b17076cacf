#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "nri/messages.h"
#include "nri/wire.h"

namespace podqos::nri {

/// What a plugin does when the runtime calls it: the port of a Connection. The answer is sent when
/// the function returns. An Error is answered with its message: at configure and synchronize the
/// runtime then drops the plugin; at CreateContainer, UpdateContainer and the events of pods it
/// fails the kubelet's request; otherwise it logs the message.
///
/// The budget is the time that the runtime granted when it sent the call (2 s by default). If the
/// answer is late, the runtime disconnects the plugin and creates the container without it
/// (containerd/nri, pkg/adaptation/plugin.go).
class Handler {
 public:
  virtual ~Handler() = default;

  /// Called once per connection, before the other requests.
  virtual Status configure(const ConfigureRequest& request) = 0;

  /// Called once per connection, after configure(), with all existing pods and containers, however
  /// many messages they came in.
  virtual Status synchronize(NodeState state) = 0;

  /// Called for each other request, whether sent as StateChange (NRI up to 0.11) or as a call of
  /// its own.
  /// @return the answer's message, in which texts have to be UTF-8.
  virtual Result<std::string> handle(Request request, const PodEvent& event, Budget budget) = 0;
};

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
  std::size_t node_state_bytes = NodeState::kLimit;  ///< of one Synchronize
  const sys::Clock* clock = &sys::kSteadyClock;      ///< never null
};

/// One connection to a runtime: its socket, the registration of the plugin, and the requests of the
/// runtime, which are calls of a Handler (the ttrpc service nri.pkg.api.v1alpha1.Plugin). Buffers
/// at most one message per channel, the parts of a Synchronize, and the answers to what one read
/// has brought: while they wait to be sent, nothing is read.
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
  MessageReader messages_;
  NodeState node_state_;  ///< parts received so far
  Progress progress_ = Progress::kRegistering;
  bool registering_ = false;
  std::string output_;
};

}  // namespace podqos::nri

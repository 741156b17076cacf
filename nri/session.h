#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "nri/dispatch.h"
#include "nri/handler.h"
#include "nri/mux.h"
#include "nri/node_state.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

struct SessionOptions {
  std::string index;  ///< two digits: plugins are called in this order
  std::string name;   ///< of letters, digits and _.+-
  EventChoice events = EventChoice::kByRuntime;
  NodeStateLimits node_state;
  /// Bytes that may wait to be sent; more than a message of 4 MiB, or none of that size gets out.
  std::size_t unsent_bytes = std::size_t{16} << 20U;
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

/// kInvalidArgument: an index or a name that a runtime would refuse.
[[nodiscard]] Status check_identity(const SessionOptions& options);

/// A plugin's side of one connection to a runtime, from the registration to the end, without the
/// socket: bytes in, calls of a Handler, bytes out. Holds at most one message of each direction's
/// connection, the parts of a Synchronize (NodeStateLimits), and what waits to be sent.
/// @note protobuf writes a line to stderr for each text that is no UTF-8, unless the program has
/// called set_protobuf_log().
class Session {
 public:
  /// @param handler  outlives the session.
  Session(SessionOptions options, Handler& handler);

  /// Registers the plugin; to be called once, and first. kInvalidArgument: see check_identity().
  [[nodiscard]] Status begin();

  /// Takes what came from the runtime, in pieces of any size, and calls the handler for each
  /// request that is complete.
  /// @return kTooLarge: the peer breaks a limit. The caller closes the connection; until then all
  /// further bytes get the same error, and none reaches the handler.
  [[nodiscard]] Status feed(std::string_view bytes);

  /// What is to be sent; valid until the next call of a function that is not const.
  [[nodiscard]] std::string_view output() const;
  /// Takes the first `size` bytes of output() as sent.
  void sent(std::size_t size);

  [[nodiscard]] Progress progress() const;

 private:
  [[nodiscard]] Status read(std::string_view bytes);
  [[nodiscard]] Status handle_call(const Message& message);
  void read_answer(const Message& message);
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

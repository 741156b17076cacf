#pragma once

#include <chrono>
#include <string>

#include "common/base/error.h"
#include "nri/messages.h"
#include "nri/request.h"
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

  /// The answer to the registration; may come after configure(). An Error: the runtime rejects this
  /// plugin, and will close the connection.
  virtual void registered(Status status) = 0;

  /// Called once per connection, before the other requests.
  virtual Status configure(const ConfigureRequest& request, Budget budget) = 0;

  /// Called once per connection, after configure(), with all existing pods and containers, however
  /// many messages they came in.
  virtual Status synchronize(NodeState state, Budget budget) = 0;

  /// Called for each other request, whether sent as StateChange (NRI up to 0.11) or as a call of
  /// its own.
  /// @return the answer's message, in which texts have to be UTF-8.
  virtual Result<std::string> handle(Request request, const PodEvent& event, Budget budget) = 0;

  /// Reports the time that a request took; called before its answer is sent.
  virtual void handled(Request request, std::chrono::nanoseconds time) = 0;
};

}  // namespace podqos::nri

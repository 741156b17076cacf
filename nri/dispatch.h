#pragma once

#include <cstdint>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "nri/events.h"
#include "nri/handler.h"
#include "nri/node_state.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

/// How the event mask in the answer to Configure is chosen.
enum class EventChoice : std::uint8_t {
  kByRuntime,  ///< events_known_to()
  kOldest,     ///< EventMask::kOldest, after a runtime closed the connection at Configure
};

/// The state of a connection, from the registration to the first event.
enum class Progress : std::uint8_t {
  kRegistering,
  kRefused,        ///< the registration was answered with an error
  kConfigured,     ///< Configure was answered with success
  kSynchronizing,  ///< Synchronize was called, and not yet answered with success and in time
  kSynchronized,   ///< the runtime sends events to this plugin
};

/// The ttrpc service nri.pkg.api.v1alpha1.Plugin: decodes a call, calls the handler's function, and
/// encodes its answer.
class Dispatch {
 public:
  /// @param events   how to choose the event mask
  /// @param limits   of the node's state in Synchronize
  /// @param handler  outlives the object
  /// @param clock    times requests and decides whether Synchronize was in time; outlives the
  ///                 object
  Dispatch(EventChoice events, const NodeStateLimits& limits, Handler& handler,
           const sys::Clock& clock)
      : events_{events}, limits_{limits}, node_state_{limits}, handler_{&handler}, clock_{&clock} {}

  /// Answers a call. An unknown service or method is answered with kUnimplemented, and a
  /// StateChange with an unknown event with success; neither reaches the handler.
  /// @return kTooLarge: the node's state exceeds a limit, and the session has to end.
  [[nodiscard]] Result<Reply> answer(Call call);

  [[nodiscard]] Progress progress() const { return progress_; }

 private:
  [[nodiscard]] Reply configure(const Call& call);
  /// Collects the parts of a Synchronize, and calls the handler after the last one.
  [[nodiscard]] Result<Reply> synchronize(Call call);
  /// Events of NRI up to 0.11.
  [[nodiscard]] Reply state_change(const Call& call);
  /// All other requests, each by the method of its name.
  [[nodiscard]] Reply request(const Call& call);
  /// Answers a call whose payload is a `Message` by a function of the handler.
  template <class Message, class Answer>
  [[nodiscard]] Reply pass_on(Request request, const Call& call,
                              Answer (Handler::*function)(const Message&, Budget));
  /// Calls the handler by `call`, and reports the time to Handler::handled().
  template <class Function>
  [[nodiscard]] auto timed(Request request, const Function& call);

  EventChoice events_;
  NodeStateLimits limits_;
  NodeState node_state_;  ///< parts received so far
  Progress progress_ = Progress::kRegistering;
  Handler* handler_;         ///< never null
  const sys::Clock* clock_;  ///< never null
};

}  // namespace podqos::nri

#pragma once

#include <cstdint>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "nri/events.h"
#include "nri/handler.h"
#include "nri/messages.h"
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

/// The ttrpc service nri.pkg.api.v1alpha1.Plugin: parses a call, calls the handler's function, and
/// formats its answer.
class Dispatch {
 public:
  /// @param events   how to choose the event mask
  /// @param limits   of the node's state in Synchronize
  /// @param handler  outlives the object
  /// @param clock    times requests and decides whether Synchronize was in time; outlives the
  ///                 object
  Dispatch(EventChoice events, const NodeStateLimits& limits, Handler& handler,
           const sys::Clock& clock)
      : events_{events}, node_state_{limits}, handler_{&handler}, clock_{&clock} {}

  /// Answers a call. An unknown service or method is answered with kUnimplemented, and a
  /// StateChange with an unknown event with success; neither reaches the handler.
  /// @return kTooLarge: the node's state exceeds a limit, and the session has to end.
  [[nodiscard]] Result<Reply> answer(const Call& call);

  [[nodiscard]] Progress progress() const { return progress_; }

 private:
  [[nodiscard]] Reply configure(const Call& call);
  /// Collects the parts of a Synchronize, and calls the handler after the last one.
  [[nodiscard]] Result<Reply> synchronize(const Call& call);
  /// Events of NRI up to 0.11.
  [[nodiscard]] Reply state_change(const Call& call);
  /// All other requests.
  [[nodiscard]] Reply handle(Request request, const PodEvent& event, Budget budget);
  /// Calls the handler by `call`, and reports the time to Handler::handled().
  template <class Function>
  [[nodiscard]] auto timed(Request request, const Function& call);

  EventChoice events_;
  NodeStateReader node_state_;  ///< parts received so far
  Progress progress_ = Progress::kRegistering;
  Handler* handler_;         ///< never null
  const sys::Clock* clock_;  ///< never null
};

}  // namespace podqos::nri

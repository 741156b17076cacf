#pragma once

#include <cstdint>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "nri/events.h"
#include "nri/handler.h"
#include "nri/node_state.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

/// How the mask for the answer to Configure is chosen.
enum class EventChoice : std::uint8_t {
  kByRuntime,  ///< events_known_to()
  kOldest,     ///< after a runtime has dropped the connection on Configure
};

/// How far the runtime has come with the plugin.
enum class Progress : std::uint8_t {
  kRegistering,
  kRefused,        ///< the registration was answered with an error
  kConfigured,     ///< Configure was answered with success
  kSynchronizing,  ///< Synchronize was called, and not yet answered well and in time
  kSynchronized,   ///< the runtime counts on this plugin
};

/// The service nri.pkg.api.v1alpha1.Plugin: a call's bytes to the handler's function, and its
/// answer to bytes.
class Dispatch {
 public:
  /// @param clock  by which requests are timed, and answered in time or not; outlives the object.
  Dispatch(EventChoice events, const NodeStateLimits& limits, Handler& handler,
           const sys::Clock& clock)
      : events_{events}, limits_{limits}, node_state_{limits}, handler_{&handler}, clock_{&clock} {}

  /// The answer. An unknown service or method, and a StateChange about what is newer than this
  /// code, never reach the handler: the former two are answered kUnimplemented, the last with
  /// success.
  /// @return kTooLarge: the node's state exceeds a limit, and the session must end.
  [[nodiscard]] Result<Reply> answer(Call call);

  [[nodiscard]] Progress progress() const { return progress_; }

 private:
  [[nodiscard]] Reply configure(const Call& call);
  [[nodiscard]] Result<Reply> synchronize(Call call);
  [[nodiscard]] Reply state_change(const Call& call);
  [[nodiscard]] Reply request(const Call& call);
  /// The answer to a call whose payload is a `Message`.
  template <class Message, class Answer>
  [[nodiscard]] Reply pass_on(Request request, const Call& call,
                              Answer (Handler::*function)(const Message&, Budget));
  /// Calls the handler by `call`, and tells it how long that took.
  template <class Function>
  [[nodiscard]] auto timed(Request request, const Function& call);

  EventChoice events_;
  NodeStateLimits limits_;
  NodeState node_state_;  ///< the parts so far
  Progress progress_ = Progress::kRegistering;
  Handler* handler_;         ///< never null
  const sys::Clock* clock_;  ///< the same
};

}  // namespace podqos::nri

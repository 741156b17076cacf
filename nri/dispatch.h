#pragma once

#include <cstdint>

#include "common/base/error.h"
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
  Dispatch(EventChoice events, const NodeStateLimits& limits, Handler& handler)
      : events_{events}, limits_{limits}, node_state_{limits}, handler_{&handler} {}

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

  EventChoice events_;
  NodeStateLimits limits_;
  NodeState node_state_;  ///< the parts so far
  Progress progress_ = Progress::kRegistering;
  Handler* handler_;  ///< never null
};

}  // namespace podqos::nri

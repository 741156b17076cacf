#pragma once

#include <cstdint>

#include "nri/messages.h"

/// The events that a plugin subscribes to in its answer to Configure. A runtime closes the
/// connection for an event that it does not know; 0 means all events, including validation of
/// adjustments.
namespace podqos::nri {

/// One bit per event: 1 << (its number in enum Event - 1).
enum class EventMask : std::uint16_t {
  kOldest = 0x07ff,      ///< the events of NRI 0.2 to 0.9, known to every runtime
  kWithResize = 0x1fff,  ///< and UpdatePodSandbox, PostUpdatePodSandbox of NRI 0.10
};

/// The largest mask that the runtime is known to accept. ConfigureRequest has the version of NRI
/// from 0.12 on; of the runtimes with older versions only containerd 2.2 and CRI-O 1.33 to 1.36
/// accept more than kOldest. Unknown runtimes and versions get kOldest.
/// @source containerd v1.7.24 to v2.4.0-beta.0 and CRI-O v1.26 to v1.36, go.mod.
[[nodiscard]] EventMask events_known_to(const ConfigureRequest& runtime);

}  // namespace podqos::nri

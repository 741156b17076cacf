#pragma once

#include <cstdint>

#include "nri/api.h"

/// Which events a plugin asks for. A runtime drops a plugin that asks for one that it does not
/// know, and none at all means all, validation of adjustments included.
namespace podqos::nri {

/// One bit per event: see event_bit().
enum class EventMask : std::uint16_t {
  kOldest = 0x07ff,      ///< what every runtime knows: NRI 0.2 to 0.9
  kWithResize = 0x1fff,  ///< and UpdatePodSandbox, PostUpdatePodSandbox: from 0.10 on
};

/// @param event  any but UNKNOWN.
[[nodiscard]] constexpr std::int32_t event_bit(api::Event event) {
  return std::int32_t{1} << (static_cast<int>(event) - 1);
}

/// The most that the runtime is known to understand. NRI names its version from 0.12 on; of older
/// ones only containerd 2.2 and CRI-O 1.33 to 1.36 know more than the oldest. A runtime that should
/// name it and does not is taken for old, as is one that nobody knows.
/// @source containerd v1.7.24 to v2.4.0-beta.0 and CRI-O v1.26 to v1.36, go.mod.
[[nodiscard]] EventMask events_known_to(const api::ConfigureRequest& runtime);

}  // namespace podqos::nri

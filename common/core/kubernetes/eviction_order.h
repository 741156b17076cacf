#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/units.h"

namespace podqos::core {

/// A soft eviction threshold: how much pressure, and how long without a break.
struct MemoryPressure {
  std::int64_t percent = 0;  ///< [1, 100]; 0: a threshold that is taken back
  std::int64_t seconds = 0;  ///< [1, 3600]
  friend bool operator==(const MemoryPressure&, const MemoryPressure&) = default;
};

/// Since when pressure has been at or above a threshold at each observation.
class PressurePeriod {
 public:
  /// Takes in the pressure in percent at a time that does not go back; nullopt if it could not be
  /// measured, which ends the period as low pressure does.
  /// @return whether the threshold has now been met for its whole time
  /// @note pkg/kubelet/eviction/helpers.go thresholdsFirstObservedAt, thresholdsMetGracePeriod
  [[nodiscard]] bool observe(std::optional<std::int64_t> percent, BootSeconds now,
                             const MemoryPressure& threshold);
  /// Begins anew: what was observed led to an eviction, or may have been missed.
  void end() { since_.reset(); }

 private:
  std::optional<BootSeconds> since_;
};

/// What the order of eviction goes by.
struct MemoryUse {
  Bytes request;              ///< of the pod
  Bytes usage;                ///< its working set
  std::int64_t priority = 0;  ///< spec.priority
  /// is_critical(): never evicted, as by the kubelet (eviction_manager.go evictPod).
  bool critical = false;
};

/// Whether `pod` is evicted before `other` under memory pressure: one that exceeds its request
/// before one that does not, then the lower priority, then the one that exceeds its request by
/// more.
/// @note pkg/kubelet/eviction/helpers.go rankMemoryPressure: exceedMemoryRequests, priority, memory
[[nodiscard]] bool is_evicted_before(const MemoryUse& pod, const MemoryUse& other);

/// The place of the pod to evict, the first of equals; nullopt if each is critical or within its
/// request. Unlike the kubelet, which then takes the next in the order: podqos guards a tier, and
/// a pod within its request is not what is wrong there.
[[nodiscard]] std::optional<std::size_t> find_victim(std::span<const MemoryUse> pods);

}  // namespace podqos::core

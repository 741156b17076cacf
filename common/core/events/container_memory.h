#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/record.h"

// What is written of Memory QoS to a container that runs.
namespace podqos::core {

/// What podqos gives a container now. What it has not given is its author's or engine's and stays.
/// @param given  by the container's record
/// @param wanted  by the rule; absent values become those of a new cgroup
[[nodiscard]] MemoryQos next_memory_qos(const MemoryQos& given, const MemoryQos& wanted);

/// The values of `wanted` that the cgroup does not have.
/// @param held  by the kernel, in whole pages; absent if they cannot be read
[[nodiscard]] MemoryQos differing_memory_qos(const MemoryQos& wanted, const MemoryQos& held,
                                             Bytes page_size);

/// A container with a memory.high, as it is now.
struct ThrottlingSnapshot {
  std::int64_t events = 0;  ///< how often it was throttled
  /// Part of the last 10 s in which all its processes waited for memory ("full avg10" of
  /// memory.pressure); nullopt without PSI, then events decide alone.
  std::optional<std::int64_t> stalled_percent = std::nullopt;
  Bytes high = kUnlimitedMemory;              ///< memory.high
  std::optional<Bytes> limit = std::nullopt;  ///< memory.max; nullopt for "max"
};

/// Notes whether the container is throttled at memory.high, and decides when that has lasted longer
/// than memoryHighPatience: reclaim does not get it below, and the kernel lets it advance by a few
/// pages in two seconds (kubernetes/enhancements#2570, mm/memcontrol.c
/// mem_cgroup_handle_over_high).
/// @param throttling  what was seen last; is brought up to date. Its `raised` becomes a quarter
///                    more, at most the limit, and kUnlimitedMemory instead of what exceeds the
///                    node
/// @param patience  memoryHighPatience in seconds; 0: memory.high is never raised
void decide_throttling(std::optional<Throttling>& throttling, const ThrottlingSnapshot& snapshot,
                       const MemoryQosParams& node, std::int64_t patience, BootSeconds now);

}  // namespace podqos::core

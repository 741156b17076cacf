#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/record.h"

// What is written of Memory QoS to a container that runs.
namespace podqos::core {

/// What is to be written, and what podqos has given the container then.
struct MemoryQosWrite {
  MemoryQos write;  ///< absent: as it is
  MemoryQos given;
};

/// Decides what is written where rule or kernel differ from what podqos has given. What it has not
/// given is its author's or engine's and stays, as does a memory.high that was raised.
/// @param given  by the container's record
/// @param wanted  by the rule; absent values become those of a new cgroup
/// @param held  by the kernel, in whole pages; absent if they cannot be read
[[nodiscard]] MemoryQosWrite decide_memory_qos(const MemoryQos& given, const MemoryQos& wanted,
                                               const MemoryQos& held, Bytes page_size);

/// A container with a memory.high, as it is now.
struct ThrottlingSnapshot {
  std::int64_t events = 0;  ///< "high" of memory.events
  /// Part of the last 10 s in which all its processes waited for memory ("full avg10" of
  /// memory.pressure); nullopt without PSI, then events decide alone.
  std::optional<std::int64_t> stalled_percent = std::nullopt;
  Bytes high = kUnlimitedMemory;
  std::optional<Bytes> limit = std::nullopt;  ///< memory.max; nullopt for "max"
};

/// What bounds throttling.
struct ThrottlingBounds {
  std::int64_t patience_seconds = 0;  ///< memoryHighPatience; 0: memory.high is never raised
  Bytes allocatable = {};             ///< the node's memory for pods
  Bytes page_size{4096};
};

/// Notes whether the container is throttled at memory.high, and decides when that has lasted longer
/// than memoryHighPatience: reclaim does not get it below, and the kernel lets it advance by a few
/// pages in two seconds (kubernetes/enhancements#2570, mm/memcontrol.c
/// mem_cgroup_handle_over_high).
/// @param throttling  what was seen last; is brought up to date
/// @param now  since boot
/// @return the memory.high to write: a quarter more, at most the limit, and kUnlimitedMemory
/// instead
///         of what exceeds the node; nullopt to leave it
[[nodiscard]] std::optional<Bytes> decide_throttling(std::optional<Throttling>& throttling,
                                                     const ThrottlingSnapshot& snapshot,
                                                     const ThrottlingBounds& bounds,
                                                     BootSeconds now);

}  // namespace podqos::core

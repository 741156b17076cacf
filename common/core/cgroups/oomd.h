#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/plan.h"
#include "common/core/kubernetes/cgroup_values.h"

// What systemd-oomd is told of tiers and critical pods, as properties of their units; it knows
// cgroup v2 alone. systemd.resource-control(5), systemd src/core/dbus-cgroup.c.
namespace podqos::core {

/// Whether systemd-oomd evicts from the tiers of this tree. It takes containers, whose scopes, not
/// the pods' slices, have to tell that they are spared.
/// @note systemd src/oom/oomd-manager.c recursively_get_cgroup_context: leaves, and cgroups with
///       memory.oom.group
[[nodiscard]] bool is_watched_by_oomd(std::string_view kubepods, const CgroupLayout& layout);

/// The properties; a systemd may not know one of them, so that each is told in a call of its own.
[[nodiscard]] std::vector<UnitProperty> optional_properties(const CgroupValues& values,
                                                            const CgroupLayout& layout);

// The values of the properties; nullopt if they are not set.
namespace oomd {

using Setting = std::optional<UnitValue>;

/// ManagedOOMMemoryPressureLimit: a percentage as a fraction of 2^32 - 1, rounded; 0 is oomd's
/// default.
/// @note systemd src/basic/percent-util.h UINT32_SCALE_FROM_PERCENT
[[nodiscard]] Setting limit(const CgroupValues& values);
/// ManagedOOMMemoryPressureDurationUSec: microseconds; "infinity" is oomd's default.
[[nodiscard]] Setting duration(const CgroupValues& values);
/// ManagedOOMMemoryPressure: "kill" or "auto".
[[nodiscard]] Setting mode(const CgroupValues& values);
/// ManagedOOMPreference: "avoid" or "none".
[[nodiscard]] Setting preference(const CgroupValues& values);

}  // namespace oomd

}  // namespace podqos::core

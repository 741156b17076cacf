#pragma once

namespace podqos::core {

// Extended attributes of cgroups: what podqos has to know of them even if the state directory is
// lost. xattr(7), trusted.*: readable and writable with CAP_SYS_ADMIN only.

/// Marks the root, and the cgroups above it, as made by podqos.
constexpr const char* kMadeAttribute = "trusted.podqos.made";
constexpr const char* kMade = "1";

/// Holds a copy of the pod's record, on the pod's cgroup.
constexpr const char* kRecordAttribute = "trusted.podqos.record";
/// Its value while it is unknown which values the cgroup has.
constexpr const char* kUnwrittenRecord = "unwritten";

/// Tells that podqos has set the weight of ioWeight, or has set it back to the default.
constexpr const char* kIoWeightAttribute = "trusted.podqos.ioweight";
constexpr const char* kIoWeightSet = "1";
constexpr const char* kIoWeightReset = "0";

}  // namespace podqos::core

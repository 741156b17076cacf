#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::codec {

constexpr std::size_t kMaxSettingsSize = std::size_t{1} << 20U;

/// Lays one configuration file over `base`. Comments (// and /* */) are allowed; an unknown field
/// is refused with the nearest known name; wrong types, units and ranges with the field's path
/// ("reserved.system.memory").
///
/// Field names as in the manual: enabled, scope, trustAnnotations, allowQosOverride, cgroupRoot,
/// cgroupDriver, placement.{onMisplaced,withoutParent}, onError, nodeMemory, nodeCpu,
/// reserved.{system,kube}.{cpu,memory}, qosReserved.memory ("50%"), cpuCFSQuota, cpuCFSQuotaPeriod
/// ("100ms"), weightFormula, podPidsLimit, memorySwap.swapBehavior ("NoSwap"),
/// singleProcessOOMKill, releaseDelay ("30s"), tierMemoryFloor ("64Mi"), runtimes, stateDir,
/// lockDeadline ("5s"), nri.metrics ("127.0.0.1:9464"), log.{sink,level}.
[[nodiscard]] Result<core::Settings> merge_settings(core::Settings base, std::string_view text);

/// The settings as one JSON object in the same form, every field present; indented for people.
[[nodiscard]] std::string format_settings(const core::Settings& settings);

/// The known name nearest to `name` by edit distance, or else the shortest that `name` is a piece
/// of; "" when there is none.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       const std::vector<std::string_view>& known);

/// What to say behind "unknown <name>": "; did you mean <prefix><nearest>?", or without one
/// "; known are: a, b, c".
[[nodiscard]] std::string hint_for(std::string_view name,
                                   const std::vector<std::string_view>& known,
                                   std::string_view prefix = "");

}  // namespace podqos::codec

#pragma once

#include <string>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "ctl/json.h"
#include "ctl/records.h"
#include "ctl/selector.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// One pod in full, as `describe -o json` prints it: the pod of inventory_json(), for it and its
/// containers what the kernel has counted ("cpuUsageNs", "cpuPeriods", "cpuThrottledPeriods",
/// "oomKills"), the "warnings" about it, and its last "events". Changes nothing.
/// @param selected  of `records`: the pod, or a container: then it has no other
/// @return the errors of inventory_json()
[[nodiscard]] Result<Json> describe_json(const app::ConfigurationReport& configuration,
                                         const NodeRecords& records, cgroup::Machine& cgroups,
                                         const Selection& selected);

/// The same for people, without its warnings.
[[nodiscard]] std::string describe_text(const Json& pod, const Screen& screen);

}  // namespace podqos::ctl

#pragma once

#include <string>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "ctl/json.h"
#include "ctl/records.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// All pods, podqos's own and a kubelet's, and the tiers, with what the records, the rules and
/// the kernel say of each, as `status -o json` and `tree -o json` print them; "warnings" has a
/// sentence for each problem, with its remedy, and "warningKinds" of what kind each of these is:
/// records, values, places, containers, limits, requests, controllers, roots or unmanaged. Changes
/// nothing.
[[nodiscard]] Result<Json> inventory_json(const app::ConfigurationReport& configuration,
                                          NodeRecords records, cgroup::Machine& cgroups);

/// The same of this machine, with the records of its state directory, and in "notManaged" the
/// containers of find_not_managed().
[[nodiscard]] Result<Json> read_inventory(const app::ConfigurationReport& configuration);

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         const Screen& screen);

}  // namespace podqos::ctl

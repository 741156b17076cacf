#pragma once

#include <string>
#include <string_view>

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
/// records, values, places, containers, limits, requests, controllers, roots or unmanaged. Each pod
/// has its own "warnings", too. Changes nothing.
/// @param before  pods of an earlier look: those without "warnings" are not looked at again
[[nodiscard]] Result<Json> inventory_json(const app::ConfigurationReport& configuration,
                                          NodeRecords records, cgroup::Machine& cgroups,
                                          const Json& before = Json::array());

/// The same. What is warned of is looked at again while the lock of the records is held: at the
/// first look a pod that comes or goes differs from its record.
/// @param uid  of the only pod that is looked at; "": all
[[nodiscard]] Result<Json> checked_inventory(const app::ConfigurationReport& configuration,
                                             NodeRecords records, cgroup::Machine& cgroups,
                                             std::string_view uid = "");

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         const Screen& screen);

}  // namespace podqos::ctl

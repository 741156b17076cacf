#pragma once

#include <string>

#include "common/app/configuration.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The inventory of this node; see inventory.h.
[[nodiscard]] Result<Json> read_inventory(const app::ConfigurationReport& configuration);

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         ColourMode mode);

/// "default/web", or the uid of a pod without a name.
[[nodiscard]] std::string pod_title(const Json& pod);

}  // namespace podqos::ctl

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

/// The text of an inventory for people, without its errors and warnings.
using TextOfView = std::string (*)(const Json& view, ColourMode mode);
/// Adds a subcommand that prints the inventory as text or JSON, and what is wrong with it. It ends
/// with kRefused if the configuration has errors, which do not hide the pods.
[[nodiscard]] Command add_view(CLI::App& app, const Globals& globals, TextOfView text,
                               const std::string& name, const std::string& description);

/// "default/web", or the uid of a pod without a name.
[[nodiscard]] std::string pod_title(const Json& pod);
/// A string.
[[nodiscard]] const std::string& text_in(const Json& object, const char* key);
/// A number; "-" for null.
[[nodiscard]] std::string number_in(const Json& object, const char* key);
/// format_bytes() of a number; "-" for null.
[[nodiscard]] std::string bytes_in(const Json& object, const char* key);

}  // namespace podqos::ctl

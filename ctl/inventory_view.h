#pragma once

#include <string>

#include "common/app/configuration.h"
#include "common/app/inventory.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// What `status` and `tree` show. A configuration with errors does not hide the pods.
struct NodeView {
  app::ConfigurationReport configuration;
  app::Inventory inventory;
};

/// The view as one JSON object, for `status -o json` and `tree -o json`.
[[nodiscard]] Json view_json(const NodeView& view);

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         ColourMode mode);

/// The text of view_json() for people, without its errors and warnings.
using TextOfView = std::string (*)(const Json& view, ColourMode mode);
/// Adds a subcommand that prints the view as text or JSON, and what is wrong with it. It ends with
/// kRefused if the configuration has errors.
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

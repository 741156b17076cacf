#pragma once

#include <string>

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The text of an inventory for people, without its errors and warnings.
using TextOfView = std::string (*)(const Json& view, ColourMode mode);

/// Adds a subcommand that prints the inventory as text or JSON, and what is wrong with it.
void add_view(Cli& cli, TextOfView text, const char* name, const char* description);

/// A text member.
[[nodiscard]] const std::string& text_in(const Json& object, const char* key);
/// A number; "-" for null.
[[nodiscard]] std::string number_in(const Json& object, const char* key);
/// format_bytes() of a number; "-" for null.
[[nodiscard]] std::string bytes_in(const Json& object, const char* key);
/// "0" or "1"; "-" for null.
[[nodiscard]] std::string flag_in(const Json& object, const char* key);

/// "cpu 110m, memory 64Mi", of {"cpuMilli", "memoryBytes"} in `object`; "-" where both are null.
[[nodiscard]] std::string amounts_in(const Json& object, const char* key);

/// "default/web", or the uid of a pod without a name.
[[nodiscard]] std::string pod_title(const Json& pod);

}  // namespace podqos::ctl

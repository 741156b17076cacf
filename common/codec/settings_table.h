#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "common/core/settings.h"

namespace podqos::codec {

/// One field of the configuration: all that is known of it. Its default is what `format` makes of
/// core::Settings{}.
struct Setting {
  std::string_view path;  ///< "reserved.system.cpu": a field of an object of an object
  std::string_view help;  ///< in the manual's Markdown; paragraphs are separated by an empty line
  std::string (*expected)() = nullptr;  ///< what its value may be, to stand behind "expected"
  Status (*read)(const JsonNode&, core::Settings&) = nullptr;
  std::string (*format)(const core::Settings&) = nullptr;  ///< the value as JSON text
};

/// Every field, in the order of the manual.
[[nodiscard]] std::span<const Setting> settings_table();

}  // namespace podqos::codec

#pragma once

#include <span>
#include <string_view>

#include "common/codec/setting_kinds.h"
#include "common/core/settings.h"

namespace podqos::codec {

/// One field of the configuration: all that is known of it. Its default is that of
/// core::Settings{}.
struct Setting {
  std::string_view path;  ///< "reserved.system.cpu": a field of an object of an object
  SettingKind kind;
  std::string_view help;  ///< in the manual's Markdown; paragraphs are separated by an empty line
  SettingValue (*get)(const core::Settings&) = nullptr;
  void (*set)(core::Settings&, const SettingValue&) = nullptr;  ///< a value of the kind
};

/// Every field, in the order of the manual.
[[nodiscard]] std::span<const Setting> settings_table();

}  // namespace podqos::codec

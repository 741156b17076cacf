#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"

namespace podqos::codec {

std::string format_settings(const core::Settings& settings) {
  using nlohmann::ordered_json;
  ordered_json out;
  for (const Setting& row : settings_table()) {
    ordered_json* object = &out;
    std::string_view rest = row.path;
    for (auto dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      object = &(*object)[std::string{rest.substr(0, dot)}];
      rest.remove_prefix(dot + 1);
    }
    (*object)[std::string{rest}] = ordered_json::parse(row.format(settings));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::vector<SettingHelp> describe_settings() {
  const core::Settings defaults;
  std::vector<SettingHelp> all;
  for (const Setting& row : settings_table()) {
    all.push_back({.path = row.path,
                   .expected = row.expected(),
                   .default_value = row.format(defaults),
                   .help = row.help});
  }
  return all;
}

}  // namespace podqos::codec

#include "common/core/unit.h"

#include <variant>

#include "common/base/text.h"

namespace podqos::core {

namespace {

struct Format {
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::uint64_t value) const {
    return value == kUnitInfinity ? "infinity" : std::to_string(value);
  }
  std::string operator()(const std::string& value) const { return cat("\"", value, "\""); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string text;
    for (const std::string& value : values)
      text += cat(text.empty() ? "" : ",", value);
    return text;
  }
  std::string operator()(const std::vector<std::uint32_t>& values) const {
    std::string text;
    for (const std::uint32_t value : values)
      text += cat(text.empty() ? "" : ",", value);
    return text;
  }
};

}  // namespace

std::string format_unit_value(const UnitValue& value) {
  return std::visit(Format{}, value);
}

}  // namespace podqos::core

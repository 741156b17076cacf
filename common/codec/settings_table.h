#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/codec/json_tree.h"
#include "common/core/settings.h"

namespace podqos::codec {

/// The value of a field of the configuration, apart from its type in core::Settings: null, a number
/// (of a flag 0 or 1, of a word its place among the words, of an amount its units), a text, or
/// several.
using SettingValue =
    std::variant<std::monostate, std::int64_t, std::string, std::vector<std::string>>;

/// What values a field takes, and how they are written.
struct SettingKind {
  enum class Form : std::uint8_t {
    kFlag,
    kWord,
    kMemory,  ///< a quantity of bytes, as Kubernetes writes it, that is whole and below 2^63
    kCpu,     ///< a quantity of CPUs, as Kubernetes writes it; rounded up to a thousandth
    kPercent,
    kFraction,  ///< a decimal number in thousandths
    kDuration,  ///< "<number><unit>", the unit one of us, ms, s, m, h
    kNumber,
    kEnforced,  ///< the kubelet's enforceNodeAllocatable: whether "pods" is in the list
    kPath,      ///< absolute, without ".."
    kCgroup,    ///< a path whose components are names of cgroups, for both drivers; what systemd
                ///< further asks for is checked when a root is chosen
    kAddress,   ///< core::MetricsAddress
    kPressure,  ///< core::MemoryPressure, "<percentage>/<duration>"
    kPods,      ///< how many: "none", "top:N" or, which is `max`, "all"
    kPaths,     ///< 1 to `max`
  };
  Form form = Form::kFlag;
  std::int64_t min = 0;
  std::int64_t max = kInt64Max;
  std::int64_t step = 1;  ///< of a duration in microseconds: the unit of its value and range
  /// Separated by spaces: of kWord in the order of their enumerators; of the others what is a value
  /// too.
  std::string_view words = {};
  bool null = false;   ///< whether null is a value
  bool blank = false;  ///< whether "" is the first word
};

/// The candidates of podqos-runtime.
constexpr SettingKind kRuntimePaths{.form = SettingKind::Form::kPaths, .max = 64};

/// What a value may be, in words that fit behind "expected": the same in error messages and in
/// podqos.json(5).
[[nodiscard]] std::string expected_value(const SettingKind& kind);

/// @return kInvalidArgument with what was expected and found
[[nodiscard]] Result<SettingValue> read_value(const SettingKind& kind, const JsonNode& node);

/// The value as JSON text that read_value() accepts.
[[nodiscard]] std::string format_value(const SettingKind& kind, const SettingValue& value);

/// One field of the configuration. Its default is that of core::Settings{}; podqos.json(5) explains
/// it.
struct Setting {
  std::string_view path;  ///< "reserved.system.cpu": a field of an object of an object
  SettingKind kind;
  SettingValue (*get)(const core::Settings&) = nullptr;
  void (*set)(core::Settings&, const SettingValue&) = nullptr;  ///< a value of the kind
};

/// "60%/30s", with 1 to 100 percent and a duration of 1 s to 1 h in whole seconds; nullopt for any
/// other text.
[[nodiscard]] std::optional<core::MemoryPressure> parse_pressure(std::string_view text);
/// The same as text.
[[nodiscard]] std::string format_pressure(const core::MemoryPressure& pressure);

/// Every field, in the order of the manual.
[[nodiscard]] std::span<const Setting> settings_table();

}  // namespace podqos::codec

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/metrics_address.h"
#include "common/codec/settings_table.h"
#include "common/core/kubernetes/quantity.h"

namespace podqos::codec {

namespace {

using Form = SettingKind::Form;
using Kind = JsonNode::Kind;

/// A unit of durations, and its microseconds.
struct TimeUnit {
  std::string_view name;
  std::int64_t micros;
};
constexpr std::int64_t kOneSecond = 1'000'000;
constexpr std::array<TimeUnit, 5> kTimeUnits{{{"h", 3600 * kOneSecond},
                                              {"m", 60 * kOneSecond},
                                              {"s", kOneSecond},
                                              {"ms", 1'000},
                                              {"us", 1}}};

/// "<number><unit>" in steps of so many microseconds; nullopt also between two steps.
std::optional<std::int64_t> read_duration(std::int64_t step, std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* const unit = std::ranges::find(kTimeUnits, text.substr(digits), &TimeUnit::name);
  const auto number = parse_int(text.substr(0, digits));
  std::int64_t micros = 0;
  if (unit == kTimeUnits.end() || !number ||
      __builtin_mul_overflow(*number, unit->micros, &micros) || micros % step != 0)
    return std::nullopt;
  return micros / step;
}

/// In the largest unit that divides it; nothing is "0s".
std::string format_duration(std::int64_t micros) {
  const auto* const unit =
      std::ranges::find_if(kTimeUnits.begin() + (micros == 0 ? 2 : 0), kTimeUnits.end(),
                           [&](const TimeUnit& each) { return micros % each.micros == 0; });
  return cat("\"", micros / unit->micros, unit->name, "\"");
}

std::string expected_duration(const SettingKind& kind) {
  const std::string_view unit = kind.step == kOneSecond ? "seconds" : "milliseconds";
  return cat("a duration from ", format_duration(kind.min * kind.step), " to ",
             format_duration(kind.max * kind.step), kind.step == 1 ? "" : cat(", in whole ", unit));
}

std::string expected_number(const SettingKind& kind) {
  if (kind.max < kInt64Max) return cat("a whole number from ", kind.min, " to ", kind.max);
  return kind.min > kInt64Min ? cat("a whole number of at least ", kind.min)
                              : "a whole number of 64 bits";
}

/// `"a", "b"`
std::string list_words(const SettingKind& kind) {
  std::string list;
  for (const std::string& word : parts_of(kind.words, ' '))
    list += cat(list.empty() ? "\"" : ", \"", word, "\"");
  return list;
}

/// The place of a word; nullopt if the node is none.
std::optional<std::int64_t> find_word(const SettingKind& kind, const JsonNode& node) {
  if (node.kind != Kind::kString) return std::nullopt;
  if (kind.blank && node.text.empty()) return 0;
  return place_of_word(kind.words, node.text);
}

std::unexpected<Error> unexpected_value(const SettingKind& kind, const JsonNode& node) {
  return refuse_value("expected ", expected_value(kind), ", found ", describe(node));
}

std::optional<std::int64_t> read_percent(std::string_view text) {
  if (!text.ends_with('%') || text.starts_with('-')) return std::nullopt;
  return parse_int(text.substr(0, text.size() - 1));
}

/// A decimal number in thousandths; nullopt also between two of them.
std::optional<std::int64_t> read_fraction(std::string_view text) {
  const auto number = core::Quantity::parse(text);
  if (!number || *number != core::Quantity::from_milli(number->milli_value())) return std::nullopt;
  return number->milli_value();
}

std::string format_fraction(std::int64_t thousandths) {
  return core::Quantity::from_milli(thousandths).format_decimal();
}

constexpr std::string_view kTop = "top:";

/// "none", "top:N", "all" as a number from 0 to `most`.
std::optional<std::int64_t> read_pods(std::int64_t most, std::string_view text) {
  if (text == "none") return 0;
  if (text == "all") return most;
  const auto number = text.starts_with(kTop) ? parse_int(text.substr(kTop.size())) : std::nullopt;
  return number && *number > 0 ? number : std::nullopt;
}

std::string format_pods(std::int64_t most, std::int64_t number) {
  if (number == 0) return "none";
  return number == most ? "all" : cat(kTop, number);
}

/// Whether the list has "pods"; nullopt if it is neither [], ["pods"] nor ["none"].
std::optional<std::int64_t> read_enforced(const JsonNode& node) {
  if (node.kind != Kind::kArray || node.children.size() > 1) return std::nullopt;
  if (node.children.empty()) return 0;
  const JsonNode& only = node.children.front();
  if (only.kind != Kind::kString || (only.text != "pods" && only.text != "none"))
    return std::nullopt;
  return only.text == "pods" ? 1 : 0;
}

std::optional<std::int64_t> read_amount(Form form, std::string_view text) {
  const auto quantity = core::Quantity::parse(text);
  if (!quantity || quantity->sign() < 0) return std::nullopt;
  if (form == Form::kCpu) return quantity->milli_value();
  // A fraction of a byte is a misprint of something larger.
  if (*quantity != core::Quantity::from_units(quantity->value())) return std::nullopt;
  return quantity->value();
}

/// The value of a form that is a number; nullopt if the node has no such value.
std::optional<std::int64_t> read_number(const SettingKind& kind, const JsonNode& node) {
  const std::string_view text = node.text;
  const bool is_text = node.kind == Kind::kString;
  const bool is_number = node.kind == Kind::kNumber;
  switch (kind.form) {
    case Form::kFlag:
      if (node.kind != Kind::kBoolean) return std::nullopt;
      return std::int64_t{text == "true"};
    case Form::kWord: return find_word(kind, node);
    case Form::kMemory:
    case Form::kCpu: return is_text || is_number ? read_amount(kind.form, text) : std::nullopt;
    case Form::kPercent: return is_text ? read_percent(text) : std::nullopt;
    case Form::kFraction: return is_number ? read_fraction(text) : std::nullopt;
    case Form::kDuration: return is_text ? read_duration(kind.step, text) : std::nullopt;
    case Form::kNumber: return is_number ? parse_int(text) : std::nullopt;
    case Form::kPods: return is_text ? read_pods(kind.max, text) : std::nullopt;
    case Form::kEnforced: return read_enforced(node);
    case Form::kPath:
    case Form::kCgroup:
    case Form::kAddress:
    case Form::kPressure:
    case Form::kPaths: break;
  }
  return std::nullopt;
}

/// Why this is not an absolute path, and what to do; "" if it is one.
std::string problem_of(std::string_view path) {
  constexpr std::size_t kMaxSize = 4096;
  if (!path.starts_with('/')) return "it must begin with \"/\"";
  if (path.size() > kMaxSize)
    return cat("it has ", path.size(), " bytes, at most ", kMaxSize, " are allowed");
  if (std::ranges::any_of(path, is_control)) return "it contains a control character";
  if (cat(path, "/").contains("/../")) return "write the path that \"..\" leads to";
  return {};
}

/// The same of the name of a cgroup. "_" would be ambiguous: common/core/cgroups/naming.h.
std::string problem_of_name(std::string_view name) {
  constexpr std::size_t kMaxSize = 255;  // NAME_MAX
  if (name.empty()) return "write one \"/\" between names";
  if (name == ".") return "leave out the name \".\"";
  if (name.size() > kMaxSize)
    return cat("a name has ", name.size(), " bytes, at most ", kMaxSize, " are allowed");
  if (name.contains('_'))
    return "\"_\" is not allowed in names, since it stands for \"-\" in those of slices";
  const bool ascii = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  return ascii ? "" : "names consist of ASCII characters";
}

/// The same of the path of a cgroup.
std::string problem_of_cgroup(std::string_view path) {
  if (path.empty())
    return "it is empty; leave the field out for the default, or write \"/\" for the root";
  std::string problem = problem_of(path);
  for (path.remove_prefix(1); problem.empty() && !path.empty();)
    problem = problem_of_name(read_until(path, '/'));
  return problem;
}

Result<std::string> read_path(const SettingKind& kind, const JsonNode& node) {
  if (node.kind != Kind::kString) return unexpected_value(kind, node);
  const std::string problem =
      kind.form == Form::kCgroup ? problem_of_cgroup(node.text) : problem_of(node.text);
  if (problem.empty()) return std::string{node.text};
  return refuse_value(unexpected_value(kind, node).error().message, ": ", problem);
}

Result<SettingValue> read_paths(const SettingKind& kind, const JsonNode& node) {
  if (node.kind != Kind::kArray) return unexpected_value(kind, node);
  const std::size_t count = node.children.size();
  if (count == 0 || std::cmp_greater(count, kind.max))
    return refuse_value("expected ", expected_value(kind), ", found ", count);
  std::vector<std::string> paths;
  for (const JsonNode& child : node.children) {
    auto path = read_path({.form = Form::kPath}, child);
    if (!path) return fail(std::move(path).error().with_context(cat("[", paths.size(), "]")));
    paths.push_back(std::move(*path));
  }
  return paths;
}

}  // namespace

std::optional<core::MemoryPressure> parse_pressure(std::string_view text) {
  constexpr std::int64_t kLongest = 3600;
  const auto percent = read_percent(read_until(text, '/'));
  const auto seconds = read_duration(kOneSecond, text);
  if (!percent || *percent < 1 || *percent > kPercent) return std::nullopt;
  if (!seconds || *seconds < 1 || *seconds > kLongest) return std::nullopt;
  return core::MemoryPressure{.percent = *percent, .seconds = *seconds};
}

std::string format_pressure(const core::MemoryPressure& pressure) {
  std::string duration = format_duration(pressure.seconds * kOneSecond);
  duration.erase(0, 1);  // the quotation mark
  duration.pop_back();
  return cat(pressure.percent, "%/", duration);
}

std::string expected_value(const SettingKind& kind) {
  const auto text = [&]() -> std::string {
    switch (kind.form) {
      case Form::kFlag: return "true or false";
      case Form::kWord: return "one of ";
      case Form::kMemory: return "an amount of memory such as \"64Mi\", in whole bytes";
      case Form::kCpu: return "an amount of CPU such as \"500m\"";
      case Form::kPercent: return cat("a percentage from \"", kind.min, "%\" to \"100%\"");
      case Form::kFraction:
        return cat("a number from ", format_fraction(kind.min), " to ", format_fraction(kind.max),
                   " in thousandths");
      case Form::kDuration: return expected_duration(kind);
      case Form::kNumber: return expected_number(kind);
      case Form::kEnforced: return R"(["pods"], ["none"] or [])";
      case Form::kPath:
      case Form::kCgroup: return "an absolute path without \"..\"";
      case Form::kAddress:
        return R"("unix:PATH" or a loopback address with its port such as "127.0.0.1:9464")";
      case Form::kPressure: return R"(a pressure from "1%/1s" to "100%/1h" such as "60%/30s")";
      case Form::kPods: return cat("\"none\", \"all\", or \"top:N\" with N from 1 to ", kind.max);
      case Form::kPaths: return cat("a list of 1 to ", kind.max, " absolute paths without \"..\"");
    }
    return {};
  }();
  const std::string words = list_words(kind);
  const bool amount = kind.form == Form::kMemory || kind.form == Form::kCpu;
  return cat(kind.form == Form::kWord ? cat(text, words)
             : words.empty()          ? text
                                      : cat(words, " or ", text),
             amount && kind.min > 0 ? ", above 0" : "",
             kind.form == Form::kMemory && kind.max < kInt64Max
                 ? cat(", at most ", format_amount(Bytes{kind.max}))
                 : "",
             kind.null ? ", or null" : "");
}

Result<SettingValue> read_value(const SettingKind& kind, const JsonNode& node) {
  if (kind.null && node.is_null()) return SettingValue{};
  if (kind.form != Form::kWord && find_word(kind, node)) return std::string{node.text};
  if (kind.form == Form::kPath || kind.form == Form::kCgroup) return read_path(kind, node);
  if (kind.form == Form::kPaths) return read_paths(kind, node);
  if (kind.form == Form::kAddress && node.kind == Kind::kString) {
    PODQOS_TRY(parse_metrics_address(node.text));
    return std::string{node.text};
  }
  if (kind.form == Form::kPressure && node.kind == Kind::kString && parse_pressure(node.text))
    return std::string{node.text};
  const auto number = read_number(kind, node);
  if (!number || *number < kind.min || *number > kind.max) return unexpected_value(kind, node);
  return *number;
}

std::string format_value(const SettingKind& kind, const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return quote_json(*text);
  if (const auto* paths = std::get_if<std::vector<std::string>>(&value)) {
    std::string list;
    for (const std::string& path : *paths)
      list += cat(list.empty() ? "[" : ", ", quote_json(path));
    return list += ']';
  }
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr) return "null";
  switch (kind.form) {
    case Form::kFlag: return *number != 0 ? "true" : "false";
    case Form::kWord: return quote_json(word_at(kind.words, static_cast<std::size_t>(*number)));
    case Form::kMemory: return quote_json(exact_amount(Bytes{*number}));
    case Form::kCpu: return quote_json(format_amount(MilliCpu{*number}));
    case Form::kPercent: return cat("\"", *number, "%\"");
    case Form::kFraction: return format_fraction(*number);
    case Form::kDuration: return format_duration(*number * kind.step);
    case Form::kPods: return quote_json(format_pods(kind.max, *number));
    case Form::kEnforced: return *number != 0 ? R"(["pods"])" : "[]";
    case Form::kNumber:
    case Form::kPath:
    case Form::kCgroup:
    case Form::kAddress:
    case Form::kPressure:
    case Form::kPaths: break;
  }
  return std::to_string(*number);
}

}  // namespace podqos::codec

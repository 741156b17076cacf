#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/settings_table.h"
#include "common/core/kubernetes/quantity.h"
#include "common/core/metrics_address.h"

namespace podqos::codec {

namespace {

using Form = SettingKind::Form;
using Kind = JsonNode::Kind;

/// A unit of durations, and its microseconds.
struct TimeUnit {
  std::string_view name;
  std::int64_t micros;
};
constexpr std::int64_t kMilli = 1'000;
constexpr std::int64_t kOneSecond = 1'000'000;
constexpr std::array<TimeUnit, 5> kTimeUnits{{{"us", 1},
                                              {"ms", kMilli},
                                              {"s", kOneSecond},
                                              {"m", 60 * kOneSecond},
                                              {"h", 3600 * kOneSecond}}};

/// Microseconds of "<number><unit>".
std::optional<std::int64_t> parse_duration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* const unit = std::ranges::find(kTimeUnits, text.substr(digits), &TimeUnit::name);
  const auto number = parse_int(text.substr(0, digits));
  std::int64_t micros = 0;
  if (unit == kTimeUnits.end() || !number || __builtin_mul_overflow(*number, unit->micros, &micros))
    return std::nullopt;
  return micros;
}

/// In the largest unit that divides it, at most seconds.
std::string format_duration(std::int64_t micros) {
  const TimeUnit& unit = kTimeUnits.at(micros % kOneSecond == 0 ? 2 : micros % kMilli == 0 ? 1 : 0);
  return cat("\"", micros / unit.micros, unit.name, "\"");
}

std::string expected_duration(const SettingKind& kind) {
  const auto end = [&](std::int64_t steps) {
    constexpr std::int64_t kHour = 3600 * kOneSecond;
    const std::int64_t micros = steps * kind.step;
    return micros != 0 && micros % kHour == 0 ? cat("\"", micros / kHour, "h\"")
                                              : format_duration(micros);
  };
  const std::string_view whole = kind.step == kOneSecond ? ", in whole seconds"
                                 : kind.step == kMilli   ? ", in whole milliseconds"
                                                         : "";
  return cat("a duration from ", end(kind.min), " to ", end(kind.max), whole);
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

/// The value as its author wrote it, fit for one line.
std::string shown(const JsonNode& node) {
  if (node.kind == Kind::kString) return cat("\"", printable(node.text), "\"");
  return node.kind == Kind::kNumber ? printable(node.text) : std::string{format_kind(node.kind)};
}

std::unexpected<Error> unexpected_value(const SettingKind& kind, const JsonNode& node) {
  return refuse_value("expected ", expected_value(kind), ", found ", shown(node));
}

std::optional<core::Quantity> read_quantity(const JsonNode& node) {
  if (node.kind != Kind::kString && node.kind != Kind::kNumber) return std::nullopt;
  auto quantity = core::Quantity::parse(node.text);
  if (!quantity || quantity->sign() < 0) return std::nullopt;
  return *quantity;
}

std::optional<std::int64_t> read_percent(const JsonNode& node) {
  const std::string_view text = node.text;
  if (node.kind != Kind::kString || !text.ends_with('%') || text.starts_with('-'))
    return std::nullopt;
  return parse_int(text.substr(0, text.size() - 1));
}

std::optional<std::int64_t> read_duration(const SettingKind& kind, const JsonNode& node) {
  const auto micros = node.kind == Kind::kString ? parse_duration(node.text) : std::nullopt;
  if (!micros || *micros % kind.step != 0) return std::nullopt;
  return *micros / kind.step;
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

std::optional<std::int64_t> read_memory(const JsonNode& node) {
  const auto quantity = read_quantity(node);
  // A fraction of a byte is a misprint of something larger.
  if (!quantity || *quantity != core::Quantity::from_units(quantity->value())) return std::nullopt;
  return quantity->value();
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
  for (std::size_t begin = 1; problem.empty() && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    problem = problem_of_name(path.substr(begin, end - begin));
    begin = end + 1;
  }
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

std::string expected_value(const SettingKind& kind) {
  const auto text = [&]() -> std::string {
    switch (kind.form) {
      case Form::kFlag: return "true or false";
      case Form::kWord: return cat("one of ", list_words(kind));
      case Form::kMemory: return "an amount of memory such as \"64Mi\", in whole bytes";
      case Form::kCpu: return "an amount of CPU such as \"500m\"";
      case Form::kPercent: return cat("a percentage from \"", kind.min, "%\" to \"100%\"");
      case Form::kDuration: return expected_duration(kind);
      case Form::kNumber: return expected_number(kind);
      case Form::kWordOrNumber:
        return cat(list_words(kind), " or a weight from ", kind.min, " to ", kind.max);
      case Form::kEnforced: return R"(["pods"], ["none"] or [])";
      case Form::kPath:
      case Form::kCgroup: return "an absolute path without \"..\"";
      case Form::kSink: return cat(list_words(kind), " or the absolute path of a file");
      case Form::kAddress:
        return R"("unix:PATH" or a loopback address with its port such as "127.0.0.1:9464")";
      case Form::kPaths: return cat("a list of 1 to ", kind.max, " absolute paths without \"..\"");
    }
    return {};
  }();
  const bool amount = kind.form == Form::kMemory || kind.form == Form::kCpu;
  return cat(text, amount && kind.min > 0 ? ", above 0" : "", kind.null ? ", or null" : "");
}

Result<SettingValue> read_value(const SettingKind& kind, const JsonNode& node) {
  if (kind.null && node.is_null()) return SettingValue{};
  const auto in_range = [&](std::optional<std::int64_t> number) -> Result<SettingValue> {
    if (!number || *number < kind.min || *number > kind.max) return unexpected_value(kind, node);
    return *number;
  };
  const bool number = node.kind == Kind::kNumber;
  switch (kind.form) {
    case Form::kFlag:
      if (node.kind != Kind::kBoolean) return unexpected_value(kind, node);
      return std::int64_t{node.text == "true"};
    case Form::kWord: return in_range(find_word(kind, node));
    case Form::kMemory: return in_range(read_memory(node));
    case Form::kCpu:
      return in_range(
          read_quantity(node).transform([](const auto& cpu) { return cpu.milli_value(); }));
    case Form::kPercent: return in_range(read_percent(node));
    case Form::kDuration: return in_range(read_duration(kind, node));
    case Form::kEnforced: return in_range(read_enforced(node));
    case Form::kWordOrNumber:
      if (find_word(kind, node)) return std::string{node.text};
      [[fallthrough]];
    case Form::kNumber: return in_range(number ? parse_int(node.text) : std::nullopt);
    case Form::kSink:
      if (find_word(kind, node)) return std::string{node.text};
      if (auto path = read_path(kind, node)) return std::move(*path);
      return unexpected_value(kind, node);
    case Form::kPath:
    case Form::kCgroup: return read_path(kind, node);
    case Form::kAddress:
      if (node.kind != Kind::kString) return unexpected_value(kind, node);
      PODQOS_TRY(core::parse_metrics_address(node.text));
      return std::string{node.text};
    case Form::kPaths: return read_paths(kind, node);
  }
  return unexpected_value(kind, node);
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
    case Form::kMemory: return quote_json(format_amount(Bytes{*number}));
    case Form::kCpu: return quote_json(format_amount(MilliCpu{*number}));
    case Form::kPercent: return cat("\"", *number, "%\"");
    case Form::kDuration: return format_duration(*number * kind.step);
    case Form::kEnforced: return *number != 0 ? R"(["pods"])" : "[]";
    case Form::kNumber:
    case Form::kWordOrNumber:
    case Form::kPath:
    case Form::kCgroup:
    case Form::kSink:
    case Form::kAddress:
    case Form::kPaths: break;
  }
  return std::to_string(*number);
}

}  // namespace podqos::codec

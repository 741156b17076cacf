#include "common/codec/setting_types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/settings_words.h"
#include "common/core/quantity.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// A number and the largest unit that divides it.
struct Step {
  std::string_view unit;
  std::int64_t size;
};

constexpr std::int64_t kMicrosPerMilli = 1'000;
constexpr std::int64_t kMicrosPerSecond = 1'000'000;

template <class Steps>
std::string in_largest_unit(std::int64_t value, const Steps& steps) {
  if (value == 0) return "\"0\"";
  for (const Step& step : steps) {
    if (value % step.size == 0) return cat("\"", value / step.size, step.unit, "\"");
  }
  return cat("\"", value, steps.back().unit, "\"");
}

/// The value as its author wrote it, fit for one line.
std::string shown(const JsonNode& node) {
  switch (node.kind) {
    case Kind::kString: return cat("\"", printable(node.text), "\"");
    case Kind::kNumber: return printable(node.text);
    case Kind::kNull:
    case Kind::kBoolean:
    case Kind::kArray:
    case Kind::kObject: break;
  }
  return std::string{format_kind(node.kind)};
}

std::optional<core::Quantity> read_quantity(const JsonNode& node) {
  if (node.kind != Kind::kString && node.kind != Kind::kNumber) return std::nullopt;
  auto quantity = core::Quantity::parse(node.text);
  if (!quantity || quantity->sign() < 0) return std::nullopt;
  return *quantity;
}

/// Microseconds of "<number><unit>".
std::optional<std::int64_t> parse_duration(std::string_view text) {
  constexpr std::array<Word<std::int64_t>, 5> kUnits{{{"us", 1},
                                                      {"ms", kMicrosPerMilli},
                                                      {"s", kMicrosPerSecond},
                                                      {"m", 60 * kMicrosPerSecond},
                                                      {"h", 3600 * kMicrosPerSecond}}};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* const unit =
      std::ranges::find(kUnits, text.substr(digits), &Word<std::int64_t>::text);
  const auto number = parse_int(text.substr(0, digits));
  std::int64_t micros = 0;
  if (unit == kUnits.end() || !number || __builtin_mul_overflow(*number, unit->value, &micros))
    return std::nullopt;
  return micros;
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

/// The same of the name of a cgroup. "_" would be ambiguous: common/core/naming.h.
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

/// "expected <a path>, found <the value>: <the problem>".
std::unexpected<Error> refuse_path(const JsonNode& node, std::string_view problem) {
  return refuse_value(
      cat("expected ", AbsolutePath::expected(), ", found ", shown(node), ": ", problem));
}

}  // namespace

std::unexpected<Error> unexpected_value(std::string_view expected, const JsonNode& node) {
  return refuse_value(cat("expected ", expected, ", found ", shown(node)));
}

std::string list_words(const std::vector<std::string_view>& words) {
  std::string list;
  for (const std::string_view word : words)
    list += cat(list.empty() ? "one of \"" : ", \"", word, "\"");
  return list;
}

Result<bool> Flag::read(const JsonNode& node) {
  if (node.kind != Kind::kBoolean) return unexpected_value(expected(), node);
  return node.text == "true";
}

Result<Bytes> MemoryAmount::read(const JsonNode& node) {
  const auto quantity = read_quantity(node);
  // A fraction of a byte is a misprint of something larger.
  if (!quantity || *quantity != core::Quantity::from_units(quantity->value()))
    return unexpected_value(expected(), node);
  return Bytes{quantity->value()};
}

std::string MemoryAmount::format(Bytes memory) {
  constexpr std::array<Step, 5> kSteps{
      {{"Ti", 1LL << 40U}, {"Gi", 1LL << 30U}, {"Mi", 1LL << 20U}, {"Ki", 1LL << 10U}, {"", 1}}};
  return in_largest_unit(memory.value(), kSteps);
}

Result<MilliCpu> CpuAmount::read(const JsonNode& node) {
  const auto quantity = read_quantity(node);
  if (!quantity) return unexpected_value(expected(), node);
  return MilliCpu{quantity->milli_value()};
}

std::string CpuAmount::format(MilliCpu cpu) {
  constexpr std::array<Step, 2> kSteps{{{"", core::kMilliPerCpu}, {"m", 1}}};
  return in_largest_unit(cpu.value(), kSteps);
}

template <std::int64_t kMin>
Result<std::int64_t> Percentage<kMin>::read(const JsonNode& node) {
  constexpr std::int64_t kMost = 100;
  const std::string_view text = node.text;
  const bool is_percentage =
      node.kind == Kind::kString && text.ends_with('%') && !text.starts_with('-');
  const auto percent = is_percentage ? parse_int(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!percent || *percent < kMin || *percent > kMost) return unexpected_value(expected(), node);
  return *percent;
}
template struct Percentage<0>;
template struct Percentage<1>;

std::string expected_duration(const DurationRange& range) {
  const auto end = [](std::int64_t micros) {
    constexpr std::int64_t kMicrosPerHour = 3600 * kMicrosPerSecond;
    return micros != 0 && micros % kMicrosPerHour == 0 ? cat("\"", micros / kMicrosPerHour, "h\"")
                                                       : format_duration(micros);
  };
  const std::string_view whole = range.step == kMicrosPerSecond  ? ", in whole seconds"
                                 : range.step == kMicrosPerMilli ? ", in whole milliseconds"
                                                                 : "";
  return cat("a duration from ", end(range.min), " to ", end(range.max), whole);
}

Result<std::int64_t> read_duration(const JsonNode& node, const DurationRange& range) {
  const auto micros = node.kind == Kind::kString ? parse_duration(node.text) : std::nullopt;
  if (!micros || *micros < range.min || *micros > range.max || *micros % range.step != 0)
    return unexpected_value(expected_duration(range), node);
  return *micros / range.step;
}

std::string format_duration(std::int64_t micros) {
  constexpr std::array<Step, 3> kSteps{
      {{"s", kMicrosPerSecond}, {"ms", kMicrosPerMilli}, {"us", 1}}};
  return micros == 0 ? "\"0s\"" : in_largest_unit(micros, kSteps);
}

Result<std::string> AbsolutePath::read(const JsonNode& node) {
  if (node.kind != Kind::kString) return unexpected_value(expected(), node);
  if (const std::string problem = problem_of(node.text); !problem.empty())
    return refuse_path(node, problem);
  return std::string{node.text};
}

std::string AbsolutePath::format(const std::string& path) {
  return quote_json(path);
}

Result<std::string> CgroupPath::read(const JsonNode& node) {
  if (node.kind == Kind::kString && node.text.empty())
    return refuse_path(
        node, "it is empty; leave the field out for the default, or write \"/\" for the root");
  auto path = AbsolutePath::read(node);
  if (!path) return path;
  const std::string_view below = std::string_view{*path}.substr(1);
  for (std::size_t begin = 0; begin < below.size();) {
    const std::size_t end = std::min(below.find('/', begin), below.size());
    const std::string problem = problem_of_name(below.substr(begin, end - begin));
    if (!problem.empty()) return refuse_path(node, problem);
    begin = end + 1;
  }
  return path;
}

Result<std::int64_t> read_whole_number(const JsonNode& node) {
  const auto number = node.kind == Kind::kNumber ? parse_int(node.text) : std::nullopt;
  if (!number) return unexpected_value("a whole number", node);
  return *number;
}

std::string Swap::expected() {
  return OneOf<kSwapWords>::expected();
}

Result<core::SwapBehavior> Swap::read(const JsonNode& node) {
  if (node.kind == Kind::kString && node.text.empty()) return core::SwapBehavior::kNoSwap;
  return OneOf<kSwapWords>::read(node);
}

std::string Swap::format(core::SwapBehavior behavior) {
  return OneOf<kSwapWords>::format(behavior);
}

std::string RuntimePaths::expected() {
  return cat("a list of 1 to ", kMaxRuntimes, " absolute paths without \"..\"");
}

Result<std::vector<std::string>> RuntimePaths::read(const JsonNode& node) {
  if (node.kind != Kind::kArray) return unexpected_value(expected(), node);
  if (node.children.empty() || node.children.size() > kMaxRuntimes) {
    return refuse_value(cat("expected ", expected(), ", found ", node.children.size()));
  }
  std::vector<std::string> paths;
  for (const JsonNode& child : node.children) {
    auto path = AbsolutePath::read(child);
    if (!path) return fail(std::move(path).error().with_context(cat("[", paths.size(), "]")));
    paths.push_back(std::move(*path));
  }
  return paths;
}

std::string RuntimePaths::format(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths)
    list += cat(list.empty() ? "[" : ", ", quote_json(path));
  return list += ']';
}

Result<bool> EnforcedCgroups::read(const JsonNode& node) {
  if (node.kind != Kind::kArray || node.children.size() > 1)
    return unexpected_value(expected(), node);
  if (node.children.empty()) return false;
  const JsonNode& only = node.children.front();
  if (only.kind != Kind::kString || (only.text != "pods" && only.text != "none"))
    return unexpected_value(expected(), only);
  return only.text == "pods";
}

Result<core::RootCpuWeight> RootWeight::read(const JsonNode& node) {
  using Rule = core::RootCpuWeight::Rule;
  constexpr std::int64_t kMaxWeight = 10'000;
  if (node.kind == Kind::kString && node.text == "kubelet")
    return core::RootCpuWeight{.rule = Rule::kKubelet};
  if (node.kind == Kind::kString && node.text == "proportional")
    return core::RootCpuWeight{.rule = Rule::kProportional};
  const auto number = read_whole_number(node);
  if (!number || *number < 1 || *number > kMaxWeight) return unexpected_value(expected(), node);
  return core::RootCpuWeight{.rule = Rule::kNumber, .weight = CpuWeight{*number}};
}

std::string RootWeight::format(const core::RootCpuWeight& weight) {
  switch (weight.rule) {
    case core::RootCpuWeight::Rule::kKubelet: return "\"kubelet\"";
    case core::RootCpuWeight::Rule::kProportional: return "\"proportional\"";
    case core::RootCpuWeight::Rule::kNumber: break;
  }
  return std::to_string(weight.weight.value());
}

Result<std::string> LogSink::read(const JsonNode& node) {
  if (node.kind == Kind::kString &&
      (node.text == "syslog" || node.text == "stderr" || node.text == "none"))
    return std::string{node.text};
  auto path = AbsolutePath::read(node);
  if (!path) return unexpected_value(expected(), node);
  return path;
}

std::string LogSink::format(const std::string& sink) {
  return quote_json(sink);
}

std::string MetricsListener::expected() {
  return R"("unix:PATH" or a loopback address with its port such as "127.0.0.1:9464")";
}

Result<core::MetricsAddress> MetricsListener::read(const JsonNode& node) {
  if (node.kind != Kind::kString) return unexpected_value(expected(), node);
  return core::parse_metrics_address(node.text);
}

std::string MetricsListener::format(const core::MetricsAddress& address) {
  return quote_json(core::format_metrics_address(address));
}

}  // namespace podqos::codec

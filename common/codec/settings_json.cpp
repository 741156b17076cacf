#include "common/codec/settings_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"
#include "common/codec/runtimes_json.h"
#include "common/codec/settings_words.h"
#include "common/core/kernel_bounds.h"
#include "common/core/naming.h"
#include "common/core/quantity.h"

namespace podqos::codec {

namespace {

using core::Settings;
using Kind = JsonNode::Kind;

constexpr std::int64_t kMicrosPerMilli = 1'000;
constexpr std::int64_t kMicrosPerSecond = 1'000'000;

Status read_flag(const JsonNode& node, bool& out) {
  if (node.kind != Kind::kBoolean) return unexpected_kind("true or false", node);
  out = node.text == "true";
  return {};
}

template <class Table, class T>
Status read_word(const JsonNode& node, const Table& table, T& out) {
  std::string expected;
  for (const auto& word : table) {
    if (node.kind == Kind::kString && node.text == word.text) {
      out = word.value;
      return {};
    }
    expected += cat(expected.empty() ? "" : ", ", word.text);
  }
  if (node.kind != Kind::kString) return unexpected_kind(cat("one of ", expected), node);
  return refuse_value(cat("\"", printable(node.text), "\" is none of ", expected));
}

Result<core::Quantity> read_quantity(const JsonNode& node, std::string_view example) {
  if (node.kind != Kind::kString && node.kind != Kind::kNumber) {
    return unexpected_kind(cat("a quantity like \"", example, "\""), node);
  }
  auto quantity = core::Quantity::parse(node.text);
  if (quantity && quantity->sign() < 0) return refuse_value(cat(node.text, " is negative"));
  return quantity;
}

Status read_memory(const JsonNode& node, Bytes& out) {
  const auto quantity = read_quantity(node, "64Mi");
  if (!quantity) return fail(quantity.error());
  out = Bytes{quantity->value()};
  return {};
}

Status read_cpu(const JsonNode& node, MilliCpu& out) {
  const auto quantity = read_quantity(node, "500m");
  if (!quantity) return fail(quantity.error());
  out = MilliCpu{quantity->milli_value()};
  return {};
}

/// A pinned capacity: null is the machine's own.
template <class T>
Status read_capacity(const JsonNode& node, Status (*read)(const JsonNode&, T&),
                     std::optional<T>& out) {
  out.reset();
  if (node.is_null()) return {};
  T value;
  if (Status status = read(node, value); !status) return status;
  if (value.value() == 0) return refuse_value("must be above 0; null takes the machine's own");
  out = value;
  return {};
}

/// Microseconds of "<number><unit>".
Result<std::int64_t> parse_duration(std::string_view text) {
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
  if (unit == kUnits.end() || !number || __builtin_mul_overflow(*number, unit->value, &micros)) {
    return refuse_value(cat("\"", printable(text), "\" is no duration like 100ms, 30s, 2m or 1h"));
  }
  return micros;
}

/// What a duration may be, in microseconds; `step` is the finest that is kept.
struct DurationRange {
  std::int64_t min;
  std::int64_t max;
  std::int64_t step;
  std::string_view words;
};

/// In steps of the range.
Status read_duration(const JsonNode& node, const DurationRange& range, std::int64_t& out) {
  if (node.kind != Kind::kString) return unexpected_kind("a duration like \"30s\"", node);
  const auto micros = parse_duration(node.text);
  if (!micros) return fail(micros.error());
  if (*micros < range.min || *micros > range.max || *micros % range.step != 0) {
    return refuse_value(cat("\"", printable(node.text), "\" is not within ", range.words));
  }
  out = *micros / range.step;
  return {};
}

Status read_path(const JsonNode& node, std::string& out) {
  auto path = read_absolute_path(node);
  if (!path) return fail(std::move(path).error());
  out = std::move(*path);
  return {};
}

Status read_cgroup_root(const JsonNode& node, std::string& out) {
  std::string path;
  if (Status status = read_path(node, path); !status) return status;
  const std::string_view below = std::string_view{path}.substr(1);
  for (std::size_t begin = 0; begin < below.size();) {
    const std::size_t end = std::min(below.find('/', begin), below.size());
    if (Status status = core::check_cgroup_component(below.substr(begin, end - begin)); !status)
      return status;
    begin = end + 1;
  }
  if (const auto name = core::format_cgroupfs(core::kubepods_name(path)); !name)
    return fail(name.error());
  out = std::move(path);
  return {};
}

Status read_driver(const JsonNode& node, core::DriverSetting& out) {
  return read_word(node, kDriverWords, out);
}

Status read_percent(const JsonNode& node, std::optional<std::int64_t>& out) {
  out.reset();
  if (node.is_null()) return {};
  if (node.kind != Kind::kString) return unexpected_kind("a percentage like \"50%\"", node);
  const std::string_view text = node.text;
  const auto percent =
      text.ends_with('%') ? parse_int(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!percent || *percent < 0 || *percent > 100) {
    return refuse_value(cat("\"", printable(text), "\" is not within 0% and 100%"));
  }
  out = percent;
  return {};
}

Status read_pids(const JsonNode& node, std::optional<std::int64_t>& out) {
  out.reset();
  if (node.is_null()) return {};
  const auto limit = node.kind == Kind::kNumber ? parse_int(node.text) : std::nullopt;
  if (!limit || *limit < 1 || *limit > core::kMaxPids) {
    return refuse_value(
        cat("expected a whole number from 1 to ", core::kMaxPids, ", or null for no limit"));
  }
  out = limit;
  return {};
}

Status read_swap(const JsonNode& node, Settings& settings) {
  settings.swap_behavior.reset();
  if (node.is_null()) return {};
  auto& behavior = settings.swap_behavior.emplace(core::SwapBehavior::kNoSwap);
  // As in a kubelet's configuration.
  if (node.kind == Kind::kString && node.text.empty()) return {};
  return read_word(node, kSwapWords, behavior);
}

Status read_without_parent(const JsonNode& node, Settings& settings) {
  settings.without_parent.reset();
  if (node.is_null()) return {};
  auto& where = settings.without_parent.emplace(core::WithoutParent::kStay);
  return read_word(node, kWithoutParentWords, where);
}

Status read_runtimes_into(const JsonNode& node, std::vector<std::string>& out) {
  auto paths = read_runtimes(node);
  if (!paths) return fail(std::move(paths).error());
  out = std::move(*paths);
  return {};
}

Status read_sink(const JsonNode& node, std::string& out) {
  if (node.kind == Kind::kString && (node.text == "syslog" || node.text == "none")) {
    out = node.text;
    return {};
  }
  if (Status status = read_path(node, out); status) return {};
  return refuse_value(R"(expected "syslog", "none" or the absolute path of a file)");
}

Status read_metrics(const JsonNode& node, Settings& settings) {
  settings.metrics.reset();
  if (node.is_null()) return {};
  if (node.kind != Kind::kString) return unexpected_kind("an address or null", node);
  auto address = core::parse_metrics_address(node.text);
  if (!address) return fail(std::move(address).error());
  settings.metrics = std::move(*address);
  return {};
}

/// A field: what reads its value, or the fields of the object that it is.
struct Field {
  std::string_view name;
  Status (*read)(const JsonNode&, Settings&) = nullptr;
  std::span<const Field> members{};
};

using Node = JsonNode;
constexpr DurationRange kPeriodRange{kMicrosPerMilli, kMicrosPerSecond, 1, "1ms and 1s"};
constexpr DurationRange kDeadlineRange{10 * kMicrosPerMilli, 60 * kMicrosPerSecond, kMicrosPerMilli,
                                       "10ms and 60s, in whole milliseconds"};
constexpr DurationRange kReleaseRange{0, 3600 * kMicrosPerSecond, kMicrosPerSecond,
                                      "0s and 1h, in whole seconds"};

constexpr std::array<Field, 2> kPlacementFields{{
    {"onMisplaced",
     [](const Node& n, Settings& s) { return read_word(n, kMisplacedWords, s.on_misplaced); }},
    {"withoutParent", read_without_parent},
}};
constexpr std::array<Field, 2> kSystemFields{{
    {"cpu", [](const Node& n, Settings& s) { return read_cpu(n, s.system_reserved.cpu); }},
    {"memory", [](const Node& n, Settings& s) { return read_memory(n, s.system_reserved.memory); }},
}};
constexpr std::array<Field, 2> kKubeFields{{
    {"cpu", [](const Node& n, Settings& s) { return read_cpu(n, s.kube_reserved.cpu); }},
    {"memory", [](const Node& n, Settings& s) { return read_memory(n, s.kube_reserved.memory); }},
}};
constexpr std::array<Field, 2> kReservedFields{{
    {"system", nullptr, kSystemFields},
    {"kube", nullptr, kKubeFields},
}};
constexpr std::array<Field, 1> kQosReservedFields{{
    {"memory",
     [](const Node& n, Settings& s) { return read_percent(n, s.reserve_memory_percent); }},
}};
constexpr std::array<Field, 1> kSwapFields{{{"swapBehavior", read_swap}}};
constexpr std::array<Field, 1> kNriFields{{{"metrics", read_metrics}}};
constexpr std::array<Field, 2> kLogFields{{
    {"sink", [](const Node& n, Settings& s) { return read_sink(n, s.log_sink); }},
    {"level", [](const Node& n, Settings& s) { return read_word(n, kLevelWords, s.log_level); }},
}};

Status read_max_pod_claim(const Node& node, Settings& settings) {
  std::optional<std::int64_t> percent;
  if (Status status = read_percent(node, percent); !status) return status;
  if (percent.value_or(0) < 1) return refuse_value("expected a percentage from \"1%\" to \"100%\"");
  settings.max_pod_claim_percent = *percent;
  return {};
}

Status read_period(const Node& node, Settings& settings) {
  std::int64_t micros = 0;
  if (Status status = read_duration(node, kPeriodRange, micros); !status) return status;
  settings.cpu_cfs_quota_period = Micros{micros};
  return {};
}

constexpr std::array<Field, 27> kFields{{
    {"enabled", [](const Node& n, Settings& s) { return read_flag(n, s.enabled); }},
    {"scope", [](const Node& n, Settings& s) { return read_word(n, kScopeWords, s.scope); }},
    {"trustAnnotations",
     [](const Node& n, Settings& s) { return read_word(n, kTrustWords, s.trust_annotations); }},
    {"allowQosOverride",
     [](const Node& n, Settings& s) { return read_flag(n, s.allow_qos_override); }},
    {"cgroupRoot", [](const Node& n, Settings& s) { return read_cgroup_root(n, s.cgroup_root); }},
    {"cgroupDriver", [](const Node& n, Settings& s) { return read_driver(n, s.cgroup_driver); }},
    {"placement", nullptr, kPlacementFields},
    {"onError", [](const Node& n, Settings& s) { return read_word(n, kErrorWords, s.on_error); }},
    {"nodeMemory",
     [](const Node& n, Settings& s) { return read_capacity(n, read_memory, s.node_memory); }},
    {"nodeCpu", [](const Node& n, Settings& s) { return read_capacity(n, read_cpu, s.node_cpu); }},
    {"reserved", nullptr, kReservedFields},
    {"qosReserved", nullptr, kQosReservedFields},
    {"maxPodClaim", read_max_pod_claim},
    {"cpuCFSQuota", [](const Node& n, Settings& s) { return read_flag(n, s.cpu_cfs_quota); }},
    {"cpuCFSQuotaPeriod", read_period},
    {"weightFormula",
     [](const Node& n, Settings& s) { return read_word(n, kFormulaWords, s.weight_formula); }},
    {"podPidsLimit", [](const Node& n, Settings& s) { return read_pids(n, s.pod_pids_limit); }},
    {"memorySwap", nullptr, kSwapFields},
    {"singleProcessOOMKill",
     [](const Node& n, Settings& s) { return read_flag(n, s.single_process_oom_kill); }},
    {"releaseDelay",
     [](const Node& n, Settings& s) {
       return read_duration(n, kReleaseRange, s.release_delay_seconds);
     }},
    {"tierMemoryFloor",
     [](const Node& n, Settings& s) { return read_memory(n, s.tier_memory_floor); }},
    {"runtimes", [](const Node& n, Settings& s) { return read_runtimes_into(n, s.runtimes); }},
    {"chargeMonitor", [](const Node& n, Settings& s) { return read_flag(n, s.charge_monitor); }},
    {"stateDir", [](const Node& n, Settings& s) { return read_path(n, s.state_dir); }},
    {"lockDeadline",
     [](const Node& n, Settings& s) {
       return read_duration(n, kDeadlineRange, s.lock_deadline_ms);
     }},
    {"nri", nullptr, kNriFields},
    {"log", nullptr, kLogFields},
}};

/// "level" of "log" as "log.level", at any depth.
void add_nested(std::vector<std::string>& names, std::string_view path,
                std::span<const Field> fields) {
  for (const Field& field : fields) {
    names.push_back(cat(path, field.name));
    add_nested(names, cat(path, field.name, "."), field.members);
  }
}

std::unexpected<Error> unknown_field(std::string_view path, std::span<const Field> fields,
                                     std::string_view name) {
  std::vector<std::string_view> known;
  for (const Field& field : fields)
    known.push_back(field.name);
  std::vector<std::string> nested;
  for (const Field& field : fields)
    add_nested(nested, cat(field.name, "."), field.members);
  std::string hint = hint_for(name, known, path);
  // "logLevel" is log.level written flat.
  const std::string flat = nearest_name(name, {nested.begin(), nested.end()});
  if (nearest_name(name, known).empty() && !flat.empty())
    hint = cat("; did you mean ", path, flat, "?");
  return refuse_value(cat("unknown field ", path, printable(name), hint));
}

/// @param path  "" or the object's own path with a dot behind it.
Status read_fields(const JsonNode& object, const std::string& path, std::span<const Field> fields,
                   Settings& settings) {
  for (const JsonNode& member : object.children) {
    const auto field = std::ranges::find(fields, member.key, &Field::name);
    if (field == fields.end()) return unknown_field(path, fields, member.key);
    const std::string own_path = cat(path, field->name);
    if (std::ranges::count(object.children, member.key, &JsonNode::key) > 1) {
      return refuse_value(cat(own_path, ": field is repeated"));
    }
    Status status;
    if (field->read != nullptr) {
      status = field->read(member, settings);
      if (!status) return fail(std::move(status).error().with_context(own_path));
    } else if (member.kind != Kind::kObject) {
      return fail(unexpected_kind("an object", member).error().with_context(own_path));
    } else {
      status = read_fields(member, cat(own_path, "."), field->members, settings);
      if (!status) return status;
    }
  }
  return {};
}

}  // namespace

Result<Settings> merge_settings(Settings base, std::string_view text) {
  const auto tree =
      parse_json_tree(text, {.bytes = kMaxSettingsSize, .comments = JsonComments::kIgnore});
  if (!tree) return fail(tree.error());
  if (tree->kind != Kind::kObject) return unexpected_kind("one object of settings", *tree);
  if (Status status = read_fields(*tree, "", kFields, base); !status)
    return fail(std::move(status).error());
  return base;
}

}  // namespace podqos::codec

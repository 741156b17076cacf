
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/hugepages.h"
#include "ctl/command.h"
#include "ctl/explanation.h"
#include "ctl/input.h"
#include "ctl/json_text.h"
#include "ctl/manifest.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// Maximum CFS period in microseconds (kernel/sched/core.c, max_cfs_quota_period).
constexpr std::int64_t kMaxPeriod = 1'000'000;

/// A member that is not what was expected.
std::unexpected<Error> refuse(std::string_view key, std::string_view expected,
                              std::string_view found) {
  return fail(ErrorCode::kInvalidArgument, cat(key, ": expected ", expected, ", found ", found));
}

/// The member `key` as a whole number within a range; nullopt if absent or null.
Result<std::optional<std::int64_t>> integer_at(const JsonNode& object, std::string_view key,
                                               std::string_view range, std::int64_t least,
                                               std::int64_t most = kInt64Max) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return std::nullopt;
  const auto number = parse_int(raw->raw);
  if (!number) return refuse(key, "a whole number of 64 bits", json_shown(*raw));
  if (*number < least || *number > most) return refuse(key, range, cat(*number));
  return number;
}

/// The member `key` as a boolean.
Result<bool> flag_at(const JsonNode& object, std::string_view key, bool by_default) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return by_default;
  if (raw->kind != Kind::kBoolean) return refuse(key, "true or false", json_shown(*raw));
  return raw->text == "true";
}

/// The member `key` as a string; "" if absent or null.
Result<std::string_view> string_at(const JsonNode& object, std::string_view key) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return std::string_view{};
  if (raw->kind != Kind::kString) return refuse(key, "a string", json_shown(*raw));
  return raw->text;
}

/// Whether the member `key` is the second of two words; by default it is the first.
Result<bool> is_second(const JsonNode& object, std::string_view key, std::string_view first,
                       std::string_view second) {
  PODQOS_ASSIGN(const std::string_view word, string_at(object, key));
  if (word.empty() && json_member(object, key) == nullptr) return false;
  if (word == first || word == second) return word == second;
  return refuse(key, cat(first, " or ", second), cat("\"", printable(word), "\""));
}

/// memoryReservationPolicy as in the kubelet's configuration (KEP-2570); default None.
Result<core::MemoryReservationPolicy> policy_at(const JsonNode& object) {
  PODQOS_ASSIGN(const bool tiered,
                is_second(object, "memoryReservationPolicy", "None", "TieredReservation"));
  return tiered ? core::MemoryReservationPolicy::kTieredReservation
                : core::MemoryReservationPolicy::kNone;
}

/// Whether `label` is a page size in the form of core::hugepage_label(). It becomes part of a file
/// name.
bool is_page_size(std::string_view label) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  constexpr std::int64_t kUnitStep = 1024;
  const std::size_t digits = std::min(label.find_first_not_of("0123456789"), label.size());
  const auto number = parse_int(label.substr(0, digits));
  std::int64_t scale = 1;
  for (const std::string_view unit : kUnits) {
    if (label.substr(digits) == unit)
      return number && *number > 0 && *number <= kInt64Max / scale &&
             core::hugepage_label(Bytes{*number * scale}) == label;
    scale *= kUnitStep;
  }
  return false;
}

/// hugePageSizes; without it the default.
Result<std::vector<std::string>> hugepage_sizes_at(const JsonNode& object) {
  constexpr std::string_view kKey = "hugePageSizes";
  const JsonNode* const raw = json_member(object, kKey);
  if (raw == nullptr) return ExplainParams{}.hugepage_labels;
  std::vector<std::string> labels;
  for (const JsonNode& element : raw->children) {
    if (element.kind == Kind::kString && !is_page_size(element.text))
      return refuse(kKey, "a page size as in the kernel's file names, such as 2MB",
                    json_shown(element));
    if (element.kind == Kind::kString) labels.emplace_back(element.text);
  }
  if (raw->kind != Kind::kArray || labels.size() != raw->children.size())
    return refuse(kKey, R"(a list like ["2MB"])", json_shown(*raw));
  return labels;
}

/// Rejects unknown members: for a misspelt one the default would be used silently.
Status check_param_names(const JsonNode& object) {
  const std::vector<std::string_view> known = {
      "cgroupRoot",    "cpuPeriodUs",  "enforceCPULimits", "enforceMemoryQoS",
      "hugePageSizes", "podPidsLimit", "weightFormula",    "memoryReservationPolicy"};
  for (const JsonNode& member : object.children) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    return fail(ErrorCode::kInvalidArgument, cat("params: unknown member ", printable(member.key),
                                                 codec::hint_for(member.key, known)));
  }
  return {};
}

/// The parameters of one line: nodeMemoryBytes and the object "params".
Result<ExplainParams> params_of(const JsonNode& line) {
  ExplainParams params;
  PODQOS_ASSIGN(const auto memory, integer_at(line, "nodeMemoryBytes", "more than 0", 1));
  params.node_memory = memory.transform([](std::int64_t bytes) { return Bytes{bytes}; });
  JsonNode defaults;
  defaults.kind = Kind::kObject;
  const JsonNode* const given = json_member(line, "params");
  const JsonNode& object = given == nullptr ? defaults : *given;
  if (object.kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument, "params: expected an object");
  PODQOS_TRY(check_param_names(object));
  core::PodConfigParams& config = params.config;
  PODQOS_ASSIGN(const std::string_view root, string_at(object, "cgroupRoot"));
  if (json_member(object, "cgroupRoot") != nullptr) params.cgroup_root = root;
  PODQOS_ASSIGN(config.pod_pids_limit, integer_at(object, "podPidsLimit", "", -kInt64Max - 1));
  PODQOS_ASSIGN(config.enforce_cpu_limits, flag_at(object, "enforceCPULimits", true));
  PODQOS_ASSIGN(const auto period,
                integer_at(object, "cpuPeriodUs", cat("1 to ", kMaxPeriod), 1, kMaxPeriod));
  config.cpu_period = Micros{period.value_or(core::kDefaultPeriod.value())};
  PODQOS_ASSIGN(config.enforce_memory_qos, flag_at(object, "enforceMemoryQoS", false));
  PODQOS_ASSIGN(config.reservation_policy, policy_at(object));
  PODQOS_ASSIGN(params.hugepage_labels, hugepage_sizes_at(object));
  PODQOS_ASSIGN(const bool log, is_second(object, "weightFormula", "linear", "log"));
  if (log) params.formula = core::WeightFormula::kLog;
  return params;
}

Result<Json> answer_pod(const JsonNode& line, const JsonNode& given) {
  PODQOS_ASSIGN(const auto params, params_of(line));
  PODQOS_ASSIGN(auto pod, admitted_pod(given.raw));
  PODQOS_ASSIGN(const auto explanation, explain(std::move(pod), params));
  return explanation_json(explanation);
}

/// reservePercent and allocatableMemoryBytes of a line with "pods".
Result<core::TierParams> tier_params_of(const JsonNode& line) {
  constexpr std::string_view kMemory = "allocatableMemoryBytes";
  PODQOS_ASSIGN(const auto percent, integer_at(line, "reservePercent", "0 to 100 or null", 0, 100));
  // Without a percentage it counts for nothing.
  PODQOS_ASSIGN(const auto memory,
                integer_at(line, kMemory, "0 or more", percent ? 0 : -kInt64Max - 1));
  if (percent && std::ranges::find(line.children, kMemory, &JsonNode::key) == line.children.end())
    return fail(ErrorCode::kInvalidArgument,
                cat(kMemory,
                    " is missing: reservePercent is a percentage of it (use null if it is "
                    "unknown)"));
  return core::TierParams{.reserve_percent = percent,
                          .allocatable_memory = Bytes{memory.value_or(0)}};
}

Result<Json> answer_tiers(const JsonNode& line, const JsonNode& list) {
  PODQOS_ASSIGN(const auto params, tier_params_of(line));
  PODQOS_ASSIGN(const auto policy, policy_at(line));
  if (list.kind != Kind::kArray) return fail(ErrorCode::kInvalidArgument, "pods: expected a list");
  std::vector<core::Pod> pods;
  for (const JsonNode& element : list.children) {
    // Pods that the node already runs, as the kubelet has them: defaulted and admitted.
    auto pod = codec::parse_pod(element.raw);
    if (!pod) return fail(std::move(pod).error().with_context(cat("pods[", pods.size(), "]")));
    pods.push_back(std::move(*pod));
  }
  const TierExplanation explanation = explain_tiers(pods, params);
  Json answer;
  answer["tiers"] = tiers_json(explanation.values);
  if (json_member(line, "memoryReservationPolicy") != nullptr)
    answer["memoryQoSUnified"] =
        tier_memory_qos_json(core::tier_memory_qos(explanation.sums, policy));
  return answer;
}

Result<Json> answer_object(const JsonNode& line) {
  if (const JsonNode* pod = json_member(line, "pod")) return answer_pod(line, *pod);
  if (const JsonNode* pods = json_member(line, "pods")) return answer_tiers(line, *pods);
  return fail(ErrorCode::kInvalidArgument, R"(expected an object with "pod" or "pods")");
}

}  // namespace

std::string answer_line(const Result<std::string>& line) {
  std::string id = "null";
  const Result<Json> answer = [&]() -> Result<Json> {
    if (!line) return fail(line.error());
    auto tree = codec::parse_json_tree(*line, {.bytes = kMaxInput, .values = codec::kUnbounded});
    if (!tree) return fail(std::move(tree).error().with_context("the line"));
    // In the caller's own bytes, for numbers have more than one form.
    if (const JsonNode* given = json_member(*tree, "id")) id = given->raw;
    return answer_object(*tree);
  }();
  const std::string text = dump(answer ? *answer : Json{{"error", answer.error().message}});
  return cat(R"({"id":)", id, ",", std::string_view{text}.substr(1));
}

int run_batch(const std::string& path) {
  bool printed = true;
  const auto status = read_lines(path, kMaxInput, [&](const Result<std::string>& line) {
    printed = print(answer_line(line)) && print("\n") && std::fflush(stdout) == 0;
    return printed;
  });
  if (!status) return log_failure(status.error());
  return finish(printed);
}

}  // namespace podqos::ctl

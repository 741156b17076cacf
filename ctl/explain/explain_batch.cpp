#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"
#include "common/core/pods/counting.h"
#include "ctl/explain/document.h"
#include "ctl/explain/explanation.h"
#include "ctl/explain/manifest.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using codec::SettingKind;
using Form = SettingKind::Form;
using Kind = JsonNode::Kind;

constexpr SettingKind kFlag{.form = Form::kFlag};
/// The longest CFS period is a second (kernel/sched/core.c, max_cfs_quota_period).
constexpr SettingKind kPeriod{.form = Form::kNumber, .min = 1, .max = 1'000'000};
/// As in the kubelet's configuration (KEP-2570).
constexpr SettingKind kPolicy{.form = Form::kWord, .words = "None TieredReservation"};
constexpr const char* kPolicyKey = "memoryReservationPolicy";
constexpr std::string_view kParams =
    "cgroupRoot cpuPeriodUs enforceCPULimits enforceMemoryQoS hugePageSizes podPidsLimit "
    "weightFormula memoryReservationPolicy";

/// Whether `label` is a page size in the form of core::hugepage_label(). It becomes part of a file
/// name.
bool is_page_size(std::string_view label) {
  const std::string_view number = label.substr(0, label.size() - label.ends_with('B'));
  const bool has_unit = !number.empty() && !is_digit(number.back());
  const auto size = core::Quantity::parse(cat(number, has_unit ? "i" : ""));
  return size && size->value() > 0 && core::hugepage_label(Bytes{size->value()}) == label;
}

/// A number in an object; of a flag 0 or 1, of a word its place among the words; nullopt if it is
/// absent or null.
Result<std::optional<std::int64_t>> number_in(const JsonNode& object, std::string_view key,
                                              const SettingKind& kind) {
  const JsonNode* const node = json_at(object, key);
  if (node == nullptr) return std::nullopt;
  auto value = codec::read_value(kind, *node);
  if (!value) return fail(std::move(value).error().with_context(key));
  return std::get<std::int64_t>(*value);
}

Status read_page_sizes(const JsonNode& list, std::vector<std::string>& labels) {
  if (list.kind != Kind::kArray)
    return codec::refuse_value(R"(hugePageSizes: expected a list like ["2MB"], found )",
                               json_shown(list));
  labels.clear();
  for (const JsonNode& element : list.children) {
    if (!is_page_size(element.text))
      return codec::refuse_value(
          "hugePageSizes: expected a page size as in the kernel's file names, such as 2MB, found ",
          json_shown(element));
    labels.emplace_back(element.text);
  }
  return {};
}

/// Refuses "params" with an unknown member: for a misspelt one the default would count silently.
Status check_members(const JsonNode& params) {
  if (params.kind != Kind::kObject) return codec::refuse_value("params: expected an object");
  const std::vector<std::string> known = parts_of(kParams, ' ');
  for (const JsonNode& member : params.children)
    if (!has_word(kParams, member.key))
      return codec::refuse_value("params: unknown member ", printable(member.key),
                                 codec::hint_for(member.key, {known.begin(), known.end()}));
  return {};
}

/// The parameters of one line: nodeMemoryBytes and the object "params", of which absent and null
/// members have their default.
Result<ExplainParams> params_of(const JsonNode& line) {
  ExplainParams params;
  PODQOS_ASSIGN(const auto memory,
                number_in(line, "nodeMemoryBytes", {.form = Form::kNumber, .min = 1}));
  if (!memory)
    return codec::refuse_value(
        "nodeMemoryBytes is missing: the OOM scores depend on the node's memory");
  params.node_memory = Bytes{*memory};
  const JsonNode* const found = json_at(line, "params");
  if (found == nullptr) return params;
  const JsonNode& given = *found;
  PODQOS_TRY(check_members(given));
  PODQOS_ASSIGN(const auto period, number_in(given, "cpuPeriodUs", kPeriod));
  PODQOS_ASSIGN(const auto enforced, number_in(given, "enforceCPULimits", kFlag));
  PODQOS_ASSIGN(const auto memory_qos, number_in(given, "enforceMemoryQoS", kFlag));
  PODQOS_ASSIGN(const auto policy, number_in(given, kPolicyKey, kPolicy));
  PODQOS_ASSIGN(const auto formula,
                number_in(given, "weightFormula", {.form = Form::kWord, .words = "linear log"}));
  core::PodConfigParams& config = params.config;
  PODQOS_ASSIGN(config.pod_pids_limit,
                number_in(given, "podPidsLimit", {.form = Form::kNumber, .min = kInt64Min}));
  if (period) config.cpu_period = Micros{*period};
  config.enforce_cpu_limits = enforced != 0;
  config.reserve_memory = memory_qos == 1 && policy == 1;
  if (formula == 1) params.formula = core::WeightFormula::kLog;
  if (const JsonNode* const root = json_at(given, "cgroupRoot")) {
    if (root->kind != Kind::kString)
      return codec::refuse_value("cgroupRoot: expected a string, found ", json_shown(*root));
    params.cgroup_root = root->text;
  }
  if (const JsonNode* const sizes = json_at(given, "hugePageSizes"))
    PODQOS_TRY(read_page_sizes(*sizes, params.layout.hugepage_labels));
  return params;
}

Result<Json> answer_pod(const JsonNode& line, const JsonNode& given) {
  PODQOS_ASSIGN(const auto params, params_of(line));
  PODQOS_ASSIGN(auto pod, admitted_pod(given));
  PODQOS_ASSIGN(const auto explanation, explain(std::move(pod), {}, params));
  return explanation_json(explanation, params);
}

/// The sums of the pods' requests by class.
Result<core::TierSums> sums_of(const JsonNode& list) {
  core::TierSums sums;
  if (list.kind != Kind::kArray) return codec::refuse_value("pods: expected a list");
  for (std::size_t i = 0; i < list.children.size(); ++i) {
    // Pods that the node already runs, as the kubelet has them: defaulted and admitted.
    auto pod = codec::parse_pod(list.children[i]);
    if (!pod) return fail(std::move(pod).error().with_context(cat("pods[", i, "]")));
    const core::QosClass qos_class = core::classify(*pod).qos_class;
    core::PodRecord record;
    record.pod = *std::move(pod);
    sums.of(qos_class) += core::amounts_requested(record);
  }
  return sums;
}

Json tier_answer(const core::CgroupValues& values) {
  return {{"cpuShares", json_of(values.cpu_shares)},
          {"memoryLimitBytes", json_of(values.memory_limit)}};
}

Result<Json> answer_tiers(const JsonNode& line, const JsonNode& list) {
  constexpr std::string_view kMemory = "allocatableMemoryBytes";
  PODQOS_ASSIGN(const auto percent,
                number_in(line, "reservePercent", {.form = Form::kNumber, .max = 100}));
  // Without a percentage it counts for nothing.
  PODQOS_ASSIGN(const auto memory,
                number_in(line, kMemory, {.form = Form::kNumber, .min = percent ? 0 : kInt64Min}));
  PODQOS_ASSIGN(const auto policy, number_in(line, kPolicyKey, kPolicy));
  if (percent && std::ranges::find(line.children, kMemory, &JsonNode::key) == line.children.end())
    return codec::refuse_value(
        kMemory, " is missing: reservePercent is a percentage of it (use null if it is unknown)");
  PODQOS_ASSIGN(const auto sums, sums_of(list));
  const auto values = core::tier_values(sums, percent, Bytes{memory.value_or(0)});
  Json answer;
  answer["tiers"] = {{"burstable", tier_answer(values.burstable)},
                     {"besteffort", tier_answer(values.besteffort)}};
  if (policy) {
    const auto reserved = core::root_reservation(*policy == 1 ? sums : core::TierSums{});
    answer["memoryQoSUnified"] = {{"guaranteed", {{"memory.min", reserved.at("memory.min")}}},
                                  {"burstable", {{"memory.low", reserved.at("memory.low")}}},
                                  {"besteffort", nullptr}};
  }
  return answer;
}

Result<Json> answer_object(const JsonNode& line) {
  if (const JsonNode* pod = json_at(line, "pod")) return answer_pod(line, *pod);
  if (const JsonNode* pods = json_at(line, "pods")) return answer_tiers(line, *pods);
  return codec::refuse_value(R"(expected an object with "pod" or "pods")");
}

}  // namespace

std::string answer_line(std::string_view line) {
  auto tree = codec::parse_json_tree(line, {.bytes = kMaxInput, .values = codec::kUnbounded});
  const JsonNode* const id = tree ? json_at(*tree, "id") : nullptr;
  const Result<Json> answer =
      tree ? answer_object(*tree) : fail(std::move(tree).error().with_context("the line"));
  const std::string text = dump(answer ? *answer : Json{{"error", answer.error().message}});
  // In the caller's own bytes, for numbers have more than one form.
  return cat(R"({"id":)", id == nullptr ? "null" : id->raw, ",", std::string_view{text}.substr(1));
}

}  // namespace podqos::ctl

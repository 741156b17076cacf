#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"
#include "ctl/document.h"
#include "ctl/explanation.h"
#include "ctl/manifest.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using codec::SettingKind;
using Form = SettingKind::Form;
using Kind = JsonNode::Kind;

constexpr SettingKind kFlag{.form = Form::kFlag};
constexpr SettingKind kAnyNumber{.form = Form::kNumber, .min = kInt64Min};
/// The longest CFS period is a second (kernel/sched/core.c, max_cfs_quota_period).
constexpr SettingKind kPeriod{.form = Form::kNumber, .min = 1, .max = 1'000'000};
constexpr SettingKind kFormula{.form = Form::kWord, .words = "linear log"};
/// As in the kubelet's configuration (KEP-2570).
constexpr SettingKind kPolicy{.form = Form::kWord, .words = "None TieredReservation"};
constexpr std::string_view kPolicyKey = "memoryReservationPolicy";

/// Whether `label` is a page size in the form of core::hugepage_label(). It becomes part of a file
/// name.
bool is_page_size(std::string_view label) {
  const std::string_view number = label.substr(0, label.size() - label.ends_with('B'));
  const bool has_unit = !number.empty() && !is_digit(number.back());
  const auto size = core::Quantity::parse(cat(number, has_unit ? "i" : ""));
  return size && size->value() > 0 && core::hugepage_label(Bytes{size->value()}) == label;
}

/// Reads members of an object, of which absent and null ones have their default. The first that is
/// not as expected is kept as error.
class Members {
 public:
  explicit Members(const JsonNode& object) : object_(object) {}

  /// A number; of a flag 0 or 1, of a word its place among the words.
  std::optional<std::int64_t> number(std::string_view key, const SettingKind& kind) {
    const JsonNode* const node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = codec::read_value(kind, *node);
    if (value) return std::get<std::int64_t>(*value);
    refuse(key, value.error().message);
    return std::nullopt;
  }
  /// The same of a flag or word, of which the first is the default.
  bool is_second(std::string_view key, const SettingKind& kind) {
    return number(key, kind).value_or(0) == 1;
  }
  void read(std::string_view key, std::string& text) {
    const JsonNode* const node = take(key);
    if (node == nullptr) return;
    text = node->text;
    if (node->kind != Kind::kString)
      refuse(key, cat("expected a string, found ", json_shown(*node)));
  }
  void read_page_sizes(std::string_view key, std::vector<std::string>& labels) {
    const JsonNode* const list = take(key);
    if (list == nullptr) return;
    labels.clear();
    if (list->kind != Kind::kArray)
      refuse(key, cat(R"(expected a list like ["2MB"], found )", json_shown(*list)));
    for (const JsonNode& element : list->children) {
      if (!is_page_size(element.text))
        refuse(key, cat("expected a page size as in the kernel's file names, such as 2MB, found ",
                        json_shown(element)));
      labels.emplace_back(element.text);
    }
  }

  [[nodiscard]] const Status& status() const { return status_; }
  /// Refuses members that were not asked for: for a misspelt one the default would count silently.
  [[nodiscard]] Status no_others() const {
    for (const JsonNode& member : object_.children)
      if (std::ranges::find(asked_, member.key) == asked_.end())
        return fail(ErrorCode::kInvalidArgument,
                    cat("params: unknown member ", printable(member.key),
                        codec::hint_for(member.key, asked_)));
    return status_;
  }

 private:
  const JsonNode* take(std::string_view key) {
    asked_.push_back(key);
    return json_at(object_, key);
  }
  void refuse(std::string_view key, std::string_view why) {
    if (status_) status_ = fail(ErrorCode::kInvalidArgument, cat(key, ": ", why));
  }

  const JsonNode& object_;
  std::vector<std::string_view> asked_;
  Status status_;
};

/// The parameters of one line: nodeMemoryBytes and the object "params".
Result<ExplainParams> params_of(const JsonNode& line) {
  const JsonNode* const given = json_at(line, "params");
  if (given != nullptr && given->kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument, "params: expected an object");
  ExplainParams params;
  Members whole{line};
  const auto memory = whole.number("nodeMemoryBytes", {.form = Form::kNumber, .min = 1});
  PODQOS_TRY(whole.status());
  if (!memory)
    return fail(ErrorCode::kInvalidArgument,
                "nodeMemoryBytes is missing: the OOM scores depend on the node's memory");
  params.node_memory = Bytes{*memory};
  const JsonNode none;
  Members members{given == nullptr ? none : *given};
  core::PodConfigParams& config = params.config;
  members.read("cgroupRoot", params.cgroup_root);
  if (const auto period = members.number("cpuPeriodUs", kPeriod))
    config.cpu_period = Micros{*period};
  config.enforce_cpu_limits = members.number("enforceCPULimits", kFlag).value_or(1) == 1;
  const bool memory_qos = members.is_second("enforceMemoryQoS", kFlag);
  members.read_page_sizes("hugePageSizes", params.layout.hugepage_labels);
  config.pod_pids_limit = members.number("podPidsLimit", kAnyNumber);
  if (members.is_second("weightFormula", kFormula)) params.formula = core::WeightFormula::kLog;
  config.reserve_memory = members.is_second(kPolicyKey, kPolicy) && memory_qos;
  PODQOS_TRY(members.no_others());
  return params;
}

Result<Json> answer_pod(const JsonNode& line, const JsonNode& given) {
  PODQOS_ASSIGN(const auto params, params_of(line));
  PODQOS_ASSIGN(auto pod, admitted_pod(given));
  PODQOS_ASSIGN(const auto explanation, explain(std::move(pod), params));
  return explanation_json(explanation, params);
}

/// The sums of the pods' requests by class.
Result<core::TierSums> sums_of(const JsonNode& list) {
  core::TierSums sums;
  if (list.kind != Kind::kArray) return fail(ErrorCode::kInvalidArgument, "pods: expected a list");
  for (std::size_t i = 0; i < list.children.size(); ++i) {
    // Pods that the node already runs, as the kubelet has them: defaulted and admitted.
    const auto pod = codec::parse_pod(list.children[i]);
    if (!pod) return fail(Error{pod.error()}.with_context(cat("pods[", i, "]")));
    const core::ResourceList requests = core::pod_requests(*pod);
    const auto cpu = core::find(requests, core::kCpu);
    sums.of(core::classify(*pod).qos_class) +=
        core::TierSum{.pods = 1,
                      .cpu = MilliCpu{cpu ? cpu->milli_value() : 0},
                      .memory = Bytes{core::memory_of(requests).value()}};
  }
  return sums;
}

Json tier_answer(const core::CgroupValues& values) {
  return {{"cpuShares", json_of(values.cpu_shares)},
          {"memoryLimitBytes", json_of(values.memory_limit)}};
}

Result<Json> answer_tiers(const JsonNode& line, const JsonNode& list) {
  constexpr std::string_view kMemory = "allocatableMemoryBytes";
  Members members{line};
  const auto percent = members.number("reservePercent", {.form = Form::kNumber, .max = 100});
  // Without a percentage it counts for nothing.
  const auto memory =
      members.number(kMemory, {.form = Form::kNumber, .min = percent ? 0 : kInt64Min});
  const bool tiered = members.is_second(kPolicyKey, kPolicy);
  PODQOS_TRY(members.status());
  if (percent && std::ranges::find(line.children, kMemory, &JsonNode::key) == line.children.end())
    return fail(ErrorCode::kInvalidArgument,
                cat(kMemory,
                    " is missing: reservePercent is a percentage of it (use null if it is "
                    "unknown)"));
  PODQOS_ASSIGN(const auto sums, sums_of(list));
  const auto values = core::tier_values(sums, percent, Bytes{memory.value_or(0)});
  Json answer;
  answer["tiers"] = {{"burstable", tier_answer(values.burstable)},
                     {"besteffort", tier_answer(values.besteffort)}};
  if (json_at(line, kPolicyKey) != nullptr) {
    const core::TierMemoryQos unified =
        tiered ? core::tier_memory_qos(sums) : core::TierMemoryQos{};
    answer["memoryQoSUnified"] = {
        {"guaranteed", {{"memory.min", cat(unified.root_memory_min.value())}}},
        {"burstable", {{"memory.low", cat(unified.burstable_memory_low.value())}}},
        {"besteffort", nullptr}};
  }
  return answer;
}

Result<Json> answer_object(const JsonNode& line) {
  if (const JsonNode* pod = json_at(line, "pod")) return answer_pod(line, *pod);
  if (const JsonNode* pods = json_at(line, "pods")) return answer_tiers(line, *pods);
  return fail(ErrorCode::kInvalidArgument, R"(expected an object with "pod" or "pods")");
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

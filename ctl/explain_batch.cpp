#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "ctl/command.h"
#include "ctl/explanation.h"
#include "ctl/json_text.h"
#include "ctl/manifest.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// Maximum CFS period in microseconds (kernel/sched/core.c, max_cfs_quota_period).
constexpr std::int64_t kMaxPeriod = 1'000'000;

/// Whether `label` is a page size in the form of core::hugepage_label(). It becomes part of a file
/// name.
bool is_page_size(std::string_view label) {
  if (!label.ends_with('B')) return false;
  const std::string_view number = label.substr(0, label.size() - 1);
  const bool has_unit = !number.empty() && std::string_view{"KMGTP"}.contains(number.back());
  const auto size = core::Quantity::parse(cat(number, has_unit ? "i" : ""));
  return size && size->value() > 0 && core::hugepage_label(Bytes{size->value()}) == label;
}

/// Reads members of an object, of which absent and null ones have their default. The first that is
/// not as expected is kept as error.
class Members {
 public:
  /// @param object  nullptr for one without members
  explicit Members(const JsonNode* object) : object_(object) {}

  /// A whole number from `least` to `most`, which `range` says in words.
  std::optional<std::int64_t> integer(std::string_view key, std::string_view range,
                                      std::int64_t least, std::int64_t most = kInt64Max) {
    const JsonNode* const raw = take(key);
    if (raw == nullptr) return std::nullopt;
    const auto number = parse_int(raw->raw);
    if (!number)
      refuse(key, "a whole number of 64 bits", json_shown(*raw));
    else if (*number < least || *number > most)
      refuse(key, range, cat(*number));
    return number;
  }
  bool flag(std::string_view key, bool by_default) {
    const JsonNode* const raw = take(key);
    if (raw == nullptr) return by_default;
    if (raw->kind != Kind::kBoolean) refuse(key, "true or false", json_shown(*raw));
    return raw->text == "true";
  }
  std::string text(std::string_view key, std::string_view by_default) {
    const JsonNode* const raw = take(key);
    if (raw == nullptr) return std::string{by_default};
    if (raw->kind != Kind::kString) refuse(key, "a string", json_shown(*raw));
    return std::string{raw->text};
  }
  /// Whether the member is the second of two words; by default it is the first.
  bool is_second(std::string_view key, std::string_view first, std::string_view second) {
    const std::string word = text(key, first);
    if (word != first && word != second)
      refuse(key, cat(first, " or ", second), cat("\"", printable(word), "\""));
    return word == second;
  }
  /// memoryReservationPolicy as in the kubelet's configuration (KEP-2570).
  bool tiered_reservation() {
    return is_second("memoryReservationPolicy", "None", "TieredReservation");
  }
  std::vector<std::string> page_sizes(std::string_view key, std::vector<std::string> by_default) {
    const JsonNode* const raw = take(key);
    if (raw == nullptr) return by_default;
    std::vector<std::string> labels;
    for (const JsonNode& element : raw->children) {
      if (element.kind != Kind::kString) break;
      if (!is_page_size(element.text))
        refuse(key, "a page size as in the kernel's file names, such as 2MB", json_shown(element));
      labels.emplace_back(element.text);
    }
    if (raw->kind != Kind::kArray || labels.size() != raw->children.size())
      refuse(key, R"(a list like ["2MB"])", json_shown(*raw));
    return labels;
  }

  [[nodiscard]] const Status& status() const { return status_; }
  /// Refuses members that were not asked for: for a misspelt one the default would count silently.
  [[nodiscard]] Status no_others() const {
    if (object_ == nullptr) return {};
    for (const JsonNode& member : object_->children)
      if (std::ranges::find(asked_, member.key) == asked_.end())
        return fail(ErrorCode::kInvalidArgument,
                    cat("params: unknown member ", printable(member.key),
                        codec::hint_for(member.key, asked_)));
    return status_;
  }

 private:
  const JsonNode* take(std::string_view key) {
    asked_.push_back(key);
    return object_ == nullptr ? nullptr : json_member(*object_, key);
  }
  void refuse(std::string_view key, std::string_view expected, std::string_view found) {
    if (status_)
      status_ =
          fail(ErrorCode::kInvalidArgument, cat(key, ": expected ", expected, ", found ", found));
  }

  const JsonNode* object_;
  std::vector<std::string_view> asked_;
  Status status_;
};

/// The parameters of one line: nodeMemoryBytes and the object "params".
Result<ExplainParams> params_of(const JsonNode& line) {
  const JsonNode* const given = json_member(line, "params");
  if (given != nullptr && given->kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument, "params: expected an object");
  ExplainParams params;
  Members whole{&line};
  if (const auto memory = whole.integer("nodeMemoryBytes", "more than 0", 1))
    params.node_memory = Bytes{*memory};
  PODQOS_TRY(whole.status());
  Members members{given};
  core::PodConfigParams& config = params.config;
  params.cgroup_root = members.text("cgroupRoot", params.cgroup_root);
  config.cpu_period = Micros{members.integer("cpuPeriodUs", cat("1 to ", kMaxPeriod), 1, kMaxPeriod)
                                 .value_or(core::kDefaultPeriod.value())};
  config.enforce_cpu_limits = members.flag("enforceCPULimits", true);
  config.reserve_memory = members.flag("enforceMemoryQoS", false);
  params.hugepage_labels = members.page_sizes("hugePageSizes", params.hugepage_labels);
  config.pod_pids_limit = members.integer("podPidsLimit", "", kInt64Min);
  if (members.is_second("weightFormula", "linear", "log"))
    params.formula = core::WeightFormula::kLog;
  config.reserve_memory = members.tiered_reservation() && config.reserve_memory;
  PODQOS_TRY(members.no_others());
  return params;
}

Result<Json> answer_pod(const JsonNode& line, const JsonNode& given) {
  PODQOS_ASSIGN(const auto params, params_of(line));
  PODQOS_ASSIGN(auto pod, admitted_pod(given.raw));
  PODQOS_ASSIGN(const auto explanation, explain(std::move(pod), params));
  return explanation_json(explanation);
}

/// The sums of the pods' requests by class.
Result<core::TierSums> sums_of(const JsonNode& list) {
  core::TierSums sums;
  if (list.kind != Kind::kArray) return fail(ErrorCode::kInvalidArgument, "pods: expected a list");
  for (std::size_t i = 0; i < list.children.size(); ++i) {
    // Pods that the node already runs, as the kubelet has them: defaulted and admitted.
    const auto pod = codec::parse_pod(list.children[i].raw);
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
  Members members{&line};
  const auto percent = members.integer("reservePercent", "0 to 100 or null", 0, 100);
  // Without a percentage it counts for nothing.
  const auto memory = members.integer(kMemory, "0 or more", percent ? 0 : kInt64Min);
  const bool tiered = members.tiered_reservation();
  PODQOS_TRY(members.status());
  if (percent && std::ranges::find(line.children, kMemory, &JsonNode::key) == line.children.end())
    return fail(ErrorCode::kInvalidArgument,
                cat(kMemory,
                    " is missing: reservePercent is a percentage of it (use null if it is "
                    "unknown)"));
  PODQOS_ASSIGN(const auto sums, sums_of(list));
  const auto values = core::tier_values(
      sums, {.reserve_percent = percent, .allocatable_memory = Bytes{memory.value_or(0)}});
  Json answer;
  answer["tiers"] = {{"burstable", tier_answer(values.burstable)},
                     {"besteffort", tier_answer(values.besteffort)}};
  if (json_member(line, "memoryReservationPolicy") != nullptr) {
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

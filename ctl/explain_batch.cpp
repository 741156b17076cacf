#include "ctl/explain_batch.h"

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

/// The member `key` as a whole number; nullopt if absent or null.
Result<std::optional<std::int64_t>> integer_at(const JsonNode& object, std::string_view key) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return std::nullopt;
  const auto number = parse_int(raw->raw);
  if (!number)
    return fail(ErrorCode::kInvalidArgument,
                cat(key, ": expected a whole number of 64 bits, found ", json_shown(*raw)));
  return number;
}

/// The member `key` as a boolean; nullopt if absent or null.
Result<std::optional<bool>> flag_at(const JsonNode& object, std::string_view key) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return std::nullopt;
  if (raw->raw == "true") return true;
  if (raw->raw == "false") return false;
  return fail(ErrorCode::kInvalidArgument,
              cat(key, ": expected true or false, found ", json_shown(*raw)));
}

/// The member `key` as a string; nullopt if absent or null.
Result<std::optional<std::string>> string_member(const JsonNode& object, std::string_view key) {
  const JsonNode* const raw = json_member(object, key);
  if (raw == nullptr) return std::nullopt;
  if (raw->kind != Kind::kString)
    return fail(ErrorCode::kInvalidArgument,
                cat(key, ": expected a string, found ", json_shown(*raw)));
  return std::string{raw->text};
}

/// memoryReservationPolicy as in the kubelet's configuration (KEP-2570); default None.
Result<core::MemoryReservationPolicy> policy_at(const JsonNode& object) {
  auto text = string_member(object, "memoryReservationPolicy");
  if (!text) return fail(std::move(text).error());
  const std::string word = text->value_or("None");
  if (word == "None") return core::MemoryReservationPolicy::kNone;
  if (word == "TieredReservation") return core::MemoryReservationPolicy::kTieredReservation;
  return fail(ErrorCode::kInvalidArgument,
              cat("memoryReservationPolicy: expected None or TieredReservation, found \"",
                  printable(word), "\""));
}

/// Reads weightFormula; default linear.
Status read_formula(const JsonNode& object, ExplainParams& params) {
  auto text = string_member(object, "weightFormula");
  if (!text) return fail(std::move(text).error());
  const std::string word = text->value_or("linear");
  if (word == "linear") return {};
  if (word != "log")
    return fail(ErrorCode::kInvalidArgument,
                cat("weightFormula: expected linear or log, found \"", printable(word), "\""));
  params.formula = core::WeightFormula::kLog;
  return {};
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

/// Reads hugePageSizes; without it the default of ExplainParams stays.
Status read_hugepage_sizes(const JsonNode& object, ExplainParams& params) {
  const JsonNode* const raw = json_member(object, "hugePageSizes");
  if (raw == nullptr) return {};
  const auto expected = [&] {
    return fail(ErrorCode::kInvalidArgument,
                cat(R"(hugePageSizes: expected a list like ["2MB"], found )", json_shown(*raw)));
  };
  if (raw->kind != Kind::kArray) return expected();
  params.hugepage_labels.clear();
  for (const JsonNode& element : raw->children) {
    if (element.kind != Kind::kString) return expected();
    if (!is_page_size(element.text))
      return fail(
          ErrorCode::kInvalidArgument,
          cat("hugePageSizes: expected a page size as in the kernel's file names, such as 2MB, "
              "found ",
              json_shown(element)));
    params.hugepage_labels.emplace_back(element.text);
  }
  return {};
}

/// Reads enforceCPULimits (default true) and cpuPeriodUs (default 100000).
Status read_cpu_params(const JsonNode& object, core::PodConfigParams& config) {
  auto limits = flag_at(object, "enforceCPULimits");
  if (!limits) return fail(std::move(limits).error());
  config.enforce_cpu_limits = limits->value_or(true);
  auto period = integer_at(object, "cpuPeriodUs");
  if (!period) return fail(std::move(period).error());
  const std::int64_t micros = period->value_or(core::kDefaultPeriod.value());
  if (micros < 1 || micros > kMaxPeriod)
    return fail(ErrorCode::kInvalidArgument,
                cat("cpuPeriodUs: expected 1 to ", kMaxPeriod, ", found ", micros));
  config.cpu_period = Micros{micros};
  return {};
}

/// Reads enforceMemoryQoS (default false) and memoryReservationPolicy.
Status read_memory_params(const JsonNode& object, core::PodConfigParams& config) {
  auto memory_qos = flag_at(object, "enforceMemoryQoS");
  if (!memory_qos) return fail(std::move(memory_qos).error());
  config.enforce_memory_qos = memory_qos->value_or(false);
  auto policy = policy_at(object);
  if (!policy) return fail(std::move(policy).error());
  config.reservation_policy = *policy;
  return {};
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
  auto memory = integer_at(line, "nodeMemoryBytes");
  if (!memory) return fail(std::move(memory).error());
  if (*memory && **memory <= 0)
    return fail(ErrorCode::kInvalidArgument,
                cat("nodeMemoryBytes: expected more than 0, found ", **memory));
  params.node_memory = memory->transform([](std::int64_t bytes) { return Bytes{bytes}; });
  JsonNode defaults;
  defaults.kind = Kind::kObject;
  const JsonNode* const given = json_member(line, "params");
  const JsonNode& object = given == nullptr ? defaults : *given;
  if (object.kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument, "params: expected an object");
  if (auto status = check_param_names(object); !status) return fail(std::move(status).error());
  auto root = string_member(object, "cgroupRoot");
  if (!root) return fail(std::move(root).error());
  params.cgroup_root = root->value_or("/");
  auto pids = integer_at(object, "podPidsLimit");
  if (!pids) return fail(std::move(pids).error());
  params.config.pod_pids_limit = *pids;
  if (auto status = read_cpu_params(object, params.config); !status)
    return fail(std::move(status).error());
  if (auto status = read_memory_params(object, params.config); !status)
    return fail(std::move(status).error());
  if (auto status = read_hugepage_sizes(object, params); !status)
    return fail(std::move(status).error());
  if (auto status = read_formula(object, params); !status) return fail(std::move(status).error());
  return params;
}

Result<Json> answer_pod(const JsonNode& line, const JsonNode& given) {
  const auto params = params_of(line);
  if (!params) return fail(params.error());
  auto pod = admitted_pod(given.raw);
  if (!pod) return fail(std::move(pod).error());
  const auto explanation = explain(std::move(*pod), *params);
  if (!explanation) return fail(explanation.error());
  return explanation_json(*explanation);
}

/// Whether the member `key` is present, also as null.
bool has_member(const JsonNode& object, std::string_view key) {
  return std::ranges::find(object.children, key, &JsonNode::key) != object.children.end();
}

/// reservePercent and allocatableMemoryBytes of a line with "pods".
Result<core::TierParams> tier_params_of(const JsonNode& line) {
  auto memory = integer_at(line, "allocatableMemoryBytes");
  if (!memory) return fail(std::move(memory).error());
  auto percent = integer_at(line, "reservePercent");
  if (!percent) return fail(std::move(percent).error());
  const std::int64_t checked = percent->value_or(0);
  if (checked < 0 || checked > 100)
    return fail(ErrorCode::kInvalidArgument,
                cat("reservePercent: expected 0 to 100 or null, found ", checked));
  if (*percent) {
    if (!*memory && !has_member(line, "allocatableMemoryBytes"))
      return fail(
          ErrorCode::kInvalidArgument,
          "allocatableMemoryBytes is missing: reservePercent is a percentage of it (use null "
          "if it is unknown)");
    if (memory->value_or(0) < 0)
      return fail(ErrorCode::kInvalidArgument,
                  cat("allocatableMemoryBytes: expected 0 or more, found ", **memory));
  }
  return core::TierParams{.reserve_percent = *percent,
                          .allocatable_memory = Bytes{memory->value_or(0)}};
}

Result<Json> answer_tiers(const JsonNode& line, const JsonNode& list) {
  const auto params = tier_params_of(line);
  if (!params) return fail(params.error());
  const auto policy = policy_at(line);
  if (!policy) return fail(policy.error());
  if (list.kind != Kind::kArray) return fail(ErrorCode::kInvalidArgument, "pods: expected a list");
  std::vector<core::Pod> pods;
  for (const JsonNode& element : list.children) {
    // Pods that the node already runs, as the kubelet has them: defaulted and admitted.
    auto pod = codec::parse_pod(element.raw);
    if (!pod) return fail(std::move(pod).error().with_context(cat("pods[", pods.size(), "]")));
    pods.push_back(std::move(*pod));
  }
  const TierExplanation explanation = explain_tiers(pods, *params);
  Json answer;
  answer["tiers"] = tiers_json(explanation.values);
  if (json_member(line, "memoryReservationPolicy") != nullptr)
    answer["memoryQoSUnified"] =
        tier_memory_qos_json(core::tier_memory_qos(explanation.sums, *policy));
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

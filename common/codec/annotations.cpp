#include "common/codec/annotations.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/validation.h"

namespace podqos::codec {

namespace {

using core::PodqosAnnotations;

// podqos.io/requests.NAME is a container's, podqos.io/requests the pod's.
constexpr std::string_view kPrefix = "podqos.io/";
constexpr std::size_t kMaxContainerName = 63;

/// Runtimes without Kubernetes accept more container names than the API, which only accepts DNS
/// labels.
Status check_container_name(std::string_view name) {
  const auto allowed = [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxContainerName && is_alphanumeric(name.front()) &&
      std::ranges::all_of(name, allowed))
    return {};
  return refuse_value("container name \"", printable(name), "\": expected 1 to ", kMaxContainerName,
                      " letters, digits, '_', '.' and '-', starting with a letter or digit");
}

/// Only the resources that podqos sets in cgroups: cpu, memory and hugepages-SIZE.
Status check_short_form_resource(std::string_view name) {
  if (name == core::kCpu || name == core::kMemory) return {};
  if (!name.starts_with(core::kHugePagesPrefix))
    return refuse_value("resource \"", printable(name),
                        "\": expected one of cpu, memory, hugepages-<size>");
  PODQOS_TRY(core::hugepage_limits({{std::string{name}, core::Quantity{}}}));
  return {};
}

/// Parses the amount of a resource. Kubernetes rounds up fractions of a byte; in an annotation they
/// are refused, since a person who writes 256m means 256Mi.
Result<core::Quantity> parse_amount(std::string_view name, std::string_view text) {
  auto quantity = core::Quantity::parse(text);
  if (!quantity) return fail(Error{quantity.error()}.with_context(name));
  if (quantity->sign() < 0)
    return refuse_value(name, "=", quantity->format_decimal(), " is negative");
  if (core::is_in_bytes(name) && !quantity->is_whole())
    return refuse_value(name, "=", text, " is ", core::describe_fraction(*quantity));
  return quantity;
}

/// The readers below parse the value of one annotation. Errors do not name the annotation;
/// parse_podqos_annotations() adds its key and value.
Status read_flag(bool& flag, std::string_view value) {
  if (value != "true" && value != "false") return refuse_value(R"(expected "true" or "false")");
  flag = value == "true";
  return {};
}

/// The value is a PodSpec; stored with defaults, and only if it is valid.
Status read_pod(PodqosAnnotations& out, std::string_view value) {
  PODQOS_ASSIGN(auto pod, parse_pod_spec(value));
  if (const auto fractions = core::fractional_amounts(pod); !fractions.empty())
    return refuse_value(fractions.front());
  pod = core::with_api_defaults(std::move(pod));
  if (const auto violations = core::validate_manifest(pod); !violations.empty())
    return refuse_value(violations.front());
  out.pod = std::make_shared<const core::Pod>(std::move(pod));
  return {};
}

/// An annotation with requests or limits of the whole pod.
struct PodKey {
  std::string_view name;
  core::ResourceList core::Resources::* list;
  std::string_view resource;  ///< "": the value is a short form of several
};
constexpr std::array<PodKey, 6> kPodKeys{{
    {"requests", &core::Resources::requests, ""},
    {"limits", &core::Resources::limits, ""},
    {"cpu-request", &core::Resources::requests, core::kCpu},
    {"memory-request", &core::Resources::requests, core::kMemory},
    {"cpu-limit", &core::Resources::limits, core::kCpu},
    {"memory-limit", &core::Resources::limits, core::kMemory},
}};

Status read_pod_amounts(PodqosAnnotations& out, const PodKey& key, std::string_view value) {
  core::ResourceList amounts;
  if (key.resource.empty()) {
    PODQOS_ASSIGN(amounts, parse_short_form(value));
  } else {
    PODQOS_ASSIGN(const auto quantity, parse_amount(key.resource, trimmed(value)));
    amounts.emplace(key.resource, quantity);
  }
  if (!out.pod_level) out.pod_level.emplace();
  for (const auto& amount : amounts) {
    if (((*out.pod_level).*key.list).insert(amount).second) continue;
    const bool requests = key.list == &core::Resources::requests;
    const std::string other = key.resource.empty()
                                  ? cat(amount.first, requests ? "-request" : "-limit")
                                  : std::string{requests ? "requests" : "limits"};
    return refuse_value(amount.first, " is set by annotation ", kPrefix, other, " too: remove one");
  }
  return {};
}

Status read_text(std::optional<std::string>& out, std::string_view value,
                 Status (*check)(std::string_view)) {
  PODQOS_TRY(check(value));
  out = value;
  return {};
}

Status read_class(PodqosAnnotations& out, std::string_view value) {
  out.qos_class = core::parse_qos_class(value);
  if (out.qos_class) return {};
  return refuse_value("expected Guaranteed, Burstable or BestEffort");
}

/// "0", or a percentage as cpuBurst takes it.
Status read_burst(PodqosAnnotations& out, std::string_view value) {
  constexpr std::int64_t kMost = 100;
  const bool percent = value.ends_with('%');
  const auto number = parse_int(value.substr(0, value.size() - (percent ? 1 : 0)));
  if (!number || *number < 0 || *number > kMost || value.starts_with('-') ||
      (!percent && *number != 0))
    return refuse_value(R"(expected "0" or a percentage of the CPU limit from "0%" to "100%")");
  out.cpu_burst = number;
  return {};
}

/// An error with the most similar known key, since a misspelt request would silently be missing.
std::unexpected<Error> unknown_key(std::string_view name) {
  const std::string nearest =
      nearest_name(name, {"requests.<container>", "limits.<container>", "ignore", "pod-uid",
                          "container", "qos-class", "cpu-burst", "cpu-idle", "pod", "requests",
                          "limits", "cpu-request", "memory-request", "cpu-limit", "memory-limit"});
  return refuse_value("unknown annotation",
                      nearest.empty() ? "" : cat("; did you mean ", kPrefix, nearest, "?"));
}

/// Reads one annotation; `name` is the key without the prefix.
Status read_one(PodqosAnnotations& out, std::string_view name, std::string_view value) {
  if (name == "ignore") return read_flag(out.ignore, value);
  if (name == "pod-uid") return read_text(out.pod_uid, value, core::check_pod_uid);
  if (name == "container") return read_text(out.container, value, check_container_name);
  if (name == "qos-class") return read_class(out, value);
  if (name == "cpu-burst") return read_burst(out, value);
  if (name == "cpu-idle") return read_flag(out.cpu_idle, value);
  if (name == "pod") return read_pod(out, value);
  const auto* const key = std::ranges::find(kPodKeys, name, &PodKey::name);
  if (key != kPodKeys.end()) return read_pod_amounts(out, *key, value);
  // requests.NAME and limits.NAME: those of one container.
  std::string_view container = name;
  const std::string_view kind = read_until(container, '.');
  if (kind.size() == name.size() || (kind != "requests" && kind != "limits"))
    return unknown_key(name);
  PODQOS_TRY(check_container_name(container));
  auto& resources = out.containers.try_emplace(std::string{container}).first->second;
  auto& list = kind == "requests" ? resources.requests : resources.limits;
  PODQOS_ASSIGN(list, parse_short_form(value));
  return {};
}

/// Applies the API's defaults and rules to all short forms together.
Status default_and_check(PodqosAnnotations& out) {
  core::Pod pod;
  pod.resources = out.pod_level;
  for (const auto& [name, resources] : out.containers)
    pod.containers.push_back(
        {.name = name, .kind = core::ContainerKind::kApp, .resources = resources});
  pod = core::with_api_defaults(std::move(pod));
  if (const auto violations = core::validate(pod); !violations.empty())
    return refuse_value(
        "annotations for requests and limits (podqos.io/requests, podqos.io/limits, "
        "podqos.io/cpu-request and their like): ",
        violations.front());
  // Containers keep their defaulted resources.
  for (core::Container& container : pod.containers)
    out.containers.find(container.name)->second = std::move(container.resources);
  return {};
}

}  // namespace

bool is_known_annotation(std::string_view key) {
  return key.starts_with(kPrefix) || key == core::kSplitMemory || is_engine_annotation(key);
}

Result<core::Annotations> read_known_annotations(const JsonPlace& object) {
  core::Annotations known;
  for (const JsonNode& each : object.children()) {
    const bool is_repeated = known.contains(each.key);
    if (!is_known_annotation(each.key) || (each.is_null() && !is_repeated)) continue;
    const JsonPlace annotation = object.child(each);
    if (is_repeated) return annotation.refuse_repeated();
    PODQOS_TRY(annotation.expect(JsonNode::Kind::kString));
    if (each.text.size() > kMaxAnnotationSize)
      return annotation.refuse(
          cat("has ", each.text.size(), " bytes, at most ", kMaxAnnotationSize, " are read"),
          ErrorCode::kTooLarge);
    if (known.size() == kMaxKnownAnnotations)
      return object.refuse(cat("more than ", kMaxKnownAnnotations, " that podqos reads"),
                           ErrorCode::kTooLarge);
    known.emplace(each.key, each.text);
  }
  return known;
}

Result<core::ResourceList> parse_short_form(std::string_view text) {
  core::ResourceList list;
  for (bool last = false; !last;) {
    last = !text.contains(',');
    const std::string_view item = trimmed(read_until(text, ','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return refuse_value("\"", printable(item), "\": expected name=quantity");
    const std::string_view name = trimmed(item.substr(0, equals));
    PODQOS_TRY(check_short_form_resource(name));
    PODQOS_ASSIGN(const auto quantity, parse_amount(name, trimmed(item.substr(equals + 1))));
    if (!list.emplace(name, quantity).second) return refuse_value(name, " is repeated");
  }
  return list;
}

Result<PodqosAnnotations> parse_podqos_annotations(const core::Annotations& annotations) {
  PodqosAnnotations out;
  // The map is sorted, so that all podqos.io/ keys are in one range.
  for (auto entry = annotations.lower_bound(kPrefix); entry != annotations.end(); ++entry) {
    const auto& [key, value] = *entry;
    if (!key.starts_with(kPrefix)) break;
    Status status = read_one(out, std::string_view{key}.substr(kPrefix.size()), value);
    if (!status)
      return fail(std::move(status).error().with_context(
          cat("annotation ", printable(key), " = \"", printable(value), "\"")));
  }
  if (!out.pod_level && out.containers.empty()) return out;
  PODQOS_TRY(default_and_check(out));
  return out;
}

}  // namespace podqos::codec

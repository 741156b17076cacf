#include "common/codec/annotations.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/validation.h"

namespace podqos::codec {

namespace {

using core::PodqosAnnotations;

/// Parts of the keys: podqos.io/requests.NAME is a container's, podqos.io/requests the pod's.
constexpr std::string_view kPrefix = "podqos.io/";
constexpr std::string_view kRequestsOf = "requests.";
constexpr std::string_view kLimitsOf = "limits.";
constexpr std::size_t kMaxContainerName = 63;

/// Runtimes without Kubernetes accept more container names than the API, which only accepts DNS
/// labels.
Status check_container_name(std::string_view name) {
  const auto allowed = [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxContainerName && is_alphanumeric(name.front()) &&
      std::ranges::all_of(name, allowed)) {
    return {};
  }
  return refuse_value("container name \"", printable(name), "\": expected 1 to ", kMaxContainerName,
                      " letters, digits, '_', '.' and '-', starting with a letter or digit");
}

/// Only the resources that podqos sets in cgroups: cpu, memory and hugepages-SIZE.
Status check_short_form_resource(std::string_view name) {
  if (name == core::kCpu || name == core::kMemory) return {};
  if (!name.starts_with(core::kHugePagesPrefix)) {
    return refuse_value(
        cat("resource \"", printable(name), "\": expected one of cpu, memory, hugepages-<size>"));
  }
  const core::ResourceList probe{{std::string{name}, core::Quantity{}}};
  PODQOS_TRY(core::hugepage_limits(probe));
  return {};
}

/// Parses the amount of a resource. Kubernetes rounds up fractions of a byte; in an annotation they
/// are refused, since a person who writes 256m means 256Mi.
Result<core::Quantity> parse_amount(std::string_view name, std::string_view text) {
  auto quantity = core::Quantity::parse(text);
  if (!quantity) return fail(Error{quantity.error()}.with_context(name));
  if (quantity->sign() < 0)
    return refuse_value(name, "=", quantity->format_decimal(), " is negative");
  if (core::is_in_bytes(name) && !quantity->is_whole()) {
    return refuse_value(name, "=", text, " is ", core::describe_fraction(*quantity));
  }
  return quantity;
}

/// Parses one item, "cpu=250m", into the list.
Status add_short_form_item(core::ResourceList& list, std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    return refuse_value("\"", printable(item), "\": expected name=quantity");
  const std::string_view name = trimmed(item.substr(0, equals));
  PODQOS_TRY(check_short_form_resource(name));
  PODQOS_ASSIGN(const auto quantity, parse_amount(name, trimmed(item.substr(equals + 1))));
  if (!list.emplace(name, quantity).second) return refuse_value(name, " is repeated");
  return {};
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
  core::Pod defaulted = core::with_api_defaults(std::move(pod));
  const std::vector<std::string> violations = core::validate_manifest(defaulted);
  if (!violations.empty()) return refuse_value(violations.front());
  out.pod = std::make_shared<const core::Pod>(std::move(defaulted));
  return {};
}

Status read_list(core::ResourceList& list, std::string_view value) {
  PODQOS_ASSIGN(auto parsed, parse_short_form(value));
  list = std::move(parsed);
  return {};
}

/// Reads requests.NAME or limits.NAME, as `list` says.
Status read_container_list(PodqosAnnotations& out, std::string_view name,
                           core::ResourceList core::Resources::* list, std::string_view value) {
  PODQOS_TRY(check_container_name(name));
  auto& resources = out.containers.try_emplace(std::string{name}).first->second;
  return read_list(resources.*list, value);
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
    PODQOS_TRY(read_list(amounts, value));
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
    return refuse_value(
        cat(amount.first, " is set by annotation ", kPrefix, other, " too: remove one"));
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

/// An error with the most similar known key, since a misspelt request would silently be missing.
std::unexpected<Error> unknown_key(std::string_view name) {
  std::vector<std::string_view> known = {"requests.<container>",
                                         "limits.<container>",
                                         "ignore",
                                         "pod-uid",
                                         "container",
                                         "qos-class",
                                         "pod"};
  std::ranges::transform(kPodKeys, std::back_inserter(known), &PodKey::name);
  const std::string nearest = nearest_name(name, known);
  return refuse_value("unknown annotation",
                      nearest.empty() ? "" : cat("; did you mean ", kPrefix, nearest, "?"));
}

/// Reads one annotation; `name` is the key without the prefix.
Status read_one(PodqosAnnotations& out, std::string_view name, std::string_view value) {
  if (name == "ignore") return read_flag(out.ignore, value);
  if (name == "pod-uid") return read_text(out.pod_uid, value, core::check_pod_uid);
  if (name == "container") return read_text(out.container, value, check_container_name);
  if (name == "qos-class") return read_class(out, value);
  if (name == "pod") return read_pod(out, value);
  const auto* const key = std::ranges::find(kPodKeys, name, &PodKey::name);
  if (key != kPodKeys.end()) return read_pod_amounts(out, *key, value);
  for (const auto& [prefix, list] : {std::pair{kRequestsOf, &core::Resources::requests},
                                     std::pair{kLimitsOf, &core::Resources::limits}}) {
    if (name.starts_with(prefix))
      return read_container_list(out, name.substr(prefix.size()), list, value);
  }
  return unknown_key(name);
}

/// Applies the API's defaults and rules to all short forms together.
Status default_and_check(PodqosAnnotations& out) {
  core::Pod pod;
  pod.resources = out.pod_level;
  for (const auto& [name, resources] : out.containers) {
    pod.containers.push_back(
        {.name = name, .kind = core::ContainerKind::kApp, .resources = resources});
  }
  pod = core::with_api_defaults(std::move(pod));
  const std::vector<std::string> violations = core::validate(pod);
  if (!violations.empty()) {
    return refuse_value(
        cat("annotations for requests and limits (podqos.io/requests, podqos.io/limits, "
            "podqos.io/cpu-request and their like): ",
            violations.front()));
  }
  // Containers keep their defaulted resources.
  for (core::Container& container : pod.containers) {
    out.containers.find(container.name)->second = std::move(container.resources);
  }
  return {};
}

}  // namespace

bool is_known_annotation(std::string_view key) {
  return key.starts_with(kPrefix) || key == core::kSplitMemory || is_engine_annotation(key);
}

Result<core::Annotations> read_known_annotations(const JsonPlace& object) {
  core::Annotations known;
  for (const JsonNode& each : object.children()) {
    if (!is_known_annotation(each.key)) continue;
    const JsonPlace annotation = object.child(each);
    PODQOS_TRY(annotation.expect(JsonNode::Kind::kString));
    if (each.text.size() > kMaxAnnotationSize)
      return annotation.refuse(
          cat("has ", each.text.size(), " bytes, at most ", kMaxAnnotationSize, " are read"),
          ErrorCode::kTooLarge);
    if (known.size() == kMaxKnownAnnotations)
      return object.refuse(cat("more than ", kMaxKnownAnnotations, " that podqos reads"),
                           ErrorCode::kTooLarge);
    if (!known.emplace(each.key, each.text).second) return annotation.refuse_repeated();
  }
  return known;
}

Result<core::ResourceList> parse_short_form(std::string_view text) {
  core::ResourceList list;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    PODQOS_TRY(add_short_form_item(list, trimmed(text.substr(begin, end - begin))));
    begin = end + 1;
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
    if (!status) {
      return fail(std::move(status).error().with_context(
          cat("annotation ", printable(key), " = \"", printable(value), "\"")));
    }
  }
  if (!out.pod_level && out.containers.empty()) return out;
  PODQOS_TRY(default_and_check(out));
  return out;
}

}  // namespace podqos::codec

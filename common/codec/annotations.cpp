#include "common/codec/annotations.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/engine_annotations.h"
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
  return fail(ErrorCode::kInvalidArgument,
              cat("container name \"", printable(name), "\": expected 1 to ", kMaxContainerName,
                  " letters, digits, '_', '.' and '-', starting with a letter or digit"));
}

/// Without white space at both ends.
std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

/// Only the resources that podqos sets in cgroups: cpu, memory and hugepages-SIZE.
Status check_short_form_resource(std::string_view name) {
  if (name == core::kCpu || name == core::kMemory) return {};
  if (!name.starts_with(core::kHugePagesPrefix)) {
    return fail(
        ErrorCode::kInvalidArgument,
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
  if (quantity->sign() < 0) {
    return fail(ErrorCode::kInvalidArgument,
                cat(name, "=", quantity->format_decimal(), " is negative"));
  }
  if (core::is_in_bytes(name) && !quantity->is_whole()) {
    return fail(ErrorCode::kInvalidArgument,
                cat(name, "=", text, " is ", core::describe_fraction(*quantity)));
  }
  return quantity;
}

/// Parses one item, "cpu=250m", into the list.
Status add_short_form_item(core::ResourceList& list, std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(item), "\": expected name=quantity"));
  }
  const std::string_view name = trimmed(item.substr(0, equals));
  PODQOS_TRY(check_short_form_resource(name));
  PODQOS_ASSIGN(const auto quantity, parse_amount(name, trimmed(item.substr(equals + 1))));
  if (!list.emplace(name, quantity).second) {
    return fail(ErrorCode::kInvalidArgument, cat(name, " is repeated"));
  }
  return {};
}

/// The readers below parse the value of one annotation. Errors do not name the annotation;
/// parse_podqos_annotations() adds its key and value.
Status read_flag(bool& flag, std::string_view value) {
  if (value != "true" && value != "false") {
    return fail(ErrorCode::kInvalidArgument, R"(expected "true" or "false")");
  }
  flag = value == "true";
  return {};
}

/// The value is a PodSpec; stored with defaults, and only if it is valid.
Status read_pod(PodqosAnnotations& out, std::string_view value) {
  PODQOS_ASSIGN(auto pod, parse_pod_spec(value));
  if (const auto fractions = core::fractional_amounts(pod); !fractions.empty())
    return fail(ErrorCode::kInvalidArgument, fractions.front());
  core::Pod defaulted = core::with_api_defaults(std::move(pod));
  const std::vector<std::string> violations = core::validate_manifest(defaulted);
  if (!violations.empty()) return fail(ErrorCode::kInvalidArgument, violations.front());
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

/// Adds one amount of the whole pod.
/// @param other  the annotation that sets the same amount
Status add_pod_amount(PodqosAnnotations& out, core::ResourceList core::Resources::* list,
                      const core::ResourceList::value_type& amount, std::string_view other) {
  if (!out.pod_level) out.pod_level.emplace();
  if (((*out.pod_level).*list).insert(amount).second) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat(amount.first, " is set by annotation ", kPrefix, other, " too: remove one"));
}

/// Reads requests or limits of the whole pod, as `list` says.
Status read_pod_list(PodqosAnnotations& out, core::ResourceList core::Resources::* list,
                     std::string_view value) {
  PODQOS_ASSIGN(const auto parsed, parse_short_form(value));
  const std::string_view what = list == &core::Resources::requests ? "request" : "limit";
  for (const auto& amount : parsed) {
    PODQOS_TRY(add_pod_amount(out, list, amount, cat(amount.first, "-", what)));
  }
  return {};
}

/// Reads one amount of the whole pod: cpu-request, memory-limit.
Status read_pod_amount(PodqosAnnotations& out, core::ResourceList core::Resources::* list,
                       std::string_view name, std::string_view value) {
  PODQOS_ASSIGN(const auto quantity, parse_amount(name, trimmed(value)));
  return add_pod_amount(out, list, {std::string{name}, quantity},
                        list == &core::Resources::requests ? "requests" : "limits");
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
  return fail(ErrorCode::kInvalidArgument, "expected Guaranteed, Burstable or BestEffort");
}

/// A row for each key without a container name.
struct Reader {
  std::string_view name;
  Status (*read)(PodqosAnnotations&, std::string_view);
};
constexpr std::array<Reader, 11> kReaders{{
    {"ignore",
     [](PodqosAnnotations& out, std::string_view value) { return read_flag(out.ignore, value); }},
    {"pod-uid",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_text(out.pod_uid, value, core::check_pod_uid);
     }},
    {"container",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_text(out.container, value, check_container_name);
     }},
    {"qos-class", read_class},
    {"pod", read_pod},
    {"requests",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_list(out, &core::Resources::requests, value);
     }},
    {"limits",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_list(out, &core::Resources::limits, value);
     }},
    {"cpu-request",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_amount(out, &core::Resources::requests, core::kCpu, value);
     }},
    {"memory-request",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_amount(out, &core::Resources::requests, core::kMemory, value);
     }},
    {"cpu-limit",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_amount(out, &core::Resources::limits, core::kCpu, value);
     }},
    {"memory-limit",
     [](PodqosAnnotations& out, std::string_view value) {
       return read_pod_amount(out, &core::Resources::limits, core::kMemory, value);
     }},
}};

/// An error with the most similar known key, since a misspelt request would silently be missing.
std::unexpected<Error> unknown_key(std::string_view name) {
  std::vector<std::string_view> known = {"requests.<container>", "limits.<container>"};
  std::ranges::transform(kReaders, std::back_inserter(known), &Reader::name);
  const std::string nearest = nearest_name(name, known);
  return fail(ErrorCode::kInvalidArgument,
              cat("unknown annotation",
                  nearest.empty() ? "" : cat("; did you mean ", kPrefix, nearest, "?")));
}

/// Reads one annotation; `name` is the key without the prefix.
Status read_one(PodqosAnnotations& out, std::string_view name, std::string_view value) {
  const auto* const reader = std::ranges::find(kReaders, name, &Reader::name);
  if (reader != kReaders.end()) return reader->read(out, value);
  if (name.starts_with(kRequestsOf)) {
    return read_container_list(out, name.substr(kRequestsOf.size()), &core::Resources::requests,
                               value);
  }
  if (name.starts_with(kLimitsOf)) {
    return read_container_list(out, name.substr(kLimitsOf.size()), &core::Resources::limits, value);
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
    return fail(ErrorCode::kInvalidArgument,
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

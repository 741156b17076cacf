#include "common/codec/pod_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Annotations of static and mirror pods; pkg/kubelet/types/pod_update.go.
constexpr std::string_view kConfigSource = "kubernetes.io/config.source";
constexpr std::string_view kConfigMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kApiSource = "api";
/// Length of a DNS label; RFC 1123.
constexpr std::size_t kMaxNameLength = 63;
/// Kubernetes' longest resource name: a DNS subdomain, a slash and a name.
constexpr std::size_t kMaxResourceNameLength = 253 + 1 + 63;

/// A node and the path to it, which is only formatted for an error.
struct Place {
  const JsonNode* node = nullptr;
  const Place* parent = nullptr;
  std::string_view field;  ///< within an object; empty within an array
  std::size_t index = 0;   ///< within an array

  [[nodiscard]] std::string path() const {
    const std::string above = parent == nullptr ? "" : parent->path();
    if (!field.empty()) return above.empty() ? printable(field) : cat(above, ".", printable(field));
    return parent == nullptr ? "" : cat(above, "[", index, "]");
  }
  [[nodiscard]] std::unexpected<Error> refuse(std::string_view why) const {
    const auto where = path();
    return fail(ErrorCode::kInvalidArgument, cat(where, where.empty() ? "" : ": ", why));
  }
  [[nodiscard]] Status expect(Kind kind) const {
    if (node->kind == kind) return {};
    return refuse(cat("expected ", format_kind(kind), ", found ", format_kind(node->kind)));
  }
};

/// The member `field` of `at`, with a null node if it is absent or null.
/// @return kInvalidArgument if it has another kind or is repeated.
Result<Place> member(const Place& at, std::string_view field, Kind kind) {
  const auto node = at.node->member(field);
  if (!node) return at.refuse(node.error().message);
  const Place place{.node = *node, .parent = &at, .field = field};
  if (place.node == nullptr) return place;
  PODQOS_TRY(place.expect(kind));
  return place;
}

Status read_text(const Place& at, std::string_view field, std::string& text) {
  PODQOS_ASSIGN(const auto place, member(at, field, Kind::kString));
  if (place.node != nullptr) text = place.node->text;
  return {};
}

std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A JSON string or number, of which the exact text is parsed.
Result<core::Quantity> read_quantity(const Place& at) {
  if (at.node->is_null()) return core::Quantity{};
  if (at.node->kind != Kind::kNumber && at.node->kind != Kind::kString) {
    return at.refuse(cat("expected a quantity, found ", format_kind(at.node->kind)));
  }
  auto quantity = core::Quantity::parse(without_space(at.node->text));
  if (!quantity) return at.refuse(quantity.error().message);
  return quantity;
}

/// Reads a ResourceList (requests, limits or overhead).
Status read_list(const Place& at, std::string_view field, core::ResourceList& list) {
  PODQOS_ASSIGN(const auto place, member(at, field, Kind::kObject));
  if (place.node == nullptr) return {};
  for (const JsonNode& child : place.node->children) {
    const Place entry{.node = &child, .parent = &place, .field = child.key};
    if (child.key.empty() || child.key.size() > kMaxResourceNameLength) {
      return place.refuse(cat("resource name \"", printable(child.key), "\" has ", child.key.size(),
                              " characters, 1 to ", kMaxResourceNameLength, " are allowed"));
    }
    PODQOS_ASSIGN(const auto quantity, read_quantity(entry));
    if (!list.emplace(child.key, quantity).second) return entry.refuse("is repeated");
  }
  return {};
}

/// Reads `resources`; nullopt if it is absent, which differs from an empty one.
Result<std::optional<core::Resources>> read_resources(const Place& at) {
  PODQOS_ASSIGN(const auto place, member(at, "resources", Kind::kObject));
  if (place.node == nullptr) return std::nullopt;
  core::Resources resources;
  PODQOS_TRY(read_list(place, "requests", resources.requests));
  PODQOS_TRY(read_list(place, "limits", resources.limits));
  return resources;
}

/// @note apimachinery/pkg/util/validation IsDNS1123Label.
bool is_dns_label(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kMaxNameLength && is_alphanumeric(name.front()) &&
         is_alphanumeric(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return is_alphanumeric(c) || c == '-'; });
}

/// An init container with restartPolicy Always is a sidecar;
/// staging/src/k8s.io/api/core/v1/types.go.
Result<core::Container> read_container(const Place& at, core::ContainerKind kind) {
  PODQOS_TRY(at.expect(Kind::kObject));
  core::Container container;
  container.kind = kind;
  PODQOS_TRY(read_text(at, "name", container.name));
  if (!is_dns_label(container.name)) {
    return at.refuse(cat("container name \"", printable(container.name),
                         "\" is not a DNS label: expected 1 to 63 of a-z, 0-9 and inner '-'"));
  }
  if (kind == core::ContainerKind::kInit) {
    std::string restart_policy;
    PODQOS_TRY(read_text(at, "restartPolicy", restart_policy));
    if (restart_policy == "Always") container.kind = core::ContainerKind::kSidecar;
  }
  PODQOS_ASSIGN(auto resources, read_resources(at));
  container.resources = std::move(resources).value_or(core::Resources{});
  return container;
}

Status read_containers(const Place& spec, std::string_view field, core::ContainerKind kind,
                       std::vector<core::Container>& containers) {
  PODQOS_ASSIGN(const auto place, member(spec, field, Kind::kArray));
  if (place.node == nullptr) return {};
  const auto& children = place.node->children;
  if (children.size() > kMaxPodContainers) {
    return fail(ErrorCode::kTooLarge,
                cat(place.path(), ": ", children.size(), " containers, at most ", kMaxPodContainers,
                    " are allowed"));
  }
  containers.reserve(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    PODQOS_ASSIGN(
        auto container,
        read_container(Place{.node = &children[i], .parent = &place, .field = {}, .index = i},
                       kind));
    containers.push_back(std::move(container));
  }
  return {};
}

/// Names are unique among all containers of a pod, init and ephemeral ones included.
Status check_names(const Place& spec, const core::Pod& pod) {
  std::vector<std::string_view> names;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    for (const auto& container : *list)
      names.emplace_back(container.name);
  }
  if (names.size() > kMaxPodContainers) {
    return fail(ErrorCode::kTooLarge,
                cat(names.size(), " containers, at most ", kMaxPodContainers, " are allowed"));
  }
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin == names.end()) return {};
  return spec.refuse(cat("two containers are named \"", *twin, "\""));
}

Status read_priority(const Place& spec, core::Pod& pod) {
  PODQOS_ASSIGN(const auto place, member(spec, "priority", Kind::kNumber));
  if (place.node == nullptr) return {};
  using Limits = std::numeric_limits<std::int32_t>;
  pod.priority = parse_int(place.node->text);
  if (!pod.priority || *pod.priority < Limits::min() || *pod.priority > Limits::max()) {
    return place.refuse(cat(printable(place.node->text), " is not a 32-bit integer"));
  }
  return {};
}

Status read_spec(const Place& spec, core::Pod& pod) {
  PODQOS_TRY(spec.expect(Kind::kObject));
  using core::ContainerKind;
  PODQOS_TRY(read_containers(spec, "containers", ContainerKind::kApp, pod.containers));
  PODQOS_TRY(read_containers(spec, "initContainers", ContainerKind::kInit, pod.init_containers));
  PODQOS_TRY(read_containers(spec, "ephemeralContainers", ContainerKind::kEphemeral,
                             pod.ephemeral_containers));
  PODQOS_TRY(check_names(spec, pod));
  PODQOS_TRY(read_list(spec, "overhead", pod.overhead));
  PODQOS_ASSIGN(auto resources, read_resources(spec));
  pod.resources = std::move(resources);
  PODQOS_TRY(read_priority(spec, pod));
  return read_text(spec, "priorityClassName", pod.priority_class_name);
}

/// Identity, and whether the pod is static: a mirror pod, or from another source than the API.
Status read_metadata(const Place& root, core::Pod& pod) {
  const auto metadata = member(root, "metadata", Kind::kObject);
  if (!metadata) return fail(metadata.error());
  if (metadata->node == nullptr) return {};
  PODQOS_TRY(read_text(*metadata, "uid", pod.uid));
  PODQOS_TRY(read_text(*metadata, "name", pod.name));
  PODQOS_TRY(read_text(*metadata, "namespace", pod.pod_namespace));
  const auto annotations = member(*metadata, "annotations", Kind::kObject);
  if (!annotations) return fail(annotations.error());
  if (annotations->node == nullptr) return {};
  PODQOS_ASSIGN(const auto source, member(*annotations, kConfigSource, Kind::kString));
  PODQOS_ASSIGN(const auto mirror, member(*annotations, kConfigMirror, Kind::kString));
  pod.is_static =
      mirror.node != nullptr || (source.node != nullptr && source.node->text != kApiSource);
  return {};
}

/// Only status.qosClass, which takes precedence over the spec.
Status read_status(const Place& root, core::Pod& pod) {
  const auto status = member(root, "status", Kind::kObject);
  if (!status) return fail(status.error());
  if (status->node == nullptr) return {};
  std::string text;
  PODQOS_TRY(read_text(*status, "qosClass", text));
  if (text.empty()) return {};
  pod.status_qos_class = core::parse_qos_class(text);
  if (!pod.status_qos_class) {
    return status->refuse(cat("qosClass \"", printable(text),
                              "\": expected one of Guaranteed, Burstable, BestEffort"));
  }
  return {};
}

Status read_pod(const Place& root, core::Pod& pod) {
  PODQOS_TRY(root.expect(Kind::kObject));
  // A missing kind counts as Pod.
  std::string kind = "Pod";
  PODQOS_TRY(read_text(root, "kind", kind));
  if (kind != "Pod") return root.refuse(cat("kind \"", printable(kind), "\": expected Pod"));
  PODQOS_TRY(read_metadata(root, pod));
  const auto spec = member(root, "spec", Kind::kObject);
  if (!spec) return fail(spec.error());
  if (spec->node == nullptr) return root.refuse("spec is missing");
  PODQOS_TRY(read_spec(*spec, pod));
  return read_status(root, pod);
}

/// Parses the text and lets `read` fill the pod from the root.
Result<core::Pod> parse_with(std::string_view json, Status (*read)(const Place&, core::Pod&)) {
  const auto tree = parse_json_tree(json, {.bytes = kMaxPodJsonBytes, .depth = kMaxPodJsonDepth});
  if (!tree) return fail(Error{tree.error()}.with_context("pod"));
  core::Pod pod;
  if (auto status = read(Place{.node = &*tree, .parent = nullptr, .field = {}}, pod); !status) {
    return fail(std::move(status).error().with_context("pod"));
  }
  return pod;
}

using nlohmann::ordered_json;

/// Exact decimal strings, so that no precision is lost.
ordered_json list_json(const core::ResourceList& list) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, quantity] : list)
    out[name] = quantity.format_decimal();
  return out;
}

ordered_json resources_json(const core::Resources& resources) {
  ordered_json out = ordered_json::object();
  if (!resources.requests.empty()) out["requests"] = list_json(resources.requests);
  if (!resources.limits.empty()) out["limits"] = list_json(resources.limits);
  return out;
}

/// Absent if there are none, like the API's omitempty.
void put_containers(ordered_json& spec, const char* field,
                    const std::vector<core::Container>& containers) {
  if (containers.empty()) return;
  auto& out = spec[field] = ordered_json::array();
  for (const auto& container : containers) {
    ordered_json entry{{"name", container.name}};
    if (container.kind == core::ContainerKind::kSidecar) entry["restartPolicy"] = "Always";
    if (container.resources != core::Resources{}) {
      entry["resources"] = resources_json(container.resources);
    }
    out.push_back(std::move(entry));
  }
}

}  // namespace

Result<core::Pod> parse_pod(std::string_view json) {
  return parse_with(json, read_pod);
}

Result<core::Pod> parse_pod_spec(std::string_view json) {
  return parse_with(json, read_spec);
}

std::string format_pod_spec(const core::Pod& pod) {
  ordered_json spec = ordered_json::object();
  put_containers(spec, "containers", pod.containers);
  put_containers(spec, "initContainers", pod.init_containers);
  put_containers(spec, "ephemeralContainers", pod.ephemeral_containers);
  if (!pod.overhead.empty()) spec["overhead"] = list_json(pod.overhead);
  if (pod.resources) spec["resources"] = resources_json(*pod.resources);
  if (pod.priority) spec["priority"] = *pod.priority;
  if (!pod.priority_class_name.empty()) spec["priorityClassName"] = pod.priority_class_name;
  // `replace`: dump() must not throw for a name that is not UTF-8.
  return spec.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace podqos::codec

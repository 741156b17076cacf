#include "common/codec/pod_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_place.h"
#include "common/core/cgroups/naming.h"

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

/// A JSON string or number, of which the exact text is parsed.
Result<core::Quantity> read_quantity(const JsonPlace& at) {
  const Kind kind = at.node()->kind;
  if (kind == Kind::kNull) return core::Quantity{};
  if (kind != Kind::kNumber && kind != Kind::kString)
    return at.refuse(cat("expected a quantity, found ", describe(*at.node())));
  auto quantity = core::Quantity::parse(trimmed(at.text()));
  if (!quantity) return at.refuse(quantity.error().message);
  return quantity;
}

/// Reads a ResourceList (requests, limits or overhead).
Status read_list(const JsonPlace& at, std::string_view field, core::ResourceList& list) {
  PODQOS_ASSIGN(const auto place, at.member(field, Kind::kObject));
  for (const JsonNode& child : place.children()) {
    const JsonPlace entry = place.child(child);
    if (child.key.empty() || child.key.size() > kMaxResourceNameLength)
      return place.refuse(cat("resource name \"", printable(child.key), "\" has ", child.key.size(),
                              " characters, 1 to ", kMaxResourceNameLength, " are allowed"));
    PODQOS_ASSIGN(const auto quantity, read_quantity(entry));
    if (!list.emplace(child.key, quantity).second) return entry.refuse_repeated();
  }
  return {};
}

/// Reads `resources` if they are there: absence differs from an empty object.
Status read_resources(const JsonPlace& at, std::optional<core::Resources>& resources) {
  PODQOS_ASSIGN(const auto place, at.member("resources", Kind::kObject));
  if (!place) return {};
  PODQOS_TRY(read_list(place, "requests", resources.emplace().requests));
  return read_list(place, "limits", resources->limits);
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
Result<core::Container> read_container(const JsonPlace& at, core::ContainerKind kind) {
  PODQOS_TRY(at.expect(Kind::kObject));
  core::Container container;
  container.kind = kind;
  PODQOS_TRY(at.read_text("name", container.name));
  if (!is_dns_label(container.name))
    return at.refuse(cat("container name \"", printable(container.name),
                         "\" is not a DNS label: expected 1 to 63 of a-z, 0-9 and inner '-'"));
  if (kind == core::ContainerKind::kInit) {
    std::string restart_policy;
    PODQOS_TRY(at.read_text("restartPolicy", restart_policy));
    if (restart_policy == "Always") container.kind = core::ContainerKind::kSidecar;
  }
  std::optional<core::Resources> resources;
  PODQOS_TRY(read_resources(at, resources));
  container.resources = std::move(resources).value_or(core::Resources{});
  return container;
}

Status read_containers(const JsonPlace& spec, std::string_view field, core::ContainerKind kind,
                       std::vector<core::Container>& containers) {
  PODQOS_ASSIGN(const auto place, spec.member(field, Kind::kArray));
  containers.reserve(place.children().size());
  for (const JsonNode& child : place.children()) {
    PODQOS_ASSIGN(auto container, read_container(place.child(child), kind));
    containers.push_back(std::move(container));
  }
  return {};
}

/// Names are unique among all containers of a pod, init and ephemeral ones included.
Status check_names(const JsonPlace& spec, const core::Pod& pod) {
  std::vector<std::string_view> names;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    for (const auto& container : *list)
      names.emplace_back(container.name);
  if (names.size() > kMaxPodContainers)
    return spec.refuse(
        cat(names.size(), " containers, at most ", kMaxPodContainers, " are allowed"),
        ErrorCode::kTooLarge);
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin == names.end()) return {};
  return spec.refuse(cat("two containers are named \"", *twin, "\""));
}

Status read_spec(const JsonPlace& spec, core::Pod& pod) {
  PODQOS_TRY(spec.expect(Kind::kObject));
  using core::ContainerKind;
  PODQOS_TRY(read_containers(spec, "containers", ContainerKind::kApp, pod.containers));
  PODQOS_TRY(read_containers(spec, "initContainers", ContainerKind::kInit, pod.init_containers));
  PODQOS_TRY(read_containers(spec, "ephemeralContainers", ContainerKind::kEphemeral,
                             pod.ephemeral_containers));
  PODQOS_TRY(check_names(spec, pod));
  PODQOS_TRY(read_list(spec, "overhead", pod.overhead));
  PODQOS_TRY(read_resources(spec, pod.resources));
  using Limits = std::numeric_limits<std::int32_t>;
  PODQOS_ASSIGN(pod.priority, spec.integer("priority", Limits::min(), Limits::max()));
  return spec.read_text("priorityClassName", pod.priority_class_name);
}

/// Name and namespace of the spec's pod, for people.
Status read_names(const JsonPlace& spec, core::Pod& pod) {
  PODQOS_ASSIGN(const auto metadata, spec.member("metadata", Kind::kObject));
  for (const auto& [name, text] :
       {std::pair{"name", &pod.name}, std::pair{"namespace", &pod.pod_namespace}}) {
    PODQOS_TRY(metadata.read_text(name, *text));
    if (text->empty()) continue;
    if (const auto usable = core::check_cgroup_component(*text); !usable)
      return metadata.refuse(cat(name, " ", usable.error().message));
  }
  return {};
}

/// Identity, and whether the pod is static: a mirror pod, or from another source than the API.
Status read_metadata(const JsonPlace& root, core::Pod& pod) {
  PODQOS_ASSIGN(const auto metadata, root.member("metadata", Kind::kObject));
  PODQOS_TRY(metadata.read_text("uid", pod.uid));
  PODQOS_TRY(metadata.read_text("name", pod.name));
  PODQOS_TRY(metadata.read_text("namespace", pod.pod_namespace));
  PODQOS_ASSIGN(const auto annotations, metadata.member("annotations", Kind::kObject));
  PODQOS_ASSIGN(const auto source, annotations.member(kConfigSource, Kind::kString));
  PODQOS_ASSIGN(const auto mirror, annotations.member(kConfigMirror, Kind::kString));
  pod.is_static = mirror || (source && source.text() != kApiSource);
  return {};
}

/// Only status.qosClass, which takes precedence over the spec.
Status read_status(const JsonPlace& root, core::Pod& pod) {
  PODQOS_ASSIGN(const auto status, root.member("status", Kind::kObject));
  std::string text;
  PODQOS_TRY(status.read_text("qosClass", text));
  if (text.empty()) return {};
  pod.status_qos_class = core::parse_qos_class(text);
  if (pod.status_qos_class) return {};
  return status.refuse(
      cat("qosClass \"", printable(text), "\": expected one of Guaranteed, Burstable, BestEffort"));
}

Status read_pod(const JsonPlace& root, core::Pod& pod) {
  PODQOS_TRY(root.expect(Kind::kObject));
  // A missing kind counts as Pod.
  std::string kind = "Pod";
  PODQOS_TRY(root.read_text("kind", kind));
  if (kind != "Pod") return root.refuse(cat("kind \"", printable(kind), "\": expected Pod"));
  PODQOS_TRY(read_metadata(root, pod));
  PODQOS_ASSIGN(const auto spec, root.member("spec", Kind::kObject));
  if (!spec) return root.refuse("spec is missing");
  PODQOS_TRY(read_spec(spec, pod));
  return read_status(root, pod);
}

/// The pod, unless reading it failed.
Result<core::Pod> pod_or_error(core::Pod pod, const Status& read) {
  if (!read) return fail(Error{read.error()}.with_context("pod"));
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
    if (container.resources != core::Resources{})
      entry["resources"] = resources_json(container.resources);
    out.push_back(std::move(entry));
  }
}

}  // namespace

Result<core::Pod> parse_pod(const JsonNode& node) {
  core::Pod pod;
  const std::size_t size = node.raw.size();
  const Status read = size <= kMaxPodJsonBytes
                          ? read_pod(JsonPlace{node}, pod)
                          : fail(ErrorCode::kTooLarge, cat("JSON of ", size, " bytes, at most ",
                                                           kMaxPodJsonBytes, " are read"));
  return pod_or_error(std::move(pod), read);
}

Result<core::Pod> parse_pod_spec(std::string_view json) {
  core::Pod pod;
  const auto tree = parse_json_tree(json, {.bytes = kMaxPodJsonBytes});
  Status read = tree ? read_spec(JsonPlace{*tree}, pod) : fail(tree.error());
  if (read) read = read_names(JsonPlace{*tree}, pod);
  return pod_or_error(std::move(pod), read);
}

std::string format_pod_spec(const core::Pod& pod) {
  ordered_json spec = ordered_json::object();
  if (!pod.name.empty()) spec["metadata"]["name"] = pod.name;
  if (!pod.pod_namespace.empty()) spec["metadata"]["namespace"] = pod.pod_namespace;
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

#include "ctl/explain/manifest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/validation.h"
#include "ctl/cli/command.h"
#include "ctl/cli/table.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;

/// A kind of the API groups core, apps and batch that has a pod, and where.
struct TemplateKind {
  std::string_view kind;
  std::string_view path;  ///< of the pod template
};
constexpr std::array kTemplateKinds = {
    TemplateKind{.kind = "Pod", .path = ""},
    TemplateKind{.kind = "PodTemplate", .path = "template"},
    TemplateKind{.kind = "Deployment", .path = "spec.template"},
    TemplateKind{.kind = "DaemonSet", .path = "spec.template"},
    TemplateKind{.kind = "StatefulSet", .path = "spec.template"},
    TemplateKind{.kind = "ReplicaSet", .path = "spec.template"},
    TemplateKind{.kind = "ReplicationController", .path = "spec.template"},
    TemplateKind{.kind = "Job", .path = "spec.template"},
    TemplateKind{.kind = "CronJob", .path = "spec.jobTemplate.spec.template"},
};

/// The string at `path`; "" if it is absent or another type.
std::string_view text_at(const JsonNode& object, std::string_view path) {
  const JsonNode* const value = json_at(object, path);
  return value != nullptr && value->kind == JsonNode::Kind::kString ? value->text : "";
}

/// Adds the pod of an object, if its kind has one.
/// @param path  of the object in the document
/// @param kind  for an object that does not name its own
/// @return the object's kind
std::string_view add_pod(const JsonNode& object, std::string_view path, std::string_view kind,
                         std::vector<ManifestPod>& pods) {
  if (const std::string_view own = text_at(object, "kind"); !own.empty()) kind = own;
  // A pasted pod may lack its kind; all other objects need one.
  const bool is_pod = kind.empty() && json_at(object, "spec.containers") != nullptr;
  const auto found = std::ranges::find(kTemplateKinds, is_pod ? "Pod" : kind, &TemplateKind::kind);
  if (found == kTemplateKinds.end()) return kind;
  const std::string space = printable(text_at(object, "metadata.namespace"));
  const std::string name = printable(text_at(object, "metadata.name"));
  pods.push_back({.title = cat(found->kind, " ", space, space.empty() ? "" : "/",
                               name.empty() ? "(no name)" : name),
                  .node = json_at(object, found->path),
                  .path = path_in(path, found->path)});
  return kind;
}

/// The length of the JSON object that `text` begins with, without judging it; npos if there is none
/// or it does not end.
std::size_t object_length(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size() && text.front() == '{'; ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++at;
    if (quoted) continue;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

/// The JSON documents of a text, each with the white space around it; none if it is not JSON.
std::vector<Document> parse_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<Document> documents;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
    const std::size_t length = object_length(text.substr(begin));
    if (length == std::string_view::npos) return {};
    // White space at the end belongs to the last document.
    const bool last = text.find_first_not_of(kSpace, begin + length) == std::string_view::npos;
    const std::string_view document = text.substr(0, last ? text.size() : begin + length);
    auto tree = codec::parse_json_tree(document, {.bytes = kMaxInput, .values = codec::kUnbounded});
    if (!tree) return {};
    documents.push_back({.text = document, .tree = *std::move(tree)});
    text.remove_prefix(document.size());
  }
  return documents;
}

/// Where a pod has its annotations.
constexpr std::string_view kAnnotations = "metadata.annotations";

/// Unknown fields that are reported of one document: of a file that is not a manifest, more would
/// only cost time.
constexpr std::size_t kMaxUnknown = 32;

// The fields of Kubernetes' objects that podqos reads, whether podqos reads them or not: all of
// 1.36, and those of earlier releases. Objects below others, such as affinity, are not checked.

/// staging/src/k8s.io/api/core/v1/types.go Pod, PodTemplateSpec.
constexpr std::string_view kPodFields = "apiVersion kind metadata spec status";
/// staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go ObjectMeta.
constexpr std::string_view kMetadataFields =
    "name generateName namespace selfLink uid resourceVersion generation "
    "creationTimestamp deletionTimestamp deletionGracePeriodSeconds labels annotations "
    "ownerReferences finalizers clusterName managedFields";
/// types.go PodSpec.
constexpr std::string_view kSpecFields =
    "volumes initContainers containers ephemeralContainers restartPolicy "
    "terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector "
    "serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork "
    "hostPID hostIPC shareProcessNamespace securityContext imagePullSecrets hostname "
    "subdomain affinity schedulerName tolerations hostAliases priorityClassName priority "
    "dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy "
    "overhead topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates "
    "resourceClaims resources hostnameOverride workloadRef schedulingGroup";
/// types.go Container, EphemeralContainer.
constexpr std::string_view kContainerFields =
    "name image command args workingDir ports envFrom env resources resizePolicy "
    "restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe "
    "readinessProbe startupProbe lifecycle terminationMessagePath "
    "terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty "
    "targetContainerName";
/// types.go ResourceRequirements.
constexpr std::string_view kResourceFields = "limits requests claims";

/// The fields of a pod and of the objects below it that are checked.
struct KnownFields {
  std::string_view name;  ///< in the object above, which may have a list of these; "": the pod
  std::string_view fields;
};
constexpr std::array kKnown = {
    KnownFields{.name = "", .fields = kPodFields},
    KnownFields{.name = "metadata", .fields = kMetadataFields},
    KnownFields{.name = "spec", .fields = kSpecFields},
    KnownFields{.name = "containers", .fields = kContainerFields},
    KnownFields{.name = "initContainers", .fields = kContainerFields},
    KnownFields{.name = "ephemeralContainers", .fields = kContainerFields},
    KnownFields{.name = "resources", .fields = kResourceFields},
};

/// Adds the unknown fields of a value and of those below it, as kubectl's strict decoding reports
/// them.
/// @param name  in kKnown
/// @param path  of the value in the document
// NOLINTNEXTLINE(misc-no-recursion): as deep as the JSON text
void check_fields(const JsonNode& value, std::string_view name, const std::string& path,
                  std::vector<std::string>& warnings) {
  const auto known = std::ranges::find(kKnown, name, &KnownFields::name);
  if (known == kKnown.end()) return;
  if (value.kind == JsonNode::Kind::kArray) {
    for (std::size_t i = 0; i < value.children.size(); ++i)
      check_fields(value.children[i], name, cat(path, "[", i, "]"), warnings);
    return;
  }
  const std::vector<std::string> names = parts_of(known->fields, ' ');
  for (const JsonNode& field : value.children) {
    if (has_word(known->fields, field.key)) {
      check_fields(field, field.key, path_in(path, field.key), warnings);
      continue;
    }
    if (warnings.size() >= kMaxUnknown) {
      if (warnings.size() == kMaxUnknown) warnings.emplace_back("more unknown fields");
      return;
    }
    const std::string nearest = codec::nearest_name(field.key, {names.begin(), names.end()});
    warnings.push_back(cat("unknown field \"", path_in(path, printable(field.key)), "\"",
                           nearest.empty() ? "" : cat("; did you mean ", nearest, "?")));
  }
}

/// What podqos would refuse of the pod's podqos.io annotations, each by itself and all together.
void check_annotations(const ManifestPod& pod, std::vector<std::string>& warnings) {
  const JsonNode* const written = json_at(*pod.node, kAnnotations);
  if (written == nullptr) return;
  const auto check = [&](const core::Annotations& annotations) {
    const auto parsed = codec::parse_podqos_annotations(annotations);
    if (!parsed) warnings.push_back(parsed.error().message);
    return parsed.has_value();
  };
  bool right = true;
  for (const JsonNode& annotation : written->children)
    right = check({{std::string{annotation.key}, std::string{annotation.text}}}) && right;
  if (right) check(annotations_of(pod));
}

}  // namespace

Result<std::vector<Document>> parse_manifest(std::string_view text) {
  auto documents = parse_json(text);
  if (!documents.empty()) return documents;
  return parse_yaml(text);
}

std::vector<ManifestPod> pods_in(std::span<const Document> documents) {
  constexpr std::string_view kList = "List";
  std::vector<ManifestPod> pods;
  for (const Document& document : documents) {
    std::string_view kind = add_pod(document.tree, "", "", pods);
    const JsonNode* const items = json_at(document.tree, "items");
    if (!kind.ends_with(kList) || items == nullptr || items->kind != JsonNode::Kind::kArray)
      continue;
    // Items of a typed list may lack their kind; lists do not nest.
    kind.remove_suffix(kList.size());
    for (std::size_t i = 0; i < items->children.size(); ++i)
      add_pod(items->children[i], cat("items.", i), kind, pods);
  }
  return pods;
}

Result<core::Pod> admitted_pod(const JsonNode& node) {
  PODQOS_ASSIGN(auto pod, codec::parse_pod(node));
  if (!pod.uid.empty()) {
    if (auto uid = core::check_pod_uid(pod.uid); !uid)
      return fail(std::move(uid).error().with_context("metadata.uid"));
  }
  core::Pod defaulted = core::with_api_defaults(std::move(pod));
  const std::vector<std::string> errors = core::validate_manifest(defaulted);
  if (!errors.empty()) return fail(ErrorCode::kInvalidArgument, join(errors, "; "));
  return defaulted;
}

Result<core::Pod> admitted_pod(const ManifestPod& pod) {
  if (pod.node == nullptr)
    return fail(ErrorCode::kInvalidArgument, cat(pod.title, ": has no pod template"));
  auto admitted = admitted_pod(*pod.node);
  if (!admitted) return fail(std::move(admitted).error().with_context(pod.title));
  return core::with_priority_of_class(*std::move(admitted));
}

core::Annotations annotations_of(const ManifestPod& pod) {
  core::Annotations annotations;
  const JsonNode* const written = json_at(*pod.node, kAnnotations);
  if (written == nullptr) return annotations;
  for (const JsonNode& annotation : written->children)
    annotations.emplace(annotation.key, annotation.text);
  return annotations;
}

std::vector<std::string> manifest_warnings(const ManifestPod& pod) {
  std::vector<std::string> warnings;
  if (pod.node == nullptr) return warnings;
  check_fields(*pod.node, "", pod.path, warnings);
  check_annotations(pod, warnings);
  // Before defaulting, which makes requests of limits.
  const core::Pod parsed = codec::parse_pod(*pod.node).value_or(core::Pod{});
  const auto fractions = core::fractional_amounts(parsed);
  for (const std::string& amount : fractions)
    warnings.push_back(cat(amount, " Kubernetes rounds it up to whole bytes"));
  if (fractions.empty())
    std::ranges::move(core::low_memory_limits(parsed), std::back_inserter(warnings));
  return warnings;
}

void print_warnings(std::span<const ManifestPod> pods, const std::string& file) {
  for (const ManifestPod& pod : pods)
    for (const std::string& warning : manifest_warnings(pod))
      warn(cat("warning: ", file, ": ", pod.title, ": ", warning));
}

}  // namespace podqos::ctl

#include "ctl/manifest.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/validation.h"
#include "ctl/json_text.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;

/// A kind that has a pod, and where.
struct TemplateKind {
  std::string_view kind;
  std::string_view path;  ///< of the pod template
};
/// Kinds of the API groups core, apps and batch with a pod or pod template.
constexpr std::array kKinds = {
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
  std::string_view own = text_at(object, "kind");
  if (own.empty()) own = kind;
  // A pasted pod may lack its kind; all other objects need one.
  const bool is_pod = own.empty() && json_at(object, "spec.containers") != nullptr;
  const auto found = std::ranges::find(kKinds, is_pod ? "Pod" : own, &TemplateKind::kind);
  if (found == kKinds.end()) return own;
  const std::string space = printable(text_at(object, "metadata.namespace"));
  const std::string name = printable(text_at(object, "metadata.name"));
  pods.push_back({.title = cat(found->kind, " ", space, space.empty() ? "" : "/",
                               name.empty() ? "(no name)" : name),
                  .node = json_at(object, found->path),
                  .path = path_in(path, found->path),
                  .fields = found->path});
  return own;
}

/// The length of the JSON object that `text` begins with, without judging it; npos if it does not
/// end.
std::size_t object_length(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth <= 1) return at + 1;
      --depth;
    }
  }
  return std::string_view::npos;
}

/// The JSON documents of a text, each with the white space around it; none if it is not JSON.
std::vector<Document> parse_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  constexpr codec::JsonBounds kBounds{.bytes = kMaxInput, .values = codec::kUnbounded};
  std::vector<Document> documents;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
    const std::size_t length = object_length(text.substr(begin));
    if (!text.substr(begin).starts_with('{') || length == std::string_view::npos) return {};
    std::size_t end = begin + length;
    // White space at the end belongs to the last document.
    if (text.find_first_not_of(kSpace, end) == std::string_view::npos) end = text.size();
    auto tree = codec::parse_json_tree(text.substr(0, end), kBounds);
    if (!tree) return {};
    documents.push_back({.text = text.substr(0, end), .tree = *std::move(tree)});
    text.remove_prefix(end);
  }
  return documents;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest{.is_yaml = false, .documents = parse_json(text)};
  if (!manifest.documents.empty()) return manifest;
  manifest.is_yaml = true;
  PODQOS_ASSIGN(manifest.documents, parse_yaml(text));
  return manifest;
}

/// Items of a typed list may lack their kind; lists do not nest.
std::vector<ManifestPod> Manifest::pods_of(const Document& document) {
  constexpr std::string_view kList = "List";
  std::vector<ManifestPod> pods;
  std::string_view kind = add_pod(document.tree, "", "", pods);
  const JsonNode* const items = json_member(document.tree, "items");
  if (!kind.ends_with(kList) || items == nullptr || items->kind != JsonNode::Kind::kArray)
    return pods;
  kind.remove_suffix(kList.size());
  for (std::size_t i = 0; i < items->children.size(); ++i)
    add_pod(items->children[i], cat("items.", i), kind, pods);
  return pods;
}

std::vector<ManifestPod> Manifest::pods() const {
  std::vector<ManifestPod> all;
  for (const Document& document : documents)
    std::ranges::move(pods_of(document), std::back_inserter(all));
  return all;
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

}  // namespace podqos::ctl

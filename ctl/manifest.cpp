#include "ctl/manifest.h"

#include <array>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/core/defaulting.h"
#include "common/core/naming.h"
#include "common/core/validation.h"
#include "ctl/json_text.h"
#include "ctl/table.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;

/// A kind that has a pod, and where.
struct TemplateKind {
  std::string_view kind;
  std::string_view path;  ///< of the pod template, separated by '/'
};
/// Kinds of the API groups core, apps and batch with a pod or pod template.
constexpr std::array kKinds = {
    TemplateKind{.kind = "Pod", .path = ""},
    TemplateKind{.kind = "PodTemplate", .path = "template"},
    TemplateKind{.kind = "Deployment", .path = "spec/template"},
    TemplateKind{.kind = "DaemonSet", .path = "spec/template"},
    TemplateKind{.kind = "StatefulSet", .path = "spec/template"},
    TemplateKind{.kind = "ReplicaSet", .path = "spec/template"},
    TemplateKind{.kind = "ReplicationController", .path = "spec/template"},
    TemplateKind{.kind = "Job", .path = "spec/template"},
    TemplateKind{.kind = "CronJob", .path = "spec/jobTemplate/spec/template"},
};

/// Splits at each '/'; "" gives an empty path.
std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    parts.emplace_back(path.substr(0, end));
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return parts;
}

/// The string at `path`; "" if it is absent or another type.
std::string text_at(const JsonNode& json, const std::vector<std::string>& path) {
  const JsonNode* const value = json_at(json, path);
  const bool text = value != nullptr && value->kind == JsonNode::Kind::kString;
  return text ? std::string{value->text} : "";
}

/// Document::pod_path for a document.
std::optional<std::vector<std::string>> pod_path(const JsonNode& json) {
  const std::string kind = text_at(json, {"kind"});
  // A pasted pod may lack its kind; all other documents need one.
  if (kind.empty() && json_at(json, std::array{std::string{"spec"}, std::string{"containers"}}))
    return std::vector<std::string>{};
  for (const TemplateKind& known : kKinds)
    if (known.kind == kind) return split_path(known.path);
  return std::nullopt;
}

/// A document with its pod path, items not looked at.
Document document_of(std::string text, std::string json) {
  Document document{.text = std::move(text), .json = std::move(json), .pod_path = {}, .items = {}};
  document.pod_path = pod_path(json_tree(document.json));
  return document;
}

/// The document with the items of a kind List; lists do not nest.
Document with_items(Document document) {
  const codec::JsonTree tree = json_tree(document.json);
  if (text_at(tree, {"kind"}) != "List") return document;
  for (const JsonNode& item : json_elements(json_member(tree, "items")))
    document.items.push_back(document_of(std::string{item.raw}, std::string{item.raw}));
  return document;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool like_json = first != std::string_view::npos && text[first] == '{';
  constexpr codec::JsonBounds kBounds{.bytes = kMaxInput, .values = codec::kUnbounded};
  if (like_json && codec::parse_json_tree(text, kBounds)) {
    Manifest manifest;
    manifest.documents.push_back(with_items(document_of(std::string{text}, std::string{text})));
    return manifest;
  }
  auto documents = parse_yaml(text);
  if (!documents) return fail(std::move(documents).error());
  Manifest manifest{.is_yaml = true, .documents = {}};
  for (YamlDocument& document : *documents)
    manifest.documents.push_back(
        with_items(document_of(std::move(document.text), std::move(document.json))));
  return manifest;
}

std::vector<const Document*> documents_with_pods(const Manifest& manifest) {
  std::vector<const Document*> found;
  for (const Document& document : manifest.documents) {
    if (document.pod_path) found.push_back(&document);
    for (const Document& item : document.items)
      if (item.pod_path) found.push_back(&item);
  }
  return found;
}

Result<core::Pod> admitted_pod(std::string_view json) {
  auto pod = codec::parse_pod(json);
  if (!pod) return pod;
  if (!pod->uid.empty()) {
    if (auto uid = core::check_pod_uid(pod->uid); !uid)
      return fail(std::move(uid).error().with_context("metadata.uid"));
  }
  core::Pod defaulted = core::with_api_defaults(std::move(*pod));
  const std::vector<std::string> errors = core::validate_manifest(defaulted);
  if (!errors.empty()) return fail(ErrorCode::kInvalidArgument, join(errors, "; "));
  return defaulted;
}

namespace {

/// The pod of a document; a pod template becomes a Pod with its metadata and spec.
Result<core::Pod> pod_in(const Document& document) {
  if (!document.pod_path) return fail(ErrorCode::kInvalidArgument, "has no pod");
  if (document.pod_path->empty()) return admitted_pod(document.json);
  const codec::JsonTree tree = json_tree(document.json);
  const JsonNode* const holder = json_at(tree, *document.pod_path);
  if (holder == nullptr) return fail(ErrorCode::kInvalidArgument, "has no pod template");
  const JsonNode* const metadata = json_member(*holder, "metadata");
  const JsonNode* const spec = json_member(*holder, "spec");
  if (spec == nullptr) return fail(ErrorCode::kInvalidArgument, "its pod template has no spec");
  return admitted_pod(cat(R"({"apiVersion":"v1","kind":"Pod","metadata":)",
                          metadata == nullptr ? "{}" : metadata->raw, R"(,"spec":)", spec->raw,
                          "}"));
}

}  // namespace

Result<core::Pod> pod_of(const Document& document) {
  auto pod = pod_in(document);
  if (!pod) return pod;
  return core::with_priority_of_class(std::move(*pod));
}

std::string title_of(const Document& document) {
  const codec::JsonTree tree = json_tree(document.json);
  const std::string kind = text_at(tree, {"kind"});
  const std::string name = text_at(tree, {"metadata", "name"});
  const std::string space = text_at(tree, {"metadata", "namespace"});
  return cat(kind.empty() ? "Pod" : printable(kind), " ", printable(space),
             space.empty() ? "" : "/", name.empty() ? "(no name)" : printable(name));
}

}  // namespace podqos::ctl

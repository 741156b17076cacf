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

/// Document::pod_path for a document of this kind.
std::optional<std::vector<std::string>> pod_path(const JsonNode& json, std::string_view kind) {
  // A pasted pod may lack its kind; all other documents need one.
  if (kind.empty() && json_at(json, std::array{std::string{"spec"}, std::string{"containers"}}))
    return std::vector<std::string>{};
  for (const TemplateKind& known : kKinds)
    if (known.kind == kind) return split_path(known.path);
  return std::nullopt;
}

/// A document with its pod path, items not looked at.
/// @param kind  for a document that does not name its own
Document document_of(std::string text, std::string json, std::string_view kind = "") {
  Document document{
      .text = std::move(text), .json = std::move(json), .pod_path = {}, .kind = {}, .items = {}};
  const codec::JsonTree tree = json_tree(document.json);
  document.kind = text_at(tree, {"kind"});
  if (document.kind.empty()) document.kind = kind;
  document.pod_path = pod_path(tree, document.kind);
  return document;
}

/// The document with its items, if its kind is List or PodList, DeploymentList and the like, whose
/// items may lack their kind; lists do not nest.
Document with_items(Document document) {
  constexpr std::string_view kList = "List";
  if (!document.kind.ends_with(kList)) return document;
  const std::string kind = document.kind.substr(0, document.kind.size() - kList.size());
  const codec::JsonTree tree = json_tree(document.json);
  for (const JsonNode& item : json_elements(json_member(tree, "items")))
    document.items.push_back(document_of(std::string{item.raw}, std::string{item.raw}, kind));
  return document;
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
std::vector<std::string_view> split_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  constexpr codec::JsonBounds kBounds{.bytes = kMaxInput, .values = codec::kUnbounded};
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos || text[begin] != '{') return {};
    const std::size_t length = object_length(text.substr(begin));
    if (length == std::string_view::npos) return {};
    std::size_t end = begin + length;
    // White space at the end belongs to the last document.
    if (text.find_first_not_of(kSpace, end) == std::string_view::npos) end = text.size();
    parts.push_back(text.substr(0, end));
    if (!codec::parse_json_tree(parts.back(), kBounds)) return {};
    text.remove_prefix(end);
  }
  return parts;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  for (const std::string_view part : split_json(text))
    manifest.documents.push_back(with_items(document_of(std::string{part}, std::string{part})));
  if (!manifest.documents.empty()) return manifest;
  PODQOS_ASSIGN(auto documents, parse_yaml(text));
  manifest.is_yaml = true;
  for (YamlDocument& document : documents)
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
  PODQOS_ASSIGN(auto pod, codec::parse_pod(json));
  if (!pod.uid.empty()) {
    if (auto uid = core::check_pod_uid(pod.uid); !uid)
      return fail(std::move(uid).error().with_context("metadata.uid"));
  }
  core::Pod defaulted = core::with_api_defaults(std::move(pod));
  const std::vector<std::string> errors = core::validate_manifest(defaulted);
  if (!errors.empty()) return fail(ErrorCode::kInvalidArgument, join(errors, "; "));
  return defaulted;
}

Result<std::string> pod_json(const Document& document) {
  if (!document.pod_path) return fail(ErrorCode::kInvalidArgument, "has no pod");
  if (document.pod_path->empty()) return document.json;
  const codec::JsonTree tree = json_tree(document.json);
  const JsonNode* const holder = json_at(tree, *document.pod_path);
  if (holder == nullptr) return fail(ErrorCode::kInvalidArgument, "has no pod template");
  const JsonNode* const metadata = json_member(*holder, "metadata");
  const JsonNode* const spec = json_member(*holder, "spec");
  if (spec == nullptr) return fail(ErrorCode::kInvalidArgument, "its pod template has no spec");
  return cat(R"({"apiVersion":"v1","kind":"Pod","metadata":)",
             metadata == nullptr ? "{}" : metadata->raw, R"(,"spec":)", spec->raw, "}");
}

Result<core::Pod> pod_of(const Document& document) {
  PODQOS_ASSIGN(const auto json, pod_json(document));
  PODQOS_ASSIGN(auto pod, admitted_pod(json));
  return core::with_priority_of_class(std::move(pod));
}

std::string title_of(const Document& document) {
  const codec::JsonTree tree = json_tree(document.json);
  const std::string name = text_at(tree, {"metadata", "name"});
  const std::string space = text_at(tree, {"metadata", "namespace"});
  return cat(document.kind.empty() ? "Pod" : printable(document.kind), " ", printable(space),
             space.empty() ? "" : "/", name.empty() ? "(no name)" : printable(name));
}

}  // namespace podqos::ctl

#include "ctl/manifest.h"

#include <array>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/validation.h"
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

/// The path to the pod template of an object of this kind; empty for a Pod, nullopt for a kind
/// without pods.
std::optional<std::vector<std::string>> template_path(const JsonNode& object,
                                                      std::string_view kind) {
  // A pasted pod may lack its kind; all other objects need one.
  if (kind.empty() && json_at(object, std::array{std::string{"spec"}, std::string{"containers"}}))
    return std::vector<std::string>{};
  for (const TemplateKind& known : kKinds)
    if (known.kind == kind) return split_path(known.path);
  return std::nullopt;
}

/// Adds the pod of an object, if its kind has one.
/// @param path  of the object in the document
/// @param kind  for an object that does not name its own
/// @return the object's kind
std::string add_pod(const JsonNode& object, std::vector<std::string> path, std::string_view kind,
                    std::vector<ManifestPod>& pods) {
  std::string own = text_at(object, {"kind"});
  if (own.empty()) own = kind;
  const auto steps = template_path(object, own);
  if (!steps) return own;
  const std::string name = printable(text_at(object, {"metadata", "name"}));
  const std::string space = printable(text_at(object, {"metadata", "namespace"}));
  ManifestPod& pod = pods.emplace_back();
  pod.title = cat(own.empty() ? "Pod" : printable(own), " ", space, space.empty() ? "" : "/",
                  name.empty() ? "(no name)" : name);
  if (const JsonNode* const holder = json_at(object, *steps)) pod.json = holder->raw;
  pod.path = std::move(path);
  pod.path.insert(pod.path.end(), steps->begin(), steps->end());
  pod.fields = join(*steps, ".");
  return own;
}

/// A document with its pods. Items of a typed list may lack their kind; lists do not nest.
Document document_of(std::string text, std::string json) {
  constexpr std::string_view kList = "List";
  Document document{.text = std::move(text), .json = std::move(json), .pods = {}};
  const codec::JsonTree tree = json_tree(document.json);
  std::string kind = add_pod(tree, {}, "", document.pods);
  const JsonNode* const items = json_member(tree, "items");
  if (!kind.ends_with(kList) || items == nullptr || items->kind != JsonNode::Kind::kArray)
    return document;
  kind.resize(kind.size() - kList.size());
  for (std::size_t i = 0; i < items->children.size(); ++i)
    add_pod(items->children[i], {"items", std::to_string(i)}, kind, document.pods);
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
    manifest.documents.push_back(document_of(std::string{part}, std::string{part}));
  if (!manifest.documents.empty()) return manifest;
  PODQOS_ASSIGN(auto documents, parse_yaml(text));
  manifest.is_yaml = true;
  for (YamlDocument& document : documents)
    manifest.documents.push_back(document_of(std::move(document.text), std::move(document.json)));
  return manifest;
}

std::vector<const ManifestPod*> pods_of(const Manifest& manifest) {
  std::vector<const ManifestPod*> found;
  for (const Document& document : manifest.documents)
    for (const ManifestPod& pod : document.pods)
      found.push_back(&pod);
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

Result<core::Pod> admitted_pod(const ManifestPod& pod) {
  if (pod.json.empty())
    return fail(ErrorCode::kInvalidArgument, cat(pod.title, ": has no pod template"));
  auto admitted = admitted_pod(pod.json);
  if (!admitted) return fail(std::move(admitted).error().with_context(pod.title));
  return core::with_priority_of_class(*std::move(admitted));
}

}  // namespace podqos::ctl

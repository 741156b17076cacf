#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/pod.h"

namespace podqos::ctl {

/// A document of a manifest file.
struct Document {
  std::string text;  ///< as its author wrote it
  std::string json;  ///< its value as JSON text; "" for a document that only has comments
  /// Path to the object that holds the pod's metadata and spec: {} for kind Pod, {"spec",
  /// "template"} for a Deployment; nullopt for a kind without a pod.
  std::optional<std::vector<std::string>> pod_path;
  std::string kind;  ///< as written, else by the kind of its list; "" if neither tells
  /// The items of a kind List or PodList, DeploymentList and the like; `text` and `json` of an item
  /// are both JSON.
  std::vector<Document> items;
};

/// A manifest file: JSON documents, one after the other, or a stream of YAML documents.
struct Manifest {
  bool is_yaml = false;
  std::vector<Document> documents;
};

/// Parses a manifest: JSON if the text starts with "{" and is one or more JSON documents, else
/// YAML.
/// @note apimachinery/pkg/util/yaml YAMLOrJSONDecoder
/// @return kInvalidArgument or kTooLarge, see parse_yaml().
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text);

/// The documents with a pod or pod template, including items of lists, in order. The pointers are
/// into `manifest`.
[[nodiscard]] std::vector<const Document*> documents_with_pods(const Manifest& manifest);

/// The pod of a document as JSON; a pod template becomes a Pod with its metadata and spec.
/// @return kInvalidArgument if the document has no pod.
[[nodiscard]] Result<std::string> pod_json(const Document& document);

/// The pod of a document, with API defaults and the priority of its priorityClassName.
/// @return kInvalidArgument if the document has no pod or an invalid one, with the API server's
///         message for a pod that the API server would reject.
[[nodiscard]] Result<core::Pod> pod_of(const Document& document);

/// Parses a Pod from JSON text, applies the API defaults and validates it as the API server does.
/// @return kInvalidArgument with the API server's messages, joined by "; ".
[[nodiscard]] Result<core::Pod> admitted_pod(std::string_view json);

/// Kind, namespace and name of a document for messages: "Pod default/web", "Deployment web".
[[nodiscard]] std::string title_of(const Document& document);

/// What is most likely a mistake in the pod of a document, although Kubernetes and podqos accept
/// it: fields that Kubernetes does not have, beside those that podqos reads; amounts that are not
/// whole bytes, which are rounded up; podqos.io annotations that podqos would refuse.
/// @param document  one that pod_of() accepts
/// @return a sentence each, with the path in the document or the annotation
[[nodiscard]] std::vector<std::string> manifest_warnings(const Document& document);

/// Prints the warnings of all pods of a manifest to standard error.
/// @param file  its name for the messages
void print_warnings(const Manifest& manifest, const std::string& file);

}  // namespace podqos::ctl

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::ctl {

/// What a manifest without pods is refused with.
constexpr std::string_view kNoPod =
    "no Pod found: expected a Pod, a workload with a pod template or a List of these";

/// A pod or pod template of a manifest.
struct ManifestPod {
  std::string title;              ///< kind, namespace and name: "Pod default/web", "Deployment web"
  std::string json;               ///< its metadata and spec; "" without a template
  std::vector<std::string> path;  ///< to that in the document: {"items", "0", "spec", "template"}
  std::string fields;  ///< the same in the object that has the title: "", "spec.template"
};

/// A document of a manifest file.
struct Document {
  std::string text;  ///< as its author wrote it
  std::string json;  ///< its value as JSON text; "" for a document that only has comments
  /// The pod of the document, or the pods of the items of a kind List, PodList, DeploymentList and
  /// the like.
  std::vector<ManifestPod> pods;
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

/// The pods of all documents, in order. The pointers are into `manifest`.
[[nodiscard]] std::vector<const ManifestPod*> pods_of(const Manifest& manifest);

/// The pod with API defaults and the priority of its priorityClassName.
/// @return kInvalidArgument, with the title, for an invalid pod: for one that the API server would
///         reject with its message.
[[nodiscard]] Result<core::Pod> admitted_pod(const ManifestPod& pod);

/// Parses a Pod from JSON text, applies the API defaults and validates it as the API server does.
/// @return kInvalidArgument with the API server's messages, joined by "; ".
[[nodiscard]] Result<core::Pod> admitted_pod(std::string_view json);

/// What is most likely a mistake in a pod, although Kubernetes and podqos accept
/// it: fields that Kubernetes does not have, beside those that podqos reads; amounts that are not
/// whole bytes, which are rounded up; podqos.io annotations that podqos would refuse.
/// @param pod  one that admitted_pod() accepts
/// @return a sentence each, with the path in the object or the annotation
[[nodiscard]] std::vector<std::string> manifest_warnings(const ManifestPod& pod);

/// Prints the warnings of all pods of a manifest to standard error.
/// @param file  its name for the messages
void print_warnings(const Manifest& manifest, const std::string& file);

}  // namespace podqos::ctl

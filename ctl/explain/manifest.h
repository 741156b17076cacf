#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/request.h"
#include "ctl/explain/document.h"

namespace podqos::ctl {

/// What a manifest without pods is refused with.
constexpr std::string_view kNoPod =
    "no Pod found: expected a Pod, a workload with a pod template or a List of these";

/// A pod or pod template of a manifest.
struct ManifestPod {
  std::string title;  ///< kind, namespace and name: "Pod default/web", "Deployment web"
  const codec::JsonNode* node = nullptr;  ///< has its metadata and spec; nullptr without a template
  std::string path;                       ///< of the node: "items.0.spec.template"
};

/// Parses a manifest: JSON documents, one after the other, if the text is that, else a stream of
/// YAML documents.
/// @param text  must outlive the documents
/// @note apimachinery/pkg/util/yaml YAMLOrJSONDecoder
/// @return kInvalidArgument or kTooLarge, see parse_yaml().
[[nodiscard]] Result<std::vector<Document>> parse_manifest(std::string_view text);

/// The pods of documents in their order, and those of the items of a kind List, PodList,
/// DeploymentList and the like. The nodes are the documents'.
[[nodiscard]] std::vector<ManifestPod> pods_in(std::span<const Document> documents);

/// The pod with API defaults and the priority of its priorityClassName.
/// @return kInvalidArgument, with the title, for an invalid pod: for one that the API server would
///         reject with its message.
[[nodiscard]] Result<core::Pod> admitted_pod(const ManifestPod& pod);

/// Reads a Pod, applies the API defaults and validates it as the API server does.
/// @return kInvalidArgument with the API server's messages, joined by "; ".
[[nodiscard]] Result<core::Pod> admitted_pod(const codec::JsonNode& pod);

/// The annotations in the pod's metadata.
/// @param pod  one that admitted_pod() accepts
[[nodiscard]] core::Annotations annotations_of(const ManifestPod& pod);

/// What is most likely a mistake in a pod, although Kubernetes and podqos accept it: fields that
/// Kubernetes does not have, beside those that podqos reads; amounts that are not whole bytes,
/// which are rounded up; memory limits with which no container starts; podqos.io annotations that
/// podqos would refuse.
/// @param pod  one that admitted_pod() accepts
/// @return a sentence each, with the path in the document or the annotation
[[nodiscard]] std::vector<std::string> manifest_warnings(const ManifestPod& pod);

/// Prints the warnings of pods to standard error.
/// @param file  its name for the messages
void print_warnings(std::span<const ManifestPod> pods, const std::string& file);

}  // namespace podqos::ctl

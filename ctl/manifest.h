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
  std::string json;  ///< its value; "" for a document of nothing but comments
  /// Path to the object that holds the pod's metadata and spec: {} for kind Pod, {"spec",
  /// "template"} for a Deployment; nullopt for a kind that has no pod.
  std::optional<std::vector<std::string>> pod_path;
  /// Of kind List: what it lists, each as JSON; `text` is the item's JSON too.
  std::vector<Document> items;
};

struct Manifest {
  bool is_yaml = false;
  std::vector<Document> documents;
};

/// Reads JSON or YAML, by looking at the text.
/// @return kInvalidArgument or kTooLarge, see check_json and parse_yaml.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text);

/// The documents that have a pod, items of lists among them, in order.
[[nodiscard]] std::vector<const Document*> documents_with_pods(const Manifest& manifest);

/// The pod of a document that has one, API defaults applied, and the priority of its class filled
/// in.
/// @return kInvalidArgument for what is no pod, and with the API server's own sentences for one
/// that
///         it would refuse.
[[nodiscard]] Result<core::Pod> pod_of(const Document& document);

/// Reads a Pod from JSON text, applies the API defaults and refuses what the API server refuses.
[[nodiscard]] Result<core::Pod> admitted_pod(std::string_view json);

/// "Pod default/web", "Deployment web": what a person calls the document.
[[nodiscard]] std::string title_of(const Document& document);

}  // namespace podqos::ctl

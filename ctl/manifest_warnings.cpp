#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/validation.h"
#include "ctl/command.h"
#include "ctl/json_text.h"
#include "ctl/manifest.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;

// The fields of Kubernetes' objects that podqos reads, whether podqos reads them or not: all of
// 1.36, and those of earlier releases. Objects below others, such as affinity, are not checked.
/// Unknown fields that are reported of one document: of a file that is no manifest at all, more
/// would only cost time.
constexpr std::size_t kMaxUnknown = 32;

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

/// The words of a text.
std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
  }
  return words;
}

/// Fields of a known object, as kubectl's strict decoding reports them.
class FieldChecker {
 public:
  explicit FieldChecker(std::vector<std::string>& warnings) : warnings_(warnings) {}

  void check_pod(const JsonNode& pod, const std::string& path) {
    check(pod, path, kPodFields);
    if (const JsonNode* metadata = json_member(pod, "metadata"))
      check(*metadata, cat(path, "metadata."), kMetadataFields);
    if (const JsonNode* spec = json_member(pod, "spec")) check_spec(*spec, cat(path, "spec."));
  }

 private:
  void check_spec(const JsonNode& spec, const std::string& path) {
    check(spec, path, kSpecFields);
    check_resources(spec, path);
    for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
      std::size_t index = 0;
      for (const JsonNode& container : json_elements(json_member(spec, list))) {
        const std::string below = cat(path, list, "[", index++, "].");
        check(container, below, kContainerFields);
        check_resources(container, below);
      }
    }
  }

  void check_resources(const JsonNode& holder, const std::string& path) {
    if (const JsonNode* resources = json_member(holder, "resources"))
      check(*resources, cat(path, "resources."), kResourceFields);
  }

  /// @param path   of the object, with a dot at its end
  /// @param known  the fields that it may have
  void check(const JsonNode& object, std::string_view path, std::string_view known) {
    const std::vector<std::string_view> names = split_words(known);
    for (const JsonNode& field : object.children) {
      if (warnings_.size() > kMaxUnknown) return;
      if (std::ranges::find(names, field.key) != names.end()) continue;
      if (warnings_.size() == kMaxUnknown) {
        warnings_.emplace_back("more unknown fields");
        return;
      }
      const std::string nearest = codec::nearest_name(field.key, names);
      warnings_.push_back(cat("unknown field \"", path, printable(field.key), "\"",
                              nearest.empty() ? "" : cat("; did you mean ", nearest, "?")));
    }
  }

  std::vector<std::string>& warnings_;
};

/// What podqos would refuse of the pod's podqos.io annotations, each by itself and all together.
void check_annotations(const JsonNode& pod, std::vector<std::string>& warnings) {
  const JsonNode* const metadata = json_member(pod, "metadata");
  const JsonNode* const written =
      metadata == nullptr ? nullptr : json_member(*metadata, "annotations");
  if (written == nullptr) return;
  core::Annotations all;
  bool refused = false;
  for (const JsonNode& annotation : written->children) {
    if (annotation.kind != JsonNode::Kind::kString) continue;
    std::pair entry{std::string{annotation.key}, std::string{annotation.text}};
    if (const auto parsed = codec::parse_podqos_annotations({entry}); !parsed) {
      warnings.push_back(parsed.error().message);
      refused = true;
    }
    all.insert(std::move(entry));
  }
  if (refused) return;
  if (const auto parsed = codec::parse_podqos_annotations(all); !parsed)
    warnings.push_back(parsed.error().message);
}

/// Kubernetes rounds them up; nobody means that.
void check_amounts(std::string_view pod_json, std::vector<std::string>& warnings) {
  // Before defaulting, which makes requests of limits.
  const auto pod = codec::parse_pod(pod_json);
  if (!pod) return;
  std::ranges::transform(core::fractional_amounts(*pod), std::back_inserter(warnings),
                         [](const std::string& amount) {
                           return cat(amount, " Kubernetes rounds it up to whole bytes");
                         });
}

}  // namespace

std::vector<std::string> manifest_warnings(const Document& document) {
  std::vector<std::string> warnings;
  if (!document.pod_path) return warnings;
  const codec::JsonTree tree = json_tree(document.json);
  const JsonNode* const pod = json_at(tree, *document.pod_path);
  if (pod == nullptr) return warnings;
  std::string path;
  for (const std::string& step : *document.pod_path)
    path += cat(step, ".");
  FieldChecker{warnings}.check_pod(*pod, path);
  check_annotations(*pod, warnings);
  if (const auto text = pod_json(document)) check_amounts(*text, warnings);
  return warnings;
}

void print_warnings(const Manifest& manifest, const std::string& file) {
  for (const Document* document : documents_with_pods(manifest)) {
    for (const std::string& warning : manifest_warnings(*document))
      warn(cat("warning: ", file, ": ", title_of(*document), ": ", warning));
  }
}

}  // namespace podqos::ctl

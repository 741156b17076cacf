#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/pod_json.h"
#include "common/codec/settings_json.h"
#include "common/core/kubernetes/validation.h"
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

/// An object below a pod, and the fields that it may have.
struct KnownFields {
  std::string_view place;  ///< "[]" stands for each element of a list
  std::string_view fields;
};
constexpr std::array kKnown = {
    KnownFields{.place = "", .fields = kPodFields},
    KnownFields{.place = "metadata", .fields = kMetadataFields},
    KnownFields{.place = "spec", .fields = kSpecFields},
    KnownFields{.place = "spec.resources", .fields = kResourceFields},
    KnownFields{.place = "spec.containers[]", .fields = kContainerFields},
    KnownFields{.place = "spec.containers[].resources", .fields = kResourceFields},
    KnownFields{.place = "spec.initContainers[]", .fields = kContainerFields},
    KnownFields{.place = "spec.initContainers[].resources", .fields = kResourceFields},
    KnownFields{.place = "spec.ephemeralContainers[]", .fields = kContainerFields},
    KnownFields{.place = "spec.ephemeralContainers[].resources", .fields = kResourceFields},
};

/// Adds the unknown fields of a value and of those below it, as kubectl's strict decoding reports
/// them.
/// @param path   of the value in the document
/// @param place  the same as in kKnown
// NOLINTNEXTLINE(misc-no-recursion): as deep as the JSON text
void check_fields(const JsonNode& value, const std::string& path, const std::string& place,
                  std::vector<std::string>& warnings) {
  if (value.kind == JsonNode::Kind::kArray) {
    for (std::size_t i = 0; i < value.children.size(); ++i)
      check_fields(value.children[i], cat(path, "[", i, "]"), cat(place, "[]"), warnings);
    return;
  }
  const auto known = std::ranges::find(kKnown, place, &KnownFields::place);
  if (known == kKnown.end()) return;
  const std::vector<std::string> names = parts_of(known->fields, ' ');
  for (const JsonNode& field : value.children) {
    if (has_word(known->fields, field.key)) continue;
    if (warnings.size() >= kMaxUnknown) {
      if (warnings.size() == kMaxUnknown) warnings.emplace_back("more unknown fields");
      return;
    }
    const std::string nearest = codec::nearest_name(field.key, {names.begin(), names.end()});
    warnings.push_back(cat("unknown field \"", path_in(path, printable(field.key)), "\"",
                           nearest.empty() ? "" : cat("; did you mean ", nearest, "?")));
  }
  for (const JsonNode& field : value.children)
    check_fields(field, path_in(path, field.key), path_in(place, field.key), warnings);
}

/// What podqos would refuse of the pod's podqos.io annotations, each by itself and all together.
void check_annotations(const JsonNode& pod, std::vector<std::string>& warnings) {
  const JsonNode* const written = json_at(pod, "metadata.annotations");
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
void check_amounts(const JsonNode& node, std::vector<std::string>& warnings) {
  // Before defaulting, which makes requests of limits.
  const auto pod = codec::parse_pod(node);
  if (!pod) return;
  for (const std::string& amount : core::fractional_amounts(*pod))
    warnings.push_back(cat(amount, " Kubernetes rounds it up to whole bytes"));
}

}  // namespace

std::vector<std::string> manifest_warnings(const ManifestPod& pod) {
  std::vector<std::string> warnings;
  if (pod.node == nullptr) return warnings;
  check_fields(*pod.node, std::string{pod.fields}, "", warnings);
  check_annotations(*pod.node, warnings);
  check_amounts(*pod.node, warnings);
  return warnings;
}

void print_warnings(const Manifest& manifest, const std::string& file) {
  for (const ManifestPod& pod : manifest.pods())
    for (const std::string& warning : manifest_warnings(pod))
      warn(cat("warning: ", file, ": ", pod.title, ": ", warning));
}

}  // namespace podqos::ctl

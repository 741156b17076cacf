#include "common/codec/engine_annotations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_place.h"
#include "common/core/cgroups/naming.h"

namespace podqos::codec {

namespace {

using core::Annotations;
using core::EngineAnnotations;
using core::EngineResources;

/// Keys of containerd (cri.), CRI-O (cri-o.) and both (plain); see annotations.h for the sources.
constexpr std::string_view kManager = "io.container.manager";
constexpr std::string_view kCriContainerType = "io.kubernetes.cri.container-type";
constexpr std::string_view kCriSandboxId = "io.kubernetes.cri.sandbox-id";
constexpr std::string_view kCriSandboxUid = "io.kubernetes.cri.sandbox-uid";
constexpr std::string_view kCriSandboxName = "io.kubernetes.cri.sandbox-name";
constexpr std::string_view kCriSandboxNamespace = "io.kubernetes.cri.sandbox-namespace";
constexpr std::string_view kCriContainerName = "io.kubernetes.cri.container-name";
constexpr std::string_view kCriCpuPeriod = "io.kubernetes.cri.sandbox-cpu-period";
constexpr std::string_view kCriCpuQuota = "io.kubernetes.cri.sandbox-cpu-quota";
constexpr std::string_view kCriCpuShares = "io.kubernetes.cri.sandbox-cpu-shares";
constexpr std::string_view kCriMemory = "io.kubernetes.cri.sandbox-memory";
constexpr std::string_view kCrioContainerType = "io.kubernetes.cri-o.ContainerType";
constexpr std::string_view kCrioSandboxId = "io.kubernetes.cri-o.SandboxID";
constexpr std::string_view kCrioSandboxName = "io.kubernetes.cri-o.SandboxName";
constexpr std::string_view kCrioContainerId = "io.kubernetes.cri-o.ContainerID";
constexpr std::string_view kCrioName = "io.kubernetes.cri-o.Name";
constexpr std::string_view kCrioHostnamePath = "io.kubernetes.cri-o.HostnamePath";
constexpr std::string_view kCrioLabels = "io.kubernetes.cri-o.Labels";
constexpr std::string_view kCrioKubeName = "io.kubernetes.cri-o.KubeName";
constexpr std::string_view kCrioNamespace = "io.kubernetes.cri-o.Namespace";
constexpr std::string_view kCrioResources = "io.kubernetes.cri-o.PodLinuxResources";
constexpr std::string_view kCrioResourcesNow = "pod-linux-resources.crio.io";
constexpr std::string_view kCrioOverhead = "io.kubernetes.cri-o.PodLinuxOverhead";
constexpr std::string_view kCrioOverheadNow = "pod-linux-overhead.crio.io";
constexpr std::string_view kPodUid = "io.kubernetes.pod.uid";
constexpr std::string_view kPodName = "io.kubernetes.pod.name";
constexpr std::string_view kPodNamespace = "io.kubernetes.pod.namespace";
constexpr std::string_view kContainerName = "io.kubernetes.container.name";

constexpr std::array<std::string_view, 28> kKeys{
    kManager,          kCriContainerType,    kCriSandboxId,     kCriSandboxUid,
    kCriSandboxName,   kCriSandboxNamespace, kCriContainerName, kCriCpuPeriod,
    kCriCpuQuota,      kCriCpuShares,        kCriMemory,        kCrioContainerType,
    kCrioSandboxId,    kCrioSandboxName,     kCrioContainerId,  kCrioName,
    kCrioHostnamePath, kCrioLabels,          kCrioKubeName,     kCrioNamespace,
    kCrioResources,    kCrioResourcesNow,    kPodUid,           kPodName,
    kPodNamespace,     kContainerName,       kCrioOverhead,     kCrioOverheadNow};

/// The engine whose annotations are trusted.
enum class Manager : std::uint8_t { kPodman, kCrio, kContainerd, kOther };

const std::string* find(const Annotations& annotations, std::string_view key) {
  const auto found = annotations.find(key);
  return found == annotations.end() ? nullptr : &found->second;
}

bool equals(const Annotations& annotations, std::string_view key, std::string_view value) {
  const std::string* const found = find(annotations, key);
  return found != nullptr && *found == value;
}

bool is_podmans(const EngineEvidence& evidence) {
  return !evidence.id.empty() && podman_container_id(evidence.cgroup) == evidence.id;
}

/// CRI-O sets HostnamePath of a sandbox, a file in a directory named after the sandbox, after all
/// copied annotations.
bool is_crios_sandbox(const Annotations& annotations, const EngineEvidence& evidence) {
  const std::string* const path = find(annotations, kCrioHostnamePath);
  return path != nullptr && !evidence.id.empty() &&
         path->find(cat("/", evidence.id, "/")) != std::string::npos;
}

/// Whether the annotations are CRI-O's: it generates the id after the author has written the
/// annotations, so that only CRI-O can have set it.
bool is_crios(const Annotations& annotations, const EngineEvidence& evidence) {
  return (!evidence.id.empty() && equals(annotations, kCrioContainerId, evidence.id)) ||
         is_crios_sandbox(annotations, evidence);
}

/// The most reliable evidence comes first. containerd does not name itself, but writes its keys
/// after all copied ones.
Manager manager_of(const Annotations& annotations, const EngineEvidence& evidence) {
  if (is_podmans(evidence)) return Manager::kPodman;
  if (is_crios(annotations, evidence)) return Manager::kCrio;
  for (const std::string_view key : {kCriContainerType, kCriSandboxId, kCriSandboxUid}) {
    if (find(annotations, key) != nullptr) return Manager::kContainerd;
  }
  if (equals(annotations, kManager, "libpod")) return Manager::kPodman;
  if (equals(annotations, kManager, "cri-o")) return Manager::kCrio;
  return Manager::kOther;
}

using Check = Status (*)(std::string_view);

/// Reads an annotation unless a more reliable source has set `out`. An empty value counts as
/// absent.
Status read_text(const Annotations& annotations, std::string_view key, Check check,
                 std::optional<std::string>& out) {
  const std::string* const value = find(annotations, key);
  if (value == nullptr || value->empty() || out) return {};
  if (Status status = check(*value); !status) {
    return fail(std::move(status).error().with_context(cat("annotation ", key)));
  }
  out = *value;
  return {};
}

/// An annotation, its check, and the field it sets.
struct TextField {
  std::string_view key;
  Check check;
  std::optional<std::string> EngineAnnotations::* field;
};

Status read_texts(const Annotations& annotations, std::initializer_list<TextField> fields,
                  EngineAnnotations& out) {
  for (const TextField& field : fields) {
    PODQOS_TRY(read_text(annotations, field.key, field.check, out.*field.field));
  }
  return {};
}

/// The plain Kubernetes keys, as annotations or as labels.
Status read_plain(const Annotations& annotations, EngineAnnotations& out) {
  return read_texts(
      annotations,
      {{kPodUid, core::check_pod_uid, &EngineAnnotations::pod_uid},
       {kPodName, core::check_cgroup_component, &EngineAnnotations::pod_name},
       {kPodNamespace, core::check_cgroup_component, &EngineAnnotations::pod_namespace},
       {kContainerName, core::check_cgroup_component, &EngineAnnotations::container_name}},
      out);
}

Status read_type(const Annotations& annotations, std::string_view key, EngineAnnotations& out) {
  const std::string* const type = find(annotations, key);
  if (type == nullptr || *type == "container") return {};
  if (*type != "sandbox") {
    return fail(ErrorCode::kInvalidArgument, cat("annotation ", key, " = \"", printable(*type),
                                                 "\": expected sandbox or container"));
  }
  out.is_sandbox = true;
  return {};
}

/// Reads CRI-O's labels, a JSON object of strings; only the plain Kubernetes keys are used.
Status read_labels(const Annotations& annotations, EngineAnnotations& out) {
  const std::string* const text = find(annotations, kCrioLabels);
  if (text == nullptr) return {};
  const auto tree = parse_json_tree(*text);
  if (!tree) return fail(Error{tree.error()}.with_context(cat("annotation ", kCrioLabels)));
  Annotations labels;
  for (const JsonNode& label : tree->children) {
    if (label.kind == JsonNode::Kind::kString && is_engine_annotation(label.key))
      labels.emplace(label.key, label.text);
  }
  return read_plain(labels, out);
}

/// An annotation or JSON member and the field it sets.
struct NumberField {
  std::string_view key;
  std::optional<std::int64_t> EngineResources::* field;
};

/// Reads the pod's sums from containerd's sandbox annotations, which a kubelet passes as
/// LinuxPodSandboxConfig.resources. 0 means unset.
Status read_cri_sums(const Annotations& annotations, EngineAnnotations& out) {
  constexpr std::array<NumberField, 4> kFields{{{kCriCpuPeriod, &EngineResources::cpu_period},
                                                {kCriCpuQuota, &EngineResources::cpu_quota},
                                                {kCriCpuShares, &EngineResources::cpu_shares},
                                                {kCriMemory, &EngineResources::memory_limit}}};
  EngineResources sums;
  for (const NumberField& row : kFields) {
    const std::string* const text = find(annotations, row.key);
    if (text == nullptr) continue;
    const auto number = parse_int(*text);
    if (!number)
      return fail(ErrorCode::kInvalidArgument, cat("annotation ", row.key, " = \"",
                                                   printable(*text), "\": expected an integer"));
    if (*number != 0) sums.*row.field = number;
  }
  if (sums != EngineResources{}) out.pod_sums = std::move(sums);
  return {};
}

/// Reads the CRI message LinuxContainerResources in JSON; 0 means unset.
/// @note k8s.io/cri-api pkg/apis/runtime/v1/api.proto
Status read_cri_message(const Annotations& annotations, std::string_view key,
                        std::optional<EngineResources>& out) {
  constexpr std::array<NumberField, 4> kFields{
      {{"cpu_period", &EngineResources::cpu_period},
       {"cpu_quota", &EngineResources::cpu_quota},
       {"cpu_shares", &EngineResources::cpu_shares},
       {"memory_limit_in_bytes", &EngineResources::memory_limit}}};
  const std::string* const text = find(annotations, key);
  if (text == nullptr || text->empty()) return {};
  const auto tree = parse_json_tree(*text);
  if (!tree) return fail(Error{tree.error()}.with_context(cat("annotation ", key)));
  EngineResources sums;
  for (const NumberField& row : kFields) {
    const auto number = JsonPlace{*tree}.integer(row.key);
    if (!number) return fail(Error{number.error()}.with_context(cat("annotation ", key)));
    if (number->value_or(0) != 0) sums.*row.field = *number;
  }
  if (sums != EngineResources{}) out = std::move(sums);
  return {};
}

/// Reads the sums of CRI-O's sandbox; on other containers a pod author could have set them. If both
/// names are present, CRI-O has copied the one without its prefix from the pod, so that it is the
/// author's.
Status read_crio_sums(const Annotations& annotations, EngineAnnotations& out) {
  const bool prefixed =
      find(annotations, kCrioResources) != nullptr || find(annotations, kCrioOverhead) != nullptr;
  const std::string_view sums = prefixed ? kCrioResources : kCrioResourcesNow;
  PODQOS_TRY(read_cri_message(annotations, sums, out.pod_sums));
  const std::string_view overhead = prefixed ? kCrioOverhead : kCrioOverheadNow;
  return read_cri_message(annotations, overhead, out.pod_overhead);
}

/// Reads containerd's annotations.
Status read_cri(const Annotations& annotations, EngineAnnotations& out) {
  PODQOS_TRY(read_type(annotations, kCriContainerType, out));
  PODQOS_TRY(read_cri_sums(annotations, out));
  return read_texts(
      annotations,
      {{kCriSandboxUid, core::check_pod_uid, &EngineAnnotations::pod_uid},
       {kCriSandboxId, core::check_cgroup_component, &EngineAnnotations::sandbox_id},
       {kCriSandboxName, core::check_cgroup_component, &EngineAnnotations::pod_name},
       {kCriSandboxNamespace, core::check_cgroup_component, &EngineAnnotations::pod_namespace},
       {kCriContainerName, core::check_cgroup_component, &EngineAnnotations::container_name}},
      out);
}

Status read_sandbox_id(const Annotations& annotations, EngineAnnotations& out) {
  return read_text(annotations, kCrioSandboxId, core::check_cgroup_component, out.sandbox_id);
}

/// Splits a name that CRI-O builds from metadata, "k8s_A_B_C". Empty if the number of parts
/// differs, as with "_" in the metadata.
std::vector<std::string_view> parts_of_name(const Annotations& annotations, std::string_view key,
                                            std::size_t count) {
  const std::string* const name = find(annotations, key);
  if (name == nullptr) return {};
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(std::string_view{*name}, '_'))
    parts.emplace_back(part.begin(), part.end());
  if (parts.size() != count || parts.front() != "k8s") parts.clear();
  return parts;
}

/// Reads the pod from CRI-O's names, for containers without a kubelet's labels:
/// k8s_NAME_NAMESPACE_UID_ATTEMPT is the sandbox, k8s_CONTAINER_NAME_NAMESPACE_UID_ATTEMPT the
/// container.
Status read_crio_names(const Annotations& annotations, EngineAnnotations& out) {
  Annotations named;
  if (const auto pod = parts_of_name(annotations, kCrioSandboxName, 5); !pod.empty()) {
    named.emplace(kPodName, pod[1]);
    named.emplace(kPodNamespace, pod[2]);
    named.emplace(kPodUid, pod[3]);
  }
  if (const auto own = parts_of_name(annotations, kCrioName, 6); !own.empty())
    named.emplace(kContainerName, own[1]);
  return read_plain(named, out);
}

/// Reads what a sandbox says of its pod, unless a more reliable source has set it.
Status read_crio_pod(const Annotations& annotations, EngineAnnotations& out) {
  PODQOS_TRY(read_crio_sums(annotations, out));
  return read_texts(
      annotations,
      {{kCrioKubeName, core::check_cgroup_component, &EngineAnnotations::pod_name},
       {kCrioNamespace, core::check_cgroup_component, &EngineAnnotations::pod_namespace}},
      out);
}

/// CRI-O copies the pod's annotations and labels over its own keys, and the labels last, in which
/// it sets uid, name and namespace: only those are reliable.
Status read_crio_sandbox(const Annotations& annotations, EngineAnnotations& out) {
  PODQOS_TRY(read_plain(annotations, out));
  PODQOS_TRY(read_labels(annotations, out));
  PODQOS_TRY(read_sandbox_id(annotations, out));
  return read_crio_pod(annotations, out);
}

/// CRI-O copies the pod's annotations first: only what it writes to the container afterwards is
/// reliable.
Status read_crio_container(const Annotations& annotations, EngineAnnotations& out) {
  PODQOS_TRY(read_sandbox_id(annotations, out));
  PODQOS_TRY(read_labels(annotations, out));
  return read_crio_names(annotations, out);
}

Status read_crio(const Annotations& annotations, const EngineEvidence& evidence,
                 EngineAnnotations& out) {
  out.is_sandbox = is_crios_sandbox(annotations, evidence);
  if (!out.is_sandbox) {
    PODQOS_TRY(read_type(annotations, kCrioContainerType, out));
  }
  if (!out.is_sandbox) return read_crio_container(annotations, out);
  if (!evidence.id.empty()) out.sandbox_id = evidence.id;
  return read_crio_sandbox(annotations, out);
}

/// Unknown engine: reads at most the sandbox and the link to it, as CRI-O writes them. Plain keys
/// and labels are an author's then, since only CRI-O, which names itself, writes them.
Status read_other(const Annotations& annotations, EngineAnnotations& out) {
  PODQOS_TRY(read_type(annotations, kCrioContainerType, out));
  PODQOS_TRY(read_sandbox_id(annotations, out));
  return out.is_sandbox ? read_crio_pod(annotations, out) : Status{};
}

Status read_all(const Annotations& annotations, const EngineEvidence& evidence,
                EngineAnnotations& out) {
  const Manager manager = manager_of(annotations, evidence);
  out.cri = manager == Manager::kCrio || manager == Manager::kContainerd;
  switch (manager) {
    case Manager::kPodman: return read_sandbox_id(annotations, out);
    case Manager::kCrio: return read_crio(annotations, evidence, out);
    case Manager::kContainerd: return read_cri(annotations, out);
    case Manager::kOther: return read_other(annotations, out);
  }
  return {};
}

}  // namespace

bool is_engine_annotation(std::string_view key) {
  return std::ranges::find(kKeys, key) != kKeys.end();
}

std::string_view podman_container_id(std::string_view cgroup) {
  std::string_view leaf = cgroup.substr(cgroup.rfind('/') + 1);
  if (leaf.ends_with(".scope")) leaf.remove_suffix(std::string_view{".scope"}.size());
  for (const std::string_view prefix : {"libpod-payload-", "libpod-"}) {
    if (leaf.starts_with(prefix)) return leaf.substr(prefix.size());
  }
  return {};
}

Result<EngineAnnotations> parse_engine_annotations(const Annotations& annotations,
                                                   const EngineEvidence& evidence) {
  EngineAnnotations out;
  PODQOS_TRY(read_all(annotations, evidence, out));
  return out;
}

}  // namespace podqos::codec

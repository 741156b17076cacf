
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/core/cgroups/naming.h"

namespace podqos::codec {

namespace {

using core::Annotations;
using core::EngineAnnotations;
using core::EngineResources;

// Keys of containerd (cri.), CRI-O (cri-o.) and both (plain); see annotations.h for the sources.
constexpr std::string_view kManager = "io.container.manager";
constexpr std::string_view kCriContainerType = "io.kubernetes.cri.container-type";
constexpr std::string_view kCriSandboxId = "io.kubernetes.cri.sandbox-id";
constexpr std::string_view kCriSandboxUid = "io.kubernetes.cri.sandbox-uid";
constexpr std::string_view kCrioContainerType = "io.kubernetes.cri-o.ContainerType";
constexpr std::string_view kCrioSandboxName = "io.kubernetes.cri-o.SandboxName";
constexpr std::string_view kCrioContainerId = "io.kubernetes.cri-o.ContainerID";
constexpr std::string_view kCrioName = "io.kubernetes.cri-o.Name";
constexpr std::string_view kCrioHostnamePath = "io.kubernetes.cri-o.HostnamePath";
constexpr std::string_view kCrioLabels = "io.kubernetes.cri-o.Labels";
constexpr std::string_view kCrioResources = "io.kubernetes.cri-o.PodLinuxResources";
constexpr std::string_view kCrioResourcesNow = "pod-linux-resources.crio.io";
constexpr std::string_view kCrioOverhead = "io.kubernetes.cri-o.PodLinuxOverhead";
constexpr std::string_view kCrioOverheadNow = "pod-linux-overhead.crio.io";
constexpr std::string_view kPodUid = "io.kubernetes.pod.uid";
constexpr std::string_view kPodName = "io.kubernetes.pod.name";
constexpr std::string_view kPodNamespace = "io.kubernetes.pod.namespace";
constexpr std::string_view kContainerName = "io.kubernetes.container.name";

constexpr std::array kOtherKeys{kManager,          kCriContainerType, kCrioContainerType,
                                kCrioSandboxName,  kCrioContainerId,  kCrioName,
                                kCrioHostnamePath, kCrioLabels,       kCrioResources,
                                kCrioResourcesNow, kCrioOverhead,     kCrioOverheadNow};

/// Annotations that are read together.
enum class Texts : std::uint8_t {
  kContainerd,
  kPlain,      ///< as annotations or as labels
  kSandboxId,  ///< as CRI-O and Podman write it
  kCrioPod,
};
/// An annotation and the field it sets.
struct TextKey {
  Texts texts;
  std::string_view key;
  std::optional<std::string> EngineAnnotations::* field;
};
constexpr std::array<TextKey, 12> kTexts{{
    {Texts::kContainerd, kCriSandboxUid, &EngineAnnotations::pod_uid},
    {Texts::kContainerd, kCriSandboxId, &EngineAnnotations::sandbox_id},
    {Texts::kContainerd, "io.kubernetes.cri.sandbox-name", &EngineAnnotations::pod_name},
    {Texts::kContainerd, "io.kubernetes.cri.sandbox-namespace", &EngineAnnotations::pod_namespace},
    {Texts::kContainerd, "io.kubernetes.cri.container-name", &EngineAnnotations::container_name},
    {Texts::kPlain, kPodUid, &EngineAnnotations::pod_uid},
    {Texts::kPlain, kPodName, &EngineAnnotations::pod_name},
    {Texts::kPlain, kPodNamespace, &EngineAnnotations::pod_namespace},
    {Texts::kPlain, kContainerName, &EngineAnnotations::container_name},
    {Texts::kSandboxId, "io.kubernetes.cri-o.SandboxID", &EngineAnnotations::sandbox_id},
    {Texts::kCrioPod, "io.kubernetes.cri-o.KubeName", &EngineAnnotations::pod_name},
    {Texts::kCrioPod, "io.kubernetes.cri-o.Namespace", &EngineAnnotations::pod_namespace},
}};

/// An annotation or JSON member and the field it sets.
struct NumberKey {
  std::string_view key;
  std::optional<std::int64_t> EngineResources::* field;
};
/// The pod's sums on containerd's sandbox, which a kubelet passes as
/// LinuxPodSandboxConfig.resources.
constexpr std::array<NumberKey, 4> kCriSums{
    {{"io.kubernetes.cri.sandbox-cpu-period", &EngineResources::cpu_period},
     {"io.kubernetes.cri.sandbox-cpu-quota", &EngineResources::cpu_quota},
     {"io.kubernetes.cri.sandbox-cpu-shares", &EngineResources::cpu_shares},
     {"io.kubernetes.cri.sandbox-memory", &EngineResources::memory_limit}}};
/// The CRI message LinuxContainerResources; k8s.io/cri-api pkg/apis/runtime/v1/api.proto.
constexpr std::array<NumberKey, 4> kCriMessage{
    {{"cpu_period", &EngineResources::cpu_period},
     {"cpu_quota", &EngineResources::cpu_quota},
     {"cpu_shares", &EngineResources::cpu_shares},
     {"memory_limit_in_bytes", &EngineResources::memory_limit}}};

/// The engine whose annotations are trusted.
enum class Manager : std::uint8_t { kPodman, kCrio, kContainerd, kOther };

/// Sets the fields that are not 0, which means unset.
template <class Read>
Status read_sums(const std::array<NumberKey, 4>& keys, std::optional<EngineResources>& out,
                 Read read) {
  EngineResources sums;
  for (const auto& [key, field] : keys) {
    PODQOS_ASSIGN(const std::optional<std::int64_t> number, read(key));
    if (number.value_or(0) != 0) sums.*field = number;
  }
  if (sums != EngineResources{}) out = std::move(sums);
  return {};
}

/// Reads the annotations of one container. A field has the value of the first source that tells it.
class EngineReader {
 public:
  EngineReader(const Annotations& annotations, const EngineEvidence& evidence)
      : annotations_(annotations), evidence_(evidence) {}

  Result<EngineAnnotations> read() {
    const Manager manager = find_manager();
    out_.cri = manager == Manager::kCrio || manager == Manager::kContainerd;
    out_.engine = find_engine(manager);
    if (const auto pod = podman_pod_id(evidence_.cgroup);
        manager == Manager::kPodman && core::check_cgroup_component(pod))
      out_.pod_id = pod;
    switch (manager) {
      case Manager::kPodman: PODQOS_TRY(read_texts(Texts::kSandboxId, annotations_)); break;
      case Manager::kCrio: PODQOS_TRY(read_crio()); break;
      case Manager::kContainerd: PODQOS_TRY(read_containerd()); break;
      case Manager::kOther: PODQOS_TRY(read_other()); break;
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const std::string* find(std::string_view key) const {
    const auto found = annotations_.find(key);
    return found == annotations_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool equals(std::string_view key, std::string_view value) const {
    const std::string* const found = find(key);
    return found != nullptr && *found == value;
  }

  /// The most reliable evidence comes first. containerd does not name itself, but writes its keys
  /// after all copied ones.
  [[nodiscard]] Manager find_manager() const {
    const bool identified = !evidence_.id.empty();
    if (identified && podman_container_id(evidence_.cgroup) == evidence_.id)
      return Manager::kPodman;
    // CRI-O generates the id after the author has written the annotations.
    if (identified && equals(kCrioContainerId, evidence_.id)) return Manager::kCrio;
    if (is_crios_sandbox()) return Manager::kCrio;
    for (const std::string_view key : {kCriContainerType, kCriSandboxId, kCriSandboxUid})
      if (find(key) != nullptr) return Manager::kContainerd;
    if (equals(kManager, "libpod")) return Manager::kPodman;
    return equals(kManager, "cri-o") ? Manager::kCrio : Manager::kOther;
  }
  [[nodiscard]] std::optional<core::Engine> find_engine(Manager manager) const {
    // "docker-ID.scope" and "/docker/ID", and the namespace of containerd that is Docker's.
    const bool dockers = evidence_.cgroup.ends_with(cat("/docker-", evidence_.id, ".scope")) ||
                         evidence_.cgroup.ends_with(cat("/docker/", evidence_.id)) ||
                         evidence_.bundle.contains("/moby/");
    if (dockers && !evidence_.id.empty()) return core::Engine::kDocker;
    switch (manager) {
      case Manager::kPodman: return core::Engine::kPodman;
      case Manager::kCrio: return core::Engine::kCrio;
      case Manager::kContainerd: return core::Engine::kContainerd;
      case Manager::kOther: break;
    }
    // The directory of containerd's shims, below which each of its namespaces has one.
    if (evidence_.bundle.contains("/io.containerd.")) return core::Engine::kContainerd;
    return std::nullopt;
  }
  /// CRI-O sets HostnamePath of a sandbox, a file in a directory named after the sandbox, after all
  /// copied annotations.
  [[nodiscard]] bool is_crios_sandbox() const {
    const std::string* const path = find(kCrioHostnamePath);
    return path != nullptr && !evidence_.id.empty() && path->contains(cat("/", evidence_.id, "/"));
  }

  Status read_containerd() {
    PODQOS_TRY(read_type(kCriContainerType));
    PODQOS_TRY(read_sums(kCriSums, out_.pod_sums, [this](auto key) { return read_number(key); }));
    return read_texts(Texts::kContainerd, annotations_);
  }

  /// CRI-O copies the pod's annotations first: only what it writes to the container afterwards is
  /// reliable.
  Status read_crio() {
    out_.is_sandbox = is_crios_sandbox();
    if (!out_.is_sandbox) PODQOS_TRY(read_type(kCrioContainerType));
    if (out_.is_sandbox) return read_crio_sandbox();
    PODQOS_TRY(read_texts(Texts::kSandboxId, annotations_));
    PODQOS_TRY(read_labels());
    return read_texts(Texts::kPlain, plain_of_names());
  }
  /// CRI-O copies the pod's annotations and labels over its own keys, and the labels last, in which
  /// it sets uid, name and namespace: only those are reliable.
  Status read_crio_sandbox() {
    if (!evidence_.id.empty()) out_.sandbox_id = evidence_.id;
    PODQOS_TRY(read_texts(Texts::kPlain, annotations_));
    PODQOS_TRY(read_labels());
    PODQOS_TRY(read_texts(Texts::kSandboxId, annotations_));
    return read_crio_pod();
  }

  /// Unknown engine: reads at most the sandbox and the link to it, as CRI-O writes them. Plain keys
  /// and labels are an author's then, since only CRI-O, which names itself, writes them.
  Status read_other() {
    PODQOS_TRY(read_type(kCrioContainerType));
    PODQOS_TRY(read_texts(Texts::kSandboxId, annotations_));
    return out_.is_sandbox ? read_crio_pod() : Status{};
  }

  /// Reads what CRI-O's sandbox says of its pod; on other containers a pod author could have set
  /// the sums. If both names are present, CRI-O has copied the one without its prefix from the pod,
  /// so that it is the author's.
  Status read_crio_pod() {
    const bool prefixed = find(kCrioResources) != nullptr || find(kCrioOverhead) != nullptr;
    PODQOS_TRY(read_message(prefixed ? kCrioResources : kCrioResourcesNow, out_.pod_sums));
    PODQOS_TRY(read_message(prefixed ? kCrioOverhead : kCrioOverheadNow, out_.pod_overhead));
    return read_texts(Texts::kCrioPod, annotations_);
  }

  /// An empty value counts as absent.
  Status read_texts(Texts which, const Annotations& from) {
    for (const auto& [texts, key, field] : kTexts) {
      const auto found = from.find(key);
      if (texts != which || found == from.end() || found->second.empty() || out_.*field) continue;
      const auto check =
          field == &EngineAnnotations::pod_uid ? core::check_pod_uid : core::check_cgroup_component;
      if (auto valid = check(found->second); !valid)
        return fail(std::move(valid).error().with_context(cat("annotation ", key)));
      out_.*field = found->second;
    }
    return {};
  }

  Status read_type(std::string_view key) {
    const std::string* const type = find(key);
    if (type == nullptr || *type == "container") return {};
    if (*type != "sandbox") return refuse(key, *type, "sandbox or container");
    out_.is_sandbox = true;
    return {};
  }

  /// Reads CRI-O's labels, a JSON object of strings; only the plain Kubernetes keys are used.
  Status read_labels() {
    const std::string* const text = find(kCrioLabels);
    if (text == nullptr) return {};
    const auto tree = parse_json_tree(*text);
    if (!tree) return fail(Error{tree.error()}.with_context(cat("annotation ", kCrioLabels)));
    Annotations labels;
    for (const JsonNode& label : tree->children)
      if (label.kind == JsonNode::Kind::kString) labels.emplace(label.key, label.text);
    return read_texts(Texts::kPlain, labels);
  }

  /// The pod in CRI-O's names, for containers without a kubelet's labels:
  /// k8s_NAME_NAMESPACE_UID_ATTEMPT is the sandbox, k8s_CONTAINER_NAME_NAMESPACE_UID_ATTEMPT the
  /// container.
  [[nodiscard]] Annotations plain_of_names() const {
    Annotations named;
    if (const auto pod = parts_of_name(kCrioSandboxName, 5); !pod.empty()) {
      named.emplace(kPodName, pod[1]);
      named.emplace(kPodNamespace, pod[2]);
      named.emplace(kPodUid, pod[3]);
    }
    if (const auto own = parts_of_name(kCrioName, 6); !own.empty())
      named.emplace(kContainerName, own[1]);
    return named;
  }
  /// Splits a name that CRI-O builds from metadata, "k8s_A_B_C". Empty if the number of parts
  /// differs, as with "_" in the metadata.
  [[nodiscard]] std::vector<std::string_view> parts_of_name(std::string_view key,
                                                            std::size_t count) const {
    const std::string* const name = find(key);
    if (name == nullptr) return {};
    std::vector<std::string_view> parts;
    for (const auto part : std::views::split(std::string_view{*name}, '_'))
      parts.emplace_back(part.begin(), part.end());
    if (parts.size() != count || parts.front() != "k8s") parts.clear();
    return parts;
  }

  [[nodiscard]] Result<std::optional<std::int64_t>> read_number(std::string_view key) const {
    const std::string* const text = find(key);
    if (text == nullptr) return std::nullopt;
    if (const auto number = parse_int(*text)) return number;
    return refuse(key, *text, "an integer");
  }

  Status read_message(std::string_view key, std::optional<EngineResources>& out) const {
    const std::string* const text = find(key);
    if (text == nullptr || text->empty()) return {};
    const auto tree = parse_json_tree(*text);
    auto done = tree ? read_sums(kCriMessage, out,
                                 [&](auto name) { return JsonPlace{*tree}.integer(name); })
                     : fail(tree.error());
    if (!done) return fail(std::move(done).error().with_context(cat("annotation ", key)));
    return {};
  }

  static std::unexpected<Error> refuse(std::string_view key, std::string_view value,
                                       std::string_view expected) {
    return refuse_value("annotation ", key, " = \"", printable(value), "\": expected ", expected);
  }

  const Annotations& annotations_;
  const EngineEvidence& evidence_;
  EngineAnnotations out_;
};

}  // namespace

bool is_engine_annotation(std::string_view key) {
  const auto has = [key](const auto& rows, auto key_of) {
    return std::ranges::find(rows, key, key_of) != rows.end();
  };
  return has(kOtherKeys, std::identity{}) || has(kTexts, &TextKey::key) ||
         has(kCriSums, &NumberKey::key);
}

std::string_view podman_container_id(std::string_view cgroup) {
  std::string_view leaf = cgroup.substr(cgroup.rfind('/') + 1);
  if (leaf.ends_with(".scope")) leaf.remove_suffix(std::string_view{".scope"}.size());
  for (const std::string_view prefix : {"libpod-payload-", "libpod-"})
    if (leaf.starts_with(prefix)) return leaf.substr(prefix.size());
  return {};
}

std::string_view podman_pod_id(std::string_view cgroup) {
  while (!cgroup.empty()) {
    std::string_view name = read_until(cgroup, '/');
    if (name == "libpod_parent") return cgroup.contains('/') ? read_until(cgroup, '/') : "";
    constexpr std::string_view kPod = "libpod_pod_";
    const std::size_t at = name.find(kPod);
    if (at == std::string_view::npos || !name.ends_with(".slice")) continue;
    name.remove_suffix(std::string_view{".slice"}.size());
    return name.substr(at + kPod.size());
  }
  return {};
}

Result<EngineAnnotations> parse_engine_annotations(const Annotations& annotations,
                                                   const EngineEvidence& evidence) {
  return EngineReader{annotations, evidence}.read();
}

}  // namespace podqos::codec

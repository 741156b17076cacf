#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/settings.h"

namespace podqos::core {

/// State of a container in its pod's record.
enum class ContainerState : std::uint8_t {
  kPending,  ///< placed; not confirmed by createRuntime or NRI yet
  kLive,     ///< confirmed as started
};

/// What tells a container from all others: ids may be used again in another bundle.
struct ContainerKey {
  std::string_view id;
  std::string_view bundle;  ///< canonical; "" if unknown
  friend bool operator==(const ContainerKey&, const ContainerKey&) = default;
};

/// A process, and when it started: its pid may be that of another one later.
struct Process {
  Pid pid;
  StartTime start_time;
  friend bool operator==(const Process&, const Process&) = default;
};

/// What was seen of a container's throttling at memory.high.
struct Throttling {
  std::int64_t events = 0;                          ///< "high" of memory.events
  std::optional<BootSeconds> since = std::nullopt;  ///< absent if it is not throttled
  std::optional<BootSeconds> last = std::nullopt;   ///< when it was throttled last; as `since`
  std::optional<Bytes> raised = std::nullopt;       ///< its memory.high in place of the rule's
  friend bool operator==(const Throttling&, const Throttling&) = default;
};

/// A container of a pod.
struct ContainerRecord {
  std::string id;
  std::string bundle;  ///< canonical path; "" if unknown
  std::string name;    ///< in the pod
  ContainerState state = ContainerState::kPending;
  Pid pid;  ///< of the process that creates the container while pending, then of its init
  StartTime start_time;  ///< of that process, to detect that its pid was reused
  /// While pending, when that began; absent under NRI, where the engine tells of each container.
  std::optional<BootSeconds> pending_since = std::nullopt;
  std::string cgroup;  ///< actual cgroup, as an absolute path in the hierarchy
  bool sandbox = false;
  /// Under a CRI engine: the memory limit that the engine enforces in bytes, 0 for none. nullopt
  /// for containers of the node's operator, whose requests count without a limit.
  std::optional<Bytes> backed_memory = std::nullopt;
  /// The Memory QoS values that podqos has given it; absent ones are its author's or engine's.
  MemoryQos memory_qos = {};
  std::optional<Throttling> throttling = std::nullopt;  ///< where it has a memory.high
  /// Annotations state its resources; absent if they do not.
  std::optional<bool> stated = std::nullopt;
  [[nodiscard]] ContainerKey key() const { return {.id = id, .bundle = bundle}; }
  friend bool operator==(const ContainerRecord&, const ContainerRecord&) = default;
};

/// The engine that creates a pod's containers. nerdctl's are containerd's.
enum class Engine : std::uint8_t { kPodman, kDocker, kContainerd, kCrio };
/// Their names in records, output and arguments, in the order of the enumerators.
constexpr std::string_view kEngineNames = "podman docker containerd cri-o";

/// Source of a pod's uid, strongest first.
enum class IdentitySource : std::uint8_t {
  kEngine,      ///< CRI sandbox uid
  kCgroup,      ///< the engine has placed the container in a pod cgroup
  kAnnotation,  ///< podqos.io/pod-uid
  kSandbox,     ///< a sandbox id, used as the uid
  kLone,        ///< none: the container is a pod of its own
};

/// Source of a pod's QoS class.
enum class ClassSource : std::uint8_t {
  kEngine,         ///< tier of the cgroup that a kubelet has chosen
  kPodAnnotation,  ///< podqos.io/pod
  kQosAnnotation,  ///< podqos.io/qos-class
  kShortForms,     ///< podqos.io/requests, podqos.io/limits
  kCriSums,        ///< pod sums of the engine
  kInference       ///< linux.resources
};

/// Resources of a whole pod as its engine reports them. Unlike spec.resources they give the pod's
/// request, its class and the limits of its cgroup only, and never a value of a container.
struct EngineSums {
  Resources resources;
  /// True if the engine limits the pod itself (podman pod create --memory): the limits always
  /// apply. False if the limits are sums over the containers that have one (CRI): they apply only
  /// if every known container has a limit.
  bool enforced = false;
  friend bool operator==(const EngineSums&, const EngineSums&) = default;
};

/// Up to where the kernel's log was read for OOM kills.
struct OomLook {
  std::int64_t node = 0;  ///< kills that the kernel had counted on the whole machine
  std::int64_t at = 0;    ///< OomKill::at of the newest kill
  friend bool operator==(const OomLook&, const OomLook&) = default;
};

/// Processes of a pod that the OOM killer has ended.
struct OomKills {
  std::int64_t reported = 0;
  std::int64_t counted = 0;  ///< by the kernel in the pod's cgroups at the last look
  friend bool operator==(const OomKills&, const OomKills&) = default;
};

/// The stored state of a pod, pods/<uid>.json.
struct PodRecord {
  Pod pod;  ///< identity and resources: the whole spec, or the containers known so far
  bool complete = false;                          ///< the pod's values are final (PodClaim)
  std::optional<EngineSums> sums = std::nullopt;  ///< resources of the pod by its engine
  QosClass qos_class = QosClass::kBestEffort;
  ClassSource class_source = ClassSource::kInference;
  /// The spec that its sandbox brought has been taken back, and no other counts; absent if not.
  std::optional<bool> taken_back = std::nullopt;
  IdentitySource uid_source = IdentitySource::kEngine;  ///< of the pod's first container
  bool kubelets_own = false;  ///< placed by a kubelet, which writes the values
  /// Percent of the quota that it was granted as burst when it came (cpu_class.h).
  std::optional<std::int64_t> cpu_burst = std::nullopt;
  /// By podqos.io/cpu-idle; false: an earlier pod of this uid was.
  std::optional<bool> cpu_idle = std::nullopt;
  std::string sandbox_id;  ///< of the engine; "" if it gives none
  /// Podman's, whose sandbox is the infra container.
  std::optional<std::string> pod_id = std::nullopt;
  std::optional<Engine> engine = std::nullopt;  ///< nullopt if it is not known
  std::string cgroup;                           ///< of the pod
  TierSum capped_request;                       ///< see count_requests(); pods is 1
  TierSum counted_request;  ///< see count_requests(); the part that counts in its tier
  std::vector<ContainerRecord> containers;
  /// When the last container ended; the cgroup stays while memory is charged to it.
  std::optional<BootSeconds> released_at;
  std::optional<OomLook> oom_look = std::nullopt;    ///< absent: all are 0
  std::optional<OomKills> oom_kills = std::nullopt;  ///< absent: all are 0
  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

/// Records of pods by uid.
using PodRecords = std::map<std::string, PodRecord, std::less<>>;

/// How long a process may take to create a container: a service that creates containers, such as
/// `podman system service`, lives on where that has failed, and does not tell.
constexpr BootSeconds kLongestCreation{120};

/// Whether a creation that began at `since` must have failed.
[[nodiscard]] constexpr bool takes_too_long(std::optional<BootSeconds> since, BootSeconds now) {
  return since && now - *since > kLongestCreation;
}

/// A pending container. A later transaction withdraws it if its creator ended without starting it,
/// or takes too long.
struct PendingEntry {
  std::string uid;
  std::string id;
  std::string bundle;
  Pid pid;                                          ///< of the process that creates the container
  StartTime start_time;                             ///< of that process
  std::optional<BootSeconds> since = std::nullopt;  ///< ContainerRecord::pending_since
  [[nodiscard]] ContainerKey key() const { return {.id = id, .bundle = bundle}; }
  friend bool operator==(const PendingEntry&, const PendingEntry&) = default;
};

/// A pod that a later transaction has to handle: a released one whose cgroup remains, or a live
/// one with a process that outlives its containers or with values that were refused.
struct Revisit {
  std::string uid;
  BootSeconds until;        ///< when to handle it
  std::string cgroup = {};  ///< of the pod
  friend bool operator==(const Revisit&, const Revisit&) = default;
};

/// A tree of podqos's own pods: a root cgroup, the tiers and pods below it.
struct TreeRecord {
  std::string kubepods;  ///< the root, "/podqos/kubepods"; its form tells the driver
  /// The outermost cgroup above `kubepods` that podqos has made ("/podqos"), along with those in
  /// between; "" if it has made none.
  std::string top = {};
  TierSums sums = {};  ///< counted requests of its pods; none of them is a kubelet's
  /// podqos may have set memory.min or memory.low of cgroups of it; absent if it has not.
  std::optional<bool> reserves = std::nullopt;
  friend bool operator==(const TreeRecord&, const TreeRecord&) = default;
};

/// A running container that is being killed.
struct DyingContainer {
  std::string cgroup;
  Process init;
  friend bool operator==(const DyingContainer&, const DyingContainer&) = default;
};

/// An eviction from a tier, of whichever program.
struct EvictionRecord {
  BootSeconds at = {};
  /// Empty once all are killed. A program that dies before may leave them frozen.
  std::vector<DyingContainer> killing = {};
  friend bool operator==(const EvictionRecord&, const EvictionRecord&) = default;
};

/// The stored state of the tiers, tiers.json, and of the pods that later transactions have to
/// check.
struct TiersRecord {
  /// The node's: counted requests of podqos's own pods in all trees, and requests of a kubelet's.
  TierSums sums;
  std::vector<PendingEntry> pending;
  std::vector<Revisit> revisits;
  /// Uids of the pods that are not in the sums, since their records could not be read then.
  std::vector<std::string> uncounted;
  std::vector<TreeRecord> trees;  ///< one for each driver that podqos's own pods use
  /// Shares→weight formula of the node's runtime, observed in one of its containers.
  std::optional<WeightFormula> weight_formula;
  std::optional<EvictionRecord> eviction = std::nullopt;  ///< the last one
  std::optional<OomLook> oom_look = std::nullopt;         ///< the last one of any pod
  /// Of the last transaction: they stay in force while the configuration has an error.
  std::optional<Settings> settings = std::nullopt;
  friend bool operator==(const TiersRecord&, const TiersRecord&) = default;
};

}  // namespace podqos::core

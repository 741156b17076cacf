#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/text.h"
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

/// What a resize changes of a pod.
struct ResizedAmounts {
  Resources resources;                            ///< of the container, or of the pod as a whole
  std::optional<EngineSums> sums = std::nullopt;  ///< PodRecord::sums
  std::optional<Bytes> backed_memory = std::nullopt;  ///< ContainerRecord::backed_memory
  friend bool operator==(const ResizedAmounts&, const ResizedAmounts&) = default;
};

/// A resize that has begun: the pod has the higher ones of both amounts, while its containers are
/// changed one by one. If its process has gone, settle_resize() tells what has become of it.
struct Resizing {
  std::string container;  ///< name in the pod; "" for the pod as a whole
  ResizedAmounts before;
  ResizedAmounts raised;
  ResizedAmounts after;
  friend bool operator==(const Resizing&, const Resizing&) = default;
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
  /// Percent of the quota that it was granted as burst when it came (decide_cpu_class()).
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
  /// When a later transaction has to look at the pod: it is released and its cgroup remains, or it
  /// lives with a process that outlives its containers, or with values that were refused.
  std::optional<BootSeconds> due = std::nullopt;
  std::optional<Resizing> resizing = std::nullopt;   ///< until it is finished or taken back
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

/// A uid within a row, and its hash.
class RowUid {
 public:
  static constexpr std::size_t kMost = 128;  ///< check_pod_uid()

  constexpr RowUid() = default;
  /// @param uid  what is beyond kMost is left out
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the text
  RowUid(std::string_view uid) : hash_{fnv1a(uid)} {
    std::ranges::copy_n(uid.begin(), static_cast<std::ptrdiff_t>(std::min(uid.size(), kMost)),
                        text_.begin());
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  RowUid(const char* uid) : RowUid{std::string_view{uid}} {}
  [[nodiscard]] std::string_view view() const {
    return {text_.begin(), std::ranges::find(text_, '\0')};
  }
  [[nodiscard]] bool empty() const { return text_.front() == '\0'; }
  friend bool operator==(const RowUid&, const RowUid&) = default;

 private:
  std::uint64_t hash_ = 0;
  std::array<char, kMost> text_{};
};

/// As a row's time: there is none.
constexpr BootSeconds kNever{-1};

/// What of a pod's record the events of other pods need: a row of the state's file `rows`, in just
/// these bytes, for each event reads all of them. Everything follows from the record, but for
/// `being_changed`. What is 0 or 1 is a byte, which a damaged file may give any value.
struct PodRow {
  RowUid uid;
  std::uint64_t tree = 0;              ///< tree_key() of the tree that it lies in; 0 for none
  MilliCpu requested_cpu = {};         ///< requested_by()
  Bytes requested_memory = {};         ///< the same
  MilliCpu counted_cpu = {};           ///< PodRecord::counted_request
  Bytes counted_memory = {};           ///< the same
  BootSeconds due = kNever;            ///< as PodRecord::due
  Process creator = {};                ///< if `is_pending`, the one that creates the container
  BootSeconds pending_since = kNever;  ///< ContainerRecord::pending_since of that container
  std::uint32_t containers = 0;        ///< number of them
  QosClass qos_class = QosClass::kBestEffort;
  std::uint8_t kubelets_own = 0;
  std::uint8_t counts = 0;         ///< it is in the sums: not released
  std::uint8_t being_changed = 0;  ///< by a transaction that is not finished, or was interrupted
  std::uint8_t is_pending = 0;     ///< a container of it is
  std::array<std::uint8_t, 39> unused = {};
  friend bool operator==(const PodRow&, const PodRow&) = default;
};
static_assert(sizeof(PodRow) == 256 && std::is_trivially_copyable_v<PodRow>);

/// A tree of podqos's own pods: a root cgroup, the tiers and pods below it.
struct TreeRecord {
  std::string kubepods;  ///< the root, "/podqos/kubepods"; its form tells the driver
  /// The outermost cgroup above `kubepods` that podqos has made ("/podqos"), along with those in
  /// between; "" if it has made none.
  std::string top = {};
  TierSums sums = {};  ///< of the rows of its pods; none of them is a kubelet's
  /// podqos may have set memory.min or memory.low of cgroups of it; absent if it has not.
  std::optional<bool> reserves = std::nullopt;
  /// Not all values of root and tiers could be written when they were made; absent if they were.
  std::optional<bool> unfinished = std::nullopt;
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

/// The stored state of the node: its rows, from which the sums follow, and node.json.
struct NodeState {
  TierSums sums;  ///< of the rows: podqos's own pods in all trees, and a kubelet's
  std::vector<PodRow> rows;
  std::vector<TreeRecord> trees;  ///< one for each driver that podqos's own pods use
  /// Shares→weight formula of the node's runtime, observed in one of its containers.
  std::optional<WeightFormula> weight_formula;
  std::optional<EvictionRecord> eviction = std::nullopt;  ///< the last one
  std::optional<OomLook> oom_look = std::nullopt;         ///< the last one of any pod
  /// Of the last transaction: they stay in force while the configuration has an error.
  std::optional<Settings> settings = std::nullopt;
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

}  // namespace podqos::core

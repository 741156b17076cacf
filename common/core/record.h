#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/cpu.h"
#include "common/core/engine_sums.h"
#include "common/core/pod.h"
#include "common/core/tier.h"

namespace podqos::core {

enum class ContainerState : std::uint8_t {
  kPending,  ///< placed, not yet confirmed by createRuntime; pid is the creating process
  kLive,     ///< confirmed; pid is the container's init
};

struct ContainerRecord {
  std::string id;
  std::string bundle;  ///< canonical; "" when unknown
  std::string name;    ///< name within the pod
  ContainerState state = ContainerState::kPending;
  Pid pid;
  StartTime start_time;
  std::string cgroup;  ///< where the container really is, absolute below the hierarchy
  bool sandbox = false;
  bool moved = false;  ///< podqos moved it itself, and so must remove its cgroup
  /// Under a CRI engine: the memory limit that the engine enforces, 0 if it enforces none. nullopt:
  /// who made the container is the node's operator, whose claims need no limit to back them.
  std::optional<Bytes> backed_memory = std::nullopt;
  friend bool operator==(const ContainerRecord&, const ContainerRecord&) = default;
};

/// Who says which pod a container belongs to, strongest first.
enum class IdentitySource : std::uint8_t {
  kEngine,      ///< CRI sandbox uid
  kCgroup,      ///< the container already lies below a pod cgroup
  kAnnotation,  ///< podqos.io/pod-uid
  kSandbox,     ///< only a sandbox id: it is the pod's key
  kLone,        ///< a container that is a pod of its own
};

/// Where a pod's class comes from.
enum class ClassSource : std::uint8_t {
  kEngine,
  kPodAnnotation,
  kQosAnnotation,
  kShortForms,
  kCriSums,
  kInference
};

/// All that podqos knows about one pod.
struct PodRecord {
  Pod pod;  ///< identity and resources: the whole spec, or the containers known so far
  bool complete = false;                          ///< the whole container set is known
  std::optional<EngineSums> sums = std::nullopt;  ///< what the engine says of the whole pod
  QosClass qos_class = QosClass::kBestEffort;
  ClassSource class_source = ClassSource::kInference;
  /// Who named the uid for the first of the containers that live; nullopt in records of earlier
  /// releases.
  std::optional<IdentitySource> founded_by = std::nullopt;
  bool adopted = false;  ///< placed by a kubelet: podqos does not write what the kubelet writes
  std::string
      sandbox_id;      ///< the engine's sandbox that owns the pod; "" when the engine names none
  std::string cgroup;  ///< the pod's cgroup
  TierSum claimed;     ///< requests, as far as one pod may claim them (pods is 1)
  TierSum granted;     ///< what of it counts towards the tiers
  std::optional<MilliCpu> grown_cpu_limit;  ///< partial pods: the highest limit so far
  std::optional<Bytes> grown_memory_limit;
  std::vector<ContainerRecord> containers;
  std::optional<UnixSeconds>
      released_at;  ///< no container lives; the cgroup stays while memory is charged to it
  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

/// Where to find a container's pod: one entry per container of one id.
struct IndexEntry {
  std::string id;
  std::string bundle;
  std::string uid;
  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

struct PendingEntry {
  std::string uid;
  std::string id;
  std::string bundle;
  Pid pid;
  StartTime start_time;
  friend bool operator==(const PendingEntry&, const PendingEntry&) = default;
};

struct RetainedEntry {
  std::string uid;
  UnixSeconds until;
  friend bool operator==(const RetainedEntry&, const RetainedEntry&) = default;
};

/// tiers.json: the sums, and what the next event has to look after.
struct TiersRecord {
  TierSums sums;  ///< what podqos's own pods were granted, and what adopted ones request
  std::vector<PendingEntry> pending;
  std::vector<RetainedEntry> retained;
  std::string kubepods;  ///< root cgroup in use, "/podqos/kubepods"; "" before the first pod
  /// The outermost directory above `kubepods` that podqos has made ("/podqos"), and with it those
  /// in between; "" if it has made none, or in records of earlier releases.
  std::string top = {};
  /// A kubelet has come to `kubepods` after podqos: podqos removes nothing there and leaves the
  /// tiers alone.
  bool yielded = false;
  /// Shares→weight formula of the node's runtime, seen in a container that it made.
  std::optional<WeightFormula> weight_formula;
  friend bool operator==(const TiersRecord&, const TiersRecord&) = default;
};

}  // namespace podqos::core

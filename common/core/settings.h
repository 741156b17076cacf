#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/eviction_order.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

/// Which containers podqos manages.
enum class Scope : std::uint8_t {
  kPods,       ///< whatever belongs to a pod: podqos.io annotations, a CRI or Podman sandbox, a pod
               ///< cgroup
  kAnnotated,  ///< only what carries a podqos.io identity or resource annotation
  kAll,        ///< a lone container is a pod of its own
};
/// Whose resource annotations are believed.
enum class TrustAnnotations : std::uint8_t { kEngineChecked, kAll, kNone };
enum class DriverSetting : std::uint8_t {
  kAuto,      ///< the driver of the first container's runtime, for the whole node
  kCgroupfs,  ///< a container of a runtime with the other driver is an error
  kSystemd,   ///< the same
};
/// What createRuntime does with a container that runs outside its pod's cgroup.
enum class OnMisplaced : std::uint8_t { kRewrite, kFail, kIgnore };
/// Where the containers of a pod go whose engine names no cgroup parent.
enum class WithoutParent : std::uint8_t {
  kStay,   ///< where the engine puts them, bounded by their own values alone
  kPlace,  ///< into the pod's cgroup, as all others
};
enum class OnError : std::uint8_t { kAdmit, kReject };
/// What is done about a pod whose requests do not fit what is allocatable.
enum class AdmissionPolicy : std::uint8_t { kOff, kWarn, kEnforce };
enum class WeightFormulaSetting : std::uint8_t { kAuto, kLinear, kLog };
/// What a container may swap, as the kubelet's memorySwap.swapBehavior; cgroup v2 only.
enum class SwapBehavior : std::uint8_t {
  kNoSwap,
  kLimitedSwap,  ///< Burstable: the memory request's part of the node's swap
};
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct Reserved {
  MilliCpu cpu;
  Bytes memory;
  friend bool operator==(const Reserved&, const Reserved&) = default;
};

/// admission: the policy for each resource (node_fit.h).
struct AdmissionPolicies {
  std::optional<AdmissionPolicy> memory;  ///< nullopt: see memory_admission()
  AdmissionPolicy cpu = AdmissionPolicy::kWarn;
  AdmissionPolicy pids = AdmissionPolicy::kWarn;
  friend bool operator==(const AdmissionPolicies&, const AdmissionPolicies&) = default;
};

/// ioWeight: the I/O weight of each Guaranteed pod and of the two tiers, 1 to 10000; nullopt:
/// podqos writes none.
using IoWeights = ByClass<std::optional<std::int64_t>>;

/// eviction: at which memory pressure a tier loses a pod; nullopt: at none. The root, Guaranteed
/// pods' tier, has no threshold.
struct Eviction : ByClass<std::optional<MemoryPressure>> {
  std::int64_t interval_seconds = 60;  ///< at least this long between two evictions
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

/// cpuBurst: by how much a pod of the class and each of its containers may exceed the CPU quota in
/// one period, in percent of it, 0 to 100; nullopt: podqos writes none. BestEffort has no quota.
using CpuBurst = ByClass<std::optional<std::int64_t>>;

/// rootCpuWeight: what CPU weight the root of podqos's own pods has where no kubelet's is beside
/// it.
struct RootCpuWeight {
  enum class Rule : std::uint8_t {
    kKubelet,       ///< the shares of what is allocatable, as the kubelet's root
    kProportional,  ///< to that of system.slice as what is allocatable to what is reserved
    kNumber,        ///< `weight`, also beside a kubelet's root
  };
  Rule rule = Rule::kKubelet;
  CpuWeight weight = {};  ///< [1, 10000]; only with kNumber
  friend bool operator==(const RootCpuWeight&, const RootCpuWeight&) = default;
};

/// cgroupRoot by default. "/" is left to kubelets: one that comes later than podqos removes from
/// its kubepods what it does not know.
constexpr const char* kDefaultCgroupRoot = "/podqos";

/// events.size at most: it may be in memory, and readers hold all of it.
constexpr Bytes kMaxEventsSize{64LL << 20U};

/// metrics.pods at most, "all": metrics are not shown of a node with more pods.
constexpr std::int64_t kMaxPodSeries = 4096;

/// A unix socket with a path, so that file permissions restrict access.
struct UnixSocket {
  std::string path;  ///< absolute, at most 107 bytes (unix(7))
  friend bool operator==(const UnixSocket&, const UnixSocket&) = default;
};

/// A TCP port on the loopback interface, or on all interfaces of the network namespace.
struct TcpPort {
  std::string host;        ///< an address in 127.0.0.0/8, or "::1"; all: "0.0.0.0" or "::"
  std::uint16_t port = 0;  ///< 1 to 65535
  friend bool operator==(const TcpPort&, const TcpPort&) = default;
};

/// Where podqos-nri serves its metrics. Other machines can reach only what names all interfaces,
/// which is meant for a pod with a network of its own: a kubelet's probes come to the pod's
/// address.
using MetricsAddress = std::variant<UnixSocket, TcpPort>;

/// The configuration, with its defaults: /etc/podqos/podqos.json and conf.d on top.
struct Settings {
  bool enabled = true;
  Scope scope = Scope::kPods;
  TrustAnnotations trust_annotations = TrustAnnotations::kEngineChecked;
  bool allow_qos_override = false;
  std::string cgroup_root = kDefaultCgroupRoot;  ///< absolute; kubepods lies below it
  DriverSetting cgroup_driver = DriverSetting::kAuto;
  OnMisplaced on_misplaced = OnMisplaced::kRewrite;
  std::optional<WithoutParent> without_parent;  ///< nullopt: under CRI-O they stay
  OnError on_error = OnError::kAdmit;
  std::optional<Bytes> node_memory;  ///< pinned capacity; else the machine's
  std::optional<MilliCpu> node_cpu;  ///< pinned capacity; else the machine's
  Reserved system_reserved;
  Reserved kube_reserved;
  bool enforce_node_allocatable = true;  ///< enforceNodeAllocatable has "pods"
  RootCpuWeight root_cpu_weight;
  AdmissionPolicies admission;
  std::optional<std::int64_t> reserve_memory_percent;  ///< qosReserved.memory, 0..100
  std::int64_t max_pod_claim_percent = 100;  ///< maxPodClaim, of what is allocatable; 1..100
  bool cpu_cfs_quota = true;
  Micros cpu_cfs_quota_period = kDefaultPeriod;  ///< [1 ms, 1 s]
  CpuBurst cpu_burst;
  bool cpu_idle_besteffort = false;  ///< cpuIdle.bestEffort: the tier is idle on cgroup v2
  WeightFormulaSetting weight_formula = WeightFormulaSetting::kAuto;
  std::optional<std::int64_t> pod_pids_limit;
  IoWeights io_weight;
  Eviction eviction;
  std::optional<SwapBehavior> swap_behavior = SwapBehavior::kNoSwap;  ///< nullopt: the engine's
  /// On cgroup v2: does the kernel's OOM killer take one process of a container, not all of them?
  bool single_process_oom_kill = false;
  /// memoryReservationPolicy is TieredReservation: memory.min for Guaranteed, memory.low for others
  /// protect requested memory from reclaim, on cgroup v2.
  bool reserve_memory = false;
  /// memoryThrottlingFactor in thousandths, 1 to 1000; nullopt: no memory.high
  std::optional<std::int64_t> memory_throttling_thousandths;
  std::int64_t memory_high_patience_seconds = 30;  ///< 0: memory.high is never raised
  std::int64_t release_delay_seconds = 30;
  Bytes tier_memory_floor{64LL << 20U};
  std::vector<std::string> runtimes = {"/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun",
                                       "/usr/libexec/crio/crun"};
  bool charge_monitor = false;  ///< conmon or the shim goes into the pod's cgroup
  std::string state_dir = "/run/podqos";
  std::int64_t lock_deadline_ms = 5000;
  std::optional<MetricsAddress> metrics;  ///< of podqos-nri; nullopt: shown nowhere
  std::int64_t pod_series = 0;            ///< metrics.pods: of so many pods metrics have series
  /// "syslog", "stderr", "none" or the absolute path of a file
  std::string log_sink = "syslog";
  LogLevel log_level = LogLevel::kInfo;
  Bytes events_size{4LL << 20U};  ///< of the journal of events, at most kMaxEventsSize; 0: none

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// Whether memory that is requested is kept from others: by a reservation, or by the limits of
/// lower tiers (qosReserved).
[[nodiscard]] inline bool keeps_memory(const Settings& settings) {
  return settings.reserve_memory_percent.value_or(0) > 0 || settings.reserve_memory;
}

/// The policy for memory; by default "enforce" where it is kept, since more than there is cannot
/// be, else "warn".
[[nodiscard]] inline AdmissionPolicy memory_admission(const Settings& settings) {
  return settings.admission.memory.value_or(keeps_memory(settings) ? AdmissionPolicy::kEnforce
                                                                   : AdmissionPolicy::kWarn);
}

/// Whether a container is refused because of this error: of any under onError "reject", and of a
/// refusal that the operator configured in either case.
[[nodiscard]] inline bool refuses(const Settings& settings, const Error& error) {
  return settings.on_error == OnError::kReject || error.code == ErrorCode::kRefused;
}

/// Capacity of the node, from the configuration or measured.
struct NodeCapacity {
  Bytes memory;
  MilliCpu cpu;
  Bytes swap{0};          ///< of the machine; 0 if no setting needs it
  Bytes hugepages{0};     ///< of `memory`, what is preallocated as huge pages
  std::int64_t pids = 0;  ///< processes and threads; 0: not known
  Bytes page_size{4096};  ///< of the kernel
};

/// CPU that is not for pods: systemReserved + kubeReserved.
[[nodiscard]] inline MilliCpu reserved_cpu(const Settings& settings) {
  return settings.system_reserved.cpu + settings.kube_reserved.cpu;
}
/// CPU for pods: capacity - systemReserved - kubeReserved, at least 0.
[[nodiscard]] inline MilliCpu allocatable_cpu(const Settings& settings,
                                              const NodeCapacity& capacity) {
  return rest_of(capacity.cpu, reserved_cpu(settings));
}
/// Memory for pods: capacity - systemReserved - kubeReserved - huge pages, at least 0. Huge pages
/// are a resource of their own, of which no memory limit takes anything.
/// @note kubernetes pkg/kubelet/nodestatus/setters.go MachineInfo.
[[nodiscard]] inline Bytes allocatable_memory(const Settings& settings,
                                              const NodeCapacity& capacity) {
  return rest_of(capacity.memory, settings.system_reserved.memory + settings.kube_reserved.memory +
                                      capacity.hugepages);
}

}  // namespace podqos::core

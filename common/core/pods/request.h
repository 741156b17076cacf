#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Annotations of a container by key.
using Annotations = std::map<std::string, std::string, std::less<>>;

/// The annotation that Podman 4.3 makes of `--annotation podqos.io/requests=cpu=1,memory=64Mi`: it
/// splits at the comma. podqos warns of it and reads nothing from it.
constexpr std::string_view kSplitMemory = "memory";

/// `linux.resources` as the engine set it. Absent, null and 0 become nullopt ("unset"); -1 stays -1
/// ("unlimited").
/// @note runtime-spec config-linux.md.
struct EngineResources {
  std::optional<std::int64_t> cpu_shares;
  std::optional<std::int64_t> cpu_quota;             ///< microseconds per period
  std::optional<std::int64_t> cpu_period;            ///< microseconds
  std::optional<std::int64_t> cpu_realtime_runtime;  ///< microseconds per realtime period
  std::optional<std::int64_t> memory_limit;          ///< bytes
  std::optional<std::int64_t> memory_reservation;    ///< bytes
  std::optional<std::int64_t> memory_swap;           ///< bytes of memory and swap together
  std::optional<std::int64_t> pids_limit;
  HugePageLimits hugepages;  ///< by page size label as in config.json ("2MB")
  UnifiedValues unified;

  [[nodiscard]] Micros period() const {
    return Micros{cpu_period.value_or(kDefaultPeriod.value())};
  }
  friend bool operator==(const EngineResources&, const EngineResources&) = default;
};

/// Identity and sums that the engine passes in its own annotations or, under NRI, in messages.
struct EngineAnnotations {
  std::optional<std::string>
      pod_uid;  ///< CRI sandbox-uid; CRI-O label io.kubernetes.pod.uid (also in its Labels)
  std::optional<std::string> sandbox_id;  ///< CRI sandbox-id, CRI-O's and Podman's SandboxID
  /// Who creates the container; for people, never for what is trusted.
  std::optional<Engine> engine;
  std::optional<std::string> pod_id;  ///< Podman's, where its sandbox id is the infra container's
  std::optional<std::string> pod_name;
  std::optional<std::string> pod_namespace;
  std::optional<std::string> container_name;
  bool is_sandbox = false;  ///< container-type "sandbox"
  /// The engine serves CRI: podqos.io annotations come from the pod's author, not from the node's
  /// operator.
  bool cri = false;
  /// Pod sums on the sandbox (containerd sandbox-cpu-shares/-quota/-period/-memory; CRI-O
  /// PodLinuxResources).
  std::optional<EngineResources> pod_sums;
  std::optional<EngineResources> pod_overhead;  ///< as pod_sums; CRI-O PodLinuxOverhead, NRI
  std::optional<EngineResources> pod_bound;     ///< limits of the cgroup that Podman made for it
  friend bool operator==(const EngineAnnotations&, const EngineAnnotations&) = default;
};

/// The parts of a container's config.json that decisions depend on. They may also come from the
/// OCI state of a hook, which has fewer, or from an NRI message.
struct ContainerFacts {
  std::string id;
  std::string bundle;                       ///< canonical path; "" if unknown
  Annotations annotations;                  ///< only keys that podqos uses (is_known_annotation)
  std::optional<EngineAnnotations> engine;  ///< from NRI; nullopt: parse them from `annotations`
  std::optional<std::string> cgroups_path;  ///< linux.cgroupsPath
  EngineResources resources;
  std::optional<std::int64_t> oom_score_adj;  ///< process.oomScoreAdj
  /// HOSTNAME of process.env, if the UTS namespace is another container's; else "".
  std::string shared_hostname;
  [[nodiscard]] ContainerKey key() const { return {.id = id, .bundle = bundle}; }
  /// Whether the engine has set oomScoreAdj. False for 0, which Docker always writes.
  [[nodiscard]] bool sets_oom_score() const { return oom_score_adj.value_or(0) != 0; }
  friend bool operator==(const ContainerFacts&, const ContainerFacts&) = default;
};

/// Changes to a config.json before the runtime reads it. Absent values are left unchanged, byte by
/// byte.
struct ConfigEdit {
  std::optional<std::string> cgroups_path = {};
  CgroupValues values = {};  ///< huge pages and unified: what to append to config.json's
  std::optional<int> oom_score_adj = {};
  friend bool operator==(const ConfigEdit&, const ConfigEdit&) = default;
};

/// The podqos.io/* annotations of a container, parsed and validated.
struct PodqosAnnotations {
  bool ignore = false;                    ///< podqos.io/ignore: "true"
  std::optional<std::string> pod_uid;     ///< podqos.io/pod-uid
  std::optional<std::string> container;   ///< podqos.io/container
  std::optional<QosClass> qos_class;      ///< podqos.io/qos-class
  std::optional<std::int64_t> cpu_burst;  ///< podqos.io/cpu-burst: percent, 0 to 100
  bool cpu_idle = false;                  ///< podqos.io/cpu-idle: "true"
  std::shared_ptr<const Pod> pod;         ///< podqos.io/pod with API defaults; null if absent
  std::optional<Resources> pod_level;     ///< podqos.io/requests, podqos.io/limits
  std::map<std::string, Resources, std::less<>>
      containers;  ///< podqos.io/requests.<name>, limits.<name>

  /// Whether any annotation except podqos.io/ignore is present.
  [[nodiscard]] bool any_identity_or_resource() const {
    return pod_uid || container || qos_class || pod || pod_level || !containers.empty();
  }
};

/// A container requesting admission to its pod.
struct AdmissionRequest {
  ContainerFacts facts;
  PodqosAnnotations podqos;
  EngineAnnotations engine;
  /// cgroupsPath from config.json before the container exists, or the cgroup of its init process.
  /// Absent if config.json has none.
  std::optional<std::string> placed_at;
  Driver driver = Driver::kCgroupfs;  ///< cgroup driver of its runtime
  /// True if its engine undoes it on an error although it runs (the sandbox of NRI's
  /// RunPodSandbox), so that it is refused like one that does not run yet.
  bool undone_if_refused = false;
  /// What to do if it runs outside its pod's cgroup: placement.onMisplaced, or kIgnore where the
  /// call is not about placing it.
  OnMisplaced on_misplaced = OnMisplaced::kRewrite;
  /// True if the engine applies the values with its own privileges (NRI), so that this program's
  /// capabilities do not limit them.
  bool engine_writes = false;
  /// kLive: it runs, and placed_at is where.
  ContainerState state = ContainerState::kPending;
  Process process = {};  ///< the one that creates the container or, of a live one, its init
  /// When that process began to create it, where nothing tells that this has failed.
  std::optional<BootSeconds> pending_since = std::nullopt;
  [[nodiscard]] bool runs() const { return state == ContainerState::kLive; }
};

}  // namespace podqos::core

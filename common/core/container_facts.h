#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/core/pod_config.h"

namespace podqos::core {

using Annotations = std::map<std::string, std::string, std::less<>>;

/// `linux.resources` as the engine wrote it. Absent, null and 0 are nullopt ("unset"); -1 stays -1
/// ("unlimited").
struct EngineResources {
  std::optional<std::int64_t> cpu_shares;
  std::optional<std::int64_t> cpu_quota;
  std::optional<std::int64_t> cpu_period;
  std::optional<std::int64_t> memory_limit;
  std::optional<std::int64_t> memory_reservation;
  std::optional<std::int64_t> memory_swap;  ///< memory and swap together
  std::optional<std::int64_t> pids_limit;
  HugePageLimits hugepages;  ///< by label as in config.json ("2MB")
  UnifiedValues unified;
  friend bool operator==(const EngineResources&, const EngineResources&) = default;
};

/// Identity and sums that the engine itself put into the annotations, or told as they are (NRI).
struct EngineAnnotations {
  std::optional<std::string>
      pod_uid;  ///< CRI sandbox-uid; CRI-O label io.kubernetes.pod.uid (also in its Labels)
  std::optional<std::string> sandbox_id;  ///< CRI sandbox-id, CRI-O's and Podman's SandboxID
  std::optional<std::string> pod_name;
  std::optional<std::string> pod_namespace;
  std::optional<std::string> container_name;
  bool is_sandbox = false;  ///< container-type "sandbox"
  /// The engine serves CRI: annotations are those of the pod's author, not of the node's operator.
  bool cri = false;
  /// Pod sums on the sandbox (containerd sandbox-cpu-shares/-quota/-period/-memory; CRI-O
  /// PodLinuxResources).
  std::optional<EngineResources> pod_sums;
  std::optional<EngineResources> pod_overhead;  ///< as pod_sums; CRI-O PodLinuxOverhead, NRI
  std::optional<EngineResources> pod_bound;     ///< of the cgroup that Podman has made for the pod
  friend bool operator==(const EngineAnnotations&, const EngineAnnotations&) = default;
};

/// What an engine says about one container: the facts of its config.json (or of the hook's state,
/// where that is all there is) that a decision may rest on.
struct ContainerFacts {
  std::string id;
  std::string bundle;                       ///< canonical directory; "" when unknown
  Annotations annotations;                  ///< those whose key podqos knows (is_known_annotation)
  std::optional<EngineAnnotations> engine;  ///< told as they are: none is among the annotations
  std::optional<std::string> cgroups_path;  ///< linux.cgroupsPath
  EngineResources resources;
  std::optional<std::int64_t> oom_score_adj;  ///< process.oomScoreAdj
  friend bool operator==(const ContainerFacts&, const ContainerFacts&) = default;
};

/// What podqos changes in a config.json before the runtime reads it. Absent: left to the byte as it
/// is.
struct ConfigEdit {
  std::optional<std::string> cgroups_path = {};
  std::optional<CpuShares> cpu_shares = {};
  std::optional<Micros> cpu_quota = {};
  std::optional<Micros> cpu_period = {};
  std::optional<Bytes> memory_limit = {};
  std::optional<std::int64_t> pids_limit = {};
  HugePageLimits hugepages = {};  ///< page sizes to append to hugepageLimits
  UnifiedValues unified = {};     ///< members to append to unified
  std::optional<int> oom_score_adj = {};
  friend bool operator==(const ConfigEdit&, const ConfigEdit&) = default;
};

}  // namespace podqos::core

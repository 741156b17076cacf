#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/container_memory.h"
#include "common/core/lowering.h"
#include "common/core/pod.h"
#include "common/core/pod_config.h"
#include "common/core/tier.h"
#include "ctl/json.h"

namespace podqos::ctl {

/// The parameters on which the values of a pod depend, apart from its spec.
struct ExplainParams {
  std::string cgroup_root = "/";  ///< parent of the kubepods cgroup
  core::PodConfigParams config;
  core::ContainerMemoryParams container;  ///< text output only
  std::vector<std::string> hugepage_labels = {"2MB", "1GB"};
  core::WeightFormula formula = core::WeightFormula::kLinear;
  std::optional<Bytes> node_memory;  ///< required for the OOM scores; above 0
};

/// Everything that podqos decides for one pod.
struct Explanation {
  core::Pod pod;  ///< with API defaults
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::string reason;                   ///< why it has this class, one sentence
  core::ResourceList requests;          ///< of the whole pod
  core::ResourceList limits;            ///< of the whole pod
  core::CgroupValues values;            ///< of the pod's cgroup
  std::optional<std::string> cgroupfs;  ///< cgroup path; nullopt: the manifest has no uid
  std::optional<std::string> systemd;   ///< slice path; nullopt: the manifest has no uid
  std::map<std::string, int, std::less<>>
      oom_score_adj;  ///< by container, init containers included
  std::map<std::string, core::CgroupValues, std::less<>> containers;  ///< own values, by name
  std::map<std::string, std::string, std::less<>> files;  ///< cgroup v2, cgroupfs driver
  core::SystemdWrites systemd_writes;
};

/// Decides class, values, names and writes of a pod, without reading the machine.
/// @param pod  as returned by admitted_pod() or pod_of()
/// @return kInvalidArgument without node_memory, for a uid that cannot name a cgroup, and for
///         huge page resources that the rules reject.
[[nodiscard]] Result<Explanation> explain(core::Pod pod, const ExplainParams& params);

/// The explanation in the form of `explain -o json` and `--batch`.
[[nodiscard]] Json explanation_json(const Explanation& explanation);

/// The tiers of one node: the sums of its pods' requests, and the values that follow.
struct TierExplanation {
  core::TierSums sums;
  core::TierValues values;
};
/// Sums the pods by class and computes the tiers' values.
/// @param pods  as a kubelet has them: defaulted and admitted
[[nodiscard]] TierExplanation explain_tiers(const std::vector<core::Pod>& pods,
                                            const core::TierParams& params);
/// The values of the tiers, for `--batch`.
[[nodiscard]] Json tiers_json(const core::TierValues& values);
/// The MemoryQoS values of the tiers, for `--batch`.
[[nodiscard]] Json tier_memory_qos_json(const core::TierMemoryQos& values);

}  // namespace podqos::ctl

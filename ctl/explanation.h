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

/// What the values of a pod depend on besides the pod.
struct ExplainParams {
  std::string cgroup_root = "/";
  core::PodConfigParams config;
  core::ContainerMemoryParams container;  ///< for people only
  std::vector<std::string> hugepage_labels = {"2MB", "1GB"};
  core::WeightFormula formula = core::WeightFormula::kLinear;
  std::optional<Bytes> node_memory;  ///< needed for the OOM scores
};

/// All that podqos would decide for one pod.
struct Explanation {
  core::Pod pod;  ///< defaulted
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::string reason;
  core::ResourceList requests;
  core::ResourceList limits;
  core::CgroupValues values;
  std::optional<std::string> cgroupfs;  ///< nullopt: the manifest has no uid yet
  std::optional<std::string> systemd;
  std::map<std::string, int, std::less<>>
      oom_score_adj;  ///< by container, init containers included
  std::map<std::string, core::CgroupValues, std::less<>> containers;  ///< the same; each its own
  std::map<std::string, std::string, std::less<>> files;  ///< cgroup v2, cgroupfs driver
  core::SystemdWrites systemd_writes;
};

/// @param pod  as admitted_pod gives it.
/// @return kInvalidArgument without node_memory, and for names that cannot be cgroups.
[[nodiscard]] Result<Explanation> explain(core::Pod pod, const ExplainParams& params);

/// The explanation in the form of `explain -o json` and `--batch`.
[[nodiscard]] Json explanation_json(const Explanation& explanation);

/// Pods of one node, summed up into its tiers.
struct TierExplanation {
  core::TierSums sums;
  core::TierValues values;
};
[[nodiscard]] TierExplanation explain_tiers(const std::vector<core::Pod>& pods,
                                            const core::TierParams& params);
/// The values of the tiers, for `--batch`.
[[nodiscard]] Json tiers_json(const core::TierValues& values);
/// The MemoryQoS values of the tiers, for `--batch`.
[[nodiscard]] Json tier_memory_qos_json(const core::TierMemoryQos& values);

}  // namespace podqos::ctl

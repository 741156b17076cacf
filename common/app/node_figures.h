#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/settings.h"
#include "common/store/store.h"

namespace podqos::app {

/// A tier that contains pods of podqos or of a kubelet.
struct TierFigures {
  /// The Guaranteed tier is the root itself, so its values include the other tiers.
  core::QosClass qos_class = core::QosClass::kGuaranteed;
  /// The memory limit that the rules require now; nullopt if none, or if a kubelet manages the
  /// tier.
  std::optional<Bytes> wanted_memory_limit;
  Bytes floor;  ///< tierMemoryFloor, below which no limit is written
  cgroup::CgroupView cgroup;

  /// How far the kernel's limit is above that; nullopt where either is absent.
  [[nodiscard]] std::optional<Bytes> memory_limit_gap() const;
};

/// A pod that has series of its own (metrics.pods).
struct PodFigures {
  std::string pod_namespace;
  std::string name;
  std::string uid;
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::optional<MilliCpu> cpu_request = {};  ///< nullopt for none
  std::optional<Bytes> memory_request = {};
  std::int64_t oom_kills = 0;  ///< processes of the pod that the OOM killer has ended
  cgroup::CgroupView cgroup;
  /// What may have a CPU quota: the pod by the name "", its containers by theirs.
  std::map<std::string, cgroup::CgroupView> quotas = {};
};

/// Figures of the node for metrics: totals, and those of as many pods as metrics.pods says.
struct NodeFigures {
  /// What the views read; absent without tiers and pods.
  std::unique_ptr<cgroup::Machine> machine = {};
  core::TierSums own = {};       ///< podqos's own pods, with their counted requests
  core::TierSums kubelets = {};  ///< kubelet pods, with their capped requests
  std::vector<TierFigures> tiers = {};
  std::vector<PodFigures> pods = {};  ///< those that use the most memory come first
  bool interrupted = false;           ///< a transaction is running, or was interrupted
  std::size_t unreadable = 0;         ///< number of unreadable records of pods
  std::string incidents = {};         ///< what is corrupt, for the log
};

/// Computes the figures from the records, and finds the tiers. Changes nothing.
/// @param records  opened to be read, without the lock
/// @return kTooLarge for more than core::kMaxPodSeries records
[[nodiscard]] Result<NodeFigures> node_figures(const core::Settings& settings,
                                               store::Store& records);

}  // namespace podqos::app

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

/// Totals of the node for metrics; their number does not grow with the number of pods.
struct NodeFigures {
  /// What the tiers' views read; absent without tiers.
  std::unique_ptr<cgroup::Machine> machine = {};
  core::TierSums own = {};       ///< podqos's own pods, with their counted requests
  core::TierSums kubelets = {};  ///< kubelet pods, with their capped requests
  std::vector<TierFigures> tiers = {};
  bool interrupted = false;    ///< a transaction is running, or was interrupted
  std::size_t unreadable = 0;  ///< number of unreadable records of pods
  std::string incidents = {};  ///< what is corrupt, for the log
};

/// Computes the figures from the records, and finds the tiers. Changes nothing.
/// @param records  opened to be read, without the lock
/// @return kTooLarge for more than 4,096 records
[[nodiscard]] Result<NodeFigures> node_figures(const core::Settings& settings,
                                               store::Store& records);

}  // namespace podqos::app

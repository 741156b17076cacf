#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/app/tier_reading.h"
#include "common/base/error.h"
#include "common/core/pod.h"
#include "common/core/settings.h"
#include "common/core/tier.h"
#include "common/store/node_snapshot.h"

namespace podqos::app {

/// A tier of a root that pods of podqos or of a kubelet lie below.
struct TierFigures {
  /// The Guaranteed tier is the root itself, and so holds the others.
  core::QosClass qos_class = core::QosClass::kGuaranteed;
  std::string cgroup;
  /// What the rule says now; nullopt: nothing, or a kubelet sees to it.
  std::optional<Bytes> wanted_memory_limit;
  TierReading reading;
};

/// The node in numbers: as many of them with 10 pods as with 1,000.
struct NodeFigures {
  core::TierSums own;      ///< pods that podqos has placed, and what they were granted
  core::TierSums adopted;  ///< pods of a kubelet, and what they claim
  std::vector<TierFigures> tiers;
  bool interrupted = false;    ///< an event is under way, or has left its mark
  std::size_t unreadable = 0;  ///< records
};

/// The figures of what SnapshotReader has seen. Reads the tiers from the kernel; changes nothing
/// and takes no lock.
[[nodiscard]] Result<NodeFigures> node_figures(const core::Settings& settings,
                                               const store::NodeSnapshot& state);

}  // namespace podqos::app

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/app/cgroup_reading.h"
#include "common/base/error.h"
#include "common/core/layout.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/core/tier.h"

namespace podqos::app {

/// A container as recorded, and as it is.
struct ContainerEntry {
  core::ContainerRecord record;
  bool alive = false;  ///< its init (pending: the creating process) lives
  std::optional<int> oom_score_adj;
  CgroupReading reading;
};

struct PodEntry {
  core::PodRecord record;
  core::CgroupValues rule;  ///< none for an adopted pod, whose values are its kubelet's
  CgroupReading reading;
  std::vector<ContainerEntry> containers;
};

/// A tier; the Guaranteed one is the root itself and has no values of its own.
struct TierEntry {
  core::QosClass qos_class = core::QosClass::kGuaranteed;
  std::string path;
  core::TierSum sum;  ///< granted requests
  core::CgroupValues rule;
  CgroupReading reading;
};

/// Everything that podqos keeps on this node, beside what the kernel says.
struct Inventory {
  std::string kubepods;          ///< root in use; "" before the first pod
  std::vector<TierEntry> tiers;  ///< Guaranteed, Burstable, BestEffort; empty without a root
  /// The directory above the root that podqos has made, with the sum of all its own pods; of its
  /// values only the shares follow a rule.
  std::optional<TierEntry> top;
  core::TierSum adopted;       ///< what pods of a kubelet request: not free for podqos's own
  std::vector<PodEntry> pods;  ///< by class, then namespace, name and uid
  std::vector<std::string> warnings;
  core::CgroupLayout layout;
  core::WeightFormula formula = core::WeightFormula::kLinear;
};

/// Reads records and cgroups; changes nothing. The lock is held only while the records are read, so
/// that a slow terminal delays no container.
/// @return nullopt where podqos has no state at all.
[[nodiscard]] Result<std::optional<Inventory>> read_inventory(const core::Settings& settings);

}  // namespace podqos::app

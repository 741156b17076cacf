#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/cgroups/layout.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// A container: its record and its current state.
struct ContainerEntry {
  core::ContainerRecord record;
  bool alive = false;                ///< its init runs (pending: the creating process)
  std::optional<int> oom_score_adj;  ///< nullopt unless live
  cgroup::CgroupView cgroup;
};

/// A pod: its record, the values that the rules require, and its cgroup.
struct PodEntry {
  core::PodRecord record;
  core::CgroupValues rule;  ///< empty for an adopted pod, whose values its kubelet writes
  cgroup::CgroupView cgroup;
  std::vector<ContainerEntry> containers;
};

/// A tier. The Guaranteed tier is the root itself and has no values of its own.
struct TierEntry {
  core::QosClass qos_class = core::QosClass::kGuaranteed;
  core::TierSum sum;  ///< granted requests
  core::CgroupValues rule;
  cgroup::CgroupView cgroup;
};

/// A tree of podqos's own pods.
struct TreeEntry {
  std::string kubepods;          ///< its root
  std::vector<TierEntry> tiers;  ///< Guaranteed, Burstable, BestEffort
  /// The cgroup above the root that podqos created, with the sum of all of the tree's pods. Of its
  /// values only the CPU shares follow a rule.
  std::optional<TierEntry> top;
};

/// All pods that podqos manages or has adopted, with views of their cgroups.
struct Inventory {
  std::unique_ptr<cgroup::Machine> machine;  ///< what the views read
  std::vector<TreeEntry> trees;              ///< by root
  core::TierSum adopted;              ///< requests of kubelet pods, not available to podqos's own
  std::vector<PodEntry> pods;         ///< by class, then namespace, name and uid
  std::vector<std::string> warnings;  ///< one sentence per problem, with its remedy
  core::CgroupLayout layout;
  core::WeightFormula formula = core::WeightFormula::kLinear;
};

/// Reads records and cgroups; changes nothing. The lock is held only while the records are read, so
/// that a slow terminal delays no container.
[[nodiscard]] Result<Inventory> read_inventory(const core::Settings& settings);

}  // namespace podqos::app

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/machine.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/record.h"
#include "ctl/node/engines.h"
#include "ctl/node/finding.h"
#include "ctl/node/not_managed.h"
#include "ctl/node/records.h"
#include "ctl/node/usage.h"

// The node as all views of podqosctl show it: read once, by read_node().
namespace podqos::ctl {

/// A cgroup as the kernel has it, and the values that the rules require.
struct Entry {
  cgroup::CgroupView held;
  core::CgroupValues rule = {};
  core::MemoryQos protection = {};  ///< memory.min, memory.low, memory.high by the rule
  core::WeightFormula formula = core::WeightFormula::kLinear;

  /// The shares of the kernel, see CgroupView::shares().
  [[nodiscard]] std::optional<CpuShares> shares() const {
    return held.shares(rule.cpu_shares, formula);
  }
};

/// A container of a pod. Its rule has what podqos gives it beside the limits that its runtime has
/// set, and not what its author has set.
struct ContainerEntry {
  core::ContainerRecord record;
  Entry cgroup;
  bool alive = false;   ///< while it is pending, the process that creates it
  bool paused = false;  ///< a live one whose processes are frozen
  std::optional<int> oom_score_adj = std::nullopt;  ///< of a live one

  [[nodiscard]] bool is_live() const {
    return alive && record.state == core::ContainerState::kLive;
  }
  /// "live", "pending" or "dead".
  [[nodiscard]] std::string_view status() const {
    return is_live() ? "live" : alive ? "pending" : "dead";
  }
  /// Whether a memory.high of podqos's throttles it.
  [[nodiscard]] bool is_throttled() const { return record.throttling && record.throttling->since; }
};

/// A pod, podqos's own or a kubelet's.
struct PodEntry {
  core::PodRecord record;
  Entry cgroup;  ///< without rule for a kubelet's
  std::int64_t oom_kills = 0;
  std::vector<ContainerEntry> containers = {};
};

/// What evicts pods.
constexpr std::string_view kOomdProgram = "systemd-oomd";
constexpr std::string_view kPluginProgram = "podqos-nri";

/// A cgroup above pods.
struct TierEntry {
  core::QosClass qos_class;
  core::TierSum sum;  ///< what its pods request
  Entry cgroup;
  bool converging = false;     ///< usage keeps the memory limit above its rule
  std::string evicts_at = {};  ///< the memory pressure at which it loses a pod; "": none
  std::string_view evicted_by = {};
  bool evictor_runs = false;
};

struct TreeEntry {
  std::string kubepods;                         ///< the root, in which Guaranteed pods lie
  std::optional<TierEntry> top = std::nullopt;  ///< the cgroup above it, if podqos has created that
  std::vector<TierEntry> tiers = {};            ///< one of each class
};

struct Node {
  app::ConfigurationReport configuration;
  std::optional<core::CgroupVersion> version = std::nullopt;  ///< of the cpu controller
  core::WeightFormula formula = core::WeightFormula::kLinear;
  core::TierSum capacity = {};     ///< CPU and memory
  core::TierSum allocatable = {};  ///< for pods
  core::TierSum kubelets = {};     ///< what a kubelet's pods request
  core::ByClass<core::TierSum> requested = {};
  core::TierSums counted = {};  ///< what of it counts
  std::vector<TreeEntry> trees = {};
  std::vector<PodEntry> pods = {};  ///< by class and name
  /// What is wrong with records, pods and tiers.
  Findings findings = {};
  std::vector<NotManaged> missed = {};
  std::optional<PluginFacts> plugin = std::nullopt;
};

/// Reads the node's pods and tiers: what the records, the rules and the kernel say of each. Changes
/// nothing.
/// @param cgroups  has to outlive the node
/// @param before  pods of an earlier look: those that nothing is wrong with, as `findings` of that
///        look say, are not looked at again
[[nodiscard]] Result<Node> read_node(const app::ConfigurationReport& configuration,
                                     NodeRecords records, cgroup::Machine& cgroups,
                                     const Node& before = {});

/// The same. What is wrong is looked at again while the lock of the records is held: at the first
/// look a pod that comes or goes differs from its record.
/// @param uid  of the only pod that is looked at; "": all
[[nodiscard]] Result<Node> read_checked_node(const app::ConfigurationReport& configuration,
                                             NodeRecords records, cgroup::Machine& cgroups,
                                             std::string_view uid = "");

/// The same of all pods, with what podqos does not manage, and the plugin.
/// @param events  of the journal
/// @param unit  of the plugin; nullopt: not asked for
[[nodiscard]] Result<Node> read_whole_node(const app::ConfigurationReport& configuration,
                                           NodeRecords records,
                                           const std::vector<core::Event>& events,
                                           cgroup::Machine& cgroups,
                                           const std::optional<UnitState>& unit = std::nullopt);

}  // namespace podqos::ctl

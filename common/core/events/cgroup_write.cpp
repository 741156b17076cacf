#include "common/core/events/cgroup_write.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {

namespace {

constexpr Bytes kUnbounded{kInt64Max};

Bytes bound_of(const CgroupValues& values) {
  const Bytes limit = values.memory_limit.value_or(Bytes{0});
  return limit > Bytes{0} ? limit : kUnbounded;
}

void lift_quota(CgroupValues& values, const Settings& settings) {
  values.cpu_quota = Micros{-1};
  values.cpu_period = settings.cpu_cfs_quota_period;
}

/// The files that reserve memory.
constexpr std::array kReserving = {"memory.min", "memory.low"};

/// Takes back a reservation that the cgroup may have.
/// @param held  the files that may have a value
template <class Files>
void take_back_reservation(CgroupValues& values, const Files& held) {
  for (const auto& file : held)
    values.unified.try_emplace(std::string{file}, "0");
}

/// What differs from the values that the cgroup holds.
void keep_written(PodWrite& write, const CgroupValues& held, const Settings& settings) {
  CgroupValues& wanted = write.values;
  // Lift limits that the pod no longer has.
  if (!wanted.cpu_quota && held.cpu_quota) lift_quota(wanted, settings);
  if (bound_of(held) != kUnbounded && bound_of(wanted) == kUnbounded)
    wanted.memory_limit = Bytes{-1};
  if (wanted.memory_limit == held.memory_limit) {
    // An earlier event may have left the limit above the rule, since the usage was.
    wanted.memory_limit.reset();
  } else {
    write.may_cut = bound_of(wanted) < bound_of(held);
  }
  // Constant: written when the cgroup was created.
  wanted.io_weight.reset();
  wanted.oomd_avoid.reset();
  if (wanted.unified == held.unified)
    wanted.unified.clear();
  else
    take_back_reservation(wanted, std::views::keys(held.unified));
  write.hugepages = wanted.hugepages != held.hugepages;
}

/// All values, and the ends of limits that other programs have set; also of a cgroup that is to be
/// made, whose unit systemd may still have.
void write_over(PodWrite& write, const PodWriteSnapshot& snapshot, const Settings& settings) {
  CgroupValues& wanted = write.values;
  if (!wanted.cpu_quota) lift_quota(wanted, settings);
  if (bound_of(wanted) == kUnbounded) wanted.memory_limit = Bytes{-1};
  // As that of a podPidsLimit that has been taken back. An idle cgroup refuses a weight.
  if (snapshot.may_differ && !wanted.pids_limit) wanted.pids_limit = -1;
  if (snapshot.may_differ && !wanted.cpu_idle) wanted.cpu_idle = false;
  write.may_cut = snapshot.may_differ && bound_of(wanted) != kUnbounded;
  if (snapshot.has_io_weight && !wanted.io_weight) wanted.io_weight = kDefaultIoWeight;
  if (snapshot.has_eviction && !wanted.oomd_avoid) wanted.oomd_avoid = false;
  if (snapshot.has_reservation) take_back_reservation(wanted, kReserving);
}

/// A hundredth of what is allocatable: the least that a tree counts with.
MilliCpu least(const NodeCpu& node) {
  return MilliCpu{std::max<std::int64_t>(node.allocatable.value() / kPercent, 1)};
}

/// True if nothing but what is allocatable determines the root's value.
bool has_kubelets_rule(const NodeCpu& node) {
  if (node.kubelets_root || node.rule.rule == RootCpuWeight::Rule::kNumber) return false;
  return node.rule.rule == RootCpuWeight::Rule::kKubelet || !node.system ||
         node.reserved <= MilliCpu{0};
}

/// Shares in the kernel's unit.
std::int64_t in_unit(CpuShares shares, CgroupVersion version, WeightFormula formula) {
  return version == CgroupVersion::kV2 ? cpu_weight_for(shares, formula).value() : shares.value();
}

/// The root's value in the kernel's unit, on v1 or v2.
std::int64_t kernel_value(const NodeCpu& node, CgroupVersion version, WeightFormula formula) {
  if (has_kubelets_rule(node)) return in_unit(cpu_shares_for(node.allocatable), version, formula);
  if (node.rule.rule == RootCpuWeight::Rule::kNumber)
    return in_unit(shares_for_weight(node.rule.weight, formula), version, formula);
  if (!node.kubelets_root)
    return mul_div(*node.system, node.allocatable.value(), node.reserved.value());
  const MilliCpu left = rest_of(node.allocatable, node.kubelets);
  const MilliCpu own = std::min(node.requested, left);
  const MilliCpu free = left - own;
  // Twice what each side keeps, so that the half of what is free is whole.
  const std::int64_t ours = (own + own + free).value();
  const std::int64_t theirs = (node.kubelets + node.kubelets + free).value();
  const std::int64_t least_of_theirs = std::max<std::int64_t>(node.allocatable.value() / 2, 1);
  return std::max<std::int64_t>(
      mul_div(*node.kubelets_root, ours, std::max(theirs, least_of_theirs)), 1);
}

CpuShares to_shares(std::int64_t value, CgroupVersion version, WeightFormula formula) {
  if (version == CgroupVersion::kV2) return shares_for_weight(CpuWeight{value}, formula);
  return std::clamp(CpuShares{value}, kMinShares, kMaxShares);
}

/// A memory limit is not lowered below usage and margin, nor raised above the kernel's for them.
void hold_limit(CgroupValues& tier, const TierSnapshot& snapshot, Bytes floor) {
  if (!tier.memory_limit) return;
  const Bytes least = std::max(*tier.memory_limit, floor);
  tier.memory_limit = bounded_tier_limit(*tier.memory_limit, snapshot.usage, floor);
  if (snapshot.limit)
    tier.memory_limit = std::max(least, std::min(*tier.memory_limit, *snapshot.limit));
}

/// What podqos does not set on root and tiers, or no longer does (enforceNodeAllocatable,
/// qosReserved), and other programs may.
void lift_other_limits(CgroupValues& values) {
  values.cpu_quota = Micros{-1};
  values.cpu_idle = false;
  if (!values.memory_limit) values.memory_limit = Bytes{-1};
  if (!values.pids_limit) values.pids_limit = -1;
}

}  // namespace

Result<PodWrite> decide_pod_write(const PodRecord& record, const PodWriteSnapshot& snapshot,
                                  const Settings& settings) {
  PODQOS_ASSIGN(auto values, pod_values(record, settings));
  PodWrite write{.make = snapshot.written ? Cgroup::kExists : Cgroup::kCreate,
                 .values = std::move(values),
                 .hugepages = true};
  if (snapshot.written) {
    PODQOS_ASSIGN(const auto held, pod_values(*snapshot.written, settings));
    keep_written(write, held, settings);
  } else {
    write_over(write, snapshot, settings);
  }
  return write;
}

std::optional<std::string> hold_above_usage(PodWrite& write, const std::string& cgroup,
                                            std::optional<Bytes> usage) {
  auto& limit = write.values.memory_limit;
  if (!limit || !usage) return std::nullopt;
  const Bytes held = bounded_tier_limit(*limit, usage, Bytes{0});
  auto notice = cat("cgroup ", cgroup, ": memory limit lowered to ", format_amount(held),
                    " instead of ", format_amount(*limit), ": ", format_amount(*usage), " in use");
  limit = held;
  return notice;
}

std::vector<std::string> cgroups_with_share(const TreeRecord& tree) {
  if (tree.top.empty() && parent_of(tree.kubepods) == "/") return {tree.kubepods};
  return directories_above(tree.kubepods, tree.top);
}

CpuShares tree_shares(const NodeCpu& node, const NodeState& state, const TreeRecord& tree,
                      CgroupVersion version, WeightFormula formula) {
  const auto part = [&](const TreeRecord& of) {
    return std::max(sum_of_own(of.sums).cpu, least(node));
  };
  const MilliCpu own = part(tree);
  MilliCpu all = own;
  for (const TreeRecord& other : state.trees) {
    // One whose last pod has just ended, or whose cgroups are held, has no more use for a share.
    if (other.kubepods != tree.kubepods && sum_of_own(other.sums).pods != 0)
      all = all + part(other);
  }
  // Not by way of the weight, which stands for many numbers of shares.
  if (all == own && has_kubelets_rule(node)) return cpu_shares_for(node.allocatable);
  return to_shares(mul_div(kernel_value(node, version, formula), own.value(), all.value()), version,
                   formula);
}

CgroupValues root_limits(const NodeState& state, const TreeRecord& tree, const Settings& settings,
                         const NodeCapacity& capacity) {
  CgroupValues values;
  if (settings.reserve_memory) values.unified = root_reservation(tree.sums);
  if (!settings.enforce_node_allocatable) return values;
  const Bytes allocatable = allocatable_memory(settings, capacity);
  if (allocatable.value() > 0) {
    const Bytes in_other_trees = sum_of_own(state.sums).memory - sum_of_own(tree.sums).memory;
    values.memory_limit = rest_of(allocatable, state.sums.kubelets.memory + in_other_trees);
  }
  if (capacity.pids > 0) values.pids_limit = capacity.pids;
  return values;
}

TierValues wanted_tiers(const TierSums& tree, const TierSums& node, const Settings& settings,
                        const NodeCapacity& capacity) {
  TierValues values =
      tier_values(node, settings.reserve_memory_percent, allocatable_memory(settings, capacity));
  values.burstable.cpu_shares = tier_values(tree).burstable.cpu_shares;
  if (settings.reserve_memory)
    values.burstable.unified["memory.low"] = cat(tree.burstable.memory.value());
  return values;
}

TierValues decide_tier_write(TierValues wanted, TreeState tree, const TierSnapshots& snapshots,
                             const Settings& settings) {
  const auto decide = [&](CgroupValues& tier, const TierSnapshot& snapshot,
                          std::optional<std::int64_t> io_weight,
                          const std::optional<MemoryPressure>& eviction) {
    hold_limit(tier, snapshot, settings.tier_memory_floor);
    if (tree == TreeState::kUnchanged) return;
    if (tree == TreeState::kMissing) lift_other_limits(tier);
    // Remove limits of a reservation (qosReserved) that has been turned off.
    if (!tier.memory_limit) tier.memory_limit = Bytes{-1};
    tier.io_weight = io_weight;
    if (tree == TreeState::kMissing && !io_weight && snapshot.has_io_weight)
      tier.io_weight = kDefaultIoWeight;
    if (snapshots.watched_by_oomd) tier.oomd_pressure = eviction;
    if (!eviction && snapshot.has_eviction) tier.oomd_pressure = MemoryPressure{};
  };
  if (snapshots.has_reservation) {
    take_back_reservation(wanted.root, kReserving);
    take_back_reservation(wanted.burstable, kReserving);
  }
  decide(wanted.burstable, snapshots.burstable, settings.io_weight.burstable,
         settings.eviction.burstable);
  decide(wanted.besteffort, snapshots.besteffort, settings.io_weight.besteffort,
         settings.eviction.besteffort);
  if (tree != TreeState::kUnchanged && settings.cpu_idle_besteffort)
    wanted.besteffort.cpu_idle = true;
  hold_limit(wanted.root, snapshots.root, settings.tier_memory_floor);
  if (tree == TreeState::kMissing) lift_other_limits(wanted.root);
  // Constant: written when the tier was created.
  if (tree == TreeState::kUnchanged) wanted.besteffort.cpu_shares.reset();
  return wanted;
}

}  // namespace podqos::core

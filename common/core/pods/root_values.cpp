#include "common/core/pods/root_values.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/kubernetes/tier.h"

namespace podqos::core {

namespace {

/// A hundredth of what is allocatable: the least that a side counts with.
std::int64_t least(const NodeCpu& node) {
  return std::max<std::int64_t>(node.allocatable.value() / kPercent, 1);
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
  const std::int64_t free = saturating_sub(node.allocatable.value(), node.kubelets.value());
  const std::int64_t own = std::max(std::min(node.requested.value(), free), least(node));
  return mul_div(*node.kubelets_root, own, std::max(node.kubelets.value(), least(node)));
}

CpuShares to_shares(std::int64_t value, CgroupVersion version, WeightFormula formula) {
  if (version == CgroupVersion::kV2) return shares_for_weight(CpuWeight{value}, formula);
  return std::clamp(CpuShares{value}, kMinShares, kMaxShares);
}

}  // namespace

CpuShares root_shares(const NodeCpu& node, CgroupVersion version, WeightFormula formula) {
  // Not by way of the weight, which stands for many numbers of shares.
  if (has_kubelets_rule(node)) return cpu_shares_for(node.allocatable);
  return to_shares(kernel_value(node, version, formula), version, formula);
}

std::vector<std::string> cgroups_with_share(const TreeRecord& tree) {
  if (tree.top.empty() && parent_of(tree.kubepods) == "/") return {tree.kubepods};
  return directories_above(tree.kubepods, tree.top);
}

CpuShares tree_shares(const NodeCpu& node, const TiersRecord& tiers, const TreeRecord& tree,
                      CgroupVersion version, WeightFormula formula) {
  const auto part = [&](const TreeRecord& of) {
    return std::max(sum_of_own(of.sums).cpu.value(), least(node));
  };
  const std::int64_t own = part(tree);
  std::int64_t all = own;
  for (const TreeRecord& other : tiers.trees) {
    // One whose last pod has just ended, or whose cgroups are held, has no more use for a share.
    if (other.kubepods != tree.kubepods && sum_of_own(other.sums).pods != 0)
      all = saturating_add(all, part(other));
  }
  if (all == own) return root_shares(node, version, formula);
  return to_shares(mul_div(kernel_value(node, version, formula), own, all), version, formula);
}

CgroupValues root_limits(const TiersRecord& tiers, const TreeRecord& tree, const Settings& settings,
                         const NodeCapacity& capacity) {
  CgroupValues values;
  if (!settings.enforce_node_allocatable) return values;
  const Bytes allocatable = allocatable_memory(settings, capacity);
  if (allocatable.value() > 0) {
    const std::int64_t in_other_trees =
        saturating_sub(sum_of_own(tiers.sums).memory.value(), sum_of_own(tree.sums).memory.value());
    const std::int64_t outside = saturating_add(tiers.sums.adopted.memory.value(), in_other_trees);
    values.memory_limit =
        Bytes{std::max<std::int64_t>(saturating_sub(allocatable.value(), outside), 0)};
  }
  if (capacity.pids > 0) values.pids_limit = capacity.pids;
  return values;
}

}  // namespace podqos::core

#include <algorithm>
#include <utility>
#include <vector>

#include "common/app/inventory.h"
#include "common/base/text.h"
#include "common/core/pods/whole_pod.h"
#include "ctl/command.h"
#include "ctl/inventory_view.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// "cpu 110m, memory 64Mi", or "-".
std::string shown(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  const auto memory = core::find(list, core::kMemory);
  std::string out;
  if (cpu) out = cat("cpu ", format_cpu(MilliCpu{cpu->milli_value()}));
  if (memory) out += cat(out.empty() ? "" : ", ", "memory ", format_bytes(Bytes{memory->value()}));
  return out.empty() ? "-" : out;
}

/// CPU and memory of a tier's sum.
std::string shown(const core::TierSum& sum) {
  return cat("cpu ", format_cpu(sum.cpu), ", memory ", format_bytes(sum.memory));
}

/// "2 live, 1 pending", or "none".
std::string containers_of(const app::PodEntry& pod) {
  const auto count = [&](std::string_view state) {
    return std::ranges::count_if(
        pod.containers, [&](const app::ContainerEntry& c) { return format_state(c) == state; });
  };
  std::string out;
  for (const std::string_view state : {"live", "pending", "dead"})
    if (const auto number = count(state); number > 0)
      out += cat(out.empty() ? "" : ", ", number, " ", state);
  return out.empty() ? "none" : out;
}

/// The table of pods.
std::string pods_table(const app::Inventory& inventory, ColourMode mode) {
  std::vector<Row> rows = {
      heading({"POD", "CLASS", "SOURCE", "CONTAINERS", "REQUESTS", "LIMITS", "USAGE"})};
  for (const app::PodEntry& pod : inventory.pods) {
    const core::PodRecord& record = pod.record;
    rows.push_back(
        {cell(pod_title(record.pod), Colour::kBold),
         cell(cat(core::format_qos_class(record.qos_class), record.complete ? "" : " (partial)",
                  record.adopted ? " (adopted)" : "")),
         cell(std::string{format_source(record.class_source)}), cell(containers_of(pod)),
         cell(shown(core::requests_of(record))), cell(shown(limits_shown(pod))),
         cell(format_bytes(pod.cgroup.memory_usage()))});
  }
  return format_table(rows, mode);
}

/// "want/actual" of a tier's shares; without a rule only the kernel's.
std::string cpu_pair(const app::TierEntry& tier, core::WeightFormula formula) {
  const auto shares = tier.cgroup.shares(tier.rule.cpu_shares, formula);
  std::string kernel = shares ? cat(shares->value()) : "-";
  if (!tier.rule.cpu_shares) return kernel;
  return cat(tier.rule.cpu_shares->value(), " / ", kernel);
}

/// The table of the tiers of all trees, each below the directory above the root if podqos has
/// created it.
std::string tiers_table(const app::Inventory& inventory, ColourMode mode) {
  std::vector<Row> rows = {heading(
      {"TIER", "PODS", "REQUESTS", "SHARES want/actual", "MEMORY LIMIT want/actual", "USAGE"})};
  const auto add = [&](std::string name, const app::TierEntry& tier) {
    rows.push_back({cell(std::move(name), Colour::kBold), cell(cat(tier.sum.pods)),
                    cell(shown(tier.sum)), cell(cpu_pair(tier, inventory.formula)),
                    cell(cat(format_bytes(tier.rule.memory_limit), " / ",
                             format_bytes(tier.cgroup.memory_limit()))),
                    cell(format_bytes(tier.cgroup.memory_usage()))});
  };
  for (const app::TreeEntry& tree : inventory.trees) {
    if (tree.top) add(tree.top->cgroup.path(), *tree.top);
    for (const app::TierEntry& tier : tree.tiers)
      add(std::string{core::format_qos_class(tier.qos_class)}, tier);
  }
  return format_table(rows, mode);
}

/// The whole text output.
std::string status_text(const app::Inventory& inventory, ColourMode mode) {
  std::string out = inventory.pods.empty() ? std::string{"no pods\n"} : pods_table(inventory, mode);
  if (!inventory.trees.empty()) out += cat("\n", tiers_table(inventory, mode));
  if (inventory.adopted.pods > 0) {
    out += cat("adopted: ", format_count(inventory.adopted.pods, "pod"), " of a kubelet, ",
               shown(inventory.adopted), " requested: not counted in podqos's own tiers\n");
  }
  return out;
}

}  // namespace

Command add_status(CLI::App& app, const Globals& globals) {
  return add_view(app, globals, status_text, "status",
                  "List the pods and tiers of this node: class, requests, limits, current usage, "
                  "and inconsistencies");
}

}  // namespace podqos::ctl

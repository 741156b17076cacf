#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "ctl/command.h"
#include "ctl/inventory_view.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// Characters of a container id, as engines shorten it.
constexpr std::size_t kShownId = 12;

/// A line of the tree and its children.
struct Node {
  Cell label;
  const cgroup::CgroupView* cgroup = nullptr;
  std::optional<CpuShares> shares;
  std::optional<int> oom_score_adj = {};
  std::optional<Pid> pid = {};
  std::vector<Node> children = {};
};

/// The colour of a class, also for its tier.
Colour colour_of(core::QosClass qos_class) {
  switch (qos_class) {
    case core::QosClass::kGuaranteed: return Colour::kGreen;
    case core::QosClass::kBurstable: return Colour::kYellow;
    case core::QosClass::kBestEffort: return Colour::kCyan;
  }
  return Colour::kNone;
}

/// The last component of a cgroup path.
std::string_view leaf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// A container, marked if it is not live, a sandbox, or outside its pod's cgroup.
Node container_node(const app::ContainerEntry& container, const app::PodEntry& pod,
                    core::WeightFormula formula) {
  const core::ContainerRecord& record = container.record;
  std::string label = printable(record.name.empty() ? record.id.substr(0, kShownId) : record.name);
  if (format_state(container) != "live") label += cat(" (", format_state(container), ")");
  if (record.sandbox) label += " (sandbox)";
  if (!record.cgroup.starts_with(cat(pod.record.cgroup, "/")))
    label += cat(" at ", printable(record.cgroup));
  Node node{.label = cell(std::move(label), container.alive ? Colour::kNone : Colour::kRed),
            .cgroup = &container.cgroup,
            .shares = container.cgroup.shares({}, formula),
            .oom_score_adj = container.oom_score_adj};
  if (container.alive) node.pid = record.pid;
  return node;
}

/// A pod with its containers.
/// @param whole_path  for a pod outside podqos's root
Node pod_node(const app::PodEntry& pod, core::WeightFormula formula, bool whole_path) {
  const core::PodRecord& record = pod.record;
  const std::string_view name = whole_path ? std::string_view{record.cgroup} : leaf(record.cgroup);
  const std::string title = record.pod.name.empty() ? "" : cat("  ", pod_title(record.pod));
  Node node{.label = cell(cat(printable(name), title, record.adopted ? "  (adopted)" : "",
                              pod.cgroup.exists() ? "" : "  (gone)"),
                          colour_of(record.qos_class)),
            .cgroup = &pod.cgroup,
            .shares = pod.cgroup.shares(pod.rule.cpu_shares, formula)};
  for (const app::ContainerEntry& container : pod.containers)
    node.children.push_back(container_node(container, pod, formula));
  return node;
}

/// A tier; the Guaranteed one is the root itself.
Node tier_node(const app::TierEntry& tier, core::WeightFormula formula) {
  const bool root = tier.qos_class == core::QosClass::kGuaranteed;
  return {.label = cell(root ? tier.cgroup.path() : std::string{leaf(tier.cgroup.path())},
                        root ? Colour::kBold : colour_of(tier.qos_class)),
          .cgroup = &tier.cgroup,
          .shares = tier.cgroup.shares(tier.rule.cpu_shares, formula)};
}

/// The root of a tree with Guaranteed pods and the tiers below it.
/// @param pods  those of no tree so far; the root takes its own
Node root_node(const app::TreeEntry& tree, core::WeightFormula formula,
               std::vector<const app::PodEntry*>& pods) {
  std::vector<Node> tiers;
  tiers.reserve(tree.tiers.size());
  for (const app::TierEntry& tier : tree.tiers)
    tiers.push_back(tier_node(tier, formula));
  std::erase_if(pods, [&](const app::PodEntry* pod) {
    const auto index = static_cast<std::size_t>(pod->record.qos_class);
    if (!pod->record.cgroup.starts_with(cat(tree.kubepods, "/"))) return false;
    tiers[index].children.push_back(pod_node(*pod, formula, false));
    return true;
  });
  for (std::size_t i = 1; i < tiers.size(); ++i)
    tiers.front().children.push_back(std::move(tiers[i]));
  return std::move(tiers.front());
}

/// The trees, then pods outside them (adopted ones).
std::vector<Node> forest(const app::Inventory& inventory) {
  std::vector<const app::PodEntry*> pods;
  pods.reserve(inventory.pods.size());
  for (const app::PodEntry& pod : inventory.pods)
    pods.push_back(&pod);
  std::vector<Node> roots;
  roots.reserve(inventory.trees.size() + pods.size());
  for (const app::TreeEntry& tree : inventory.trees)
    roots.push_back(root_node(tree, inventory.formula, pods));
  for (const app::PodEntry* pod : pods)
    roots.push_back(pod_node(*pod, inventory.formula, true));
  return roots;
}

/// "weight (shares)" on cgroup v2, the shares alone on v1.
std::string shown_weight(const Node& node) {
  std::string shares = node.shares ? cat(node.shares->value()) : "-";
  const auto weight = node.cgroup->cpu_weight();
  return weight ? cat(weight->value(), " (", shares, ")") : shares;
}

/// The quota in microseconds, with "/period" if that is not 100000.
std::string shown_quota(const cgroup::CgroupView& cgroup) {
  const auto quota = cgroup.cpu_quota();
  if (!quota) return "-";
  const auto period = cgroup.cpu_period();
  const bool usual = !period || *period == core::kDefaultPeriod;
  return usual ? cat(quota->value()) : cat(quota->value(), "/", period->value());
}

/// The cells of one node.
/// @param prefix  the lines of the tree in front of the label
Row row_of(const Node& node, const std::string& prefix) {
  const cgroup::CgroupView& cgroup = *node.cgroup;
  const auto pids = cgroup.pids();
  return {cell(cat(prefix, node.label.text), node.label.colour),
          cell(shown_weight(node)),
          cell(shown_quota(cgroup)),
          cell(format_bytes(cgroup.memory_limit())),
          cell(format_bytes(cgroup.memory_usage())),
          cell(pids ? cat(*pids) : "-"),
          cell(node.oom_score_adj ? cat(*node.oom_score_adj) : ""),
          cell(node.pid ? cat(node.pid->value()) : "")};
}

/// Appends nodes and their children, depth first.
void add_rows(std::vector<Row>& rows, const std::vector<Node>& nodes, const std::string& prefix) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool last = i + 1 == nodes.size();
    rows.push_back(row_of(nodes[i], cat(prefix, last ? "└─ " : "├─ ")));
    add_rows(rows, nodes[i].children, cat(prefix, last ? "   " : "│  "));
  }
}

/// The whole text output.
std::string tree_text(const app::Inventory& inventory, ColourMode mode) {
  const bool v2 = inventory.layout.cpu == core::CgroupVersion::kV2;
  std::vector<Row> rows = {heading({"CGROUP", v2 ? "WEIGHT (SHARES)" : "SHARES", "QUOTA",
                                    "MEMORY LIMIT", "USAGE", "PIDS", "OOM", "PID"})};
  for (const Node& root : forest(inventory)) {
    rows.push_back(row_of(root, ""));
    add_rows(rows, root.children, "");
  }
  return rows.size() > 1 ? format_table(rows, mode) : "no pods\n";
}

}  // namespace

Command add_tree(CLI::App& app, const Globals& globals) {
  return add_view(app, globals, tree_text, "tree",
                  "Show the tree of tiers, pods and containers with the current kernel values");
}

}  // namespace podqos::ctl

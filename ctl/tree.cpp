#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "ctl/command.h"
#include "ctl/inventory_view.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// A line of the tree and its children.
struct Node {
  Cell label;
  const Json* cgroup = nullptr;  ///< of a tier, pod or container in the view
  std::vector<Node> children = {};
};

/// The colour of a class, also for its tier.
Colour colour_of(const Json& object) {
  const Json& qos_class = object.at("qosClass");
  if (qos_class == "Guaranteed") return Colour::kGreen;
  return qos_class == "Burstable" ? Colour::kYellow : Colour::kCyan;
}

/// The last component of a cgroup path.
std::string_view leaf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// A container, marked if it is not live, a sandbox, or outside its pod's cgroup.
Node container_node(const Json& container, const std::string& pod_cgroup) {
  // Of an id as much as engines show of it.
  constexpr std::size_t kShownId = 12;
  const std::string& name = text_in(container, "name");
  std::string label = printable(name.empty() ? text_in(container, "id").substr(0, kShownId) : name);
  const std::string& state = text_in(container, "state");
  if (state != "live") label += cat(" (", state, ")");
  if (container.at("sandbox")) label += " (sandbox)";
  const std::string& cgroup = text_in(container, "cgroup");
  if (!cgroup.starts_with(cat(pod_cgroup, "/"))) label += cat(" at ", printable(cgroup));
  return {.label = cell(std::move(label), state == "dead" ? Colour::kRed : Colour::kNone),
          .cgroup = &container};
}

/// A pod with its containers.
/// @param name  of its cgroup: the whole path for one outside podqos's root
Node pod_node(const Json& pod, std::string_view name) {
  const std::string title = text_in(pod, "name").empty() ? "" : cat("  ", pod_title(pod));
  Node node{.label = cell(cat(printable(name), title, pod.at("adopted") ? "  (adopted)" : "",
                              pod.at("exists") ? "" : "  (gone)"),
                          colour_of(pod)),
            .cgroup = &pod};
  for (const Json& container : pod.at("containers"))
    node.children.push_back(container_node(container, text_in(pod, "cgroup")));
  return node;
}

/// The root of a tree, which is the tier of Guaranteed pods, with its pods and the other tiers.
/// @param pods  those of no tree so far; the root takes its own
Node root_node(const Json& tree, std::vector<const Json*>& pods) {
  std::vector<Node> tiers;
  for (const Json& tier : tree.at("tiers")) {
    const std::string& path = text_in(tier, "cgroup");
    const Cell label =
        tiers.empty() ? cell(path, Colour::kBold) : cell(std::string{leaf(path)}, colour_of(tier));
    Node& node = tiers.emplace_back(Node{.label = label, .cgroup = &tier});
    std::erase_if(pods, [&](const Json* pod) {
      const std::string& cgroup = text_in(*pod, "cgroup");
      if (pod->at("qosClass") != tier.at("qosClass") ||
          !cgroup.starts_with(cat(text_in(tree, "kubepods"), "/")))
        return false;
      node.children.push_back(pod_node(*pod, leaf(cgroup)));
      return true;
    });
  }
  std::move(tiers.begin() + 1, tiers.end(), std::back_inserter(tiers.front().children));
  return std::move(tiers.front());
}

/// The trees, then pods outside them (adopted ones).
std::vector<Node> forest(const Json& view) {
  std::vector<const Json*> pods;
  for (const Json& pod : view.at("pods"))
    pods.push_back(&pod);
  std::vector<Node> roots;
  for (const Json& tree : view.at("trees"))
    roots.push_back(root_node(tree, pods));
  for (const Json* pod : pods)
    roots.push_back(pod_node(*pod, text_in(*pod, "cgroup")));
  return roots;
}

/// "weight (shares)" on cgroup v2, the shares alone on v1.
std::string shown_weight(const Json& cgroup) {
  const std::string shares = number_in(cgroup, "cpuShares");
  return cgroup.at("cpuWeight").is_null() ? shares
                                          : cat(number_in(cgroup, "cpuWeight"), " (", shares, ")");
}

/// The quota in microseconds, with "/period" if that is not 100000.
std::string shown_quota(const Json& cgroup) {
  const Json& period = cgroup.at("cpuPeriodUs");
  const std::string quota = number_in(cgroup, "cpuQuotaUs");
  const bool usual = period.is_null() || period == core::kDefaultPeriod.value();
  return quota == "-" || usual ? quota : cat(quota, "/", period.dump());
}

/// The cells of one node.
/// @param prefix  the lines of the tree in front of the label
Row row_of(const Node& node, const std::string& prefix) {
  const Json& cgroup = *node.cgroup;
  const bool score = cgroup.contains("oomScoreAdj") && !cgroup.at("oomScoreAdj").is_null();
  const bool process = cgroup.contains("pid") && cgroup.at("state") != "dead";
  return {cell(cat(prefix, node.label.text), node.label.colour),
          cell(shown_weight(cgroup)),
          cell(shown_quota(cgroup)),
          cell(bytes_in(cgroup, "memoryLimitBytes")),
          cell(bytes_in(cgroup, "memoryUsageBytes")),
          cell(number_in(cgroup, "pids")),
          cell(score ? number_in(cgroup, "oomScoreAdj") : ""),
          cell(process ? number_in(cgroup, "pid") : "")};
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
std::string tree_text(const Json& view, ColourMode mode) {
  std::vector<Row> rows = {
      heading({"CGROUP", "SHARES", "QUOTA", "MEMORY LIMIT", "USAGE", "PIDS", "OOM", "PID"})};
  for (const Node& root : forest(view)) {
    rows.push_back(row_of(root, ""));
    if (!root.cgroup->at("cpuWeight").is_null()) rows.front().at(1).text = "WEIGHT (SHARES)";
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

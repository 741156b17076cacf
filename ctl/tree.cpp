#include <algorithm>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "ctl/inventory_view.h"

namespace podqos::ctl {
namespace {

/// The colour of a class, also for its tier.
Colour colour_of(const Json& object) {
  const Json& qos_class = object.at("qosClass");
  if (qos_class == "Guaranteed") return Colour::kGreen;
  return qos_class == "Burstable" ? Colour::kYellow : Colour::kCyan;
}

/// "weight (shares)" on cgroup v2, where an idle cgroup has neither, the shares alone on v1.
std::string shown_weight(const Json& cgroup) {
  if (cgroup.at("cpuIdle") == true) return "idle";
  const std::string shares = number_in(cgroup, "cpuShares");
  return cgroup.at("cpuWeight").is_null() ? shares
                                          : cat(number_in(cgroup, "cpuWeight"), " (", shares, ")");
}

/// The quota in microseconds, with "+burst", and with "/period" if that is not 100000.
std::string shown_quota(const Json& cgroup) {
  const Json& period = cgroup.at("cpuPeriodUs");
  const Json& burst = cgroup.at("cpuBurstUs");
  const bool bursts = burst.is_number() && burst != 0;
  const std::string quota =
      cat(number_in(cgroup, "cpuQuotaUs"), bursts ? cat("+", burst.dump()) : "");
  const bool usual = period.is_null() || period == core::kDefaultPeriod.value();
  return quota == "-" || usual ? quota : cat(quota, "/", period.dump());
}

/// Collects the rows of the tree, depth first.
class TreeTable {
 public:
  /// The root of a tree, which is the tier of Guaranteed pods, with its pods and the other tiers.
  /// @param pods  those of no tree so far; the tiers take theirs
  void add_tree(const Json& tree, std::vector<const Json*>& pods) {
    for (const Json& tier : tree.at("tiers")) {
      const std::string& path = text_in(tier, "cgroup");
      const bool root = path == text_in(tree, "kubepods");
      add(root ? 0 : 1,
          root ? cell(path, Colour::kBold) : cell(std::string{leaf_of(path)}, colour_of(tier)),
          tier);
      std::erase_if(pods, [&](const Json* pod) {
        const std::string& cgroup = text_in(*pod, "cgroup");
        if (parent_of(cgroup) != path) return false;
        add_pod(root ? 1 : 2, *pod, leaf_of(cgroup));
        return true;
      });
    }
  }

  /// A pod with its containers.
  /// @param name  of its cgroup: the whole path for one outside podqos's root
  void add_pod(std::size_t depth, const Json& pod, std::string_view name) {
    add(depth,
        cell(cat(printable(name), text_in(pod, "name").empty() ? "" : cat("  ", pod_title(pod)),
                 pod.at("kubeletsOwn") ? "  (kubelet's)" : "", pod.at("exists") ? "" : "  (gone)"),
             colour_of(pod)),
        pod);
    for (const Json& container : pod.at("containers"))
      add_container(depth + 1, container, text_in(pod, "cgroup"));
  }

  /// The rows, with the lines of the tree in front of the labels.
  std::vector<Row> rows() && {
    std::vector<bool> goes_on;  // whether more follows at this depth
    for (std::size_t i = rows_.size(); i-- > 1;) {
      const std::size_t depth = depths_[i];
      goes_on.resize(depth + 1);
      std::string lines;
      for (std::size_t above = 1; above < depth; ++above)
        lines += goes_on[above] ? "│  " : "   ";
      if (depth > 0) lines += goes_on[depth] ? "├─ " : "└─ ";
      goes_on[depth] = true;
      rows_[i].front().text.insert(0, lines);
    }
    return std::move(rows_);
  }

 private:
  /// A container, marked if it is not live, a sandbox, or outside its pod's cgroup.
  void add_container(std::size_t depth, const Json& container, const std::string& pod) {
    // Of an id as much as engines show of it.
    constexpr std::size_t kShownId = 12;
    const std::string& name = text_in(container, "name");
    const std::string& state = text_in(container, "state");
    const std::string& cgroup = text_in(container, "cgroup");
    add(depth,
        cell(cat(printable(name.empty() ? text_in(container, "id").substr(0, kShownId) : name),
                 state == "live" ? "" : cat(" (", state, ")"),
                 container.at("sandbox") ? " (sandbox)" : "",
                 is_below(cgroup, pod) ? "" : cat(" at ", printable(cgroup))),
             state == "dead" ? Colour::kRed : Colour::kNone),
        container);
  }

  /// @param cgroup  of a tier, pod or container in the view
  void add(std::size_t depth, Cell label, const Json& cgroup) {
    const bool score = cgroup.contains("oomScoreAdj") && !cgroup.at("oomScoreAdj").is_null();
    const bool process = cgroup.contains("pid") && cgroup.at("state") != "dead";
    if (!cgroup.at("cpuWeight").is_null()) rows_.front().at(1).text = "WEIGHT (SHARES)";
    depths_.push_back(depth);
    rows_.push_back({std::move(label), cell(shown_weight(cgroup)), cell(shown_quota(cgroup)),
                     cell(bytes_in(cgroup, "memoryLimitBytes")),
                     cell(bytes_in(cgroup, "memoryUsageBytes")), cell(number_in(cgroup, "pids")),
                     cell(score ? number_in(cgroup, "oomScoreAdj") : ""),
                     cell(process ? number_in(cgroup, "pid") : "")});
  }

  std::vector<Row> rows_ = {
      heading({"CGROUP", "SHARES", "QUOTA", "MEMORY LIMIT", "USAGE", "PIDS", "OOM", "PID"})};
  std::vector<std::size_t> depths_ = {0};
};

/// The whole text output: the trees, then pods outside them (a kubelet's).
std::string tree_text(const Json& view, ColourMode mode) {
  TreeTable table;
  std::vector<const Json*> pods;
  for (const Json& pod : view.at("pods"))
    pods.push_back(&pod);
  for (const Json& tree : view.at("trees"))
    table.add_tree(tree, pods);
  for (const Json* pod : pods)
    table.add_pod(0, *pod, text_in(*pod, "cgroup"));
  const std::vector<Row> rows = std::move(table).rows();
  return rows.size() > 1 ? format_table(rows, mode) : "no pods\n";
}

}  // namespace

void add_tree(Cli& cli) {
  add_view(cli, tree_text, "tree",
           "Show the tree of tiers, pods and containers with the current kernel values");
}

}  // namespace podqos::ctl

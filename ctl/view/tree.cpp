#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/pods/pod_name.h"
#include "ctl/view/node_text.h"

namespace podqos::ctl {
namespace {

/// The colour of a class, also for its tier.
Colour colour_of(core::QosClass qos_class) {
  if (qos_class == core::QosClass::kGuaranteed) return Colour::kGreen;
  return qos_class == core::QosClass::kBurstable ? Colour::kYellow : Colour::kCyan;
}

/// On cgroup v2 "weight (shares)" where the weight is that of the shares of the rule, and there is
/// room.
std::string shown_share(const Entry& entry, const Screen& screen) {
  std::string held = held_share(entry);
  const auto& shares = entry.rule.cpu_shares;
  const bool both = entry.held.cpu_weight() && shares && held != "idle" &&
                    entry.shares() == shares && screen.is_wide();
  return both ? cat(held, " (", shares->value(), ")") : held;
}

/// Collects the rows of the tree, depth first.
class TreeTable {
 public:
  explicit TreeTable(const Screen& screen) : screen_(screen) {
    if (!screen.is_wide()) rows_.front().erase(rows_.front().begin() + kPids);
  }

  /// The root of a tree, which is the tier of Guaranteed pods, with its pods and the other tiers.
  /// @param pods  those of no tree so far; the tiers take theirs
  void add_tree(const TreeEntry& tree, std::vector<const PodEntry*>& pods) {
    for (const TierEntry& tier : tree.tiers) {
      const std::string& path = tier.cgroup.held.path();
      const bool root = path == tree.kubepods;
      add(root ? 0 : 1,
          root ? cell(path, Colour::kBold) : cell(short_leaf(path), colour_of(tier.qos_class)),
          tier.cgroup);
      std::erase_if(pods, [&](const PodEntry* pod) {
        const std::string& cgroup = pod->record.cgroup;
        if (parent_of(cgroup) != path) return false;
        add_pod(root ? 1 : 2, *pod, short_leaf(cgroup));
        return true;
      });
    }
  }

  /// A pod with its containers.
  /// @param leaf  of its cgroup: the whole path for one outside podqos's root
  void add_pod(std::size_t depth, const PodEntry& pod, std::string_view leaf) {
    const core::PodRecord& record = pod.record;
    // Where there is no room for both, the name says more, and other commands take it.
    add(depth,
        cell(cat(screen_.is_wide() ? cat(printable(leaf), "  ") : "", core::display_name(record),
                 record.kubelets_own ? "  (kubelet's)" : "",
                 record.released_at ? "  (released)" : "",
                 pod.cgroup.held.exists() ? "" : "  (gone)"),
             colour_of(record.qos_class)),
        pod.cgroup);
    for (const ContainerEntry& container : pod.containers)
      add_container(depth + 1, container, record.cgroup);
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
  static constexpr std::ptrdiff_t kPids = 4;  ///< the column that only a wide screen has

  /// The last part of a path; of a unit's name without the names of the slices above, which begin
  /// it.
  /// @note systemd.slice(5)
  [[nodiscard]] std::string short_leaf(std::string_view path) const {
    std::string_view leaf = leaf_of(path);
    std::string_view above = leaf_of(parent_of(path));
    if (!screen_.is_wide() && above.ends_with(".slice")) {
      above.remove_suffix(std::string_view{".slice"}.size());
      if (leaf.starts_with(cat(above, "-"))) leaf.remove_prefix(above.size() + 1);
    }
    return std::string{leaf};
  }

  /// A container, marked if it is not live, paused, a sandbox, or outside its pod's cgroup.
  void add_container(std::size_t depth, const ContainerEntry& container, const std::string& pod) {
    const core::ContainerRecord& record = container.record;
    add(depth,
        cell(cat(core::display_name(record),
                 container.is_live() ? "" : cat(" (", container.status(), ")"),
                 container.paused ? " (paused)" : "", record.sandbox ? " (sandbox)" : "",
                 is_below(record.cgroup, pod) ? "" : cat(" at ", printable(record.cgroup))),
             container.alive ? Colour::kNone : Colour::kRed),
        container.cgroup);
    Row& row = rows_.back();
    if (container.oom_score_adj) (row.end() - 2)->text = cat(*container.oom_score_adj);
    if (container.alive) row.back().text = cat(record.pid.value());
  }

  /// The row of a tier, pod or container.
  void add(std::size_t depth, Cell label, const Entry& entry) {
    const cgroup::CgroupView& held = entry.held;
    if (held.cpu_weight())
      rows_.front().at(1).text = screen_.is_wide() ? "WEIGHT (SHARES)" : "WEIGHT";
    depths_.push_back(depth);
    rows_.push_back({std::move(label), cell(shown_share(entry, screen_)), cell(shown_quota(held)),
                     cell(cat(shown(held.memory_usage()), "/", shown(held.memory_limit()))),
                     cell(shown(held.pids())), cell(""), cell("")});
    if (!screen_.is_wide()) rows_.back().erase(rows_.back().begin() + kPids);
  }

  const Screen& screen_;
  std::vector<Row> rows_ = {
      heading({"CGROUP", "SHARES", "CPU limit", "MEM now/limit", "PIDS", "OOM", "PID"})};
  std::vector<std::size_t> depths_ = {0};
};

/// The whole text output: the trees, then pods outside them (a kubelet's).
std::string tree_text(const Node& node, const Screen& screen) {
  TreeTable table{screen};
  std::vector<const PodEntry*> pods;
  pods.reserve(node.pods.size());
  for (const PodEntry& pod : node.pods)
    pods.push_back(&pod);
  for (const TreeEntry& tree : node.trees)
    table.add_tree(tree, pods);
  for (const PodEntry* pod : pods)
    table.add_pod(0, *pod, pod->record.cgroup);
  const std::vector<Row> rows = std::move(table).rows();
  constexpr std::array kCuts = {Cut{.column = 0, .least = 16}};
  return rows.size() > 1 ? format_table(rows, screen, kCuts) : "no pods\n";
}

}  // namespace

void add_tree(Cli& cli) {
  auto options = std::make_shared<ViewOptions>();
  options->text = tree_text;
  CLI::App* sub = cli.app.add_subcommand(
      "tree", "Show the tree of tiers, pods and containers with the current kernel values");
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  sub->callback([options, &cli] { cli.status = run_view(*options, cli); });
}

}  // namespace podqos::ctl

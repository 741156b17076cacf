#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/pods/pod_name.h"
#include "ctl/inventory_view.h"

namespace podqos::ctl {
namespace {

/// The colour of a class, also for its tier.
Colour colour_of(const Json& object) {
  const Json& qos_class = object.at("qosClass");
  if (qos_class == "Guaranteed") return Colour::kGreen;
  return qos_class == "Burstable" ? Colour::kYellow : Colour::kCyan;
}

/// On cgroup v2 "weight (shares)" where the weight is that of the shares of the rule, and there is
/// room.
std::string shown_share(const Json& cgroup, const Screen& screen) {
  const std::string held = held_share(cgroup);
  const Json& rule = cgroup.at("rule");
  const Json shares = rule.value("cpuShares", Json(nullptr));
  const bool both = !cgroup.at("cpuWeight").is_null() && !shares.is_null() && held != "idle" &&
                    cgroup.at("cpuShares") == shares && screen.is_wide();
  return both ? cat(held, " (", shares.dump(), ")") : held;
}

/// Collects the rows of the tree, depth first.
class TreeTable {
 public:
  explicit TreeTable(const Screen& screen) : screen_(screen) {
    if (!screen.is_wide()) rows_.front().erase(rows_.front().begin() + kPids);
  }

  /// The root of a tree, which is the tier of Guaranteed pods, with its pods and the other tiers.
  /// @param pods  those of no tree so far; the tiers take theirs
  void add_tree(const Json& tree, std::vector<const Json*>& pods) {
    for (const Json& tier : tree.at("tiers")) {
      const std::string& path = text_in(tier, "cgroup");
      const bool root = path == text_in(tree, "kubepods");
      add(root ? 0 : 1, root ? cell(path, Colour::kBold) : cell(short_leaf(path), colour_of(tier)),
          tier);
      std::erase_if(pods, [&](const Json* pod) {
        const std::string& cgroup = text_in(*pod, "cgroup");
        if (parent_of(cgroup) != path) return false;
        add_pod(root ? 1 : 2, *pod, short_leaf(cgroup));
        return true;
      });
    }
  }

  /// A pod with its containers.
  /// @param leaf  of its cgroup: the whole path for one outside podqos's root
  void add_pod(std::size_t depth, const Json& pod, std::string_view leaf) {
    // Where there is no room for both, the name says more, and other commands take it.
    add(depth,
        cell(cat(screen_.is_wide() ? cat(printable(leaf), "  ") : "", pod_title(pod),
                 pod.at("kubeletsOwn") ? "  (kubelet's)" : "",
                 pod.at("released") ? "  (released)" : "", pod.at("exists") ? "" : "  (gone)"),
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

  /// A container, marked if it is not live, a sandbox, or outside its pod's cgroup.
  void add_container(std::size_t depth, const Json& container, const std::string& pod) {
    const std::string& state = text_in(container, "state");
    const std::string& cgroup = text_in(container, "cgroup");
    add(depth,
        cell(cat(container_title(container), state == "live" ? "" : cat(" (", state, ")"),
                 container.at("sandbox") ? " (sandbox)" : "",
                 is_below(cgroup, pod) ? "" : cat(" at ", printable(cgroup))),
             state == "dead" ? Colour::kRed : Colour::kNone),
        container);
  }

  /// @param cgroup  of a tier, pod or container in the view
  void add(std::size_t depth, Cell label, const Json& cgroup) {
    const bool score = cgroup.contains("oomScoreAdj") && !cgroup.at("oomScoreAdj").is_null();
    const bool process = cgroup.contains("pid") && cgroup.at("state") != "dead";
    if (!cgroup.at("cpuWeight").is_null())
      rows_.front().at(1).text = screen_.is_wide() ? "WEIGHT (SHARES)" : "WEIGHT";
    depths_.push_back(depth);
    rows_.push_back(
        {std::move(label), cell(shown_share(cgroup, screen_)), cell(shown_quota(cgroup)),
         cell(cat(bytes_in(cgroup, "memoryUsageBytes"), "/", bytes_in(cgroup, "memoryLimitBytes"))),
         cell(number_in(cgroup, "pids")), cell(score ? number_in(cgroup, "oomScoreAdj") : ""),
         cell(process ? number_in(cgroup, "pid") : "")});
    if (!screen_.is_wide()) rows_.back().erase(rows_.back().begin() + kPids);
  }

  const Screen& screen_;
  std::vector<Row> rows_ = {
      heading({"CGROUP", "SHARES", "CPU limit", "MEM now/limit", "PIDS", "OOM", "PID"})};
  std::vector<std::size_t> depths_ = {0};
};

/// The whole text output: the trees, then pods outside them (a kubelet's).
std::string tree_text(const Json& view, const Screen& screen) {
  TreeTable table{screen};
  std::vector<const Json*> pods;
  for (const Json& pod : view.at("pods"))
    pods.push_back(&pod);
  for (const Json& tree : view.at("trees"))
    table.add_tree(tree, pods);
  for (const Json* pod : pods)
    table.add_pod(0, *pod, text_in(*pod, "cgroup"));
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

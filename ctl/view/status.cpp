#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/pod_name.h"
#include "ctl/node/not_managed.h"
#include "ctl/node/selector.h"
#include "ctl/view/node_text.h"

namespace podqos::ctl {
namespace {

// the node

/// "on", or why podqos places nothing.
std::string switch_of(const app::ConfigurationReport& configuration) {
  if (!configuration.errors.empty()) return "off: the configuration has errors";
  if (!why_unmanaged({}).empty()) return "off: this is a user namespace";
  return configuration.settings.enabled ? "on" : "off";
}

/// "v2: /podqos/kubepods (cgroupfs)".
std::string trees_of(const Node& node) {
  std::vector<std::string> trees;
  trees.reserve(node.trees.size());
  for (const TreeEntry& tree : node.trees)
    trees.push_back(
        cat(tree.kubepods, " (", core::format_driver(core::driver_of(tree.kubepods)), ")"));
  const bool v2 = node.version == core::CgroupVersion::kV2;
  return cat(node.version ? (v2 ? "v2" : "v1") : "none",
             trees.empty() ? "" : cat(": ", join(trees, ", ")));
}

/// "500m (12%), 400m counted" of what pods may have, and of what counts where that is less.
template <class Amount>
std::string request_of(Amount amount, Amount whole, Amount counted) {
  const std::string percent =
      whole > Amount{} ? cat(" (", mul_div(amount.value(), 100, whole.value()), "%)") : "";
  return cat(shown(std::optional{amount}), percent,
             amount == counted ? "" : cat(", ", shown(std::optional{counted}), " counted"));
}

/// What the node has, and what pods request of it.
std::string node_text(const Node& node, const Screen& screen) {
  std::vector<Row> facts;
  for (auto& [name, fact] : node_facts(node))
    facts.push_back({cell(std::move(name)), cell(std::move(fact))});
  std::vector<Row> rows = {heading({"NODE", "PODS", "CPU", "MEMORY"})};
  const core::TierSum& capacity = node.capacity;
  const core::TierSum& allocatable = node.allocatable;
  const auto add_amounts = [&](const char* name, MilliCpu cpu, Bytes memory) {
    rows.push_back({cell(name), cell(""), cell(format_amount(cpu)), cell(rounded_amount(memory))});
  };
  add_amounts("capacity", capacity.cpu, capacity.memory);
  add_amounts("reserved", rest_of(capacity.cpu, allocatable.cpu),
              rest_of(capacity.memory, allocatable.memory));
  add_amounts("allocatable", allocatable.cpu, allocatable.memory);
  const auto add = [&](std::string name, const core::TierSum& sum, const core::TierSum& counted) {
    rows.push_back({cell(std::move(name)), cell(cat(sum.pods)),
                    cell(request_of(sum.cpu, allocatable.cpu, counted.cpu)),
                    cell(request_of(sum.memory, allocatable.memory, counted.memory))});
  };
  core::TierSum sum;
  for (const core::QosClass qos_class : kClasses)
    sum += node.requested.of(qos_class);
  sum += node.kubelets;
  add("requested", sum, sum);
  for (const core::QosClass qos_class : kClasses)
    add(cat("  ", core::format_qos_class(qos_class)), node.requested.of(qos_class),
        node.counted.of(qos_class));
  if (node.kubelets.pods > 0) add("  of a kubelet", node.kubelets, node.kubelets);
  return cat(format_table(facts, screen), "\n", format_table(rows, screen));
}

// pods

/// "2/3", of containers that run and all; ", 1 pending, 1 paused, 1 throttled, 2 OOM-killed" if any
/// are, the last of processes.
std::string running_of(const PodEntry& pod) {
  if (pod.record.released_at) return "released";
  const auto [live, all] = running_in(pod);
  std::string out = cat(live, "/", all);
  const auto add = [&](std::string_view word, std::int64_t count) {
    if (count > 0) out += cat(", ", count, " ", word);
  };
  const auto count = [&](auto is_so) {
    return std::ranges::count_if(pod.containers, [&](const ContainerEntry& container) {
      return !container.record.sandbox && is_so(container);
    });
  };
  add("pending", count([](const auto& each) { return each.alive && !each.is_live(); }));
  add("paused", count([](const auto& each) { return each.paused; }));
  add("throttled", count([](const auto& each) { return each.is_throttled(); }));
  add("OOM-killed", pod.oom_kills);
  return out;
}

std::string pods_text(const Node& node, const Screen& screen) {
  Row titles = heading({"POD", "ENGINE", "CLASS", "RUNNING", "CPU req/limit", "MEM now/req/limit"});
  if (screen.is_wide()) titles.push_back(cell("SOURCE", Colour::kDim));
  std::vector<Row> rows = {std::move(titles)};
  for (const PodEntry& pod : node.pods) {
    const core::PodRecord& record = pod.record;
    const Amounts requests = requests_of(record);
    const Amounts limits = limits_in(pod.cgroup.held);
    const std::string engine{core::format_engine(record.engine)};
    rows.push_back({cell(core::display_name(record), Colour::kBold),
                    cell(engine.empty() ? "-" : engine),
                    cell(screen.is_wide() ? shown_class(record)
                                          : std::string{core::format_qos_class(record.qos_class)}),
                    cell(running_of(pod)), cell(cat(shown(requests.cpu), "/", shown(limits.cpu))),
                    cell(cat(shown(pod.cgroup.held.memory_usage()), "/", shown(requests.memory),
                             "/", shown(limits.memory)))});
    if (screen.is_wide())
      rows.back().push_back(cell(std::string{core::format_source(record.class_source)}));
  }
  // The name stays longest. Names of one workload's pods differ at their ends.
  constexpr std::array kCuts = {Cut{.column = 3, .least = 7}, Cut{.column = 1, .least = 6},
                                Cut{.column = 0, .least = 12, .in_the_middle = true}};
  return rows.size() > 1 ? format_table(rows, screen, kCuts) : "no pods\n";
}

// tiers

/// What a tier has beside shares and limit, one line each.
std::string text_of_others(const TierEntry& tier, const Screen& screen) {
  const std::string& cgroup = tier.cgroup.held.path();
  std::string out;
  const auto add = [&](std::string_view file, std::string_view text) {
    if (!text.empty()) out += cat(file, " of ", cgroup, ": ", text, "\n");
  };
  const auto flag = [](const std::optional<bool>& value) {
    return value ? std::string{*value ? "1" : "0"} : "-";
  };
  const auto& [held, rule] = std::pair{tier.cgroup.held.cpu_idle(), tier.cgroup.rule.cpu_idle};
  if (held == true || rule == true) add("cpu.idle", with_rule(flag(held), flag(rule)));
  for (const Protection& each : kProtections)
    if (each.value != &core::MemoryQos::high) add(each.file, shown(each, tier.cgroup));
  if (!tier.evicts_at.empty())
    out += fold(cat("eviction from ", cgroup, ": at ", tier.evicts_at, " by ", tier.evicted_by,
                    tier.evictor_runs ? "" : ", which does not run"),
                "  ", screen.width);
  return out;
}

/// The table of tiers: of each tree the cgroup above the root, if podqos has created it, the root,
/// and the three classes.
class TierTable {
 public:
  explicit TierTable(const Node& node) : node_(node) {}

  void add_tree(const TreeEntry& tree) {
    const auto& [kubepods, top, tiers] = tree;
    if (top) add(top->cgroup.held.path(), top->sum, &*top, top->cgroup.held.memory_usage());
    core::TierSum all;
    for (const TierEntry& tier : tiers)
      all += tier.sum;
    add(top ? cat("  ", leaf_of(kubepods)) : kubepods, all, &tiers.front(),
        tiers.front().cgroup.held.memory_usage());
    for (const TierEntry& tier : tiers) {
      // Guaranteed pods lie in the root itself.
      const bool own = tier.cgroup.held.path() != kubepods;
      add(cat(top ? "    " : "  ", core::format_qos_class(tier.qos_class)), tier.sum,
          own ? &tier : nullptr, own ? tier.cgroup.held.memory_usage() : usage_in(kubepods));
    }
  }

  [[nodiscard]] std::string text(const Screen& screen) const {
    constexpr std::array kCuts = {Cut{.column = 0, .least = 20}};
    return rows_.size() > 1 ? cat("\n", format_table(rows_, screen, kCuts)) : "";
  }

 private:
  /// @param tier  with the values of kernel and rule; nullptr: there is none
  void add(std::string name, const core::TierSum& sum, const TierEntry* tier,
           const std::optional<Bytes>& usage) {
    if (tier != nullptr && tier->cgroup.held.cpu_weight()) rows_.front().at(3).text = "WEIGHT";
    rows_.push_back({cell(std::move(name), Colour::kBold), cell(cat(sum.pods)),
                     cell(format_amount(sum.cpu)),
                     cell(tier != nullptr ? share_of(tier->cgroup) : "-"),
                     cell(cat(shown(usage), "/", rounded_amount(sum.memory), "/",
                              tier != nullptr ? memory_limit_of(tier->cgroup) : "-",
                              tier != nullptr && tier->converging ? " (converging)" : ""))});
  }

  /// The memory that the pods right below a cgroup use; nullopt if none of them tells.
  [[nodiscard]] std::optional<Bytes> usage_in(std::string_view cgroup) const {
    std::optional<Bytes> sum;
    for (const PodEntry& pod : node_.pods)
      if (const auto usage = pod.cgroup.held.memory_usage();
          usage && parent_of(pod.record.cgroup) == cgroup)
        sum = sum.value_or(Bytes{}) + *usage;
    return sum;
  }

  const Node& node_;
  std::vector<Row> rows_ = {heading({"TIER", "PODS", "CPU req", "SHARES", "MEM now/req/limit"})};
};

/// The node, its pods, and the tiers of all trees.
std::string status_text(const Node& node, const Screen& screen) {
  TierTable tiers{node};
  std::string others;
  for (const TreeEntry& tree : node.trees) {
    tiers.add_tree(tree);
    for (const TierEntry& tier : tree.tiers)
      others += text_of_others(tier, screen);
  }
  return cat(node_text(node, screen), "\n", pods_text(node, screen),
             not_managed_text(node.missed, screen), tiers.text(screen), others);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> node_facts(const Node& node) {
  const auto& files = node.configuration.files;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"podqos", switch_of(node.configuration)},
      {"configuration",
       files.empty() ? "the built-in ones, as no file is there" : join(files, ", ")},
      {"cgroups", trees_of(node)}};
  if (node.plugin)
    facts.emplace_back("podqos-nri", node.plugin->process ? node.plugin->status : "has ended");
  return facts;
}

void add_describe(Cli& cli) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "describe",
      "Show one pod in full: values by rule and kernel, usage, throttling, kills, and events");
  sub->add_option("POD", options->pod, std::string{kContainerSelectorHelp})->required();
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  sub->callback([options, &cli] { cli.status = run_view(*options, cli); });
}

void add_status(Cli& cli) {
  auto options = std::make_shared<ViewOptions>();
  options->text = status_text;
  options->strict = true;
  CLI::App* sub = cli.app.add_subcommand(
      "status",
      "Show the node, its pods and tiers: class, requests, limits, current usage, and what is not "
      "as it should be");
  sub->add_option("POD", options->pod,
                  cat("Describes only this one: ", std::string{kContainerSelectorHelp}));
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  sub->add_flag("!--exit-zero", options->strict, "Exit with 0 also if there are warnings");
  sub->callback([options, &cli] { cli.status = run_view(*options, cli); });
}

}  // namespace podqos::ctl

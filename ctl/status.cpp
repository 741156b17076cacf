#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "ctl/inventory_view.h"
#include "ctl/not_managed.h"
#include "ctl/selector.h"

namespace podqos::ctl {
namespace {

// the node

/// "on", or why podqos places nothing.
std::string switch_of(const Json& view) {
  if (!view.at("errors").empty()) return "off: the configuration has errors";
  if (!why_unmanaged({}).empty()) return "off: this is a user namespace";
  return view.at("enabled") == true ? "on" : "off";
}

/// The texts of a list, or `none`.
std::string listed(const Json& list, std::string_view none) {
  std::vector<std::string> texts;
  for (const Json& text : list)
    texts.push_back(text.get<std::string>());
  return texts.empty() ? std::string{none} : join(texts, ", ");
}

/// "v2: /podqos/kubepods (cgroupfs)".
std::string trees_of(const Json& view) {
  std::vector<std::string> trees;
  for (const Json& tree : view.at("trees")) {
    const std::string& kubepods = text_in(tree, "kubepods");
    trees.push_back(cat(kubepods, " (", core::format_driver(core::driver_of(kubepods)), ")"));
  }
  const Json& version = view.at("node").at("cgroupVersion");
  return cat(version.is_null() ? "none" : cat("v", version.dump()),
             trees.empty() ? "" : cat(": ", join(trees, ", ")));
}

/// "500m (12%)", of what pods may have.
std::string share_of(const Json& amounts, const Json& whole, const char* key,
                     std::string (*shown)(const Json& object, const char* key)) {
  const auto most = whole.at(key).get<std::int64_t>();
  const std::string percent =
      most > 0 ? cat(" (", mul_div(amounts.at(key).get<std::int64_t>(), 100, most), "%)") : "";
  return cat(shown(amounts, key), percent);
}

/// What counts of a request, where that is less.
std::string counted_of(const Json& of_class, const char* key,
                       std::string (*shown)(const Json& object, const char* key)) {
  const Json& counted = of_class.at("counted");
  return of_class.at("requests").at(key) == counted.at(key)
             ? ""
             : cat(", ", shown(counted, key), " counted");
}

/// Sums of {"cpuMilli", "memoryBytes"}.
void add_amounts(Json& sum, const Json& more) {
  for (const char* key : {"cpuMilli", "memoryBytes"})
    sum[key] = sum.value(key, std::int64_t{0}) + more.at(key).get<std::int64_t>();
}

/// What the node has, and what pods request of it.
std::string node_text(const Json& view, const Screen& screen) {
  const Json& node = view.at("node");
  std::vector<Row> facts;
  for (auto& [name, fact] : node_facts(view))
    facts.push_back({cell(std::move(name)), cell(std::move(fact))});
  std::string out = format_table(facts, screen);
  std::vector<Row> rows = {heading({"NODE", "PODS", "CPU", "MEMORY"})};
  for (const char* name : {"capacity", "reserved", "allocatable"})
    rows.push_back({cell(name), cell(""), cell(cpu_in(node.at(name), "cpuMilli")),
                    cell(bytes_in(node.at(name), "memoryBytes"))});
  const Json& whole = node.at("allocatable");
  const auto row_of = [&](std::string name, const Json& pods, const Json& requests,
                          const Json* of_class) {
    const auto shown = [&](const char* key, auto text) {
      return cell(cat(share_of(requests, whole, key, text),
                      of_class == nullptr ? "" : counted_of(*of_class, key, text)));
    };
    return Row{cell(std::move(name)), cell(pods.dump()), shown("cpuMilli", cpu_in),
               shown("memoryBytes", bytes_in)};
  };
  const Json& kubelets = view.at("kubelets");
  Json sum = kubelets.at("requests");
  auto pods = kubelets.at("pods").get<std::int64_t>();
  const bool with_kubelet = pods > 0;
  std::vector<Row> classes;
  for (const Json& each : node.at("classes")) {
    add_amounts(sum, each.at("requests"));
    pods += each.at("pods").get<std::int64_t>();
    classes.push_back(
        row_of(cat("  ", text_in(each, "qosClass")), each.at("pods"), each.at("requests"), &each));
  }
  if (with_kubelet)
    classes.push_back(
        row_of("  of a kubelet", kubelets.at("pods"), kubelets.at("requests"), nullptr));
  rows.push_back(row_of("requested", pods, sum, nullptr));
  std::ranges::move(classes, std::back_inserter(rows));
  return cat(out, "\n", format_table(rows, screen));
}

// pods

/// "2/3", of containers that run and all; ", 1 pending, 1 throttled, 2 OOM-killed" if any are, the
/// last of processes.
std::string running_of(const Json& pod) {
  if (pod.at("released") == true) return "released";
  std::int64_t pending = 0;
  std::int64_t throttled = 0;
  for (const Json& container : pod.at("containers")) {
    if (container.at("sandbox") == true) continue;
    pending += container.at("state") == "pending" ? 1 : 0;
    throttled += container.at("throttled") == true ? 1 : 0;
  }
  const auto [live, all] = running_in(pod);
  const auto kills = pod.at("oomKills").get<std::int64_t>();
  return cat(live, "/", all, pending > 0 ? cat(", ", pending, " pending") : "",
             throttled > 0 ? cat(", ", throttled, " throttled") : "",
             kills > 0 ? cat(", ", kills, " OOM-killed") : "");
}

std::string pods_text(const Json& view, const Screen& screen) {
  Row titles = heading({"POD", "ENGINE", "CLASS", "RUNNING", "CPU req/limit", "MEM now/req/limit"});
  if (screen.is_wide()) titles.push_back(cell("SOURCE", Colour::kDim));
  std::vector<Row> rows = {std::move(titles)};
  for (const Json& pod : view.at("pods")) {
    const auto& [requests, limits] = std::tie(pod.at("requests"), pod.at("limits"));
    const std::string engine = pod.value("engine", "");
    rows.push_back(
        {cell(pod_title(pod), Colour::kBold), cell(engine.empty() ? "-" : engine),
         cell(screen.is_wide() ? shown_class(pod) : text_in(pod, "qosClass")),
         cell(running_of(pod)),
         cell(cat(cpu_in(requests, "cpuMilli"), "/", cpu_in(limits, "cpuMilli"))),
         cell(cat(bytes_in(pod, "memoryUsageBytes"), "/", bytes_in(requests, "memoryBytes"), "/",
                  bytes_in(limits, "memoryBytes")))});
    if (screen.is_wide()) rows.back().push_back(cell(text_in(pod, "source")));
  }
  // The name stays longest. Names of one workload's pods differ at their ends.
  constexpr std::array kCuts = {Cut{.column = 3, .least = 7}, Cut{.column = 1, .least = 6},
                                Cut{.column = 0, .least = 12, .in_the_middle = true}};
  return rows.size() > 1 ? format_table(rows, screen, kCuts) : "no pods\n";
}

// tiers

/// "memory.low of /podqos/kubepods: 64Mi (rule 96Mi)", or nothing if it is set in neither.
std::string text_of_value(const Json& tier, std::string_view file, const char* key,
                          std::string (*shown)(const Json& object, const char* key)) {
  const Json& rule = tier.at("rule");
  if (!is_set(rule.at(key)) && !is_set(tier.at(key))) return "";
  return cat(file, " of ", text_in(tier, "cgroup"), ": ",
             with_rule(shown(tier, key), shown(rule, key)), "\n");
}

/// What a tier has beside shares and limit, one line each.
std::string text_of_others(const Json& tier, const Screen& screen) {
  std::string out = cat(text_of_value(tier, "cpu.idle", "cpuIdle", flag_in),
                        text_of_value(tier, "memory.min", "memoryMinBytes", bytes_in),
                        text_of_value(tier, "memory.low", "memoryLowBytes", bytes_in));
  const Json& eviction = tier.at("eviction");
  if (eviction.is_null()) return out;
  return cat(out, fold(cat("eviction from ", text_in(tier, "cgroup"), ": at ",
                           text_in(eviction, "memoryPressure"), " by ", text_in(eviction, "by")),
                       "  ", screen.width));
}

/// The table of tiers: of each tree the cgroup above the root, if podqos has created it, the root,
/// and the three classes.
class TierTable {
 public:
  explicit TierTable(const Json& view) : view_(view) {}

  void add_tree(const Json& tree) {
    const Json& top = tree.at("top");
    const std::string& kubepods = text_in(tree, "kubepods");
    if (!top.is_null()) add(text_in(top, "cgroup"), top, top, top.at("memoryUsageBytes"));
    const Json& root = tree.at("tiers").at(0);
    Json all = {{"pods", std::int64_t{0}}, {"requests", Json::object()}};
    for (const Json& tier : tree.at("tiers")) {
      all["pods"] = all.at("pods").get<std::int64_t>() + tier.at("pods").get<std::int64_t>();
      add_amounts(all["requests"], tier.at("requests"));
    }
    add(top.is_null() ? kubepods : cat("  ", leaf_of(kubepods)), all, root,
        root.at("memoryUsageBytes"));
    const Json none = nullptr;
    for (const Json& tier : tree.at("tiers")) {
      // Guaranteed pods lie in the root itself.
      const bool own = text_in(tier, "cgroup") != kubepods;
      add(cat(top.is_null() ? "  " : "    ", text_in(tier, "qosClass")), tier, own ? tier : none,
          own ? tier.at("memoryUsageBytes") : usage_in(kubepods));
    }
  }

  [[nodiscard]] std::string text(const Screen& screen) const {
    constexpr std::array kCuts = {Cut{.column = 0, .least = 20}};
    return rows_.size() > 1 ? cat("\n", format_table(rows_, screen, kCuts)) : "";
  }

 private:
  /// @param sums  "pods" and "requests"
  /// @param cgroup  with the values of kernel and rule; null: there is none
  void add(std::string name, const Json& sums, const Json& cgroup, const Json& usage) {
    const bool own = !cgroup.is_null();
    if (own && !cgroup.at("cpuWeight").is_null()) rows_.front().at(3).text = "WEIGHT";
    const std::string limit = own ? bytes_in(cgroup, "memoryLimitBytes") : "-";
    const std::string rule = own ? bytes_in(cgroup.at("rule"), "memoryLimitBytes") : "-";
    const bool converging = own && cgroup.value("converging", false);
    const Json& requests = sums.at("requests");
    rows_.push_back(
        {cell(std::move(name), Colour::kBold), cell(number_in(sums, "pods")),
         cell(cpu_in(requests, "cpuMilli")),
         cell(own ? with_rule(held_share(cgroup), ruled_share(view_, cgroup)) : "-"),
         cell(cat(bytes_in({{"usage", usage}}, "usage"), "/", bytes_in(requests, "memoryBytes"),
                  "/", with_rule(limit, rule), converging ? " (converging)" : ""))});
  }

  /// The memory that the pods right below a cgroup use; null if none of them tells.
  [[nodiscard]] Json usage_in(std::string_view cgroup) const {
    Json sum = nullptr;
    for (const Json& pod : view_.at("pods")) {
      const Json& usage = pod.at("memoryUsageBytes");
      if (parent_of(text_in(pod, "cgroup")) == cgroup && !usage.is_null())
        sum = (sum.is_null() ? 0 : sum.get<std::int64_t>()) + usage.get<std::int64_t>();
    }
    return sum;
  }

  const Json& view_;
  std::vector<Row> rows_ = {heading({"TIER", "PODS", "CPU req", "SHARES", "MEM now/req/limit"})};
};

/// The node, its pods, and the tiers of all trees.
std::string status_text(const Json& view, const Screen& screen) {
  TierTable tiers{view};
  std::string others;
  for (const Json& tree : view.at("trees")) {
    tiers.add_tree(tree);
    for (const Json& tier : tree.at("tiers"))
      others += text_of_others(tier, screen);
  }
  return cat(node_text(view, screen), "\n", pods_text(view, screen),
             not_managed_text(view.at("notManaged"), screen), tiers.text(screen), others);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> node_facts(const Json& view) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"podqos", switch_of(view)},
      {"configuration", listed(view.at("files"), "the built-in ones, as no file is there")},
      {"cgroups", trees_of(view)}};
  if (const Json plugin = view.value("plugin", Json(nullptr)); !plugin.is_null())
    facts.emplace_back("podqos-nri",
                       plugin.at("process").is_null() ? "has ended" : text_in(plugin, "status"));
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

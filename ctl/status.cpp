#include <algorithm>
#include <vector>

#include "common/base/text.h"
#include "ctl/command.h"
#include "ctl/inventory_view.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// "cpu 110m, memory 64Mi", or "-".
std::string amounts_in(const Json& object, const char* key) {
  const Json& amounts = object.at(key);
  const Json& cpu = amounts.at("cpuMilli");
  std::vector<std::string> shown;
  if (!cpu.is_null())
    shown.push_back(cat("cpu ", format_amount(MilliCpu{cpu.get<std::int64_t>()})));
  if (!amounts.at("memoryBytes").is_null())
    shown.push_back(cat("memory ", bytes_in(amounts, "memoryBytes")));
  return shown.empty() ? "-" : join(shown, ", ");
}

/// "2 live, 1 pending", or "none".
std::string containers_of(const Json& pod) {
  std::vector<std::string> counts;
  for (const char* state : {"live", "pending", "dead"}) {
    const auto number = std::ranges::count_if(pod.at("containers"), [&](const Json& container) {
      return container.at("state") == state;
    });
    if (number > 0) counts.push_back(cat(number, " ", state));
  }
  return counts.empty() ? "none" : join(counts, ", ");
}

/// The table of pods.
std::string pods_table(const Json& pods, ColourMode mode) {
  std::vector<Row> rows = {
      heading({"POD", "CLASS", "SOURCE", "CONTAINERS", "REQUESTS", "LIMITS", "USAGE"})};
  for (const Json& pod : pods)
    rows.push_back({cell(pod_title(pod), Colour::kBold),
                    cell(cat(text_in(pod, "qosClass"), pod.at("complete") ? "" : " (partial)",
                             pod.at("adopted") ? " (adopted)" : "")),
                    cell(text_in(pod, "source")), cell(containers_of(pod)),
                    cell(amounts_in(pod, "requests")), cell(amounts_in(pod, "limits")),
                    cell(bytes_in(pod, "memoryUsageBytes"))});
  return format_table(rows, mode);
}

/// "want/actual" of a tier's shares; without a rule only the kernel's.
std::string shares_of(const Json& tier) {
  const std::string kernel = number_in(tier, "cpuShares");
  const std::string rule = number_in(tier.at("rule"), "cpuShares");
  return rule == "-" ? kernel : cat(rule, " / ", kernel);
}

/// The table of the tiers of all trees, each below the directory above the root if podqos has
/// created it.
std::string tiers_table(const Json& trees, ColourMode mode) {
  std::vector<Row> rows = {heading(
      {"TIER", "PODS", "REQUESTS", "SHARES want/actual", "MEMORY LIMIT want/actual", "USAGE"})};
  const auto add = [&](const char* name, const Json& tier) {
    rows.push_back({cell(text_in(tier, name), Colour::kBold), cell(number_in(tier, "pods")),
                    cell(amounts_in(tier, "requests")), cell(shares_of(tier)),
                    cell(cat(bytes_in(tier.at("rule"), "memoryLimitBytes"), " / ",
                             bytes_in(tier, "memoryLimitBytes"))),
                    cell(bytes_in(tier, "memoryUsageBytes"))});
  };
  for (const Json& tree : trees) {
    if (!tree.at("top").is_null()) add("cgroup", tree.at("top"));
    for (const Json& tier : tree.at("tiers"))
      add("qosClass", tier);
  }
  return format_table(rows, mode);
}

/// The whole text output.
std::string status_text(const Json& view, ColourMode mode) {
  const Json& pods = view.at("pods");
  const Json& trees = view.at("trees");
  const Json& adopted = view.at("adopted");
  std::string out = pods.empty() ? std::string{"no pods\n"} : pods_table(pods, mode);
  if (!trees.empty()) out += cat("\n", tiers_table(trees, mode));
  if (const auto count = adopted.at("pods").get<std::int64_t>(); count > 0)
    out += cat("adopted: ", format_count(count, "pod"), " of a kubelet, ",
               amounts_in(adopted, "requests"), " requested: not counted in podqos's own tiers\n");
  return out;
}

}  // namespace

Command add_status(CLI::App& app, const Globals& globals) {
  return add_view(app, globals, status_text, "status",
                  "List the pods and tiers of this node: class, requests, limits, current usage, "
                  "and inconsistencies");
}

}  // namespace podqos::ctl

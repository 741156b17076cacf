#include <algorithm>

#include "common/base/text.h"
#include "ctl/inventory_view.h"

namespace podqos::ctl {
namespace {

/// "2 live, 1 pending, 1 throttled", or "none".
std::string containers_of(const Json& pod) {
  std::vector<std::string> counts;
  for (const char* state : {"live", "pending", "dead"}) {
    const auto number = std::ranges::count_if(pod.at("containers"), [&](const Json& container) {
      return container.at("state") == state;
    });
    if (number > 0) counts.push_back(cat(number, " ", state));
  }
  const auto throttled = std::ranges::count_if(pod.at("containers"), [](const Json& container) {
    return container.at("throttled") == true;
  });
  if (throttled > 0) counts.push_back(cat(throttled, " throttled"));
  return counts.empty() ? "none" : join(counts, ", ");
}

/// "want / actual"; without a rule only what the kernel has.
std::string compared(const Json& tier, const char* key,
                     std::string (*shown)(const Json& object, const char* key)) {
  const std::string rule = shown(tier.at("rule"), key);
  return cat(rule == "-" ? "" : rule + " / ", shown(tier, key));
}

/// "memory.low of /podqos/kubepods: 64Mi / 64Mi (want / actual)", or nothing if it is set in
/// neither.
std::string text_of_value(const Json& tier, std::string_view file, const char* key,
                          std::string (*shown)(const Json& object, const char* key)) {
  const auto is_set = [](const Json& value) {
    return value != nullptr && value != false && value != 0;
  };
  if (!is_set(tier.at("rule").at(key)) && !is_set(tier.at(key))) return "";
  return cat(file, " of ", text_in(tier, "cgroup"), ": ", compared(tier, key, shown),
             " (want / actual)\n");
}

/// What a tier has beside shares and limit, one line each.
std::string text_of_others(const Json& tier) {
  std::string out = cat(text_of_value(tier, "cpu.idle", "cpuIdle", flag_in),
                        text_of_value(tier, "memory.min", "memoryMinBytes", bytes_in),
                        text_of_value(tier, "memory.low", "memoryLowBytes", bytes_in));
  const Json& eviction = tier.at("eviction");
  if (eviction.is_null()) return out;
  return cat(out, "eviction from ", text_in(tier, "cgroup"), ": at ",
             text_in(eviction, "memoryPressure"), " by ", text_in(eviction, "by"), "\n");
}

/// The whole text output: pods, then the tiers of all trees, each below the directory above the
/// root if podqos has created it.
std::string status_text(const Json& view, ColourMode mode) {
  std::vector<Row> pods = {
      heading({"POD", "CLASS", "SOURCE", "CONTAINERS", "REQUESTS", "LIMITS", "USAGE"})};
  for (const Json& pod : view.at("pods"))
    pods.push_back({cell(pod_title(pod), Colour::kBold),
                    cell(cat(text_in(pod, "qosClass"), pod.at("complete") ? "" : " (partial)",
                             pod.at("kubeletsOwn") ? " (kubelet's)" : "")),
                    cell(text_in(pod, "source")), cell(containers_of(pod)),
                    cell(amounts_in(pod, "requests")), cell(amounts_in(pod, "limits")),
                    cell(bytes_in(pod, "memoryUsageBytes"))});
  std::vector<Row> tiers = {heading(
      {"TIER", "PODS", "REQUESTS", "SHARES want/actual", "MEMORY LIMIT want/actual", "USAGE"})};
  const auto add_tier = [&](const char* name, const Json& tier) {
    tiers.push_back({cell(text_in(tier, name), Colour::kBold), cell(number_in(tier, "pods")),
                     cell(amounts_in(tier, "requests")),
                     cell(compared(tier, "cpuShares", number_in)),
                     cell(cat(compared(tier, "memoryLimitBytes", bytes_in),
                              tier.at("converging") ? " (converging)" : "")),
                     cell(bytes_in(tier, "memoryUsageBytes"))});
  };
  std::string others;
  for (const Json& tree : view.at("trees")) {
    if (!tree.at("top").is_null()) add_tier("cgroup", tree.at("top"));
    for (const Json& tier : tree.at("tiers")) {
      add_tier("qosClass", tier);
      others += text_of_others(tier);
    }
  }
  std::string out = pods.size() > 1 ? format_table(pods, mode) : "no pods\n";
  if (tiers.size() > 1) out += cat("\n", format_table(tiers, mode), others);
  const Json& kubelets = view.at("kubelets");
  if (const auto count = kubelets.at("pods").get<std::int64_t>(); count > 0)
    out += cat("kubelet: ", format_count(count, "pod"), ", ", amounts_in(kubelets, "requests"),
               " requested: not counted in podqos's own tiers\n");
  return out;
}

}  // namespace

void add_status(Cli& cli) {
  add_view(cli, status_text, "status",
           "List the pods and tiers of this node: class, requests, limits, current usage, and "
           "inconsistencies");
}

}  // namespace podqos::ctl

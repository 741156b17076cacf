#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <array>
#include <memory>
#include <utility>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/core/pods/whole_pod.h"
#include "ctl/json.h"

namespace podqos::ctl {
namespace {

/// The ownership marks on cgroups are trusted.* attributes, readable with this capability only
/// (xattr(7)).
constexpr std::array kKept = {CAP_SYS_ADMIN};

/// Adds what the kernel shows of a cgroup.
void add_values(Json& json, const cgroup::CgroupView& cgroup,
                const std::optional<CpuShares>& shares) {
  json["exists"] = cgroup.exists();
  json["cpuShares"] = json_of(shares);
  json["cpuWeight"] = json_of(cgroup.cpu_weight());
  json["cpuQuotaUs"] = json_of(cgroup.cpu_quota());
  json["cpuPeriodUs"] = json_of(cgroup.cpu_period());
  json["memoryLimitBytes"] = json_of(cgroup.memory_limit());
  json["memoryUsageBytes"] = json_of(cgroup.memory_usage());
  json["pidsLimit"] = json_of(cgroup.pids_limit());
  json["pids"] = json_of(cgroup.pids());
}

/// "pending" (being created), "live" or "dead" (its process is gone, the record not yet).
std::string_view format_state(const app::ContainerEntry& container) {
  if (!container.alive) return "dead";
  return container.record.state == core::ContainerState::kLive ? "live" : "pending";
}

/// The source of a pod's class as shown to users.
std::string_view format_source(core::ClassSource source) {
  switch (source) {
    case core::ClassSource::kEngine: return "engine";
    case core::ClassSource::kPodAnnotation: return "podqos.io/pod";
    case core::ClassSource::kQosAnnotation: return "podqos.io/qos-class";
    case core::ClassSource::kShortForms: return "podqos.io/requests, limits";
    case core::ClassSource::kCriSums: return "CRI pod sums";
    case core::ClassSource::kInference: return "inference";
  }
  return "";
}

/// The pod's limits: those in its record, or for an adopted pod, whose limits the kubelet sets,
/// those read from its cgroup.
Json limits_of(const app::PodEntry& pod) {
  if (!pod.record.adopted) return json_of(core::limits_of(pod.record));
  const Micros period = pod.cgroup.cpu_period().value_or(core::kDefaultPeriod);
  const auto quota = pod.cgroup.cpu_quota();
  return {{"cpuMilli", json_of(quota ? core::milli_cpu_for_quota(*quota, period) : std::nullopt)},
          {"memoryBytes", json_of(pod.cgroup.memory_limit())}};
}

Json requests_json(const core::TierSum& sum) {
  return {{"cpuMilli", sum.cpu.value()}, {"memoryBytes", sum.memory.value()}};
}

Json container_json(const app::ContainerEntry& container, core::WeightFormula formula) {
  const core::ContainerRecord& record = container.record;
  Json json;
  json["id"] = record.id;
  json["name"] = record.name;
  json["state"] = format_state(container);
  json["sandbox"] = record.sandbox;
  json["pid"] = record.pid.value();
  json["cgroup"] = record.cgroup;
  json["oomScoreAdj"] = json_of(container.oom_score_adj);
  add_values(json, container.cgroup, container.cgroup.shares({}, formula));
  return json;
}

Json pod_json(const app::PodEntry& entry, core::WeightFormula formula) {
  const core::PodRecord& record = entry.record;
  Json json;
  json["uid"] = record.pod.uid;
  json["name"] = record.pod.name;
  json["namespace"] = record.pod.pod_namespace;
  json["qosClass"] = core::format_qos_class(record.qos_class);
  json["source"] = format_source(record.class_source);
  json["complete"] = record.complete;
  json["adopted"] = record.adopted;
  json["cgroup"] = record.cgroup;
  json["requests"] = json_of(core::requests_of(record));
  json["limits"] = limits_of(entry);
  json["rule"] = limits_json(entry.rule);
  add_values(json, entry.cgroup, entry.cgroup.shares(entry.rule.cpu_shares, formula));
  Json& containers = json["containers"] = Json::array();
  for (const app::ContainerEntry& container : entry.containers)
    containers.push_back(container_json(container, formula));
  return json;
}

Json tier_json(const app::TierEntry& tier, core::WeightFormula formula) {
  Json json;
  json["qosClass"] = core::format_qos_class(tier.qos_class);
  json["cgroup"] = tier.cgroup.path();
  json["pods"] = tier.sum.pods;
  json["requests"] = requests_json(tier.sum);
  json["rule"] = limits_json(tier.rule);
  add_values(json, tier.cgroup, tier.cgroup.shares(tier.rule.cpu_shares, formula));
  return json;
}

Json tree_json(const app::TreeEntry& tree, core::WeightFormula formula) {
  Json json;
  json["kubepods"] = tree.kubepods;
  Json& top = json["top"] = tree.top ? tier_json(*tree.top, formula) : Json(nullptr);
  if (tree.top) top.erase("qosClass");  // it contains all of them
  Json& tiers = json["tiers"] = Json::array();
  for (const app::TierEntry& tier : tree.tiers)
    tiers.push_back(tier_json(tier, formula));
  return json;
}

/// Restricts the process with narrow(), reads configuration and inventory, in this order: nothing
/// untrusted is parsed before the restriction.
Result<NodeView> observe(const Globals& globals) {
  PODQOS_TRY(narrow(kKept));
  NodeView view{.configuration = app::inspect_configuration(globals.config), .inventory = {}};
  auto inventory = app::read_inventory(view.configuration.settings);
  if (!inventory) {
    for (const std::string& error : view.configuration.errors)
      warn(error);
    return fail(for_root(std::move(inventory).error()));
  }
  view.inventory = std::move(*inventory);
  return view;
}

}  // namespace

std::string format_notices(const app::ConfigurationReport& configuration, ColourMode mode) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += cat(paint(cell("error: ", Colour::kRed), mode), error, "\n");
  const std::string warning = paint(cell("warning: ", Colour::kRed), mode);
  if (!configuration.errors.empty())
    out += cat(warning,
               "with errors in the configuration, podqos-hook and podqos-runtime leave new "
               "containers unmanaged\n");
  for (const std::string& ignored : configuration.ignored)
    out += cat(warning, ignored, ": not read: the names of files in conf.d end in .json\n");
  if (!configuration.settings.enabled) out += cat(warning, kSwitchedOff, "\n");
  return out;
}

Command add_view(CLI::App& app, const Globals& globals, TextOfView text, const std::string& name,
                 const std::string& description) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = app.add_subcommand(name, description);
  add_coloured_output(*sub, *options);
  return {.app = sub, .run = [options, &globals, text]() -> Result<int> {
            PODQOS_ASSIGN(const auto view, observe(globals));
            const ColourMode mode = options->mode();
            const Json json = view_json(view);
            std::string out = options->is_json()
                                  ? dump(json) + "\n"
                                  : cat(format_notices(view.configuration, mode), text(json, mode));
            for (const std::string& warning : view.inventory.warnings)
              if (!options->is_json())
                out += cat(paint(cell("warning: ", Colour::kRed), mode), warning, "\n");
            const int status = finish(print(out));
            return view.configuration.errors.empty() ? status : kRefused;
          }};
}

Json view_json(const NodeView& view) {
  const app::Inventory& all = view.inventory;
  Json json;
  json["enabled"] = view.configuration.settings.enabled;
  json["errors"] = view.configuration.errors;
  json["adopted"] = {{"pods", all.adopted.pods}, {"requests", requests_json(all.adopted)}};
  json["weightFormula"] = all.formula == core::WeightFormula::kLog ? "log" : "linear";
  Json& trees = json["trees"] = Json::array();
  for (const app::TreeEntry& tree : all.trees)
    trees.push_back(tree_json(tree, all.formula));
  Json& pods = json["pods"] = Json::array();
  for (const app::PodEntry& pod : all.pods)
    pods.push_back(pod_json(pod, all.formula));
  json["warnings"] = all.warnings;
  return json;
}

std::string pod_title(const Json& pod) {
  const std::string& name = text_in(pod, "name");
  const std::string& space = text_in(pod, "namespace");
  if (name.empty()) return printable(text_in(pod, "uid"));
  return cat(printable(space), space.empty() ? "" : "/", printable(name));
}

const std::string& text_in(const Json& object, const char* key) {
  return object.at(key).get_ref<const std::string&>();
}

std::string number_in(const Json& object, const char* key) {
  return object.at(key).is_null() ? "-" : object.at(key).dump();
}

std::string bytes_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : format_bytes(Bytes{value.get<std::int64_t>()});
}

}  // namespace podqos::ctl

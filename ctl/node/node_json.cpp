#include "ctl/node/node_json.h"

#include <string>
#include <utility>

#include "common/core/pods/pod_name.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {
namespace {

/// Adds what the kernel shows of a cgroup.
void add_values(Json& json, const Entry& entry) {
  const cgroup::CgroupView& held = entry.held;
  json["exists"] = held.exists();
  json["cpuShares"] = json_of(entry.shares());
  json["cpuWeight"] = json_of(held.cpu_weight());
  json["cpuQuotaUs"] = json_of(held.cpu_quota());
  json["cpuPeriodUs"] = json_of(held.cpu_period());
  json["cpuBurstUs"] = json_of(held.cpu_quota() ? held.cpu_burst() : std::nullopt);
  json["cpuIdle"] = json_of(held.cpu_idle());
  json["memoryLimitBytes"] = json_of(held.memory_limit());
  json["memoryUsageBytes"] = json_of(held.memory_usage());
  json.update(json_of(held.memory_qos()));
  json["pidsLimit"] = json_of(held.pids_limit());
  json["pids"] = json_of(held.pids());
}

Json rule_json(const Entry& entry) {
  Json json = limits_json(entry.rule);
  json["cpuIdle"] = json_of(entry.rule.cpu_idle);
  json.update(json_of(entry.protection));
  return json;
}

Json container_json(const ContainerEntry& container) {
  const core::ContainerRecord& record = container.record;
  Json rule = {{"cpuBurstUs", json_of(container.cgroup.rule.cpu_burst)}};
  rule.update(json_of(container.cgroup.protection));
  Json json = {{"id", record.id},
               {"name", record.name},
               {"state", container.status()},
               {"paused", container.paused},
               {"sandbox", record.sandbox},
               {"pid", record.pid.value()},
               {"cgroup", record.cgroup},
               {"oomScoreAdj", json_of(container.oom_score_adj)},
               {"throttled", container.is_throttled()},
               {"oomKills", json_of(container.cgroup.held.oom_kills_of_container())},
               {"rule", std::move(rule)}};
  add_values(json, container.cgroup);
  return json;
}

Json tier_json(const TierEntry& tier) {
  Json json = {{"cgroup", tier.cgroup.held.path()},
               {"pods", tier.sum.pods},
               {"requests", json_of(tier.sum)},
               {"rule", rule_json(tier.cgroup)}};
  add_values(json, tier.cgroup);
  json["converging"] = tier.converging;
  return json;
}

Json tree_json(const TreeEntry& tree) {
  Json tiers = Json::array();
  for (const TierEntry& each : tree.tiers) {
    Json& json = tiers.emplace_back(Json{{"qosClass", core::format_qos_class(each.qos_class)}});
    json.update(tier_json(each));
    json["eviction"] = nullptr;
    if (!each.evicts_at.empty())
      json["eviction"] = {{"memoryPressure", each.evicts_at},
                          {"by", each.evicted_by},
                          {"running", each.evictor_runs}};
  }
  return {{"kubepods", tree.kubepods},
          {"top", tree.top ? tier_json(*tree.top) : Json(nullptr)},
          {"tiers", std::move(tiers)}};
}

/// What the node has for pods, and what of it they request, by class.
Json amounts_json(const Node& node) {
  Json classes = Json::array();
  for (const core::QosClass qos_class : kClasses)
    classes.push_back({{"qosClass", core::format_qos_class(qos_class)},
                       {"pods", node.requested.of(qos_class).pods},
                       {"requests", json_of(node.requested.of(qos_class))},
                       {"counted", json_of(node.counted.of(qos_class))}});
  const core::TierSum reserved{.cpu = rest_of(node.capacity.cpu, node.allocatable.cpu),
                               .memory = rest_of(node.capacity.memory, node.allocatable.memory)};
  return {{"cgroupVersion",
           node.version ? Json(*node.version == core::CgroupVersion::kV2 ? 2 : 1) : Json(nullptr)},
          {"capacity", json_of(node.capacity)},
          {"reserved", json_of(reserved)},
          {"allocatable", json_of(node.allocatable)},
          {"classes", std::move(classes)}};
}

/// "" for what is not known.
Json missed_json(const NotManaged& missed) {
  const core::Event& container = missed.container;
  return {{"engine", container.engine},
          {"namespace", container.pod_namespace},
          {"name", container.pod_name},
          {"uid", container.uid},
          {"container", {{"id", container.container_id}, {"name", container.container}}},
          {"title", name_of(container)},
          {"pid", missed.pid},
          {"cgroup", container.cgroup},
          {"why", missed.why},
          {"remedy", missed.remedy}};
}

}  // namespace

std::string_view word_of(core::WeightFormula formula) {
  return formula == core::WeightFormula::kLog ? "log" : "linear";
}

Json pod_json(const PodEntry& pod, const Findings& findings) {
  const core::PodRecord& record = pod.record;
  Json json = {{"uid", record.pod.uid},
               {"engine", core::format_engine(record.engine)},
               {"id", core::engine_id(record)},
               {"name", record.pod.name},
               {"namespace", record.pod.pod_namespace},
               {"qosClass", core::format_qos_class(record.qos_class)},
               {"source", core::format_source(record.class_source)},
               {"complete", record.complete},
               {"kubeletsOwn", record.kubelets_own},
               {"released", record.released_at.has_value()},
               {"cgroup", record.cgroup},
               {"requests", json_of(requests_of(record))},
               {"limits", json_of(limits_in(pod.cgroup.held))},
               {"rule", rule_json(pod.cgroup)}};
  add_values(json, pod.cgroup);
  json["oomKills"] = pod.oom_kills;
  Json& containers = json["containers"] = Json::array();
  for (const ContainerEntry& each : pod.containers)
    containers.push_back(container_json(each));
  Json& warnings = json["warnings"] = Json::array();
  for (const Finding& each : findings)
    if (each.subject == record.pod.uid) warnings.push_back(each.text);
  return json;
}

Json node_json(const Node& node) {
  const app::ConfigurationReport& configuration = node.configuration;
  Json json = {{"enabled", configuration.settings.enabled},
               {"files", configuration.files},
               {"ignored", configuration.ignored},
               {"errors", configuration.errors},
               {"kubelets", {{"pods", node.kubelets.pods}, {"requests", json_of(node.kubelets)}}},
               {"weightFormula", word_of(node.formula)},
               {"node", amounts_json(node)}};
  for (const char* list : {"trees", "pods", "warnings", "warningKinds", "notManaged"})
    json[list] = Json::array();
  for (const TreeEntry& each : node.trees)
    json["trees"].push_back(tree_json(each));
  for (const PodEntry& each : node.pods)
    json["pods"].push_back(pod_json(each, node.findings));
  for (const Finding& each : node.findings) {
    json["warnings"].push_back(each.text);
    json["warningKinds"].push_back(each.name);
  }
  for (const NotManaged& each : node.missed)
    json["notManaged"].push_back(missed_json(each));
  json["plugin"] = nullptr;
  if (const auto& plugin = node.plugin)
    json["plugin"] = {{"process", json_of(plugin->process)}, {"status", plugin->status}};
  return json;
}

}  // namespace podqos::ctl

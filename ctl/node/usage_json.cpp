#include <string>

#include "common/core/pods/pod_name.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {
namespace {

/// With one decimal.
Json percent_of(const std::optional<Permille>& share) {
  constexpr double kPermillePerPercent = 10;
  return share ? Json(static_cast<double>(share->value()) / kPermillePerPercent) : Json(nullptr);
}

/// What all entries have.
void add_usage(Json& json, const UsageEntry& entry) {
  const Usage& usage = entry.usage;
  json["requests"] = json_of(entry.requests);
  json["limits"] = json_of(entry.limits);
  json["cpuMilli"] = json_of(usage.cpu);
  json["throttledPercent"] = percent_of(usage.throttled);
  json["memoryUsageBytes"] = json_of(usage.memory);
  json["workingSetBytes"] = json_of(usage.working_set);
  json["swapBytes"] = json_of(usage.swap);
  json["pids"] = json_of(usage.pids);
  json["oomKills"] = json_of(usage.oom_kills);
  json["cpuWaitingPercent"] = percent_of(usage.cpu_waiting);
  json["cpuStalledPercent"] = percent_of(usage.cpu_stalled);
  json["memoryWaitingPercent"] = percent_of(usage.memory_waiting);
  json["memoryStalledPercent"] = percent_of(usage.memory_stalled);
}

/// What tells an entry from others of its kind.
Json identity_json(const UsageEntry& entry) {
  switch (entry.kind) {
    case EntryKind::kTree: return {{"kubepods", entry.cgroup}};
    case EntryKind::kTier: return {{"qosClass", core::format_qos_class(entry.qos_class)}};
    case EntryKind::kPod:
      return {{"engine", core::format_engine(entry.engine)},
              {"namespace", entry.pod_namespace},
              {"name", entry.name},
              {"uid", entry.uid},
              {"qosClass", core::format_qos_class(entry.qos_class)},
              {"kubeletsOwn", entry.kubelets_own},
              {"cgroup", entry.cgroup}};
    case EntryKind::kContainer: break;
  }
  return {{"id", entry.id}, {"name", entry.name}, {"cgroup", entry.cgroup}};
}

}  // namespace

Json json_of(const Amounts& amounts) {
  return {{"cpuMilli", json_of(amounts.cpu)}, {"memoryBytes", json_of(amounts.memory)}};
}

Json usage_json(const UsageSample& sample) {
  Json json = {
      {"intervalMs", sample.interval_ms}, {"trees", Json::array()}, {"pods", Json::array()}};
  for (const UsageEntry& entry : sample.entries) {
    Json described = identity_json(entry);
    add_usage(described, entry);
    switch (entry.kind) {
      case EntryKind::kTree:
        described["tiers"] = Json::array();
        json["trees"].push_back(std::move(described));
        break;
      case EntryKind::kTier: json["trees"].back()["tiers"].push_back(std::move(described)); break;
      case EntryKind::kPod:
        described["containers"] = Json::array();
        json["pods"].push_back(std::move(described));
        break;
      case EntryKind::kContainer:
        json["pods"].back()["containers"].push_back(std::move(described));
        break;
    }
  }
  return json;
}

}  // namespace podqos::ctl

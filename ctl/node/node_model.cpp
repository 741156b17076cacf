#include "ctl/node/node_model.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/sys/clock.h"

namespace podqos::ctl {

Result<Node> read_checked_node(const app::ConfigurationReport& configuration, NodeRecords records,
                               cgroup::Machine& cgroups, std::string_view uid) {
  const auto names = records.names;
  const auto look = [&](NodeRecords seen, const Node& before) {
    if (!uid.empty())
      std::erase_if(seen.pods, [&](const core::PodRecord& pod) { return pod.pod.uid != uid; });
    return read_node(configuration, std::move(seen), cgroups, before);
  };
  PODQOS_ASSIGN(Node node, look(std::move(records), {}));
  if (std::ranges::none_of(node.findings, [&](const Finding& finding) {
        return uid.empty() || finding.subject == uid;
      }))
    return node;
  // For the hook of a container whose runtime has just deleted it.
  static_cast<void>(
      sys::kSteadyClock.poll({}, sys::kSteadyClock.now() + std::chrono::milliseconds{100}));
  PODQOS_ASSIGN(auto store, open_records(configuration.settings));
  PODQOS_ASSIGN(auto now, records_in(store, store::Opening::kRead));
  // Engines are not asked while the lock is held.
  now.names = names;
  add_engine_names(now);
  return look(std::move(now), node);
}

Result<Node> read_whole_node(const app::ConfigurationReport& configuration, NodeRecords records,
                             const std::vector<core::Event>& events, cgroup::Machine& cgroups,
                             const std::optional<UnitState>& unit) {
  auto missed = find_not_managed(configuration, records, events, cgroups);
  PODQOS_ASSIGN(auto node, read_checked_node(configuration, std::move(records), cgroups));
  std::ranges::move(missed.findings, std::back_inserter(node.findings));
  node.missed = std::move(missed.containers);
  node.plugin = read_plugin(configuration.settings.state_dir, unit);
  for (TreeEntry& tree : node.trees)
    for (TierEntry& tier : tree.tiers)
      if (tier.evicted_by == kPluginProgram)
        tier.evictor_runs = node.plugin && node.plugin->process;
  return node;
}

}  // namespace podqos::ctl

#include "ctl/node/usage.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"

namespace podqos::ctl {
namespace {

constexpr std::int64_t kMille = 1000;

using Number = std::optional<std::int64_t>;

/// By how much a counter has grown; nullopt if it is not known or was set back.
Number growth(const Number& before, const Number& now) {
  if (!before || !now || *now < *before) return std::nullopt;
  return *now - *before;
}

template <class Tag>
Number number_of(const std::optional<Unit<Tag>>& value) {
  return value.transform(&Unit<Tag>::value);
}

/// For how much of `elapsed` microseconds tasks waited.
std::optional<Permille> share_of(const std::optional<Micros>& before,
                                 const std::optional<Micros>& now, std::int64_t elapsed) {
  return growth(number_of(before), number_of(now)).transform([&](std::int64_t waited) {
    return Permille{std::min(mul_div(waited, kMille, elapsed), kMille)};
  });
}

std::optional<Micros> waiting_of(const std::optional<cgroup::Pressure>& pressure) {
  return pressure.transform([](const cgroup::Pressure& held) { return held.waiting; });
}
std::optional<Micros> stalled_of(const std::optional<cgroup::Pressure>& pressure) {
  return pressure.and_then([](const cgroup::Pressure& held) { return held.stalled; });
}

/// Adds a part; one that is not known adds nothing.
template <class Value>
void add(std::optional<Value>& sum, const std::optional<Value>& part) {
  if (part) sum = sum.value_or(Value{}) + *part;
}

/// 0 means no limit and, as a request, nothing.
Amounts without_zeros(Amounts amounts) {
  if (amounts.cpu <= MilliCpu{}) amounts.cpu.reset();
  if (amounts.memory <= Bytes{}) amounts.memory.reset();
  return amounts;
}

/// Puts a pod and its containers behind the others.
void add_pod(const core::PodRecord& record, std::size_t tier, std::vector<UsageEntry>& entries) {
  const UsageEntry pod{.kind = EntryKind::kPod,
                       .parent = tier,
                       .qos_class = record.qos_class,
                       .cgroup = record.cgroup,
                       .engine = record.engine,
                       .pod_namespace = record.pod.pod_namespace,
                       .uid = record.pod.uid,
                       .id = core::engine_id(record),
                       .name = record.pod.name,
                       .kubelets_own = record.kubelets_own,
                       .requests = requests_of(record),
                       .earlier_kills = record.oom_kills.value_or(core::OomKills{})};
  const std::size_t parent = entries.size();
  entries.push_back(pod);
  for (const core::ContainerRecord& container : record.containers) {
    if (container.sandbox) continue;
    UsageEntry& entry = entries.emplace_back(pod);
    entry.kind = EntryKind::kContainer;
    entry.parent = parent;
    entry.cgroup = container.cgroup;
    entry.id = container.id;
    entry.name = container.name;
    const core::Container* const known = core::find_container(record.pod, container.name);
    const core::Resources given = known != nullptr ? known->resources : core::Resources{};
    entry.requests = without_zeros(amounts_of(given.requests));
    entry.limits = without_zeros(amounts_of(given.limits));
  }
}

/// Records of one tree by class.
using PodsByClass = std::map<core::QosClass, std::vector<const core::PodRecord*>>;

/// What the pods of a class request together: for podqos's own tree as its record counts.
core::TierSum requested(const core::TreeRecord* tree, core::QosClass qos_class,
                        const std::vector<const core::PodRecord*>& pods) {
  if (tree != nullptr) return tree->sums.of(qos_class);
  core::TierSum sum;
  for (const core::PodRecord* pod : pods)
    sum += pod->capped_request;
  return sum;
}

void add_tree(const std::string& root, const core::TreeRecord* tree, const PodsByClass& pods,
              std::vector<UsageEntry>& entries) {
  const std::size_t top = entries.size();
  entries.push_back({.kind = EntryKind::kTree, .cgroup = root});
  core::TierSum all;
  for (const core::QosClass qos_class : kClasses) {
    const auto found = pods.find(qos_class);
    if (found == pods.end()) continue;
    const core::TierSum sum = requested(tree, qos_class, found->second);
    all += sum;
    const std::string path = core::tier_path(root, qos_class);
    const std::size_t tier = entries.size();
    entries.push_back({.kind = EntryKind::kTier,
                       .parent = top,
                       .qos_class = qos_class,
                       .cgroup = path == root ? "" : path,
                       .requests = {.cpu = sum.cpu, .memory = sum.memory}});
    for (const core::PodRecord* record : found->second)
      add_pod(*record, tier, entries);
  }
  entries[top].requests = {.cpu = all.cpu, .memory = all.memory};
}

}  // namespace

Amounts requests_of(const core::PodRecord& record) {
  return without_zeros(amounts_of(core::pod_requests(core::whole_pod(record.pod, record.sums))));
}

Amounts amounts_of(const core::ResourceList& list) {
  Amounts amounts;
  if (const auto cpu = core::find(list, core::kCpu)) amounts.cpu = MilliCpu{cpu->milli_value()};
  if (const auto memory = core::find(list, core::kMemory)) amounts.memory = Bytes{memory->value()};
  return amounts;
}

Amounts limits_in(const cgroup::CgroupView& cgroup) {
  Amounts limits{.memory = cgroup.memory_limit()};
  if (const auto quota = cgroup.cpu_quota())
    limits.cpu =
        core::milli_cpu_for_quota(*quota, cgroup.cpu_period().value_or(core::kDefaultPeriod));
  return limits;
}

Usage usage_between(const std::optional<cgroup::CgroupUsage>& before,
                    const cgroup::CgroupUsage& now) {
  Usage usage{.memory = now.memory, .swap = now.swap, .pids = now.pids, .oom_kills = now.oom_kills};
  if (now.memory) usage.working_set = rest_of(*now.memory, now.inactive_file.value_or(Bytes{}));
  if (!before) return usage;
  const std::int64_t elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(now.at - before->at).count();
  if (elapsed <= 0) return usage;
  if (const auto used = growth(number_of(before->cpu), number_of(now.cpu)))
    usage.cpu = MilliCpu{mul_div(*used, kMille, elapsed)};
  const auto periods = growth(before->periods, now.periods);
  const auto throttled = growth(before->throttled_periods, now.throttled_periods);
  if (periods && throttled && *periods > 0)
    usage.throttled = Permille{std::min(mul_div(*throttled, kMille, *periods), kMille)};
  const auto share = [&](auto part, auto resource) {
    return share_of(part((*before).*resource), part(now.*resource), elapsed);
  };
  usage.cpu_waiting = share(waiting_of, &cgroup::CgroupUsage::cpu_pressure);
  usage.cpu_stalled = share(stalled_of, &cgroup::CgroupUsage::cpu_pressure);
  usage.memory_waiting = share(waiting_of, &cgroup::CgroupUsage::memory_pressure);
  usage.memory_stalled = share(stalled_of, &cgroup::CgroupUsage::memory_pressure);
  return usage;
}

std::vector<UsageEntry> entries_of(const NodeRecords& records) {
  std::map<std::string, PodsByClass> trees;
  for (const core::PodRecord& record : records.pods) {
    if (record.released_at) continue;
    const auto root = core::root_of_pod(record.cgroup);
    trees[root.value_or(std::string{parent_of(record.cgroup)})][record.qos_class].push_back(
        &record);
  }
  std::vector<UsageEntry> entries;
  for (auto& [root, pods] : trees) {
    for (auto& [qos_class, of_class] : pods)
      std::ranges::sort(of_class, {}, [](const core::PodRecord* record) {
        return std::tie(record->pod.pod_namespace, record->pod.name, record->pod.uid);
      });
    add_tree(root, core::tree_at(records.node, root), pods, entries);
  }
  return entries;
}

void add_sums(std::vector<UsageEntry>& entries, std::optional<core::CgroupVersion> memory) {
  const bool local_kills = memory == core::CgroupVersion::kV1;
  // What is in an entry comes behind it.
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (entries[i].parent == UsageEntry::kNoParent) continue;
    const auto& [reported, counted] = entries[i].earlier_kills;
    auto& kills = entries[i].usage.oom_kills;
    if (entries[i].kind == EntryKind::kPod && (kills || reported > 0))
      kills = reported + std::max<std::int64_t>(kills.value_or(0) - counted, 0);
    const Usage& part = entries[i].usage;
    UsageEntry& whole = entries[entries[i].parent];
    if (whole.cgroup.empty()) {
      for (const auto value : {&Usage::memory, &Usage::working_set, &Usage::swap})
        add(whole.usage.*value, part.*value);
      add(whole.usage.cpu, part.cpu);
      add(whole.usage.pids, part.pids);
    }
    if (local_kills || whole.cgroup.empty()) add(whole.usage.oom_kills, part.oom_kills);
  }
}

std::string full_name(const std::vector<UsageEntry>& entries, std::size_t index) {
  const UsageEntry& entry = entries[index];
  switch (entry.kind) {
    case EntryKind::kTree: return entry.cgroup;
    case EntryKind::kTier: return std::string{core::format_qos_class(entry.qos_class)};
    case EntryKind::kPod:
      return core::display_name({.pod_namespace = entry.pod_namespace,
                                 .name = entry.name,
                                 .uid = entry.uid,
                                 .id = entry.id});
    case EntryKind::kContainer: break;
  }
  return cat(full_name(entries, entry.parent), "/", label_of(entries, index));
}

std::string label_of(const std::vector<UsageEntry>& entries, std::size_t index) {
  const UsageEntry& entry = entries[index];
  if (entry.kind != EntryKind::kContainer) return full_name(entries, index);
  return entry.name.empty() ? std::string{core::short_id(entry.id)} : entry.name;
}

std::vector<UsageEntry> leave(std::vector<UsageEntry> entries, std::vector<bool> wanted) {
  for (std::size_t i = entries.size(); i-- > 0;)
    if (wanted[i] && entries[i].parent != UsageEntry::kNoParent) wanted[entries[i].parent] = true;
  std::vector<UsageEntry> left;
  std::vector<std::size_t> places(entries.size(), UsageEntry::kNoParent);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!wanted[i]) continue;
    places[i] = left.size();
    UsageEntry& entry = left.emplace_back(std::move(entries[i]));
    if (entry.parent != UsageEntry::kNoParent) entry.parent = places[entry.parent];
  }
  return left;
}

std::vector<UsageEntry> filtered(std::vector<UsageEntry> entries, const UsageFilter& filter) {
  if (filter == UsageFilter{}) return entries;
  std::vector<bool> wanted(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const UsageEntry& entry = entries[i];
    if (entry.kind != EntryKind::kPod && entry.kind != EntryKind::kContainer) continue;
    wanted[i] = (!filter.tier || *filter.tier == entry.qos_class) &&
                (filter.pod_namespace.empty() || filter.pod_namespace == entry.pod_namespace) &&
                (full_name(entries, i).contains(filter.text) || entry.uid.contains(filter.text) ||
                 entry.id.contains(filter.text));
  }
  return leave(std::move(entries), std::move(wanted));
}

}  // namespace podqos::ctl

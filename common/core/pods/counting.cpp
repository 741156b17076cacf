#include "common/core/pods/counting.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "common/base/text.h"

namespace podqos::core {

namespace {

/// Name of the init container that stands for all ended ones; no engine uses an empty name.
constexpr std::string_view kEnded;

/// The containers of a pod that have started, and those that ended before.
Pod started_part(const PodRecord& record) {
  std::set<std::string_view> started;
  for (const ContainerRecord& container : record.containers) {
    if (container.state == ContainerState::kLive) started.insert(container.name);
  }
  Pod part;
  part.init_containers = record.pod.init_containers;
  std::ranges::copy_if(
      record.pod.containers, std::back_inserter(part.containers),
      [&](const Container& container) { return started.contains(container.name); });
  return part;
}

/// Makes that init container as large as what of the pod has started. It has no limit where that
/// has none: the pod stays unlimited.
void remember_sum(PodRecord& record) {
  const Pod started = started_part(record);
  Resources sum = sum_of_containers(started);
  std::erase_if(sum.limits,
                [&](const auto& limit) { return !limit_declared(started, limit.first); });
  Pod& pod = record.pod;
  auto ended = std::ranges::find(pod.init_containers, kEnded, &Container::name);
  if (ended == pod.init_containers.end()) {
    pod.init_containers.push_back(
        {.name = std::string{kEnded}, .kind = ContainerKind::kInit, .resources = {}});
    ended = std::prev(pod.init_containers.end());
  }
  ended->resources = std::move(sum);
}

}  // namespace

Pod whole_pod(Pod pod, const std::optional<EngineSums>& sums) {
  if (!sums) return pod;
  Resources whole = pod.resources.value_or(Resources{});
  for (const auto& [name, request] : sums->resources.requests)
    whole.requests.insert_or_assign(name, request);
  for (const auto& [name, limit] : sums->resources.limits) {
    if (sums->enforced || limit_declared(pod, name)) whole.limits.insert_or_assign(name, limit);
  }
  // Empty pod-level resources would make the pod BestEffort (qos.h).
  if (whole != Resources{}) pod.resources = std::move(whole);
  return pod;
}

TierSum amounts_requested(const PodRecord& record) {
  const ResourceList requests = pod_requests(whole_pod(record.pod, record.sums));
  return {.pods = 1, .cpu = cpu_of(requests), .memory = Bytes{memory_of(requests).value()}};
}

void forget_container(PodRecord& record, const ContainerRecord& ended) {
  if (record.complete) return;
  auto& containers = record.pod.containers;
  const auto described = std::ranges::find(containers, ended.name, &Container::name);
  if (described == containers.end()) return;
  if (ended.state == ContainerState::kLive) remember_sum(record);
  containers.erase(described);
}

std::uint64_t tree_key(std::string_view kubepods) {
  return fnv1a(kubepods);
}

bool has_pods(const NodeState& state, const TreeRecord& tree) {
  const std::uint64_t key = tree_key(tree.kubepods);
  return std::ranges::find(state.rows, key, &PodRow::tree) != state.rows.end();
}

const TreeRecord* tree_in_use(const NodeState& state, Driver driver) {
  const auto found = std::ranges::find_if(state.trees, [&](const TreeRecord& tree) {
    return driver_of(tree.kubepods) == driver && has_pods(state, tree);
  });
  return found == state.trees.end() ? nullptr : &*found;
}

TierSum requested_by(const PodRecord& record) {
  if (record.qos_class == QosClass::kBestEffort) return {.pods = 1, .cpu = {}, .memory = {}};
  return record.capped_request;
}

PodRow row_of(const PodRecord& record) {
  const TierSum requested = requested_by(record);
  PodRow row{.uid = std::string_view{record.pod.uid},
             .requested_cpu = requested.cpu,
             .requested_memory = requested.memory,
             .counted_cpu = record.counted_request.cpu,
             .counted_memory = record.counted_request.memory,
             .due = record.due.value_or(kNever),
             .containers = static_cast<std::uint32_t>(record.containers.size()),
             .qos_class = record.qos_class,
             .kubelets_own = record.kubelets_own,
             .counts = !record.released_at};
  const auto root = record.kubelets_own ? std::nullopt : root_of_pod(record.cgroup);
  if (root) row.tree = tree_key(*root);
  const auto pending =
      std::ranges::find(record.containers, ContainerState::kPending, &ContainerRecord::state);
  if (pending != record.containers.end()) {
    row.is_pending = 1;
    row.creator = {.pid = pending->pid, .start_time = pending->start_time};
    row.pending_since = pending->pending_since.value_or(kNever);
  }
  return row;
}

PodRow* find_row(NodeState& state, std::string_view uid) {
  const auto found = std::ranges::find(state.rows, RowUid{uid}, &PodRow::uid);
  return found == state.rows.end() ? nullptr : &*found;
}

std::vector<std::string> uids_of(const NodeState& state) {
  std::vector<std::string> uids;
  uids.reserve(state.rows.size());
  for (const PodRow& row : state.rows)
    uids.emplace_back(row.uid.view());
  return uids;
}

namespace {

/// Sums that cannot overflow, to be saturated at the end.
struct Total {
  std::int64_t pods = 0;
  Wide cpu = 0;
  Wide memory = 0;
  void add(MilliCpu more_cpu, Bytes more_memory) {
    ++pods;
    cpu += more_cpu.value();
    memory += more_memory.value();
  }
  void operator+=(const Total& more) {
    pods += more.pods;
    cpu += more.cpu;
    memory += more.memory;
  }
  [[nodiscard]] TierSum sum() const {
    return {.pods = pods, .cpu = MilliCpu{saturated(cpu)}, .memory = Bytes{saturated(memory)}};
  }
};

/// As TierSums.
struct Totals {
  std::array<Total, 3> classes;
  Total kubelets;
  Total requested;
  void add(const PodRow& row) {
    if (row.counts == 0) return;
    if (row.kubelets_own != 0) return kubelets.add(row.counted_cpu, row.counted_memory);
    // What is damaged counts for the lowest.
    classes[std::min<std::size_t>(static_cast<std::size_t>(row.qos_class), 2)].add(
        row.counted_cpu, row.counted_memory);
    requested.add(row.requested_cpu, row.requested_memory);
  }
  void operator+=(const Totals& more) {
    for (std::size_t each = 0; each < classes.size(); ++each)
      classes[each] += more.classes[each];
    kubelets += more.kubelets;
    requested += more.requested;
  }
  [[nodiscard]] TierSums sums() const {
    TierSums out;
    for (const auto qos_class :
         {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort})
      out.of(qos_class) = classes[static_cast<std::size_t>(qos_class)].sum();
    out.kubelets = kubelets.sum();
    out.requested = requested.sum();
    return out;
  }
};

}  // namespace

void sum_up(NodeState& state) {
  std::vector<std::uint64_t> keys;
  keys.reserve(state.trees.size());
  for (const TreeRecord& tree : state.trees)
    keys.push_back(tree_key(tree.kubepods));
  std::vector<Totals> of_trees(keys.size() + 1);  // the last: in none
  for (const PodRow& row : state.rows)
    of_trees[static_cast<std::size_t>(std::ranges::find(keys, row.tree) - keys.begin())].add(row);
  Totals all;
  for (const Totals& tree : of_trees)
    all += tree;
  state.sums = all.sums();
  for (std::size_t each = 0; each < keys.size(); ++each)
    state.trees[each].sums = of_trees[each].sums();
}

TierSums sums_beside(const NodeState& state, std::string_view uid) {
  TierSums others = state.sums;
  const auto row = std::ranges::find(state.rows, RowUid{uid}, &PodRow::uid);
  if (row == state.rows.end() || row->counts == 0) return others;
  const auto take = [](TierSum& from, MilliCpu cpu, Bytes memory) {
    from = {.pods = from.pods - 1,
            .cpu = rest_of(from.cpu, cpu),
            .memory = rest_of(from.memory, memory)};
  };
  take(row->kubelets_own != 0 ? others.kubelets : others.of(row->qos_class), row->counted_cpu,
       row->counted_memory);
  if (row->kubelets_own == 0) take(others.requested, row->requested_cpu, row->requested_memory);
  return others;
}

}  // namespace podqos::core

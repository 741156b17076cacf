#include "common/app/observe_admission.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/cgroup/observe_root.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroups/naming.h"
#include "common/core/events/choose_root.h"
#include "common/core/pods/counting.h"
#include "common/store/store.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// The existing record for merge_claim(): without this container, which claims its resources anew,
/// without what containers that have ended no longer need, and without all others if none of them
/// runs. Looks up each one once.
std::optional<core::PodRecord> without_dead(cgroup::Machine& machine,
                                            std::optional<core::PodRecord> before,
                                            const core::ContainerFacts& facts) {
  if (!before) return std::nullopt;
  core::PodRecord& record = *before;
  bool has_living = false;
  std::vector<core::ContainerRecord> ended;
  for (const core::ContainerRecord& container : record.containers) {
    const bool is_this = container.key() == facts.key();
    const bool started = container.state == core::ContainerState::kLive;
    // Who has ended matters where the pod's resources are those of its containers.
    const bool may_matter = started && !record.complete;
    if (!may_matter && (has_living || is_this)) continue;
    const bool lives = cgroup::lives(machine, container);
    has_living = has_living || (lives && !is_this);
    if (may_matter && !lives) ended.push_back(container);
  }
  for (const core::ContainerRecord& container : ended)
    core::forget_container(record, container);
  const auto known = std::ranges::find(record.containers, facts.key(), &core::ContainerRecord::key);
  if (known != record.containers.end()) {
    known->state = core::ContainerState::kPending;
    core::remove_container(record, static_cast<std::size_t>(known - record.containers.begin()));
  }
  if (!has_living) record.containers.clear();
  return before;
}

/// The container if it is requested to be created although it runs.
std::optional<core::ContainerRecord> find_running(cgroup::Machine& machine,
                                                  const core::AdmissionRequest& request,
                                                  const std::optional<core::PodRecord>& before) {
  if (!before || request.state != core::ContainerState::kPending) return std::nullopt;
  const auto found =
      std::ranges::find(before->containers, request.facts.key(), &core::ContainerRecord::key);
  const bool runs = found != before->containers.end() &&
                    found->state == core::ContainerState::kLive && cgroup::lives(machine, *found) &&
                    !sys::is_ending(found->pid);
  return runs ? std::optional{*found} : std::nullopt;
}

/// The root for podqos's own pods of a driver; see core::choose_root(). Creates nothing.
/// @param container  see cgroup::origin_of_root()
/// @return the errors of core::choose_root() and core::check_root()
Result<std::string> choose_root(Transaction& transaction, core::Driver driver,
                                const std::optional<std::string>& container) {
  PODQOS_ASSIGN(auto root,
                core::choose_root(transaction.node(), transaction.settings().cgroup_root, driver));
  if (core::tree_at(transaction.node(), root) != nullptr) return root;
  PODQOS_ASSIGN(const auto origin, cgroup::origin_of_root(transaction.machine(), root, container));
  PODQOS_TRY(core::check_root(root, origin));
  return root;
}

/// Few admissions depend on the capacity of processes.
core::NodeCapacity capacity_for_admission(Transaction& transaction) {
  const core::Settings& settings = transaction.settings();
  const bool counts_pids =
      settings.pod_pids_limit && settings.admission.pids != core::AdmissionPolicy::kOff;
  return counts_pids ? cgroup::with_pids(transaction.capacity()) : transaction.capacity();
}

}  // namespace

Result<core::AdmissionSnapshot> observe_place(Transaction& transaction,
                                              const core::AdmissionRequest& request) {
  core::AdmissionSnapshot place{.root =
                                    choose_root(transaction, request.driver, request.placed_at)};
  const core::NodeState& node = transaction.node();
  const core::TreeRecord* tree =
      request.placed_at ? core::find_tree(node, *request.placed_at) : nullptr;
  if (tree == nullptr) tree = core::tree_in_use(node, request.driver);
  std::string own_root = tree != nullptr ? tree->kubepods : place.root.value_or("");
  const auto named = request.placed_at.and_then(core::find_pod_cgroup);
  if (named && is_below(named->pod_path, own_root)) {
    place.named = named->pod_path;
    PODQOS_ASSIGN(place.origin_of_named, cgroup::origin_of_pod(transaction.machine(), place.named));
    PODQOS_ASSIGN(const auto record, place.origin_of_named == core::CgroupOrigin::kPodqos
                                         ? std::nullopt
                                         : transaction.store().pod(named->uid));
    // Another program has made it: the pod is counted as a kubelet's.
    if (core::is_foreign_cgroup(place.named, place.origin_of_named, record)) own_root.clear();
  }
  PODQOS_ASSIGN(place.identity, core::identify(request, transaction.settings(), own_root));
  if (place.identity.source != core::IdentitySource::kSandbox) return place;
  PODQOS_ASSIGN(place.identity.uid,
                store::uid_by_sandbox(transaction.store(), place.identity, request.facts.id));
  return place;
}

Status observe_pod(Transaction& transaction, core::AdmissionRequest& request,
                   core::AdmissionSnapshot& snapshot) {
  cgroup::Machine& machine = transaction.machine();
  snapshot.claim = core::claim_for(snapshot.identity, request, transaction.settings(),
                                   transaction.capacity().memory);
  snapshot.capacity = capacity_for_admission(transaction);
  snapshot.layout = machine.layout_without_hugepages();
  PODQOS_ASSIGN(snapshot.before, transaction.store().pod(snapshot.identity.uid));
  if (snapshot.before) core::reconcile_bundle(*snapshot.before, request.facts);
  snapshot.existing = without_dead(machine, snapshot.before, request.facts);
  snapshot.running = find_running(machine, request, snapshot.before);
  return {};
}

Result<core::CgroupOrigin> observe_origin(Transaction& transaction,
                                          const core::AdmissionSnapshot& snapshot,
                                          const std::string& pod_cgroup) {
  return pod_cgroup == snapshot.named ? snapshot.origin_of_named
                                      : cgroup::origin_of_pod(transaction.machine(), pod_cgroup);
}

}  // namespace podqos::app

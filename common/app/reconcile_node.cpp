#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/follow_memory_qos.h"
#include "common/app/orphans.h"
#include "common/app/reconciler.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/cgroup/observe_root.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"

namespace podqos::app {

namespace {

/// The roots that podqos's own pods may have, by the settings.
std::vector<std::string> possible_roots(const Transaction& transaction) {
  const std::string& top = transaction.settings().cgroup_root;
  return {core::root_path(top, core::Driver::kCgroupfs),
          core::root_path(top, core::Driver::kSystemd)};
}

/// True if the state was lost while cgroups still exist: it names no tree, and a root has podqos's
/// mark.
bool has_lost_roots(Transaction& transaction) {
  return transaction.node().trees.empty() &&
         std::ranges::any_of(possible_roots(transaction), [&](const std::string& root) {
           return cgroup::is_marked(transaction.machine(), root).value_or(false);
         });
}

/// Adds an event with this text to the report.
void note_event(ReconcileReport& report, core::Event event, std::string text) {
  event.text = std::move(text);
  report.events.push_back(std::move(event));
}

/// Makes pods, or all there is, as the records say, under the lock.
class NodeReconciliation {
 public:
  explicit NodeReconciliation(Transaction& transaction, ReconcileParams how = {})
      : transaction_(transaction), how_(how) {}

  /// Everything: pods, trees, index, and what the state has lost.
  Result<ReconcileReport> run_all() {
    PODQOS_ASSIGN(const auto uids, transaction_.store().pod_uids());
    load(uids);
    PODQOS_TRY(transaction_.store().begin_comparison());
    PODQOS_TRY(drop_rows(core::uids_of(transaction_.node())));
    auto report = run_rest();
    if (report) transaction_.store().compared();
    return report;
  }

  /// These pods alone. Of those that an earlier event was changing all is uncertain: what is above
  /// them, and what the index has of them, too.
  Result<ReconcileReport> run_pods(const std::vector<std::string>& uids, bool interrupted) {
    load(uids);
    PODQOS_TRY(drop_rows(uids));
    const bool is_gone = find_trees_of_pods();
    PODQOS_TRY(evaluate());
    if (interrupted || is_gone) remake_trees();
    PODQOS_TRY(write_pods());
    if (interrupted) {
      // So that it ends with the transaction.
      for (const std::string& uid : uids)
        if (core::find_row(transaction_.node(), uid) != nullptr)
          PODQOS_TRY(transaction_.begin(uid));
      clean_index(transaction_, report_);
    }
    return reported();
  }

  /// What no pod owns: trees, pod cgroups without a record, and the index; and the pods that have
  /// been loaded.
  Result<ReconcileReport> run_rest() {
    find_roots();
    restore_orphans();
    PODQOS_TRY(evaluate());
    detect_formulas();
    remake_trees();
    PODQOS_TRY(write_pods());
    clean_index(transaction_, report_);
    return reported();
  }

 private:
  void load(const std::vector<std::string>& uids) {
    for (const std::string& uid : uids) {
      auto record = transaction_.store().pod(uid);
      // The row of no uid is damaged, and is dropped.
      if (!record && record.error().code == ErrorCode::kInvalidArgument) continue;
      if (!record) {
        report_.failed.push_back(std::move(record).error().message);
        unreadable_.insert(uid);
      } else if (*record) {
        stored_.emplace(uid, **record);
        records_.emplace(uid, std::move(**record));
      }
    }
  }

  void add_tree(const std::string& root) {
    core::NodeState& node = transaction_.node();
    if (core::tree_at(node, root) == nullptr)
      node.trees.emplace_back(core::TreeRecord{.kubepods = root, .reserves = true});
  }

  /// Finds the trees of pods that the state does not name.
  /// @return whether a tier or root is gone, so that its pods' cgroups would be made without it
  bool find_trees_of_pods() {
    bool is_gone = false;
    for (const auto& [uid, record] : records_) {
      const auto root = record.kubelets_own ? std::nullopt : core::root_of_pod(record.cgroup);
      if (!root) continue;
      add_tree(*root);
      is_gone = is_gone || !transaction_.machine().exists(parent_of(record.cgroup));
    }
    for (core::TreeRecord& tree : transaction_.node().trees) {
      if (tree.top.empty()) tree.top = cgroup::marked_top(transaction_.machine(), tree.kubepods);
    }
    return is_gone;
  }

  /// The same, and those that podqos has marked.
  void find_roots() {
    for (const std::string& root : possible_roots(transaction_)) {
      if (core::tree_at(transaction_.node(), root) != nullptr) continue;
      const auto marked = cgroup::is_marked(transaction_.machine(), root);
      if (!marked) report_.failed.push_back(marked.error().message);
      if (marked && *marked) add_tree(root);
    }
    find_trees_of_pods();
  }

  void restore_orphans() {
    for (const core::TreeRecord& tree : transaction_.node().trees)
      app::restore_orphans(transaction_, tree, {records_, report_});
  }

  /// Writes all values of root and tiers with the end of the transaction.
  void remake_trees() {
    transaction_.remake_trees();
    for (const core::TreeRecord& tree : std::vector{transaction_.node().trees})
      remake(tree);
  }

  /// A root that another program has removed is made again, and marked, before the pods in it are.
  void remake(const core::TreeRecord& tree) {
    if (!core::has_pods(transaction_.node(), tree)) return;
    const bool removed = !transaction_.machine().exists(tree.kubepods);
    if (auto done = transaction_.make_tree(tree.kubepods); !done)
      report_.failed.push_back(std::move(done).error().message);
    else if (removed)
      report_.changes.push_back(cat("made cgroup ", tree.kubepods, " again, which was removed"));
  }

  /// A kubelet resizes its pods, and its engine may not tell.
  void follow_kubelets_pods() {
    std::map<std::string, core::HeldResources> held;
    for (const auto& [uid, record] : records_) {
      if (record.kubelets_own && !record.released_at)
        held.emplace(uid, cgroup::CgroupView{transaction_.machine(), record.cgroup}.held());
    }
    for (const std::string& uid : core::follow_kubelet(records_, held, transaction_.formula())) {
      core::PodRecord& record = records_.at(uid);
      core::count_requests(record, transaction_.settings(), transaction_.capacity());
      report_.changes.push_back(cat(core::name_of(record), ": ", core::describe_requests(record),
                                    ", as its kubelet has resized it"));
    }
  }

  /// Releases ended pods, and counts the living ones.
  Status evaluate() {
    follow_kubelets_pods();
    std::vector<core::ReconciledPod> pods;
    pods.reserve(records_.size());
    for (auto& [uid, record] : records_)
      pods.push_back(observe(std::move(record)));
    records_.clear();
    std::vector<core::PodRecord> ended;
    const BootSeconds now = transaction_.now();
    for (auto& pod : pods) {
      if (core::decide_reconciliation(pod, report_, now, transaction_.settings()))
        records_.emplace(std::string{pod.record.pod.uid}, std::move(pod.record));
      else
        ended.push_back(std::move(pod.record));
    }
    for (const auto& [uid, record] : records_)
      PODQOS_TRY(transaction_.store().put_row(record));
    for (const core::PodRecord& record : ended)
      note(record.pod.uid, handle_due(transaction_, record));
    return {};
  }

  /// The state may have been lost while containers ran whose runtime converted their shares.
  void detect_formulas() {
    for (const auto& [uid, record] : records_) {
      for (const core::ContainerRecord& container : record.containers) {
        // The weight of a container outside its pod is podqos's own.
        const bool placed = !record.kubelets_own && is_below(container.cgroup, record.cgroup);
        if (placed && container.state == core::ContainerState::kLive)
          detect_formula(transaction_, record, container, {});
      }
    }
  }

  core::ReconciledPod observe(core::PodRecord record) {
    cgroup::Machine& machine = transaction_.machine();
    std::vector<core::ContainerObservation> observations;
    for (const core::ContainerRecord& container : record.containers) {
      core::ContainerObservation& observation = observations.emplace_back();
      observation.lives =
          (how_.list != nullptr && how_.list->runs(container)) || cgroup::lives(machine, container);
      if (!core::needs_init(container, observation.lives, how_.list)) continue;
      auto init = cgroup::find_init(machine, container);
      if (!init) report_unknown(record.pod.uid, init.error());
      observation.lives = observation.lives || !init;
      if (init) observation.init = *init;
    }
    auto pod = core::remove_ended(std::move(record), observations, how_.list);
    if (!pod.record.containers.empty()) remove_left(transaction_, pod.record, pod.ended);
    if (how_.follow != nullptr) how_.follow(transaction_, pod.record, report_);
    if (!pod.record.kubelets_own)
      core::count_requests(pod.record, transaction_.settings(), transaction_.capacity());
    if (pod.record.containers.empty() && !pod.record.kubelets_own) {
      const auto populated = cgroup::holds_container(machine, pod.record.cgroup);
      if (!populated) report_unknown(pod.record.pod.uid, populated.error());
      pod.populated = populated.value_or(true);
    }
    for (const core::ContainerRecord& container : pod.record.containers) {
      auto misplaced = cgroup::describe_misplaced(machine, pod.record, container);
      if (!misplaced) continue;
      note_event(report_, core::event_of(core::EventKind::kMoved, pod.record, &container),
                 *misplaced);
      pod.misplaced.push_back(*std::move(misplaced));
    }
    return pod;
  }

  /// Writes all records and values.
  Status write_pods() {
    for (auto& [uid, record] : records_)
      if (auto done = write(record); !done) note(uid, fail(std::move(done).error()));
    return {};
  }

  /// Compares a recorded pod with the kernel, writes what differs of its values, and reports that
  /// and what the machine has refused, which a later transaction retries.
  Status write(core::PodRecord& record) {
    follow_memory_qos(transaction_, record);
    const auto stored = stored_.find(record.pod.uid);
    if (stored == stored_.end() || stored->second != record)
      PODQOS_TRY(transaction_.save(record, stored == stored_.end() ? nullptr : &stored->second));
    PODQOS_TRY(transaction_.index(record));
    if (record.kubelets_own) return {};
    PODQOS_ASSIGN(const auto refused, transaction_.write_or_postpone(record, nullptr));
    for (const core::ContainerRecord& container : record.containers) {
      if (container.state == core::ContainerState::kLive)
        write_burst(transaction_, record, container);
    }
    if (refused && refused->code != ErrorCode::kBusy)
      note_failure(report_, record.pod.uid, *refused);
    for (const std::string& line : transaction_.release_written()) {
      report_.changes.push_back(cat("pod ", record.pod.uid, ": ", line));
      const std::string cgroup = cat(record.cgroup, "/");
      note_event(report_, core::event_of(core::EventKind::kCorrected, record),
                 line.substr(line.starts_with(cgroup) ? cgroup.size() : 0));
    }
    return {};
  }

  /// Forgets pods whose records are gone.
  Status drop_rows(const std::vector<std::string>& uids) {
    for (const std::string& uid : uids) {
      const bool is_known = records_.contains(uid) || unreadable_.contains(uid);
      if (!is_known && core::find_row(transaction_.node(), uid) != nullptr)
        PODQOS_TRY(transaction_.store().drop_row(uid));
    }
    return {};
  }

  /// Notes what of a pod has failed: that is the pod's alone.
  void note(const std::string& uid, const Result<std::optional<Error>>& done) {
    if (done) {
      if (*done && (*done)->code != ErrorCode::kBusy) note_failure(report_, uid, **done);
      return;
    }
    note_failure(report_, uid, done.error());
    const ErrorCode code = done.error().code;
    if (code != ErrorCode::kTooLarge && code != ErrorCode::kUnsupported)
      transaction_.store().leave_unfinished(uid);
  }

  void report_unknown(const std::string& uid, const Error& error) {
    report_.failed.push_back(cat("pod ", uid, ": counts on, as it may still run: ", error.message));
  }

  /// Logs the report, and returns it.
  ReconcileReport reported() {
    for (const std::string& line : report_.changes)
      transaction_.log().info(line);
    if (how_.warnings == Warnings::kLogged) {
      for (const std::string& line : report_.warnings)
        transaction_.log().warning(line);
    }
    for (const std::string& line : report_.failed)
      transaction_.log().error(line);
    record_events(transaction_, report_.events);
    return std::move(report_);
  }

  Transaction& transaction_;
  ReconcileParams how_;
  core::PodRecords stored_;  ///< as they were read
  core::PodRecords records_;
  Ids unreadable_;  ///< uids of pods whose records cannot be read
  ReconcileReport report_;
};

}  // namespace

void note_failure(ReconcileReport& report, const std::string& uid, const Error& error) {
  report.failed.push_back(cat("pod ", uid, ": ", error.message));
  note_event(report, {.kind = core::EventKind::kFailed, .uid = uid}, error.message);
}

Result<ReconcileReport> reconcile_node(Transaction& transaction, ReconcileParams how) {
  return NodeReconciliation{transaction, how}.run_all();
}

Result<ReconcileReport> reconcile_pod(Transaction& transaction, const std::string& uid,
                                      ReconcileParams how) {
  return NodeReconciliation{transaction, how}.run_pods({uid}, false);
}

Result<ReconcileReport> reconcile_rest(Transaction& transaction, ReconcileParams how) {
  return NodeReconciliation{transaction, how}.run_rest();
}

Status reconcile_pods(Transaction& transaction, const std::vector<std::string>& uids,
                      ReconcileParams how) {
  PODQOS_TRY(NodeReconciliation(transaction, how).run_pods(uids, true));
  return {};
}

bool is_state_lost(Transaction& transaction) {
  return transaction.store().dirty() || has_lost_roots(transaction);
}

Status reconcile_interrupted(Transaction& transaction, bool record_lost, ReconcileParams how) {
  if (transaction.node_is_reconciled()) return {};
  const std::vector<std::string> interrupted = transaction.store().take_interrupted();
  if (!record_lost && !is_state_lost(transaction)) {
    if (interrupted.empty()) return {};
    transaction.log().warning(cat("an earlier event was interrupted: making ", interrupted.size(),
                                  " pods as recorded, ", printable(interrupted.front())));
    return reconcile_pods(transaction, interrupted, how);
  }
  transaction.log().warning("the state is another release's, or has lost records: restoring all");
  transaction.begin_node_reconciliation();
  PODQOS_TRY(reconcile_node(transaction, how));
  return {};
}

}  // namespace podqos::app

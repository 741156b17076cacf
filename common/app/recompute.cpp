#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/memory_qos.h"
#include "common/app/orphans.h"
#include "common/app/reconcile.h"
#include "common/app/write_anew.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/cgroup/root.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/root.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/kubelets_requests.h"
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
  return transaction.tiers().trees.empty() &&
         std::ranges::any_of(possible_roots(transaction), [&](const std::string& root) {
           return cgroup::is_marked(transaction.machine(), root).value_or(false);
         });
}

/// One recomputation of everything, under the lock.
class Recomputation {
 public:
  explicit Recomputation(Transaction& transaction, const EngineList* list = nullptr,
                         FollowRuntime follow = nullptr, Values values = Values::kAll)
      : transaction_(transaction),
        list_(list),
        follow_(follow),
        // An interrupted transaction may have written any of them.
        values_(transaction.store().dirty() ? Values::kAll : values) {}

  Result<ReconcileReport> run(Warnings warnings = Warnings::kLogged) {
    PODQOS_TRY(load());
    PODQOS_TRY(transaction_.begin());
    transaction_.store().keep_mark();  // until all of it is done
    find_roots();
    for (const core::TreeRecord& tree : transaction_.tiers().trees)
      restore_orphans(transaction_, tree, {records_, unreadable_, report_});
    follow_kubelets_pods();
    PODQOS_TRY(evaluate());
    detect_formulas();
    for (const core::TreeRecord& tree : std::vector{transaction_.tiers().trees})
      remake(tree);
    PODQOS_TRY(write_pods());
    clean_index();
    transaction_.store().recomputed();
    if (uncertain_) transaction_.store().keep_mark();
    for (const std::string& line : report_.changes)
      transaction_.log().info(line);
    if (warnings == Warnings::kLogged) {
      for (const std::string& line : report_.warnings)
        transaction_.log().warning(line);
    }
    for (const std::string& line : report_.failed)
      transaction_.log().error(line);
    record_events(transaction_, report_.events);
    return std::move(report_);
  }

  /// Ids of the live containers.
  [[nodiscard]] Ids live() const {
    Ids ids;
    for (const auto& [uid, record] : records_) {
      for (const core::ContainerRecord& container : record.containers) {
        if (container.state == core::ContainerState::kLive) ids.insert(container.id);
      }
    }
    return ids;
  }

 private:
  Status load() {
    PODQOS_ASSIGN(auto uids, transaction_.store().pod_uids());
    for (const std::string& uid : uids) {
      auto record = transaction_.store().pod(uid);
      if (!record) {
        report_.failed.push_back(std::move(record).error().message);
        unreadable_.insert(uid);
      } else if (*record) {
        stored_.emplace(uid, **record);
        records_.emplace(uid, std::move(**record));
      }
    }
    start_counting();
    return {};
  }

  /// Leaves only what pods with unreadable records count in the sums, as far as the sums tell it.
  void start_counting() {
    core::TiersRecord& tiers = transaction_.tiers();
    if (unreadable_.empty() || transaction_.store().dirty()) {
      tiers.sums = {};
      for (core::TreeRecord& tree : tiers.trees)
        tree.sums = {};
      tiers.uncounted.assign(unreadable_.begin(), unreadable_.end());
      return;
    }
    for (const auto& [uid, record] : records_) {
      if (!record.released_at) core::remove_pod(tiers, record);
    }
  }

  /// Finds the trees that the state does not name: by the mark of their root, and by the records of
  /// the pods in them.
  void find_roots() {
    core::TiersRecord& tiers = transaction_.tiers();
    const auto add = [&](const std::string& root) {
      if (core::tree_at(tiers, root) == nullptr)
        tiers.trees.emplace_back(core::TreeRecord{.kubepods = root, .reserves = true});
    };
    for (const std::string& root : possible_roots(transaction_)) {
      if (core::tree_at(tiers, root) != nullptr) continue;
      const auto marked = cgroup::is_marked(transaction_.machine(), root);
      if (!marked) report_.failed.push_back(marked.error().message);
      if (marked && *marked) add(root);
    }
    for (const auto& [uid, record] : records_) {
      const auto root = record.kubelets_own ? std::nullopt : core::root_of_pod(record.cgroup);
      if (root) add(*root);
    }
    for (core::TreeRecord& tree : tiers.trees) {
      if (tree.top.empty()) tree.top = cgroup::marked_top(transaction_.machine(), tree.kubepods);
    }
    transaction_.remake_trees();
  }

  /// A root that another program has removed is made again, and marked, before the pods in it are.
  void remake(const core::TreeRecord& tree) {
    if (!core::has_pods(transaction_.tiers(), tree)) return;
    // Nothing holds any more that could be left for later.
    const auto is_complete = [&](const std::string& path) {
      return transaction_.machine().is_complete(path).value_or(false);
    };
    if (!std::ranges::all_of(core::tiers_and_root(tree.kubepods), is_complete))
      values_ = Values::kAll;
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

  /// Releases ended pods, and sums up the living ones.
  Status evaluate() {
    std::vector<core::ReconciledPod> pods;
    pods.reserve(records_.size());
    for (auto& [uid, record] : records_)
      pods.push_back(observe(std::move(record)));
    core::TiersRecord& tiers = transaction_.tiers();
    const BootSeconds now = transaction_.now();
    auto decided = core::reconcile_pods(std::move(pods), tiers, report_,
                                        {now, core::retry_at(now, transaction_.settings())});
    records_ = std::move(decided.living);
    for (const core::PodRecord& record : decided.ended) {
      PODQOS_TRY(note(record.pod.uid, handle_due(transaction_, record)));
    }
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
          (list_ != nullptr && list_->runs(container)) || cgroup::lives(machine, container);
      if (!core::needs_init(container, observation.lives, list_)) continue;
      auto init = cgroup::find_init(machine, container);
      if (!init) report_unknown(record.pod.uid, init.error());
      observation.lives = observation.lives || !init;
      if (init) observation.init = *init;
    }
    auto pod = core::remove_ended(std::move(record), observations, list_);
    if (!pod.record.containers.empty()) remove_left(transaction_, pod.record, pod.ended);
    if (follow_ != nullptr) follow_(transaction_, pod.record, report_);
    if (!pod.record.kubelets_own)
      core::count_requests(pod.record, transaction_.settings(), transaction_.capacity());
    if (pod.record.containers.empty() && !pod.record.kubelets_own) {
      const auto populated = cgroup::holds_container(machine, pod.record.cgroup);
      if (!populated) report_unknown(pod.record.pod.uid, populated.error());
      pod.populated = populated.value_or(true);
    }
    for (const core::ContainerRecord& container : pod.record.containers) {
      auto stray = cgroup::describe_stray(machine, pod.record, container);
      if (!stray) continue;
      note_event(report_, core::event_of(core::EventKind::kMoved, pod.record, &container), *stray);
      pod.strays.push_back(*std::move(stray));
    }
    return pod;
  }

  /// Writes all records and values.
  Status write_pods() {
    for (auto& [uid, record] : records_) {
      const auto found = stored_.find(uid);
      const core::PodRecord* const stored = found == stored_.end() ? nullptr : &found->second;
      if (values_ == Values::kChanged && stored != nullptr && *stored == record) {
        report_.unwritten.push_back(uid);
        continue;
      }
      if (auto done = write_anew(transaction_, record, stored, report_); !done)
        PODQOS_TRY(note(uid, fail(std::move(done).error())));
    }
    return {};
  }

  /// Notes what of a pod has failed: that is the pod's alone.
  /// @return an error only if nothing can be stored any more
  Status note(const std::string& uid, const Result<std::optional<Error>>& done) {
    if (done) {
      if (*done && (*done)->code != ErrorCode::kBusy) note_failure(report_, uid, **done);
      return {};
    }
    note_failure(report_, uid, done.error());
    const ErrorCode code = done.error().code;
    if (code == ErrorCode::kTooLarge || code == ErrorCode::kUnsupported) return {};
    uncertain_ = true;
    return transaction_.store().checkpoint();
  }

  void report_unknown(const std::string& uid, const Error& error) {
    report_.failed.push_back(cat("pod ", uid, ": counts on, as it may still run: ", error.message));
  }

  /// Erases index entries that lead to no container.
  void clean_index() {
    const auto entries = transaction_.store().all_entries();
    if (!entries) {
      report_.failed.push_back(entries.error().message);
      return;
    }
    for (const store::IndexEntry& entry : *entries) {
      if (leads_to_container(entry)) continue;
      if (auto done = transaction_.store().erase_entry(entry); !done)
        report_.failed.push_back(std::move(done).error().message);
    }
  }

  [[nodiscard]] bool leads_to_container(const store::IndexEntry& entry) const {
    if (unreadable_.contains(entry.uid)) return true;
    const auto record = records_.find(entry.uid);
    return record != records_.end() &&
           std::ranges::any_of(record->second.containers, [&](const auto& container) {
             return store::index_name(container.id) == entry.name;
           });
  }

  Transaction& transaction_;
  const EngineList* list_;
  FollowRuntime follow_;
  Values values_;
  core::PodRecords stored_;  ///< as they were read
  core::PodRecords records_;
  Ids unreadable_;          ///< uids of pods whose records cannot be read
  bool uncertain_ = false;  ///< a record could not be written
  ReconcileReport report_;
};

}  // namespace

Result<ReconcileReport> recompute(Transaction& transaction, Warnings warnings, FollowRuntime follow,
                                  Values values) {
  return Recomputation{transaction, nullptr, follow, values}.run(warnings);
}

Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list) {
  Recomputation recomputation{transaction, &list};
  transaction.begin_recovery();
  PODQOS_TRY(recomputation.run());
  return recomputation.live();
}

Status recover(Transaction& transaction, bool record_lost) {
  if (transaction.recovered()) return {};
  if (transaction.store().dirty()) {
    transaction.log().warning(
        "an earlier transaction was interrupted: recomputing all records and values");
  } else if (record_lost || has_lost_roots(transaction)) {
    transaction.log().error(
        "the state directory lacks records of existing cgroups: restoring them");
  } else {
    return {};
  }
  transaction.begin_recovery();
  PODQOS_TRY(recompute(transaction));
  return {};
}

}  // namespace podqos::app

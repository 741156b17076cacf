#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/removal.h"
#include "common/core/cgroups/plan.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/events/event.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/store/store.h"
#include "common/sys/clock.h"

namespace podqos::app {

/// How long one call may wait, within the configured limits. A caller that its runtime waits for
/// sets a deadline for the whole call.
struct Timeouts {
  /// The clock of `deadline`; unaffected by steps of the wall clock.
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();  ///< for all waiting of the call
  /// For the lock; the shorter of this and lockDeadline applies.
  std::chrono::milliseconds lock = std::chrono::milliseconds::max();
  std::chrono::milliseconds systemd{2000};       ///< for each reply of systemd
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

/// How long one event of a container's start may wait in all, whatever it waits for: 5 s, or a
/// longer lockDeadline up to 25 s. Runtimes and engines give up later, and the hook ends itself
/// after 30 s.
[[nodiscard]] constexpr std::chrono::milliseconds start_time_limit(const core::Settings& settings) {
  return std::clamp(std::chrono::milliseconds{settings.lock_deadline_ms},
                    std::chrono::milliseconds{5'000}, std::chrono::milliseconds{25'000});
}

/// What the machine has refused for the moment: a pod's values, or the removal of a cgroup.
struct Refusal {
  std::string uid;  ///< "" if it was the removal of a tree
  Error error;
};

/// A transaction: everything that is read and written about pods while the lock is held. The object
/// holds the lock; its destructor releases it.
class Transaction {
 public:
  /// Takes the lock and reads the tiers' sums. Creates the state directory if it is missing.
  /// @return kTimeout if the lock was not free before the deadline.
  static Result<Transaction> open(const core::Settings& settings, Log& log,
                                  const Timeouts& timeouts = {});
  /// As open(), but creates nothing; nullopt if there is no state directory.
  static Result<std::optional<Transaction>> open_existing(const core::Settings& settings, Log& log,
                                                          const Timeouts& timeouts = {});
  /// A transaction on records and a machine that the caller opened.
  Transaction(const core::Settings& settings, Log& log, std::unique_ptr<store::Store> store,
              std::unique_ptr<cgroup::Machine> machine, core::NodeCapacity capacity);

  /// Keeps the settings as the last valid ones (Configuration).
  void keep_settings();

  /// The effective settings.
  [[nodiscard]] const core::Settings& settings() const { return *settings_; }
  /// The program's log.
  [[nodiscard]] Log& log() const { return *log_; }
  /// The records; of the state directory, which is locked.
  [[nodiscard]] store::Store& store() { return *store_; }
  /// Cgroups, systemd units and processes; its wait budget is that of the transaction.
  [[nodiscard]] cgroup::Machine& machine() { return *machine_; }
  /// The sums of the tiers, the trees in use, and a row for each pod; written by finish().
  [[nodiscard]] core::NodeState& node() const { return store_->node(); }
  /// Seconds since boot when the transaction began, so that steps of the wall clock have no effect.
  [[nodiscard]] BootSeconds now() const { return now_; }
  /// The node's memory, swap and CPU, see cgroup::node_capacity().
  [[nodiscard]] const core::NodeCapacity& capacity() const { return capacity_; }
  /// The formula that converts shares to a cgroup v2 weight: configured, or that of the node's
  /// runtime.
  [[nodiscard]] core::WeightFormula formula();
  /// What is known of the node.
  [[nodiscard]] core::NodeRules rules() {
    return {.formula = formula(), .capacity = capacity_, .settings = *settings_};
  }
  /// The hierarchies of the controllers; hugetlb is included only if `values` has huge page limits.
  [[nodiscard]] const core::CgroupLayout& layout_for(const core::CgroupValues& values);

  /// True if this transaction has reconciled everything after an interrupted one.
  [[nodiscard]] bool node_is_reconciled() const { return node_is_reconciled_; }
  /// Logs an event and records it in the state directory, see Log::event().
  void event(core::LogLevel level, core::Event event, std::string_view context) const {
    log_->event(level, std::move(event), context, state());
  }
  /// The state directory; nullptr if the records are in none.
  [[nodiscard]] const sys::Directory* state() const { return store_->directory(); }
  /// Logs an error after which it is uncertain what a pod has: the next transaction makes it as its
  /// record says.
  /// @param context  precedes its message
  void log_uncertain(std::string_view uid, const Status& done, std::string_view context = {});
  /// Notes that everything is being reconciled, so that it is done once per transaction.
  void begin_node_reconciliation() { node_is_reconciled_ = true; }
  /// Makes finish() create the roots and tiers of all trees again and write all their values.
  void remake_trees() { trees_ = core::TreeState::kMissing; }
  /// Whether that was called.
  [[nodiscard]] bool remakes_trees() const { return trees_ != core::TreeState::kUnchanged; }
  /// Makes finish() write the roots' limits too, which it else does only if their rule has changed.
  void write_root_limits() { writes_root_limits_ = true; }

  // What an event changes, of the stored records and of the machine. A program may die between any
  // two of these calls: records are the truth, and the next transaction, which finds the pods that
  // the interrupted one was changing, makes everything else of them as their records say.

  /// Begins to change a pod; all that change its record do it too.
  [[nodiscard]] Status begin(std::string_view uid);
  /// Creates or replaces a pod's record. The index leads to the record of each of its containers
  /// before it is saved, and no longer to it from those that have left it afterwards.
  /// @param before  the stored record; nullptr if there is none, or if the index may lack entries
  [[nodiscard]] Status save(const core::PodRecord& record, const core::PodRecord* before);
  /// Lets the index lead to a record that is stored already, from each of its containers.
  [[nodiscard]] Status index(const core::PodRecord& record);
  /// Removes a pod's record, then the index entries of its containers.
  /// @param record  as stored
  [[nodiscard]] Status erase(const core::PodRecord& record);

  /// Executes steps of the machine. Logs changed values at debug level.
  [[nodiscard]] Status execute(const core::Plan& plan);
  /// Makes root and tiers, whose values finish() writes, unless pods of the tree use them; in a
  /// reconciliation also those that another program has removed. Saves the tiers' record first: a
  /// program that dies in between must not leave a root that nothing tells to be podqos's.
  [[nodiscard]] Status make_tree(const std::string& kubepods);
  /// Removes the tree again if it could not be made for its first pod. If systemd does not answer
  /// now either, units without cgroups may be left, which the next pod takes up.
  void take_back_tree(const std::string& kubepods);
  /// Writes the values of one of podqos's own pods: what has changed, or all of them; makes its
  /// cgroup, also again if another program has removed it, and keeps a copy of the record on it.
  /// @param before  the record that the cgroup's values follow from; nullptr to write all
  /// @return the errors of core::pod_values(), or what the kernel or systemd has refused: then
  ///         postpone() or taking the record back is up to the caller
  [[nodiscard]] Status write_pod(const core::PodRecord& record, const core::PodRecord* before);
  /// As write_pod(), for a pod that has no cgroup yet.
  [[nodiscard]] Status make_pod(const core::PodRecord& record) {
    return write_values(record, {.may_differ = remakes_trees()});
  }
  /// Leaves the values of a live pod's cgroup, which were refused, to a later transaction, which
  /// writes all of them: at once where the refusal passes by itself (kBusy), else later.
  /// @return the errors of save()
  [[nodiscard]] Status postpone(core::PodRecord& record, const Error& refused);
  /// As write_pod(), for a pod that runs on in any case.
  /// @return why its values were refused, for the log or a report: they are postponed; the errors
  ///         of save()
  [[nodiscard]] Result<std::optional<Error>> write_or_postpone(core::PodRecord& record,
                                                               const core::PodRecord* before);
  /// Removes what an earlier pod, or ended containers, have left below a pod's cgroup: it has old
  /// limits, which the kernel checks the pod's new ones against. Children that remain are no error.
  void remove_children(const cgroup::RemoveChildren& children);
  /// Removes the cgroup of a released pod and all that is left below it, then the pod's record.
  /// Where the cgroup remains, the record does, too, and is due.
  /// @param before  the stored record
  /// @return why the cgroup is in use; nullopt if it is gone, or systemd releases it in a moment
  [[nodiscard]] Result<std::optional<Error>> remove_pod(core::PodRecord record,
                                                        const core::PodRecord& before);

  /// Writes the copy of the record to the pod's cgroup, so that a container is found by its process
  /// although the state is lost and it was moved elsewhere. Not where the copy says that the pod's
  /// values are still to be written.
  void renew_copy(const core::PodRecord& record);

  /// Writes the tiers' values, or removes tiers and root of a tree without pods; sends deferred
  /// unit properties to systemd and ends the change of all pods that were begun. What the machine
  /// refuses is logged, see failures(), and left to a later transaction.
  /// @return the errors of the record store
  [[nodiscard]] Status finish();
  /// As finish(), but leaves root and tiers of a tree whose sums have changed to a later
  /// transaction, which writes all their values.
  [[nodiscard]] Status finish_pods();
  /// For a transaction without changes of its own: finishes what reconciling, or the care for other
  /// pods, has changed.
  [[nodiscard]] Status finish_if_changed() {
    return remakes_trees() || changed_ ? finish() : Status{};
  }
  /// What finish() could not do, one sentence each.
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

  /// What the kernel or systemd refused for the moment, at most one reason per pod. Later
  /// transactions retry it; see follow_up().
  [[nodiscard]] const std::vector<Refusal>& unfinished() const { return unfinished_; }
  /// Uids of ended pods of whose nested cgroups a part is removed; see remove_rest().
  [[nodiscard]] const std::vector<std::string>& partly_removed() const { return partly_removed_; }

  /// Returns and clears the list of values that were written: "PATH/FILE = VALUE".
  [[nodiscard]] std::vector<std::string> release_written() { return std::exchange(written_, {}); }

 private:
  /// A transaction on these records and the machine's cgroups.
  static Result<Transaction> on(store::Store store, const core::Settings& settings, Log& log,
                                const Timeouts& timeouts);
  /// Logs what was executed, and collects its written values for release_written().
  void note(cgroup::Report report);
  /// Logs and notes what finish() leaves to a later transaction.
  void note_failure(std::string failure);
  /// Notes work that the kernel or systemd refused for the moment.
  void leave_unfinished(Refusal refusal);
  /// Notes that systemd still holds the empty cgroup of a pod, or of a tree (uid "").
  void leave_held(const std::string& uid, const std::string& cgroup);
  /// What the kernel holds of a pod's values, as far as its record before does not tell.
  [[nodiscard]] core::PodWriteSnapshot observe_pod(const core::PodRecord& record,
                                                   const core::PodRecord* before);
  [[nodiscard]] Status write_values(const core::PodRecord& record,
                                    const core::PodWriteSnapshot& snapshot);
  /// The end of finish() and finish_pods().
  [[nodiscard]] Status end();
  // Of root, tiers and what is above (trees.cpp).
  [[nodiscard]] bool is_whole(const std::string& kubepods);
  [[nodiscard]] Status write_trees();
  /// Writes the values of a tree's tiers, or removes it if no pod is left.
  [[nodiscard]] Status write_tree(const core::TreeRecord& tree);
  [[nodiscard]] Status write_tiers(const core::TreeRecord& tree, core::TreeState state);
  [[nodiscard]] core::TierSnapshot observe_tier(const std::string& path,
                                                const core::CgroupValues& wanted,
                                                core::TreeState state);
  [[nodiscard]] core::CgroupValues changed_root_limits(const core::TreeRecord& tree,
                                                       core::TreeState state) const;
  [[nodiscard]] std::optional<CpuShares> observe_share(const core::TreeRecord& tree);
  [[nodiscard]] Status check_io_weight(const std::string& kubepods);
  void check_memory_qos();
  void note_reservation(const std::string& kubepods, bool rewritten);
  /// Removes tiers and root, of which no pod is left, and the cgroups above that podqos has made.
  /// What another program uses stays, and the root with it; then they remain the ones in use.
  [[nodiscard]] Status remove_tree(const std::string& kubepods);

  const core::Settings* settings_;
  Log* log_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cgroup::Machine> machine_;
  core::NodeCapacity capacity_;
  BootSeconds now_;
  core::NodeState before_;  ///< sums and trees when the transaction began
  std::vector<std::string> written_;
  std::vector<std::string> failures_;
  std::vector<Refusal> unfinished_;
  std::vector<std::string> partly_removed_;
  core::TreeState trees_ = core::TreeState::kUnchanged;  ///< all but those of `made_`
  std::vector<std::string> made_;  ///< roots of the trees that this transaction has made
  bool writes_root_limits_ = false;
  bool node_is_reconciled_ = false;
  bool changed_ = false;  ///< begin() or execute() was called
};

}  // namespace podqos::app

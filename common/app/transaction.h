#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/timeouts.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/retry.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/record_plan.h"
#include "common/core/root_choice.h"
#include "common/core/settings.h"
#include "common/store/record_store.h"
#include "common/store/store.h"

namespace podqos::app {

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
  Transaction(const core::Settings& settings, Log& log, std::unique_ptr<store::RecordStore> store,
              std::unique_ptr<cgroup::Machine> machine, core::NodeCapacity capacity);

  /// The effective settings.
  [[nodiscard]] const core::Settings& settings() const { return *settings_; }
  /// The program's log.
  [[nodiscard]] Log& log() const { return *log_; }
  /// The records; of the state directory, which is locked.
  [[nodiscard]] store::RecordStore& store() { return *store_; }
  /// Cgroups, systemd units and processes; its wait budget is that of the transaction.
  [[nodiscard]] cgroup::Machine& machine() { return *machine_; }
  /// The sums of the tiers, the root in use, and the lists of pending and retained pods; written by
  /// finish().
  [[nodiscard]] core::TiersRecord& tiers() { return store_->tiers(); }
  /// Seconds since boot when the transaction began, so that steps of the wall clock have no effect.
  [[nodiscard]] UnixSeconds now() const { return now_; }
  /// The node's memory, swap and CPU, see cgroup::node_capacity().
  [[nodiscard]] const core::NodeCapacity& capacity() const { return capacity_; }
  /// The formula that converts shares to a cgroup v2 weight: configured, or that of the node's
  /// runtime.
  [[nodiscard]] core::WeightFormula formula();
  /// The hierarchies of the controllers; hugetlb is included only if `values` has huge page limits.
  [[nodiscard]] const core::CgroupLayout& layout_for(const core::CgroupValues& values);

  /// The root for podqos's own pods; see core::choose_root(). Removes the root in use if it has to
  /// be replaced, and creates nothing.
  /// @param just_made  see observe_root()
  /// @return the errors of core::choose_root() and core::check_root(); kConflict if the root in use
  ///         must be replaced and cannot be removed.
  [[nodiscard]] Result<std::string> choose_root(core::Driver driver,
                                                const std::optional<std::string>& just_made);
  /// Observes a cgroup that may become the root, or may be podqos's root of which the state was
  /// lost.
  /// @param just_made  cgroup of a container that its runtime has just started: if the root holds
  ///         nothing else, that runtime created the root.
  [[nodiscard]] Result<core::RootSnapshot> observe_root(
      const std::string& root, const std::optional<std::string>& just_made);
  /// True if the state directory, or the record of one pod, was lost while the cgroups still exist:
  /// a marked root that the state does not name, or a pod's cgroup with a copy but no record.
  [[nodiscard]] bool has_lost_state(const std::string& kubepods);
  [[nodiscard]] bool has_lost_record(const core::PodRecord& record);
  /// Creates and marks the root and the tiers, unless pods use them already. Call it before the new
  /// pod is counted.
  [[nodiscard]] Status use_root(const std::string& kubepods);

  /// True if the cgroup has podqos's mark.
  [[nodiscard]] Result<bool> is_marked(const std::string& cgroup);
  /// Records a marked root of which the state was lost as the root in use.
  void record_root(std::string kubepods);
  /// Leaves the root in use to a kubelet if it is the one that kubelets use and the machine has a
  /// kubelet: podqos writes no more values there.
  void leave_root_to_kubelet();
  /// Reports the cgroup of an adopted pod: if it is below "/kubepods" and that is the root in use,
  /// a kubelet has taken it over.
  void note_adopted(const std::string& pod_cgroup);

  /// True if this transaction has recomputed everything after an interrupted one.
  [[nodiscard]] bool recovered() const { return recovered_; }
  /// Notes that everything is being recomputed, so that it is done once per transaction.
  void begin_recovery() { recovered_ = true; }
  /// True once finish() was called.
  [[nodiscard]] bool finished() const { return finished_; }
  /// For a transaction without changes of its own: finishes a recovery if one was begun.
  [[nodiscard]] Status finish_recovery() { return recovered_ && !finished_ ? finish() : Status{}; }

  /// Makes finish() create root and tiers again and write all their values.
  void remake_tree() { tree_ = Tree::kToMake; }

  /// Creates the pod's cgroup, writes all its values, and copies the record to it. Limits that
  /// other programs have set are removed.
  /// @return kBusy if cgroup v1 still counts the quota of a removed child; leave_unwritten()
  ///         retries.
  [[nodiscard]] Status make_pod(core::PodRecord& record);
  /// Writes the values of an existing pod cgroup and copies the record to it. Huge page limits, two
  /// files per page size, are written only if they differ from those of `before`. If the cgroup is
  /// missing, or has no copy because another program created it, this is make_pod().
  [[nodiscard]] Status update_pod(core::PodRecord& record, core::PodRecord before);
  /// Marks the cgroup's values as unknown, so that the next transaction of the pod writes all of
  /// them.
  void mark_unwritten(const std::string& cgroup);
  /// True if mark_unwritten() was called for the cgroup and its values were not written since.
  [[nodiscard]] bool is_unwritten(const std::string& cgroup);
  /// Notes work that the kernel or systemd refused for the moment. The caller retries it after
  /// releasing the lock; see follow_up().
  void leave_unfinished(Error reason) { unfinished_ = std::move(reason); }
  /// Why work was left unfinished; nullopt if none was.
  [[nodiscard]] const std::optional<Error>& unfinished() const { return unfinished_; }

  /// Writes the tiers' values that follow from the sums; a memory limit is not set below usage.
  /// @param make  kYes: also creates root and tiers and writes values that do not change later
  [[nodiscard]] Status apply_tiers(core::Make make);
  /// The tiers' values that follow from the sums, without regard to usage.
  [[nodiscard]] core::TierValues wanted_tiers();

  /// Carries out changes of the records in order, up to the first that fails.
  [[nodiscard]] Status apply(const core::RecordPlan& plan);
  /// Writes the pod's record alone.
  [[nodiscard]] Status save(const core::PodRecord& record);

  /// Writes the tiers' values, or removes tiers and root if no pod is left; sends deferred unit
  /// properties to systemd and clears the mark of an unfinished transaction.
  [[nodiscard]] Status finish();

  /// Executes a plan and logs the changed values at debug level.
  /// @param transient  a refusal after which the plan is executed again, see cgroup::execute()
  [[nodiscard]] Status run(const core::Plan& plan,
                           cgroup::Transient transient = cgroup::Transient::kNone);
  /// Collects changed unit properties and sends them to systemd in finish(). For containers that
  /// run already: if systemd refuses them, nothing is rolled back.
  void defer_unit_changes() { unit_changes_ = cgroup::UnitChanges::kDeferred; }
  /// Logs what was executed, and collects its written values for release_written().
  [[nodiscard]] Status note(Result<cgroup::Report> report);
  /// Calls `remove` until it returns false, systemd no longer holds the empty cgroup, or the wait
  /// budget is used up; in the last case the removal is left unfinished.
  /// @param remove  removes `cgroup` if it is unpopulated; returns true if another attempt may
  ///         remove more
  [[nodiscard]] Status remove_beside_systemd(const std::string& cgroup,
                                             const std::function<Result<bool>()>& remove);
  /// Returns and clears the list of values that run() has written: "PATH/FILE = VALUE".
  [[nodiscard]] std::vector<std::string> release_written() { return std::exchange(written_, {}); }

 private:
  static Result<Transaction> with_store(const core::Settings& settings, Log& log,
                                        store::Store store, const Timeouts& timeouts);
  /// True if the root is untouched and `container` is its only descendant.
  [[nodiscard]] bool holds_only(const std::string& kubepods, const std::string& container);
  /// Writes the pod's values and copies the record to its cgroup.
  [[nodiscard]] Status write_pod(const core::PodRecord& record, const core::CgroupValues& values,
                                 const core::CgroupLayout& layout, core::Make make);
  /// Raises the memory limit in `values` to the cgroup's usage: below it the kernel would invoke
  /// the OOM killer (Documentation/admin-guide/cgroup-v2.rst, memory.max).
  void hold_above_usage(const std::string& cgroup, core::CgroupValues& values);
  /// Copies the record to the cgroup. The copy is only needed if the state directory is lost: a
  /// kernel without the attribute can do without it. An outdated one is cleared: it would restore
  /// the wrong containers.
  [[nodiscard]] core::SetAttribute copy_of(const core::PodRecord& record) const;
  /// Warns if ioWeight has no effect on this kernel: when the root is made, not at each container.
  [[nodiscard]] Status check_io_weight();
  /// Removes the root of the other driver, which a node without pods may leave.
  /// @return kConflict if it cannot be removed.
  [[nodiscard]] Status remove_other_root(core::Driver driver);
  /// Leaves the root in use to a kubelet.
  /// @param kubelet  how it was detected, for the log
  void leave_root_to(std::string_view kubelet);
  /// The first cgroup below the root that is not a tier; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> holder_of(const std::string& kubepods);
  [[nodiscard]] Status write_tiers();
  [[nodiscard]] Status teardown();
  /// Removes the cgroup if it has no children.
  [[nodiscard]] Status remove_unused(const std::string& cgroup);
  void forget_root();

  /// Whether root and tiers must be created in this transaction.
  enum class Tree : std::uint8_t { kAsItWas, kToMake, kJustMade };

  const core::Settings* settings_;
  Log* log_;
  std::unique_ptr<store::RecordStore> store_;
  std::unique_ptr<cgroup::Machine> machine_;
  core::NodeCapacity capacity_;
  UnixSeconds now_;
  std::string saved_uid_;  ///< uid of the record written last, and its text for the copy
  std::string saved_text_;
  std::vector<std::string> written_;
  std::optional<Error> unfinished_;
  Tree tree_ = Tree::kAsItWas;
  cgroup::UnitChanges unit_changes_ = cgroup::UnitChanges::kNow;
  bool recovered_ = false;
  bool finished_ = false;
};

}  // namespace podqos::app

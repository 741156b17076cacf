#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/timeouts.h"
#include "common/base/error.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/store/store.h"

namespace podqos::app {

/// The attribute that marks a cgroup directory at or above the root as made by podqos, and its
/// value.
constexpr const char* kMadeAttribute = "trusted.podqos.made";
constexpr const char* kMade = "1";
/// The attribute of a pod's cgroup that holds a copy of its record.
constexpr const char* kRecordAttribute = "trusted.podqos.record";
/// Stands in it instead while it is uncertain which values the cgroup holds.
constexpr const char* kUnwrittenRecord = "unwritten";

/// One event: everything that is read and written about pods while the lock is held. The object
/// holds the lock.
class Transaction {
 public:
  /// Takes the lock, making the state directory if it is missing.
  static Result<Transaction> open(const core::Settings& settings, Log& log,
                                  const Timeouts& timeouts = {});
  /// The same without making anything; nullopt where there is no state.
  static Result<std::optional<Transaction>> open_existing(const core::Settings& settings, Log& log,
                                                          const Timeouts& timeouts = {});

  [[nodiscard]] const core::Settings& settings() const { return *settings_; }
  [[nodiscard]] Log& log() const { return *log_; }
  [[nodiscard]] store::Store& store() { return store_; }
  [[nodiscard]] cgroup::Cgroupfs& cgroups() { return cgroups_; }
  [[nodiscard]] core::TiersRecord& tiers() { return store_.tiers(); }
  [[nodiscard]] UnixSeconds now() const { return now_; }
  [[nodiscard]] const core::NodeCapacity& capacity() const { return capacity_; }
  [[nodiscard]] core::WeightFormula formula();
  /// Where the controllers are; hugetlb only if the values name a size.
  [[nodiscard]] const core::CgroupLayout& layout_for(const core::CgroupValues& values);

  /// The root that podqos's own pods go below: the one in use as long as pods use it, else
  /// <cgroupRoot>/kubepods. Makes nothing.
  /// @param just_made  cgroup of a container that its runtime has just started: a root that holds
  ///                   nothing else was made by that runtime.
  /// @return kConflict where that root is not podqos's (it exists without podqos's mark, or is
  ///         "/kubepods" and the machine has a kubelet), or the one in use is the other driver's.
  [[nodiscard]] Result<std::string> choose_root(core::Driver driver,
                                                const std::optional<std::string>& just_made);
  /// Signs that the state directory has been lost, or one record of it, while the cgroups live on:
  /// podqos's mark on a root that no state names, a copy on the cgroup of a pod without record.
  [[nodiscard]] bool has_lost_state(const std::string& kubepods);
  [[nodiscard]] bool has_lost_record(const core::PodRecord& record);
  /// Makes and marks the root and the tiers, unless pods use them already. Before the new pod is
  /// counted.
  [[nodiscard]] Status use_root(const std::string& kubepods);

  /// Does the cgroup bear podqos's mark?
  [[nodiscard]] Result<bool> is_marked(const std::string& cgroup);
  /// A root that only the marks on the cgroups tell of is podqos's.
  void learn_root(std::string kubepods);
  /// The root in use is a kubelet's from now on (`reason`: how it shows).
  void yield_root(std::string_view reason);
  /// A pod that lies where podqos has not placed it: below the root that is a kubelet's by its name
  /// it shows that the kubelet is there.
  void note_adopted(const std::string& pod_cgroup);
  /// Has the cgroup the values that the kernel gives a new one?
  [[nodiscard]] bool is_untouched(const std::string& cgroup);

  /// Has this event recomputed everything after an interrupted one?
  [[nodiscard]] bool recovered() const { return recovered_; }
  void begin_recovery() { recovered_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }
  /// For an event that turns out to have nothing to do itself: finishes what recovery began.
  [[nodiscard]] Status finish_recovery() { return recovered_ && !finished_ ? finish() : Status{}; }

  /// Lets finish() make root and tiers again and write all their values.
  void remake_tree() { tree_ = Tree::kToMake; }

  /// Makes the pod's cgroup with all its values and the record's copy.
  [[nodiscard]] Status make_pod(core::PodRecord& record);
  /// For a pod whose cgroup is there: writes its values (limits of huge pages, two files a size,
  /// only if they differ from those of the pod as it was `before`) and the record's copy. A cgroup
  /// without a copy is somebody's new one: it is made as by make_pod().
  [[nodiscard]] Status update_pod(core::PodRecord& record, core::PodRecord before);
  /// For a pod whose values were refused: the next event of it writes all of them.
  void mark_unwritten(const std::string& cgroup);
  [[nodiscard]] bool is_unwritten(const std::string& cgroup);
  /// Something that the kernel or systemd may allow in a moment: an event that has held the lock
  /// for this event comes back to it, see follow_up().
  void leave_unfinished(Error reason) { unfinished_ = std::move(reason); }
  [[nodiscard]] const std::optional<Error>& unfinished() const { return unfinished_; }

  /// Writes the tiers' values as the sums want them, as far as usage allows now.
  [[nodiscard]] Status apply_tiers(core::Make make);
  /// What the rule wants for the tiers, without regard to usage.
  [[nodiscard]] core::TierValues wanted_tiers();

  /// Writes the record, without its index entries.
  [[nodiscard]] Status save(const core::PodRecord& record);

  /// Applies the tiers, or removes tiers and root if no pod is left, and clears the mark.
  [[nodiscard]] Status finish();

  /// Executes a plan and logs what changed at debug level.
  [[nodiscard]] Status run(const core::Plan& plan);
  /// From here on systemd is told what plans have changed when the event finishes, all at once. For
  /// a container that runs already: nothing is taken back where systemd refuses.
  void defer_unit_changes() { unit_changes_ = cgroup::UnitChanges::kDeferred; }
  /// The same for a plan that makes a scope: systemd, which works in its own time, may take the
  /// controllers away once more before it knows of the scope.
  [[nodiscard]] Status run_beside_systemd(const core::Plan& plan);
  /// Calls `remove`, which removes `cgroup` where nothing lives in it and says whether another try
  /// may do more, again for a moment while systemd holds it empty, and leaves it unfinished then:
  /// it lets go of a scope whose last process has gone, and makes and removes its directories, in
  /// its own time, and the next event may be far.
  [[nodiscard]] Status remove_beside_systemd(const std::string& cgroup,
                                             const std::function<Result<bool>()>& remove);
  /// What run() has changed since this was asked last: "PATH/FILE = VALUE".
  [[nodiscard]] std::vector<std::string> release_written() { return std::exchange(written_, {}); }

 private:
  Transaction(const core::Settings& settings, Log& log, store::Store store,
              cgroup::Cgroupfs cgroups, core::NodeCapacity capacity);
  static Result<Transaction> with_store(const core::Settings& settings, Log& log,
                                        store::Store store, const Timeouts& timeouts);
  [[nodiscard]] Result<bool> is_available(const std::string& kubepods,
                                          const std::optional<std::string>& just_made);
  [[nodiscard]] Status check_free(const std::string& root,
                                  const std::optional<std::string>& just_made);
  [[nodiscard]] Status mark_made(const std::vector<std::string>& paths);
  [[nodiscard]] bool holds_only(const std::string& kubepods, const std::string& container);
  [[nodiscard]] Status write_pod(const std::string& cgroup, const core::CgroupValues& values,
                                 const core::CgroupLayout& layout, core::Make make);
  /// A limit is not lowered below what is used: the kernel would kill for it.
  void hold_above_usage(const std::string& cgroup, core::CgroupValues& values);
  [[nodiscard]] Status copy_record(const core::PodRecord& record);
  [[nodiscard]] bool has_pods();
  [[nodiscard]] bool is_held_by_systemd(const std::string& cgroup);
  /// A node without pods may change its driver: removes what is left of the root for the other one.
  [[nodiscard]] Status leave_root(core::Driver driver);
  /// The first cgroup below the root that is not one of the tiers; nullopt: there is none.
  [[nodiscard]] std::optional<std::string> holder_of(const std::string& kubepods);
  [[nodiscard]] Status write_tiers();
  [[nodiscard]] Status teardown();
  [[nodiscard]] Status remove_unused(const std::string& cgroup);
  void forget_root();

  /// Root and tiers in this event: what it has just made need not be made again.
  enum class Tree : std::uint8_t { kAsItWas, kToMake, kJustMade };

  const core::Settings* settings_;
  Log* log_;
  store::Store store_;
  cgroup::Cgroupfs cgroups_;
  core::NodeCapacity capacity_;
  UnixSeconds now_;
  std::string saved_uid_;  ///< the record that was written last, and its text for the copy
  std::string saved_text_;
  std::vector<std::string> written_;
  std::optional<Error> unfinished_;
  Tree tree_ = Tree::kAsItWas;
  cgroup::UnitChanges unit_changes_ = cgroup::UnitChanges::kNow;
  bool recovered_ = false;
  bool finished_ = false;
};

}  // namespace podqos::app

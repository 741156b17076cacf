#include "common/app/reconcile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "common/app/child_cgroups.h"
#include "common/app/departure.h"
#include "common/app/follow_up.h"
#include "common/app/held_tiers.h"
#include "common/app/known_container.h"
#include "common/app/monitor.h"
#include "common/app/stray.h"
#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/counting.h"
#include "common/core/driver.h"
#include "common/core/root_choice.h"
#include "common/core/whole_pod.h"

namespace podqos::app {

namespace {

using Records = std::map<std::string, core::PodRecord, std::less<>>;

/// One recomputation of everything, under the lock.
class Recomputation {
 public:
  explicit Recomputation(Transaction& transaction, const EngineList* list = nullptr)
      : transaction_(transaction), list_(list) {}

  Result<ReconcileReport> run(Warnings warnings = Warnings::kLogged) {
    if (auto done = find_root(); !done) return fail(std::move(done).error());
    if (auto done = load(); !done) return fail(std::move(done).error());
    if (auto done = transaction_.store().begin(); !done) return fail(std::move(done).error());
    if (auto done = restore(); !done) return fail(std::move(done).error());
    stop_stray_units();
    if (auto done = evaluate(); !done) return fail(std::move(done).error());
    regrant();
    if (auto done = apply(); !done) return fail(std::move(done).error());
    if (auto done = clean_index(); !done) return fail(std::move(done).error());
    transaction_.store().recomputed();
    for (const std::string& line : report_.changes)
      transaction_.log().info(line);
    if (warnings == Warnings::kLogged) {
      for (const std::string& line : report_.warnings)
        transaction_.log().warning(line);
    }
    for (const auto* lines : {&report_.unreadable, &report_.failed}) {
      for (const std::string& line : *lines)
        transaction_.log().error(line);
    }
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
  /// If the state directory was lost, the mark on the cgroup tells which root is podqos's.
  Status find_root() {
    core::TiersRecord& tiers = transaction_.tiers();
    for (const std::string& root : core::possible_roots(transaction_.settings().cgroup_root)) {
      if (!tiers.kubepods.empty()) break;
      auto snapshot = transaction_.observe_root(root, std::nullopt);
      if (!snapshot) return fail(std::move(snapshot).error());
      if (core::is_own_root(*snapshot)) transaction_.record_root(root);
    }
    if (tiers.kubepods.empty()) return {};
    if (tiers.top.empty()) transaction_.record_root(tiers.kubepods);
    transaction_.leave_root_to_kubelet();
    transaction_.remake_tree();
    return {};
  }

  Status load() {
    auto uids = transaction_.store().pod_uids();
    if (!uids) return fail(std::move(uids).error());
    for (const std::string& uid : *uids) {
      auto record = transaction_.store().pod(uid);
      // A record of a newer version is an error unless the sums must be recomputed; then only that
      // pod fails.
      const bool newer = !record && record.error().code == ErrorCode::kUnsupported;
      if (newer && transaction_.store().dirty()) {
        report_.unreadable.push_back(record.error().message);
        unreadable_.insert(uid);
        continue;
      }
      if (!record) return fail(std::move(record).error());
      if (*record) records_.emplace(uid, std::move(**record));
    }
    return {};
  }

  /// Pod cgroups below podqos's root without a record: restored from their copy, or removed.
  Status restore() {
    const std::string& kubepods = transaction_.tiers().kubepods;
    if (kubepods.empty()) return {};
    for (const auto qos_class :
         {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
      const std::string tier = core::tier_path(kubepods, qos_class);
      auto children = transaction_.machine().children(tier);
      if (!children) return fail(std::move(children).error());
      for (const std::string& child : *children) {
        const std::string path = cat(tier, "/", child);
        const auto pod = core::find_pod_cgroup(path);
        if (!pod || pod->pod_path != path) continue;
        if (auto done = restore_pod(path, pod->uid); !done)
          report_.failed.push_back(std::move(done).error().message);
      }
    }
    return {};
  }

  Status restore_pod(const std::string& cgroup, const std::string& uid) {
    if (unreadable_.contains(uid)) return {};
    const auto known = records_.find(uid);
    if (known != records_.end() && known->second.cgroup == cgroup) return {};
    auto populated = holds_container(transaction_, cgroup);
    if (!populated) return fail(std::move(populated).error());
    const auto copy = transaction_.machine().attribute(cgroup, kRecordAttribute);
    if (!*populated) {
      // podqos does not remove what it did not create.
      if (!copy || !*copy) return {};
      report_.changes.push_back(cat("removed cgroup ", cgroup, " of a pod that has ended"));
      if (auto done = remove_empty_children(transaction_, cgroup); !done) return done;
      return transaction_.run(core::plan_removal(cgroup));
    }
    auto record = copy && *copy ? codec::parse_pod_record(**copy)
                                : fail(ErrorCode::kNotFound, "cgroup has no copy of the record");
    if (known != records_.end() || !record || record->pod.uid != uid || record->cgroup != cgroup) {
      report_.warnings.push_back(cat("cgroup ", cgroup,
                                     " contains processes that podqos did not place: ",
                                     "restart its containers, or move them elsewhere"));
      return {};
    }
    report_.changes.push_back(
        cat("pod ", uid, " restored from the copy of its record in its cgroup"));
    ++report_.repaired;
    record->released_at.reset();
    records_.emplace(uid, std::move(*record));
    return {};
  }

  /// Stops slices of ended pods that systemd still lists although record and cgroup are gone.
  void stop_stray_units() {
    const std::string& kubepods = transaction_.tiers().kubepods;
    if (kubepods.empty() || core::driver_of(kubepods) == core::Driver::kCgroupfs) return;
    if (transaction_.tiers().yielded) return;
    std::string pattern{core::unit_of(kubepods)};
    pattern.replace(pattern.rfind('.'), std::string::npos, "-*.slice");
    auto units = transaction_.machine().learn_units(pattern);
    if (!units) {
      report_.failed.push_back(std::move(units).error().message);
      return;
    }
    for (const cgroup::ListedUnit& unit : *units) {
      auto path = core::expand_slice(unit.name);
      const auto pod = path ? core::find_pod_cgroup(*path) : std::nullopt;
      const bool ours = pod && pod->pod_path == *path && !records_.contains(pod->uid) &&
                        !unreadable_.contains(pod->uid);
      if (!ours || unit.active_state == "inactive" || transaction_.machine().exists(*path))
        continue;
      report_.changes.push_back(cat("stopped unit ", unit.name, " of a pod that has ended"));
      if (auto done = transaction_.run({core::StopUnit{*path}}); !done)
        report_.failed.push_back(std::move(done).error().message);
    }
  }

  /// Releases ended pods and sums up the live ones.
  Status evaluate() {
    core::TiersRecord& tiers = transaction_.tiers();
    tiers.sums = {};
    tiers.pending.clear();
    std::erase_if(tiers.retained,
                  [&](const core::RetainedEntry& entry) { return !records_.contains(entry.uid); });
    for (auto at = records_.begin(); at != records_.end();) {
      const bool alive = refresh(at->second);
      if (alive) {
        ++at;
        continue;
      }
      if (auto done = end(std::move(at->second)); !done) return done;
      at = records_.erase(at);
    }
    return {};
  }

  /// Removes ended containers from a record and counts the others; false if none is left.
  bool refresh(core::PodRecord& record) {
    const auto ended = std::ranges::stable_partition(
        record.containers, [&](core::ContainerRecord& container) { return is_live(container); });
    for (const core::ContainerRecord& container : ended) {
      report_.changes.push_back(
          cat("pod ", record.pod.uid, ": container ", printable(container.id), " has ended"));
      if (!is_replaced(transaction_.machine(), record, container))
        core::forget_container(record, container.name);
    }
    record.containers.erase(ended.begin(), ended.end());
    if (record.containers.empty()) {
      const auto populated = holds_container(transaction_, record.cgroup);
      if (record.adopted || !populated || !*populated) return false;
      report_.warnings.push_back(
          cat("cgroup ", record.cgroup, " of pod ", record.pod.uid,
              " contains processes but its containers have ended: stop the processes, then run "
              "podqosctl reconcile"));
    }
    record.released_at.reset();
    for (const core::ContainerRecord& container : record.containers) {
      if (const auto stray = describe_stray(transaction_.machine(), record, container))
        report_.warnings.push_back(cat("pod ", record.pod.uid, ": ", *stray));
      if (container.state != core::ContainerState::kPending) continue;
      transaction_.tiers().pending.push_back({.uid = record.pod.uid,
                                              .id = container.id,
                                              .bundle = container.bundle,
                                              .pid = container.pid,
                                              .start_time = container.start_time});
    }
    core::add_pod(transaction_.tiers().sums, record);
    ++report_.pods;
    report_.containers += static_cast<std::int64_t>(record.containers.size());
    return true;
  }

  bool is_live(core::ContainerRecord& container) {
    const bool runs = lives(transaction_.machine(), container);
    if (list_ == nullptr || container.state != core::ContainerState::kPending)
      return runs || confirm_from_cgroup(transaction_, container);
    if (list_->ids.contains(container.id)) {
      if (confirm_from_cgroup(transaction_, container)) return true;
      container.pid = list_->listener;
      container.start_time = list_->listener_start;
      return true;
    }
    const bool own = list_->is_listener(container.pid, container.start_time);
    return (!own && runs) || confirm_from_cgroup(transaction_, container);
  }

  Status end(core::PodRecord record) {
    if (!record.released_at) {
      ++report_.released;
      report_.changes.push_back(cat("pod ", record.pod.uid, " released"));
      record.released_at = transaction_.now();
    }
    return end_pod(transaction_, std::move(record));
  }

  /// Grants freed requests to pods that claimed more than was available, after taking back what
  /// pods may no longer claim or an ended container had backed.
  void regrant() {
    // First take back, so that it is available to the others.
    for (auto& [uid, record] : records_) {
      if (record.adopted) continue;
      const core::Grants most =
          core::grants_for(record, {}, transaction_.settings(), transaction_.capacity());
      core::remove_pod(transaction_.tiers().sums, record);
      record.granted.cpu = std::min(record.granted.cpu, most.granted.cpu);
      record.granted.memory = std::min(record.granted.memory, most.granted.memory);
      core::add_pod(transaction_.tiers().sums, record);
    }
    for (auto& [uid, record] : records_) {
      if (record.adopted) continue;
      core::remove_pod(transaction_.tiers().sums, record);
      core::grant_requests(record, transaction_.tiers().sums, transaction_.settings(),
                           transaction_.capacity());
      core::add_pod(transaction_.tiers().sums, record);
    }
  }

  /// Writes all records and values. If the kernel refuses a pod's values, or its record is too
  /// large, only that pod fails.
  Status apply() {
    for (auto& [uid, record] : records_) {
      auto done = store_record(uid, record);
      if (!done && done.error().code != ErrorCode::kTooLarge) return done;
      if (done && !record.adopted) {
        done = transaction_.make_pod(record);
        if (!done) leave_unwritten(transaction_, record, done.error());
        if (!done && done.error().code == ErrorCode::kBusy) done = {};
      }
      if (!done) {
        report_.failed.push_back(cat("pod ", uid, ": ", done.error().message));
      }
      for (const std::string& line : transaction_.release_written())
        report_.changes.push_back(cat("pod ", uid, ": ", line));
    }
    return {};
  }

  Status store_record(const std::string& uid, const core::PodRecord& record) {
    for (const core::ContainerRecord& container : record.containers) {
      auto done = transaction_.store().put_container(
          {.id = container.id, .bundle = container.bundle, .uid = uid});
      if (!done) return done;
    }
    return transaction_.save(record);
  }

  /// Erases index entries of containers that have no record.
  Status clean_index() {
    auto entries = transaction_.store().all_containers();
    if (!entries) return fail(std::move(entries).error());
    for (const core::IndexEntry& entry : *entries) {
      const auto record = records_.find(entry.uid);
      const bool known =
          record != records_.end() &&
          std::ranges::any_of(record->second.containers, [&](const core::ContainerRecord& c) {
            return c.id == entry.id && c.bundle == entry.bundle;
          });
      if (known || unreadable_.contains(entry.uid)) continue;
      if (auto done = transaction_.store().erase_container(entry); !done) return done;
    }
    return {};
  }

  Transaction& transaction_;
  const EngineList* list_;
  Records records_;
  std::set<std::string, std::less<>> unreadable_;
  ReconcileReport report_;
};

constexpr int kLoweringSteps = 20;
constexpr std::chrono::milliseconds kLoweringPause{20};

}  // namespace

Result<ReconcileReport> recompute(Transaction& transaction, Warnings warnings) {
  return Recomputation{transaction}.run(warnings);
}

Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list) {
  Recomputation recomputation{transaction, &list};
  transaction.begin_recovery();
  if (auto report = recomputation.run(); !report) return fail(std::move(report).error());
  return recomputation.live();
}

Status recover(Transaction& transaction) {
  if (!transaction.store().dirty() || transaction.recovered()) return {};
  transaction.log().warning(
      "an earlier transaction was interrupted: recomputing all records and values");
  transaction.begin_recovery();
  auto report = recompute(transaction);
  if (!report) return fail(std::move(report).error());
  return {};
}

Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log, Warnings warnings) {
  ReconcileReport report;
  std::vector<HeldTier> held;
  std::optional<Error> unfinished;
  {
    auto transaction = Transaction::open(settings, log);
    if (!transaction) return fail(std::move(transaction).error());
    auto recomputed = recompute(*transaction, warnings);
    if (!recomputed) return fail(std::move(recomputed).error());
    report = std::move(*recomputed);
    if (auto done = transaction->finish(); !done) return fail(std::move(done).error());
    for (const std::string& line : transaction->release_written()) {
      log.info(cat("tiers: ", line));
      report.changes.push_back(cat("tiers: ", line));
    }
    for (const std::string& incident : transaction->store().incidents())
      report.warnings.push_back(incident);
    held = held_tiers(*transaction);
    unfinished = transaction->unfinished();
  }
  if (auto done = follow_up(settings, log, std::move(unfinished)); !done)
    report.failed.push_back(done.error().message);
  for (int step = 0; step < kLoweringSteps && !held.empty(); ++step) {
    reclaim(held);
    std::this_thread::sleep_for(kLoweringPause);
    auto transaction = Transaction::open(settings, log);
    if (!transaction) return fail(std::move(transaction).error());
    if (auto done = transaction->finish(); !done) return fail(std::move(done).error());
    held = held_tiers(*transaction);
  }
  for (const HeldTier& tier : held) {
    report.warnings.push_back(cat("cgroup ", tier.path, ": memory limit is ", tier.excess.value(),
                                  " bytes above the rule because the tier's usage is"));
  }
  return report;
}

}  // namespace podqos::app

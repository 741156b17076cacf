#include "common/app/transaction.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "common/app/container_start.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/decide_departure.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_values.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

/// The shorter of lockDeadline and the caller's time limit applies to the lock.
store::StoreOptions store_options(const core::Settings& settings, const Timeouts& timeouts) {
  const std::chrono::milliseconds configured{settings.lock_deadline_ms};
  return {.path = settings.state_dir,
          .lock_timeout = std::min(configured, timeouts.lock),
          .deadline = timeouts.lock < configured
                          ? std::min(timeouts.deadline, timeouts.clock->now() + timeouts.lock)
                          : timeouts.deadline,
          .clock = timeouts.clock};
}

/// The error of a removal after which the cgroup remains.
Error describe_left(const std::string& cgroup, const Result<cgroup::Removal>& removal) {
  std::string cause = "processes, mounts or cgroups in it keep it";
  if (!removal) {
    cause = removal.error().message;
  } else if (!removal->report.ignored.empty()) {
    cause = cat(removal->report.ignored.front(), ": ", cause);
  }
  return {removal ? ErrorCode::kConflict : removal.error().code,
          cat("cgroup ", cgroup, " of the ended pod is not removed: ", cause,
              ": a later transaction will retry it; podqosctl reconcile does at once")};
}

/// The ids of a record's containers that another record lacks.
/// @param other  nullptr for one that lacks all
std::vector<std::string_view> ids_beyond(const core::PodRecord& record,
                                         const core::PodRecord* other) {
  std::vector<std::string_view> ids;
  for (const core::ContainerRecord& container : record.containers) {
    const bool has = other != nullptr && std::ranges::count(other->containers, container.id,
                                                            &core::ContainerRecord::id) != 0;
    if (!has) ids.emplace_back(container.id);
  }
  return ids;
}

/// The copy is only needed if the state directory is lost: a kernel without the attribute can do
/// without it.
core::SetAttribute copy_of(store::Store& store, const core::PodRecord& record) {
  return {.path = record.cgroup,
          .name = core::kRecordAttribute,
          .value = store.text_of(record),
          .otherwise = ""};
}

/// What other programs, or settings of before, may have left in a pod's cgroup.
void observe_changes(cgroup::Machine& machine, const core::PodRecord& record,
                     const core::TreeRecord* tree, core::PodWriteSnapshot& snapshot) {
  snapshot.may_differ = true;
  snapshot.has_io_weight = cgroup::has_io_weight(machine, record.cgroup);
  snapshot.has_eviction =
      core::is_critical(record.pod) && cgroup::has_eviction(machine, record.cgroup);
  snapshot.has_reservation = tree != nullptr && tree->reserves.value_or(false);
}

}  // namespace

Transaction::Transaction(const core::Settings& settings, Log& log,
                         std::unique_ptr<store::Store> store,
                         std::unique_ptr<cgroup::Machine> machine, core::NodeCapacity capacity)
    : settings_(&settings),
      log_(&log),
      store_(std::move(store)),
      machine_(std::move(machine)),
      capacity_(capacity),
      now_(sys::seconds_since_boot()) {
  before_.sums = node().sums;
  before_.trees = node().trees;
}

Result<Transaction> Transaction::on(store::Store store, const core::Settings& settings, Log& log,
                                    const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.keep = true,
                                                      .systemd = {.deadline = timeouts.systemd,
                                                                  .end = timeouts.deadline,
                                                                  .clock = timeouts.clock}}));
  PODQOS_ASSIGN(auto capacity, cgroup::node_capacity(settings));
  Transaction transaction{settings, log, std::make_unique<store::Store>(std::move(store)),
                          std::make_unique<cgroup::Cgroupfs>(std::move(cgroups)), capacity};
  transaction.keep_settings();
  return transaction;
}

Result<Transaction> Transaction::open(const core::Settings& settings, Log& log,
                                      const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto store, store::Store::open(store_options(settings, timeouts)));
  return on(std::move(store), settings, log, timeouts);
}

Result<std::optional<Transaction>> Transaction::open_existing(const core::Settings& settings,
                                                              Log& log, const Timeouts& timeouts) {
  auto store = store::Store::open(store_options(settings, timeouts), store::Opening::kExisting);
  if (!store && store.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!store) return fail(std::move(store).error());
  PODQOS_ASSIGN(auto transaction, on(*std::move(store), settings, log, timeouts));
  return transaction;
}

void Transaction::keep_settings() {
  if (node().settings == *settings_) return;
  node().settings = *settings_;
  changed_ = true;
}

core::WeightFormula Transaction::formula() {
  return core::weight_formula(*settings_, node().weight_formula);
}

const core::CgroupLayout& Transaction::layout_for(const core::CgroupValues& values) {
  return values.hugepages.empty() ? machine_->layout_without_hugepages() : machine_->layout();
}

void Transaction::note(cgroup::Report report) {
  for (const std::string& line : report.written)
    log_->debug(cat("wrote ", line));
  for (const std::string& line : report.ignored)
    log_->debug(cat("ignored refused write: ", line));
  const bool first = before_.sums == core::TierSums{};  // later `podqosctl status` tells
  for (const std::string& line : report.refused)
    first ? log_->warning(line) : log_->debug(line);
  std::ranges::move(report.written, std::back_inserter(written_));
}

void Transaction::log_uncertain(std::string_view uid, const Status& done,
                                std::string_view context) {
  if (done) return;
  store_->leave_unfinished(uid);
  log_->error(cat(context, done.error().message));
}

Status Transaction::begin(std::string_view uid) {
  changed_ = true;
  return store_->begin(uid);
}

Status Transaction::save(const core::PodRecord& record, const core::PodRecord* before) {
  changed_ = true;
  std::vector<std::string> names;
  for (const std::string_view id : ids_beyond(record, before))
    names.push_back(store::index_name(id));
  PODQOS_TRY(store_->put_pod(record, names));
  if (before == nullptr) return {};
  for (const std::string_view id : ids_beyond(*before, &record))
    PODQOS_TRY(store_->erase_entry({.name = store::index_name(id), .uid = record.pod.uid}));
  return {};
}

Status Transaction::index(const core::PodRecord& record) {
  changed_ = true;
  PODQOS_TRY(store_->put_row(record));
  for (const core::ContainerRecord& container : record.containers)
    PODQOS_TRY(store_->put_entry({.name = store::index_name(container.id), .uid = record.pod.uid}));
  return {};
}

Status Transaction::erase(const core::PodRecord& record) {
  changed_ = true;
  PODQOS_TRY(store_->erase_pod(record.pod.uid));
  for (const std::string_view id : ids_beyond(record, nullptr))
    PODQOS_TRY(store_->erase_entry({.name = store::index_name(id), .uid = record.pod.uid}));
  return {};
}

Status Transaction::execute(const core::Plan& plan) {
  changed_ = true;
  PODQOS_ASSIGN(auto report, machine_->execute(plan));
  note(std::move(report));
  return {};
}

void Transaction::leave_unfinished(Refusal refusal) {
  std::erase_if(unfinished_, [&](const Refusal& other) { return other.uid == refusal.uid; });
  unfinished_.push_back(std::move(refusal));
}

void Transaction::leave_held(const std::string& uid, const std::string& cgroup) {
  leave_unfinished(
      {.uid = uid,
       .error = {ErrorCode::kBusy, cat(cgroup, ": systemd still holds the empty cgroup")}});
}

core::PodWriteSnapshot Transaction::observe_pod(const core::PodRecord& record,
                                                const core::PodRecord* before) {
  core::PodWriteSnapshot snapshot;
  if (before != nullptr && cgroup::is_written(*machine_, record.cgroup)) snapshot.written = *before;
  if (trees_ == core::TreeState::kMissing || (!snapshot.written && machine_->exists(record.cgroup)))
    observe_changes(*machine_, record, core::find_tree(node(), record.cgroup), snapshot);
  return snapshot;
}

Status Transaction::write_pod(const core::PodRecord& record, const core::PodRecord* before) {
  return write_values(record, observe_pod(record, before));
}

Status Transaction::write_values(const core::PodRecord& record,
                                 const core::PodWriteSnapshot& snapshot) {
  PODQOS_ASSIGN(auto write, core::decide_pod_write(record, snapshot, *settings_));
  if (write.may_cut) {
    const auto usage = cgroup::usage_above(*machine_, record.cgroup, *write.values.memory_limit);
    if (const auto notice = core::hold_above_usage(write, record.cgroup, usage))
      log_->info(*notice);
  }
  const core::CgroupLayout& layout =
      write.hugepages ? machine_->layout() : machine_->layout_without_hugepages();
  const bool counts_removed = write.make == core::Cgroup::kCreate &&
                              layout.cpu == core::CgroupVersion::kV1 &&
                              core::driver_of(record.cgroup) == core::Driver::kCgroupfs;
  core::Plan plan = core::plan_pod(record.cgroup, write.values, layout, formula(), write.make);
  for (const core::ContainerRecord& container : record.containers) {
    if (!write.values.oomd_avoid || container.state != core::ContainerState::kLive) continue;
    std::ranges::move(
        plan_preference(*machine_, container, {.oomd_avoid = write.values.oomd_avoid}),
        std::back_inserter(plan));
  }
  core::SetAttribute copy = copy_of(*store_, record);
  const auto held = trees_ == core::TreeState::kMissing
                        ? machine_->attribute(record.cgroup, core::kRecordAttribute)
                        : std::nullopt;
  if (!held || *held != copy.value) plan.emplace_back(std::move(copy));
  changed_ = true;
  auto report = counts_removed ? machine_->execute_with_quota(plan) : machine_->execute(plan);
  if (report) {
    note(std::move(*report));
    return {};
  }
  // Another program has removed the cgroup, or has made it idle: then it refuses a weight.
  const ErrorCode code = report.error().code;
  const bool changed = code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument;
  if (changed && write.make == core::Cgroup::kExists) return write_pod(record, nullptr);
  return fail(std::move(report).error());
}

void Transaction::renew_copy(const core::PodRecord& record) {
  if (record.kubelets_own || record.due) return;
  static_cast<void>(execute({copy_of(*store_, record)}).has_value());
}

Status Transaction::postpone(core::PodRecord& record, const Error& refused) {
  const bool busy = refused.code == ErrorCode::kBusy;
  record.due = busy ? now_ : core::retry_at(now_, *settings_);
  core::SetAttribute copy = copy_of(*store_, record);
  copy.value.insert(0, core::kUnwrittenRecord);
  copy.otherwise = core::kUnwrittenRecord;
  // Without support for the attribute, each transaction writes all values anyway.
  static_cast<void>(execute({std::move(copy)}).has_value());
  if (busy) leave_unfinished({.uid = record.pod.uid, .error = refused});
  return save(record, &record);
}

Result<std::optional<Error>> Transaction::write_or_postpone(core::PodRecord& record,
                                                            const core::PodRecord* before) {
  auto written = write_pod(record, before);
  if (written) return std::nullopt;
  PODQOS_TRY(postpone(record, written.error()));
  return std::move(written).error();
}

void Transaction::remove_children(const cgroup::RemoveChildren& children) {
  changed_ = true;
  auto report = cgroup::remove_children(*machine_, children);
  if (report) {
    note(std::move(*report));
  } else {  // Where it matters, the kernel refuses the pod's values.
    log_->warning(cat("cgroup ", children.cgroup,
                      ": what earlier containers left stays there: ", report.error().message));
  }
}

Result<std::optional<Error>> Transaction::remove_pod(core::PodRecord record,
                                                     const core::PodRecord& before) {
  const std::string& uid = record.pod.uid;
  PODQOS_TRY(begin(uid));
  auto removal = cgroup::remove_pod(*machine_, record.cgroup);
  const auto removed = removal ? removal->removed : cgroup::Removed::kInUse;
  std::optional<Error> in_use;
  if (removed == cgroup::Removed::kInUse) in_use = describe_left(record.cgroup, removal);
  if (removal) note(std::move(removal->report));
  if (removed == cgroup::Removed::kGone) {
    PODQOS_TRY(erase(before));
    return in_use;
  }
  if (removed == cgroup::Removed::kPartly) partly_removed_.push_back(uid);
  // A cgroup that systemd holds is released in a moment.
  const bool held = removed == cgroup::Removed::kHeldBySystemd;
  if (held) leave_held(uid, record.cgroup);
  record.due = held ? now_ : core::retry_at(now_, *settings_);
  PODQOS_TRY(save(record, &before));
  return in_use;
}

void Transaction::note_failure(std::string failure) {
  failure += ": a later transaction or podqosctl reconcile will retry it";
  log_->error(failure);
  failures_.push_back(std::move(failure));
}

Status Transaction::finish() {
  PODQOS_TRY(write_trees());
  return end();
}

Status Transaction::finish_pods() {
  for (core::TreeRecord& tree : node().trees) {
    const core::TreeRecord* old = core::tree_at(before_, tree.kubepods);
    if (remakes_trees() || old == nullptr || old->sums != tree.sums) tree.unfinished = true;
  }
  return end();
}

Status Transaction::end() {
  if (machine_->defers_unit_changes()) {
    machine_->defer_unit_changes(false);
    if (auto done = execute({}); !done)
      note_failure(cat("systemd does not know all new values: ", done.error().message));
  }
  for (const std::string& incident : store_->incidents())
    log_->error(incident);
  return store_->commit();
}

}  // namespace podqos::app

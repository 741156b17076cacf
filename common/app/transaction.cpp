#include "common/app/transaction.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "common/app/granting.h"
#include "common/app/root.h"
#include "common/base/overloaded.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/io_weight.h"
#include "common/cgroup/node.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/cgroup/removal.h"
#include "common/cgroup/retry.h"
#include "common/codec/record_json.h"
#include "common/core/attributes.h"
#include "common/core/counting.h"
#include "common/core/cut_requests.h"
#include "common/core/departure.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/core/pod_write.h"
#include "common/core/root_plan.h"
#include "common/core/tree.h"
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

/// The outcome alone of a plan of which nothing is left to later transactions.
Status status_of(Result<std::vector<Refusal>> done) {
  return done ? Status{} : fail(std::move(done).error());
}

/// The error of a removal that waits for systemd.
Error describe_held(const std::string& cgroup) {
  return {ErrorCode::kBusy, cat(cgroup, ": systemd still holds the empty cgroup")};
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

}  // namespace

Transaction::Transaction(const core::Settings& settings, Log& log,
                         std::unique_ptr<store::RecordStore> store,
                         std::unique_ptr<cgroup::Machine> machine, core::NodeCapacity capacity)
    : settings_(&settings),
      log_(&log),
      store_(std::move(store)),
      machine_(std::move(machine)),
      capacity_(capacity),
      now_(sys::seconds_since_boot()) {
  before_.sums = tiers().sums;
  before_.trees = tiers().trees;
}

Result<Transaction> Transaction::with_store(const core::Settings& settings, Log& log,
                                            store::Store store, const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.memory = &store.directory(),
                                                      .systemd_answer = timeouts.systemd,
                                                      .systemd_end = timeouts.deadline,
                                                      .clock = timeouts.clock}));
  PODQOS_ASSIGN(auto capacity, cgroup::node_capacity(settings));
  return Transaction{settings, log, std::make_unique<store::Store>(std::move(store)),
                     std::make_unique<cgroup::Cgroupfs>(std::move(cgroups)), capacity};
}

Result<Transaction> Transaction::open(const core::Settings& settings, Log& log,
                                      const Timeouts& timeouts) {
  auto store = store::Store::open(store_options(settings, timeouts));
  if (!store) return fail(std::move(store).error());
  return with_store(settings, log, std::move(*store), timeouts);
}

Result<std::optional<Transaction>> Transaction::open_existing(const core::Settings& settings,
                                                              Log& log, const Timeouts& timeouts) {
  auto store = store::Store::open_existing(store_options(settings, timeouts));
  if (!store) {
    if (store.error().code == ErrorCode::kNotFound) return std::nullopt;
    return fail(std::move(store).error());
  }
  PODQOS_ASSIGN(auto transaction, with_store(settings, log, std::move(*store), timeouts));
  return std::optional<Transaction>{std::move(transaction)};
}

core::WeightFormula Transaction::formula() {
  return core::weight_formula(*settings_, tiers().weight_formula);
}

const core::CgroupLayout& Transaction::layout_for(const core::CgroupValues& values) {
  return values.hugepages.empty() ? machine_->layout_without_hugepages() : machine_->layout();
}

void Transaction::note(cgroup::Report report) {
  log_report(*log_, report);
  const bool first = before_.sums == core::TierSums{};  // later `podqosctl status` tells
  for (const std::string& line : report.refused)
    first ? log_->warning(line) : log_->debug(line);
  std::ranges::move(report.written, std::back_inserter(written_));
}

Result<core::WritePod> Transaction::plan_pod(const core::PodRecord& record,
                                             const std::optional<core::PodRecord>& before,
                                             core::IfRefused if_refused) {
  core::PodWriteSnapshot snapshot{.usage_above = [&](Bytes limit) {
    return cgroup::usage_above(*machine_, record.cgroup, limit);
  }};
  if (before && cgroup::is_written(*machine_, record.cgroup)) snapshot.written = *before;
  if (trees_ == core::Tree::kToMake)
    snapshot.has_io_weight = cgroup::has_io_weight(*machine_, record.cgroup);
  PODQOS_ASSIGN(auto write, core::decide_pod_write(record, snapshot, *settings_));
  if (!write.notice.empty()) log_->info(write.notice);
  // A weight would enable the controller in the kubelet's root.
  const core::TreeRecord* tree = core::find_tree(tiers(), record.cgroup);
  if (tree != nullptr && tree->yielded) write.values.io_weight.reset();
  const core::CgroupLayout& layout =
      write.hugepages ? machine_->layout() : machine_->layout_without_hugepages();
  const bool counts_removed = layout.cpu == core::CgroupVersion::kV1 &&
                              core::driver_of(record.cgroup) == core::Driver::kCgroupfs;
  return core::WritePod{
      .uid = record.pod.uid,
      .cgroup = record.cgroup,
      .make = write.make,
      .plan = core::plan_pod(record.cgroup, write.values, layout, formula(), write.make),
      .transient = counts_removed ? core::Transient::kQuota : core::Transient::kNone,
      .if_refused = if_refused,
      .retry_at = core::retry_at(now_, *settings_)};
}

Result<std::vector<Refusal>> Transaction::execute(const core::EventPlan& plan) {
  std::vector<Refusal> refused;
  for (const core::EventStep& step : plan) {
    PODQOS_TRY(run(step, refused));
  }
  return refused;
}

Status Transaction::execute(const core::Execute& step) {
  PODQOS_ASSIGN(auto report, cgroup::execute(*machine_, step.plan, unit_changes_, step.transient));
  note(std::move(report));
  return {};
}

Status Transaction::run(const core::EventStep& step, std::vector<Refusal>& refused) {
  changed_ = true;
  const Overloaded run_step{
      [&](const core::SetMark&) { return store_->begin(); },
      [&](const core::SaveTiers&) { return store_->checkpoint(); },
      [&](const core::SaveRecord& s) { return save(s.record); },
      [&](const core::EraseRecord& s) {
        core::forget_cut(tiers(), s.uid);
        return store_->erase_pod(s.uid);
      },
      [&](const core::SaveIndexEntry& s) { return store_->put_container(s.entry); },
      [&](const core::EraseIndexEntry& s) { return store_->erase_container(s.entry); },
      [&](const core::Execute& s) { return execute(s); },
      [&](const core::MakeTree& s) {
        auto done = execute(core::Execute{s.plan});
        if (done) made_.push_back(s.kubepods);
        return done;
      },
      [&](const core::RemoveTree& s) { return remove(s); },
      [&](const core::RemoveChildren& s) -> Status {
        auto report = cgroup::remove_children(*machine_, s);
        if (report) {
          note(std::move(*report));
        } else {  // Where it matters, the kernel refuses the pod's values.
          log_->warning(cat("cgroup ", s.cgroup, ": what earlier containers left stays there: ",
                            report.error().message));
        }
        return {};
      },
      [&](const core::WritePod& s) { return write(s, refused); },
      [&](const core::LeaveUnwritten& s) -> Status {
        leave_unwritten(s);
        return {};
      },
      [&](const core::RemovePod& s) { return remove(s, refused); },
  };
  return std::visit(run_step, step);
}

Status Transaction::save(const core::PodRecord& record) {
  core::note_cut(tiers(), record, *settings_);
  saved_uid_ = record.pod.uid;
  saved_text_ = codec::format_pod_record(record);
  return store_->put_pod(record.pod.uid, saved_text_);
}

core::SetAttribute Transaction::copy_of(const core::WritePod& step) const {
  const bool saved = saved_uid_ == step.uid;
  return {.path = step.cgroup,
          .name = core::kRecordAttribute,
          .value = saved ? saved_text_ : "",
          .otherwise = ""};
}

void Transaction::renew_copy(const core::PodRecord& record) {
  const bool unwritten = std::ranges::any_of(
      tiers().retained, [&](const core::RetainedEntry& pod) { return pod.uid == record.pod.uid; });
  if (record.adopted || unwritten || saved_uid_ != record.pod.uid) return;
  static_cast<void>(execute(core::Execute{{core::SetAttribute{.path = record.cgroup,
                                                              .name = core::kRecordAttribute,
                                                              .value = saved_text_,
                                                              .otherwise = ""}}})
                        .has_value());
}

Status Transaction::write_values(const core::WritePod& step) {
  core::Plan plan = step.plan;
  plan.emplace_back(copy_of(step));
  return execute(core::Execute{.plan = std::move(plan), .transient = step.transient});
}

Status Transaction::make_again(const core::WritePod& step) {
  PODQOS_ASSIGN(const auto record, codec::parse_pod_record(saved_text_));
  const auto again = plan_pod(record, std::nullopt, step.if_refused);
  return again ? write_values(*again) : fail(again.error());
}

Status Transaction::write(const core::WritePod& step, std::vector<Refusal>& refused) {
  auto done = write_values(step);
  const bool vanished = !done && done.error().code == ErrorCode::kNotFound;
  if (vanished && step.make == core::Make::kNo && saved_uid_ == step.uid) done = make_again(step);
  if (done) return done;
  const bool busy = done.error().code == ErrorCode::kBusy;
  switch (step.if_refused) {
    case core::IfRefused::kWriteAgainIfBusy:
      if (!busy) return done;
      break;
    case core::IfRefused::kReport:
      refused.push_back({.uid = step.uid, .error = std::move(done).error()});
      return {};
    case core::IfRefused::kWriteAgain: break;
  }
  leave_unwritten({.uid = step.uid, .cgroup = step.cgroup, .until = busy ? now_ : step.retry_at});
  if (busy) leave_unfinished({.uid = step.uid, .error = done.error()});
  refused.push_back({.uid = step.uid, .error = std::move(done).error()});
  return {};
}

void Transaction::leave_unwritten(const core::LeaveUnwritten& step) {
  // Without support for the attribute, each transaction writes all values anyway.
  static_cast<void>(execute(core::Execute{{core::SetAttribute{.path = step.cgroup,
                                                              .name = core::kRecordAttribute,
                                                              .value = core::kUnwrittenRecord}}})
                        .has_value());
  core::retain_pod(tiers(), {.uid = step.uid, .until = step.until, .cgroup = step.cgroup});
}

Status Transaction::remove(const core::RemovePod& step, std::vector<Refusal>& refused) {
  const core::PodRecord& record = step.record;
  const std::string& uid = record.pod.uid;
  auto removal = cgroup::remove_pod(*machine_, record.cgroup);
  const auto removed = removal ? removal->removed : cgroup::Removed::kInUse;
  if (removed == cgroup::Removed::kInUse)
    refused.push_back({.uid = uid, .error = describe_left(record.cgroup, removal)});
  if (removal) note(std::move(removal->report));
  if (removed == cgroup::Removed::kGone) {
    core::forget_retained(tiers(), uid);
    return status_of(execute(core::plan_erasure(record)));
  }
  if (removed == cgroup::Removed::kPartly) partly_removed_.push_back(uid);
  // A cgroup that systemd holds is released in a moment.
  const bool held = removed == cgroup::Removed::kHeldBySystemd;
  if (held) leave_unfinished({.uid = uid, .error = describe_held(record.cgroup)});
  core::retain_pod(tiers(), {uid, held ? now_ : step.retry_at, record.cgroup});
  return save(record);
}

Status Transaction::remove(const core::RemoveTree& step) {
  PODQOS_ASSIGN(auto removal, cgroup::remove_tree(*machine_, step.kubepods, step.top));
  note(std::move(removal.report));
  if (removal.removed == cgroup::Removed::kGone) core::forget_root(tiers(), step.kubepods);
  if (removal.removed == cgroup::Removed::kHeldBySystemd)
    leave_unfinished({.uid = {}, .error = describe_held(step.kubepods)});
  return {};
}

Status Transaction::write_tiers(const core::TreeRecord& tree, core::Tree state) {
  const core::TierSnapshot snapshot{
      .usage = [this](const std::string& tier) -> std::optional<Bytes> {
        const auto usage = machine_->memory_usage(tier);
        return usage ? std::optional{*usage} : std::nullopt;
      },
      .has_io_weight =
          [this](const std::string& tier) { return cgroup::has_io_weight(*machine_, tier); }};
  core::TierValues wanted = core::wanted_tiers(tree.sums, tiers().sums, *settings_, capacity_);
  wanted.root = changed_root_values(*this, tree, state);
  const core::TierValues values =
      core::decide_tier_write(tree, std::move(wanted), state, snapshot, *settings_);
  core::EventPlan plan =
      core::plan_tier_write(tree, values, state, machine_->layout_without_hugepages(), formula());
  plan.push_back(plan_top(*this, tree, state));
  Status first;
  for (core::EventStep& step : plan) {
    auto done = status_of(execute({std::move(step)}));
    if (first && !done) first = std::move(done);
  }
  return first;
}

void Transaction::remove_unused(const core::TreeRecord& tree) {
  // Only units are left that systemd did not stop when it was asked: that is for reconcile to try
  // again, so that no container waits for a systemd that does not answer.
  if (trees_ == core::Tree::kAsItWas && core::driver_of(tree.kubepods) == core::Driver::kSystemd &&
      !machine_->exists(tree.kubepods))
    return;
  if (auto done = remove_root(*this, tree.kubepods); !done) {
    note_failure(cat("cgroup ", tree.kubepods,
                     ", in which no pod is left, was not removed: ", done.error().message));
  }
}

Status Transaction::write_tree(const core::TreeRecord& tree) {
  if (!core::has_pods(tiers(), tree)) {
    remove_unused(tree);
    return {};
  }
  if (tree.yielded) return {};
  const bool just_made = std::ranges::find(made_, tree.kubepods) != made_.end();
  auto done = write_tiers(tree, just_made ? core::Tree::kJustMade : trees_);
  if (!done && done.error().code == ErrorCode::kNotFound)
    done = write_tiers(tree, core::Tree::kToMake);
  else if (done && just_made)
    done = check_io_weight(*this, tree.kubepods);
  // Later transactions write what has changed, not all that a new tree needs.
  if (!done && just_made) store_->keep_mark();
  return done;
}

Status Transaction::write_trees() {
  if (tiers().trees.empty()) return {};
  PODQOS_TRY(execute({core::SetMark{}}));
  // By value: a tree without pods is forgotten.
  for (const core::TreeRecord& tree : std::vector{tiers().trees}) {
    if (auto done = write_tree(tree); !done)
      note_failure(cat("tiers of ", tree.kubepods, " not written: ", done.error().message));
  }
  return {};
}

void Transaction::note_failure(std::string failure) {
  failure += ": a later transaction or podqosctl reconcile will retry it";
  log_->error(failure);
  failures_.push_back(std::move(failure));
}

Status Transaction::finish() {
  finished_ = true;
  PODQOS_TRY(grant_freed(*this));
  PODQOS_TRY(write_trees());
  if (std::exchange(unit_changes_, cgroup::UnitChanges::kNow) == cgroup::UnitChanges::kDeferred) {
    if (auto done = execute(core::Execute{}); !done)
      note_failure(cat("systemd does not know all new values: ", done.error().message));
  }
  for (const std::string& incident : store_->incidents())
    log_->error(incident);
  return store_->commit();
}

}  // namespace podqos::app

#include "common/app/transaction.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/overloaded.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/io_weight.h"
#include "common/cgroup/node.h"
#include "common/cgroup/removal.h"
#include "common/codec/record_json.h"
#include "common/core/attributes.h"
#include "common/core/counting.h"
#include "common/core/tier.h"
#include "common/core/value_table.h"

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

/// CLOCK_BOOTTIME, so that a step of the wall clock neither shortens nor extends a delay.
std::int64_t seconds_since_boot() {
  timespec time{};
  // Fails only for an unknown clock.
  static_cast<void>(::clock_gettime(CLOCK_BOOTTIME, &time));
  return time.tv_sec;
}

/// The memory limit in bytes; "unlimited" as the largest number.
std::int64_t bound_of(const core::CgroupValues& values) {
  const std::int64_t limit = values.memory_limit.value_or(Bytes{-1}).value();
  return limit > 0 ? limit : std::numeric_limits<std::int64_t>::max();
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
      now_(seconds_since_boot()) {}

Result<Transaction> Transaction::with_store(const core::Settings& settings, Log& log,
                                            store::Store store, const Timeouts& timeouts) {
  auto cgroups = cgroup::Cgroupfs::open({.memory = &store.directory(),
                                         .systemd_answer = timeouts.systemd,
                                         .systemd_end = timeouts.deadline,
                                         .clock = timeouts.clock});
  if (!cgroups) return fail(std::move(cgroups).error());
  auto capacity = cgroup::node_capacity(settings);
  if (!capacity) return fail(std::move(capacity).error());
  return Transaction{settings, log, std::make_unique<store::Store>(std::move(store)),
                     std::make_unique<cgroup::Cgroupfs>(std::move(*cgroups)), *capacity};
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
  auto transaction = with_store(settings, log, std::move(*store), timeouts);
  if (!transaction) return fail(std::move(transaction).error());
  return std::optional<Transaction>{std::move(*transaction)};
}

core::WeightFormula Transaction::formula() {
  return core::weight_formula(*settings_, tiers().weight_formula);
}

const core::CgroupLayout& Transaction::layout_for(const core::CgroupValues& values) {
  return values.hugepages.empty() ? machine_->layout_without_hugepages() : machine_->layout();
}

Status Transaction::run(const core::Plan& plan, cgroup::Transient transient) {
  return note(cgroup::execute(*machine_, plan, unit_changes_, transient));
}

Status Transaction::note(Result<cgroup::Report> report) {
  if (!report) return fail(std::move(report).error());
  for (const std::string& line : report->written)
    log_->debug(cat("wrote ", line));
  for (const std::string& line : report->ignored)
    log_->debug(cat("ignored refused write: ", line));
  std::ranges::move(report->written, std::back_inserter(written_));
  return {};
}

Status Transaction::remove_beside_systemd(const std::string& cgroup,
                                          const std::function<Result<bool>()>& remove) {
  const auto removed = cgroup::repeat(*machine_, [&]() -> Result<bool> {
    const auto again = remove();
    if (!again) return fail(again.error());
    return !*again || !cgroup::is_held_by_systemd(*machine_, cgroup);
  });
  if (!removed) return fail(removed.error());
  if (!*removed)
    leave_unfinished({ErrorCode::kBusy, cat(cgroup, ": systemd still holds the empty cgroup")});
  return {};
}

bool Transaction::has_lost_state(const std::string& kubepods) {
  if (!tiers().kubepods.empty() || recovered_) return false;
  return is_marked(kubepods).value_or(false);
}

bool Transaction::has_lost_record(const core::PodRecord& record) {
  if (record.adopted || recovered_) return false;
  const auto copy = machine_->attribute(record.cgroup, core::kRecordAttribute);
  return copy && copy->has_value();
}

Status Transaction::write_pod(const core::PodRecord& record, const core::CgroupValues& values,
                              const core::CgroupLayout& layout, core::Make make) {
  core::Plan plan = core::plan_pod(record.cgroup, values, layout, formula(), make);
  plan.emplace_back(copy_of(record));
  const bool counts_removed = layout.cpu == core::CgroupVersion::kV1 &&
                              core::driver_of(record.cgroup) == core::Driver::kCgroupfs;
  return run(plan, counts_removed ? cgroup::Transient::kQuota : cgroup::Transient::kNone);
}

void Transaction::mark_unwritten(const std::string& cgroup) {
  // Without support for the attribute, each transaction writes all values anyway.
  static_cast<void>(
      run({core::SetAttribute{
              .path = cgroup, .name = core::kRecordAttribute, .value = core::kUnwrittenRecord}})
          .has_value());
}

bool Transaction::is_unwritten(const std::string& cgroup) {
  const auto copy = machine_->attribute(cgroup, core::kRecordAttribute);
  return copy && *copy == core::kUnwrittenRecord;
}

void Transaction::hold_above_usage(const std::string& cgroup, core::CgroupValues& values) {
  if (!values.memory_limit || values.memory_limit->value() < 0) return;
  const auto version = machine_->layout_without_hugepages().memory;
  if (!version) return;
  const auto text = machine_->read(cgroup, core::Controller::kMemory,
                                   std::string{core::file_of(core::Value::kMemoryLimit, *version)});
  if (!text) return;
  const auto now = parse_int(*text);  // nullopt for "max"
  if (now && *now <= values.memory_limit->value()) return;
  const auto usage = machine_->memory_usage(cgroup);
  if (!usage || *usage <= *values.memory_limit) return;
  const Bytes held = core::bounded_tier_limit(*values.memory_limit, *usage, Bytes{0});
  log_->info(cat("cgroup ", cgroup, ": memory limit lowered to ", held.value(), " instead of ",
                 values.memory_limit->value(), ": ", usage->value(), " bytes are in use"));
  values.memory_limit = held;
}

Status Transaction::make_pod(core::PodRecord& record) {
  auto values = core::pod_values(record, *settings_);
  if (!values) return fail(std::move(values).error());
  // Remove limits that other programs have set.
  if (!values->cpu_quota) {
    values->cpu_quota = Micros{-1};
    values->cpu_period = settings_->cpu_cfs_quota_period;
  }
  if (values->memory_limit.value_or(Bytes{0}).value() == 0) values->memory_limit = Bytes{-1};
  hold_above_usage(record.cgroup, *values);
  if (tree_ == Tree::kToMake) cgroup::reset_io_weight(*machine_, record.cgroup, *values);
  // A weight would enable the controller in the kubelet's root.
  if (tiers().yielded) values->io_weight.reset();
  return write_pod(record, *values, machine_->layout(), core::Make::kYes);
}

Status Transaction::update_pod(core::PodRecord& record, core::PodRecord before) {
  auto values = core::pod_values(record, *settings_);
  if (!values) return fail(std::move(values).error());
  auto held = core::pod_values(before, *settings_);
  if (!held) return fail(std::move(held).error());
  const auto copy = machine_->attribute(record.cgroup, core::kRecordAttribute);
  if (!copy || !*copy || *copy == core::kUnwrittenRecord) return make_pod(record);
  if (bound_of(*values) < bound_of(*held)) hold_above_usage(record.cgroup, *values);
  // Constant: written when the cgroup was created.
  values->io_weight.reset();
  const bool same_pages = values->hugepages == held->hugepages;
  auto done = write_pod(record, *values,
                        same_pages ? machine_->layout_without_hugepages() : machine_->layout(),
                        core::Make::kNo);
  // Another program has removed the cgroup.
  return !done && done.error().code == ErrorCode::kNotFound ? make_pod(record) : done;
}

core::SetAttribute Transaction::copy_of(const core::PodRecord& record) const {
  const bool saved = saved_uid_ == record.pod.uid;
  return {.path = record.cgroup,
          .name = core::kRecordAttribute,
          .value = saved ? saved_text_ : codec::format_pod_record(record),
          .otherwise = ""};
}

core::TierValues Transaction::wanted_tiers() {
  return core::tier_values(tiers().sums,
                           {.reserve_percent = settings_->reserve_memory_percent,
                            .allocatable_memory = core::allocatable_memory(*settings_, capacity_)});
}

Status Transaction::apply_tiers(core::Make make) {
  core::TierValues values = wanted_tiers();
  const std::string& kubepods = tiers().kubepods;
  const auto bound = [&](core::CgroupValues& tier, core::QosClass qos_class) {
    if (!tier.memory_limit) return;
    auto usage = machine_->memory_usage(core::tier_path(kubepods, qos_class));
    tier.memory_limit =
        core::bounded_tier_limit(*tier.memory_limit, usage ? std::optional{*usage} : std::nullopt,
                                 settings_->tier_memory_floor);
  };
  bound(values.burstable, core::QosClass::kBurstable);
  bound(values.besteffort, core::QosClass::kBestEffort);
  if (make == core::Make::kYes) {
    // Remove limits of a reservation (qosReserved) that has been turned off.
    for (core::CgroupValues* tier : {&values.burstable, &values.besteffort}) {
      if (!tier->memory_limit) tier->memory_limit = Bytes{-1};
    }
    values.burstable.io_weight = settings_->io_weight.burstable;
    values.besteffort.io_weight = settings_->io_weight.besteffort;
    if (tree_ != Tree::kJustMade) {
      if (auto done = run(core::plan_tree(kubepods, tiers().top)); !done) return done;
      using enum core::QosClass;
      cgroup::reset_io_weight(*machine_, core::tier_path(kubepods, kBurstable), values.burstable);
      cgroup::reset_io_weight(*machine_, core::tier_path(kubepods, kBestEffort), values.besteffort);
    }
  } else {
    // Constant: written when the tier was created.
    values.besteffort.cpu_shares.reset();
  }
  const core::CgroupLayout& layout = machine_->layout_without_hugepages();
  core::Plan plan = core::plan_top(core::directories_above(kubepods, tiers().top),
                                   core::cpu_shares_for(core::sum_of_own(tiers().sums).cpu), layout,
                                   formula(), make);
  std::ranges::move(core::plan_tiers(kubepods, values, layout, formula(), make),
                    std::back_inserter(plan));
  if (auto done = run(plan); !done || make == core::Make::kNo) return done;
  return tree_ == Tree::kJustMade ? check_io_weight() : Status{};
}

Status Transaction::check_io_weight() {
  if (settings_->io_weight == core::IoWeights{}) return {};
  const std::string& kubepods = tiers().kubepods;
  // Only then does a tier have the file if only Guaranteed pods have a weight.
  const core::EnsureCgroup with_io{.path = kubepods, .also = core::Controller::kIo};
  if (auto done = run({with_io}); !done) return done;
  if (cgroup::takes_io_weight(*machine_, core::tier_path(kubepods, core::QosClass::kBurstable)))
    return {};
  log_->warning(
      cat("ioWeight has no effect below ", kubepods,
          ": the kernel has neither io.weight nor io.bfq.weight (cgroup v1: blkio.bfq.weight, "
          "blkio.weight): load the module bfq, or unset ioWeight"));
  return {};
}

Status Transaction::apply(const core::RecordPlan& plan) {
  const Overloaded apply_step{
      [&](const core::SaveRecord& step) { return save(step.record); },
      [&](const core::EraseRecord& step) { return store_->erase_pod(step.uid); },
      [&](const core::SaveIndexEntry& step) { return store_->put_container(step.entry); },
      [&](const core::EraseIndexEntry& step) { return store_->erase_container(step.entry); },
  };
  for (const core::RecordStep& step : plan) {
    if (auto done = std::visit(apply_step, step); !done) return done;
  }
  return {};
}

Status Transaction::save(const core::PodRecord& record) {
  saved_uid_ = record.pod.uid;
  saved_text_ = codec::format_pod_record(record);
  return store_->put_pod(record.pod.uid, saved_text_);
}

Status Transaction::write_tiers() {
  if (tiers().kubepods.empty()) return {};
  if (auto done = store_->begin(); !done) return done;
  if (!core::has_pods(tiers())) return teardown();
  if (tiers().yielded) return {};
  auto done = apply_tiers(tree_ == Tree::kAsItWas ? core::Make::kNo : core::Make::kYes);
  const bool vanished = !done && done.error().code == ErrorCode::kNotFound;
  if (!vanished) return done;
  tree_ = Tree::kToMake;
  return apply_tiers(core::Make::kYes);
}

Status Transaction::finish() {
  finished_ = true;
  if (auto done = write_tiers(); !done) return done;
  if (std::exchange(unit_changes_, cgroup::UnitChanges::kNow) == cgroup::UnitChanges::kDeferred) {
    if (auto done = run({}); !done) return done;
  }
  for (const std::string& incident : store_->incidents())
    log_->error(incident);
  return store_->commit();
}

}  // namespace podqos::app

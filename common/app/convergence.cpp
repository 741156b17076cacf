#include "common/app/convergence.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "common/app/reconciler.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/value.h"

namespace podqos::app {

namespace {

using core::Controller;
using Action = core::ConvergenceStep::Action;

constexpr const char* kReclaimFile = "memory.reclaim";
/// A write of that file returns after so much, or when no more can be had.
constexpr Bytes kPiece{4LL << 20U};
constexpr std::chrono::milliseconds kReclaimTime{100};

std::int64_t sum_of(std::string_view stat, std::initializer_list<std::string_view> keys) {
  std::int64_t sum = 0;
  for (const std::string_view key : keys)
    sum = saturating_add(sum, cgroup::find_key(stat, key).value_or(0));
  return sum;
}

/// Pages that were read again soon after they had been reclaimed; 0 where the kernel does not tell.
/// Linux up to 5.8 has but one counter.
std::int64_t refaults_in(std::string_view stat, std::string_view prefix) {
  return sum_of(stat, {cat(prefix, "workingset_refault_anon"),
                       cat(prefix, "workingset_refault_file"), cat(prefix, "workingset_refault")});
}

}  // namespace

void Convergence::hold(std::vector<core::HeldLimit> held) {
  std::erase_if(progress_, [&](const auto& entry) {
    return std::ranges::count(held, entry.first, &core::HeldLimit::cgroup) == 0;
  });
  held_ = std::move(held);
}

void Convergence::back_off(Progress& progress) {
  progress.pause = core::next_pause(progress.pause);
  progress.pause_end = clock_->now() + std::chrono::seconds{progress.pause};
  progress.since.reset();
  ++steps_.pauses;
}

core::ConvergenceSnapshot Convergence::observe(cgroup::Machine& machine,
                                               const core::HeldLimit& held, Progress& progress) {
  const auto now = clock_->now();
  const cgroup::CgroupView view{machine, held.cgroup};
  const bool is_v2 = machine.layout_without_hugepages().memory == core::CgroupVersion::kV2;
  core::ConvergenceSnapshot snapshot{.goal = held.goal,
                                     .limit = view.memory_limit(),
                                     .usage = view.memory_usage().value_or(held.goal),
                                     .cut = progress.cut,
                                     .pauses = now < progress.pause_end};
  if (snapshot.pauses) return snapshot;
  const auto stat = machine.read(held.cgroup, Controller::kMemory, "memory.stat").value_or("");
  const std::int64_t refaults = refaults_in(stat, is_v2 ? "" : "total_");
  const auto pressure = view.pressure("memory");
  const Micros waited = pressure ? pressure->waiting : Micros{0};
  if (progress.since) {
    const Bytes page{::sysconf(_SC_PAGESIZE)};
    snapshot.refaulted = Bytes{mul_div(refaults - progress.refaults, page.value(), 1)};
    snapshot.waited = waited - progress.waited;
    snapshot.elapsed =
        Micros{std::chrono::floor<std::chrono::microseconds>(now - *progress.since).count()};
  }
  progress.since = now;
  progress.refaults = refaults;
  progress.waited = waited;
  if (is_v2) {
    // It can only be written: reading it is refused where it exists.
    const auto file = machine.read(held.cgroup, Controller::kMemory, kReclaimFile);
    snapshot.reclaims = file || file.error().code != ErrorCode::kNotFound;
  } else {
    snapshot.clean_cache =
        rest_of(Bytes{sum_of(stat, {"total_inactive_file", "total_active_file"})},
                Bytes{sum_of(stat, {"total_dirty", "total_writeback"})});
  }
  return snapshot;
}

Bytes Convergence::reclaim(cgroup::Machine& machine, const std::string& cgroup, Bytes amount) {
  const auto before = machine.memory_usage(cgroup).value_or(Bytes{0});
  const auto end = clock_->now() + kReclaimTime;
  while (amount > Bytes{0} && clock_->now() < end) {
    const Bytes piece = std::min(amount, kPiece);
    amount = amount - piece;
    // EAGAIN: less could be reclaimed.
    const auto asked = machine.execute({core::WriteFile{.path = cgroup,
                                                        .controller = Controller::kMemory,
                                                        .file = kReclaimFile,
                                                        .value = std::to_string(piece.value()),
                                                        .reason = "lower the tier's limit",
                                                        .on_refusal = core::OnRefusal::kIgnore}});
    if (!asked || !asked->ignored.empty()) break;
  }
  ++steps_.reclaimed;
  return rest_of(before, machine.memory_usage(cgroup).value_or(before));
}

bool Convergence::reclaim(cgroup::Machine& machine) {
  cuts_.clear();
  bool lowers = false;
  for (const core::HeldLimit& held : held_) {
    Progress& progress = progress_[held.cgroup];
    const bool paused = !progress.since;
    const auto snapshot = observe(machine, held, progress);
    const core::ConvergenceStep step = core::decide_convergence(snapshot);
    const bool goes_on = step.action == Action::kReclaim || step.action == Action::kLower;
    if (goes_on && !paused) progress.pause = 0;
    switch (step.action) {
      case Action::kWait:
        if (!snapshot.pauses) back_off(progress);
        break;
      case Action::kReclaim:
        if (reclaim(machine, held.cgroup, step.amount) >= core::kLeastStep)
          lowers = true;
        else
          back_off(progress);
        break;
      case Action::kLower:
        if (step.amount < snapshot.usage) cuts_[held.cgroup] = step.amount;
        [[fallthrough]];
      case Action::kNone: lowers = true; break;
    }
  }
  return lowers;
}

Status Convergence::lower(Transaction& transaction) {
  PODQOS_TRY(recover(transaction));
  transaction.converge(cuts_);
  PODQOS_TRY(transaction.finish());
  for (const auto& [cgroup, cut] : cuts_) {
    const auto limit = cgroup::CgroupView{transaction.machine(), cgroup}.memory_limit();
    const bool is_refused = !limit || *limit > cut;
    Progress& progress = progress_[cgroup];
    progress.cut = core::next_cut(progress.cut, is_refused);
    if (is_refused) back_off(progress);
  }
  const std::vector<core::HeldLimit>& left = transaction.held_limits();
  for (const core::HeldLimit& held : held_) {
    const auto now = std::ranges::find(left, held.cgroup, &core::HeldLimit::cgroup);
    if (now == left.end() || now->limit < held.limit) ++steps_.lowered;
    if (now != left.end()) continue;
    core::Event event{.kind = core::EventKind::kCorrected, .cgroup = held.cgroup};
    event.text =
        cat("memory limit has come down to ", format_amount(held.goal), ", as the rule says");
    transaction.event(core::LogLevel::kInfo, std::move(event), cat("cgroup ", held.cgroup, ": "));
  }
  hold(left);
  return {};
}

Result<bool> Convergence::step(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open());
  if (!reclaim(machine)) return false;
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) {
    hold({});
    return false;
  }
  const std::uint64_t before = steps_.lowered;
  PODQOS_TRY(lower(*transaction));
  return steps_.lowered > before;
}

}  // namespace podqos::app

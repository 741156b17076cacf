// Plugin: between two requests it registers the runtime's state after Synchronize, in pieces, and
// looks after what the runtime does not report.

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <malloc.h>

#include "common/app/follow_memory_qos.h"
#include "common/app/oom_kills.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/sys/process.h"
#include "nri/plugin.h"

namespace podqos::nri {

namespace {

using std::chrono::milliseconds;
using AnnotationsRef = std::shared_ptr<const core::Annotations>;

/// Maximum time of a piece: far below the 2 s of a request, and below other lock timeouts.
constexpr milliseconds kPieceAtOnce{100};
/// Maximum wait for the lock in each step of housekeeping: other processes are served first.
constexpr milliseconds kHousekeepingLock{100};
/// Maximum time of a whole round of housekeeping: a request that arrives meanwhile is answered
/// within the runtime's 2 s, since its own waits take at most 1 s.
constexpr milliseconds kHousekeeping{500};
/// How long a container counts as being created: runtimes may abandon one without reporting it. A
/// container that starts later is registered then.
constexpr std::chrono::seconds kCreation{120};
/// Interval at which everything is compared with the records.
constexpr std::chrono::seconds kComparison{300};
/// Interval at which the pressure of tiers is measured, as systemd-oomd does, and memory limits
/// that come down are lowered.
constexpr std::chrono::seconds kMeasurement{1};
/// Interval at which due pods are released, and memory limits are compared with their rule.
constexpr std::chrono::seconds kReleaseInterval{5};
/// Interval at which throttled containers are looked for: a third of memoryHighPatience's default;
/// and memory limits above their rule where there were none.
constexpr std::chrono::seconds kReliefInterval{10};

}  // namespace

app::Timeouts Plugin::whole_node(const app::Timeouts& round) const {
  const auto left = std::chrono::floor<milliseconds>(round.deadline - clock_.now());
  app::Timeouts all = round;
  all.deadline = TimePoint::max();
  all.lock = std::clamp(left, milliseconds{0}, kHousekeepingLock);
  return all;
}

std::vector<app::ContainerEvent> Plugin::reported_in(NodeState state) {
  std::vector<app::ContainerEvent> all;
  all.reserve(state.pods.size() + state.containers.size());
  // A pod or container with invalid facts exists nevertheless: its id is passed on.
  const auto add = [&](const Reported& reported, Result<core::ContainerFacts> facts,
                       AnnotationsRef of_pod, Result<core::Process> process) {
    app::ContainerEvent& event = all.emplace_back();
    event.sandbox = reported.sandbox;
    event.of_pod = std::move(of_pod);
    event.facts.id = reported.facts.id;
    if (!facts || !process) {
      log_failure("synchronize", facts ? process.error() : facts.error());
      return;
    }
    event.facts = std::move(*facts);
    event.init = *process;
  };
  std::map<std::string_view, std::pair<const Reported*, AnnotationsRef>> pods;
  for (Reported& pod : state.pods) {
    auto facts = sandbox_facts(pod, engine_);
    AnnotationsRef shared;
    if (facts) {
      pod.facts.annotations.clear();
      shared = std::make_shared<const core::Annotations>(std::exchange(facts->annotations, {}));
    }
    pods.emplace(pod.facts.id, std::pair{&pod, shared});
    const auto running = sandboxes_.find(pod.facts.id);
    add(pod, std::move(facts), shared,
        running != sandboxes_.end() ? running->second : core::Process{});
  }
  for (const Reported& container : state.containers) {
    const auto found = pods.find(container.sandbox);
    if (found == pods.end()) continue;
    const auto& [pod, shared] = found->second;
    add(container, container_facts(*pod, container, engine_), shared, process_of(container.pid));
  }
  return all;
}

bool Plugin::read_state() {
  auto state = std::exchange(state_, std::nullopt);
  if (!state) return synchronization_.has_value();
  // Long-lived allocations first: among temporary ones they would keep pages from being returned.
  for (const Reported& pod : state->pods)
    register_sandbox(pod);
  for (const Reported& container : state->containers) {
    if (container.pid == 0 && container.created)
      created_.try_emplace(container.facts.id,
                           Creation{.sandbox = container.sandbox, .since = clock_.now()});
  }
  synchronization_.emplace(reported_in(std::move(*state)),
                           [this](const Error& error) { log_failure("synchronize", error); });
  // What was only needed until here is as much again.
  static_cast<void>(::malloc_trim(0));
  // One that is called for from here on follows the synchronization.
  compares_soon_ = false;
  next_comparison_ = clock_.now() + kComparison;
  return true;
}

app::EngineList Plugin::listener() const {
  app::EngineList self{.ids = {}, .listener = own_process_};
  for (const auto& [id, creation] : created_)
    self.ids.insert(id);
  return self;
}

void Plugin::synchronize_pod(const Reported& pod, const app::Timeouts& timeouts) {
  if (!read_state() || !synchronization_->awaits(pod.facts.id)) return;
  static_cast<void>(
      note_synchronized(synchronization_->resume(configuration_.settings(), log(), listener(),
                                                 {.sandbox = pod.facts.id, .timeouts = timeouts})));
}

bool Plugin::note_synchronized(const Result<bool>& taken) {
  if (!taken) {
    log_failure(synchronization_->is_listed() ? "synchronize" : "compare", taken.error(),
                "; retrying");
    return false;
  }
  if (!*taken) return true;
  if (synchronization_->is_listed()) {
    log().info(cat("synchronized ", synchronization_->size(), " sandboxes and containers"));
    metrics_.reconciled();
  }
  // The synchronization of a full node needs more memory than everything until the next one.
  synchronization_.reset();
  static_cast<void>(::malloc_trim(0));
  return false;
}

void Plugin::compare_when_due() {
  if (synchronization_ || (!compares_soon_ && clock_.now() < next_comparison_)) return;
  // It takes in no container that could fail.
  synchronization_.emplace(std::nullopt, [](const Error& /*error*/) {});
  compares_soon_ = false;
  next_comparison_ = clock_.now() + kComparison;
}

void Plugin::register_sandbox(const Reported& pod) {
  const auto process = process_of(pod.pid);
  if (!process) log_failure("register sandbox", process.error());
  if (!process || process->start_time == StartTime{0}) return;
  sandboxes_.insert_or_assign(pod.facts.id, *process);
}

bool Plugin::release_ended_sandboxes(const app::Timeouts& timeouts) {
  for (auto sandbox = sandboxes_.begin(); sandbox != sandboxes_.end();) {
    const auto& [id, process] = *sandbox;
    if (sys::is_alive(process.pid, process.start_time)) {
      ++sandbox;
      continue;
    }
    if (clock_.now() >= timeouts.deadline) return false;
    const auto done = release(id, timeouts);
    if (!done) log_failure("release ended sandbox", done.error(), "; retrying");
    sandbox = sandboxes_.erase(sandbox);
    if (is_late(done)) return false;
  }
  return true;
}

void Plugin::reconcile(const app::Timeouts& timeouts) {
  if (clock_.now() < next_release_) return;
  next_release_ = clock_.now() + kReleaseInterval;
  if (auto done = app::reconcile_due(configuration_.settings(), log(), listener(), timeouts); !done)
    log_failure("housekeeping", done.error(), "; retrying");
}

void Plugin::converge(const app::Timeouts& timeouts) {
  if (clock_.now() < next_convergence_) return;
  next_convergence_ = clock_.now() + kReleaseInterval;
  const auto round = app::converge(configuration_.settings(), log(), timeouts);
  // What waits for the lock or systemd goes first.
  if (!round && !is_late(round)) log_failure("memory limits", round.error(), "; retrying");
  if (!round) return;
  metrics_.converged(*round);
  if (round->above.empty()) next_convergence_ = clock_.now() + kReliefInterval;
  if (round->lowered != 0) next_convergence_ = clock_.now() + kMeasurement;
}

void Plugin::evict(const app::Timeouts& timeouts) {
  if (clock_.now() < next_eviction_) return;
  next_eviction_ = clock_.now() + kMeasurement;
  const auto evicted = evictor_.check(configuration_.settings(), log(), timeouts);
  if (!evicted) return log_failure("eviction", evicted.error(), "; retrying");
  if (*evicted) metrics_.evicted(**evicted);
}

void Plugin::report_oom_kills(const app::Timeouts& timeouts) {
  const auto kills = cgroup::node_oom_kills();
  if (kills == oom_kills_) return;
  if (auto done = app::report_all_oom_kills(configuration_.settings(), log(), timeouts); !done)
    return log_failure("OOM kills", done.error(), "; retrying");
  oom_kills_ = kills;
}

bool Plugin::housekeep() {
  configuration_.follow();
  const auto now = clock_.now();
  std::erase_if(created_, [&](const auto& entry) { return now - entry.second.since > kCreation; });
  const app::Timeouts timeouts{.deadline = now + kHousekeeping,
                               .lock = kHousekeepingLock,
                               .systemd = kHousekeeping,
                               .clock = &clock_};
  evict(timeouts);
  static_cast<void>(read_state());
  compare_when_due();
  if (synchronization_) {
    const auto taken =
        synchronization_->resume(configuration_.settings(), log(), listener(),
                                 {.at_most = kPieceAtOnce, .timeouts = whole_node(timeouts)});
    // What the runtime has told comes before all else. Where a piece takes all of a round, as with
    // a systemd that does not answer, the lock is the others' until the next round.
    if (note_synchronized(taken) && synchronization_->is_listed())
      return clock_.now() < timeouts.deadline;
  }
  // After a timeout, waiting for the lock or systemd, the following steps would time out as well.
  if (!deferred_.apply(timeouts) || !release_ended_sandboxes(timeouts)) return false;
  // First, since each transaction lowers limits of tiers by the way, and does not count that.
  converge(timeouts);
  if (clock_.now() >= timeouts.deadline) return true;
  reconcile(timeouts);
  relieve_throttled(timeouts);
  report_oom_kills(timeouts);
  return synchronization_ && clock_.now() < timeouts.deadline;
}

void Plugin::relieve_throttled(const app::Timeouts& timeouts) {
  if (clock_.now() < next_relief_) return;
  next_relief_ = clock_.now() + kReliefInterval;
  if (auto done = app::relieve_throttled(configuration_.settings(), log(), timeouts); !done)
    log_failure("raise memory.high", done.error(), "; retrying");
}

}  // namespace podqos::nri

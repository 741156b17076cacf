#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/decide_convergence.h"
#include "common/core/settings.h"
#include "common/sys/clock.h"

namespace podqos::app {

/// Brings memory limits that usage keeps above their rule down to it, step by step. What is slow,
/// reclaiming, is done without the lock; a step's transaction is as long as one of an event.
/// Several programs may do it at once: each step begins with what the kernel has then.
class Convergence {
 public:
  /// Steps since the object was made.
  struct Steps {
    std::uint64_t reclaimed = 0;  ///< the kernel was asked to reclaim memory
    std::uint64_t lowered = 0;    ///< a limit was lowered
    std::uint64_t pauses = 0;     ///< begun under pressure, or since nothing was to be had
  };

  /// @param clock  outlives the object
  explicit Convergence(const sys::Clock& clock = sys::kSteadyClock) : clock_(&clock) {}

  /// Takes over what a finished transaction has left above the rule.
  void hold(std::vector<core::HeldLimit> held);
  /// What is above the rule still.
  [[nodiscard]] const std::vector<core::HeldLimit>& held() const { return held_; }
  [[nodiscard]] const Steps& steps() const { return steps_; }

  /// One step of each limit: at most 100 ms of reclaiming each, then, if one can be lowered, a
  /// transaction.
  /// @return whether a limit was lowered, so that the next step may follow at once
  [[nodiscard]] Result<bool> step(const core::Settings& settings, Log& log,
                                  const Timeouts& timeouts = {});

  // Its two halves.

  /// Decides for each limit, and reclaims. Called without the lock.
  /// @return whether lower() has something to do
  [[nodiscard]] bool reclaim(cgroup::Machine& machine);
  /// Lowers what can be lowered; finishes the transaction.
  [[nodiscard]] Status lower(Transaction& transaction);

 private:
  using TimePoint = sys::Clock::TimePoint;
  /// What is known of a cgroup since its last step.
  struct Progress {
    std::optional<TimePoint> since = std::nullopt;  ///< nullopt: no step, or a pause since then
    std::int64_t refaults = 0;                      ///< pages, counted by the kernel
    Micros waited = {};
    std::int64_t pause = 0;  ///< seconds of the last one; 0 after a step that needed none
    TimePoint pause_end = {};
    Bytes cut = core::kCutPerStep;  ///< see core::next_cut()
  };

  [[nodiscard]] core::ConvergenceSnapshot observe(cgroup::Machine& machine,
                                                  const core::HeldLimit& held, Progress& progress);
  /// @return how much less the cgroup uses
  Bytes reclaim(cgroup::Machine& machine, const std::string& cgroup, Bytes amount);
  void back_off(Progress& progress);

  const sys::Clock* clock_;
  std::vector<core::HeldLimit> held_;
  std::map<std::string, Progress, std::less<>> progress_;  ///< by cgroup
  Transaction::Limits cuts_;                               ///< for the next lower()
  Steps steps_;
};

}  // namespace podqos::app

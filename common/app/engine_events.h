#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/ending.h"
#include "common/app/engine_list.h"
#include "common/app/log.h"
#include "common/app/reconcile.h"
#include "common/app/timeouts.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/settings.h"

namespace podqos::app {

/// A container's init, and the engine that has told of it. An init of 0: none that runs.
struct Process {
  Pid init;
  Pid runtime;
};

/// What an engine tells of a container, without its bundle: all that its config.json would say.
struct ContainerEvent {
  core::ContainerFacts facts;
  Process process;
  std::string sandbox = {};  ///< id of its pod's sandbox, or its own; for Synchronization
};

/// The same as the stage createRuntime: confirms a container that was placed, or registers one that
/// was not, before it runs.
/// @return kRefused where the operator wants misplaced containers refused, whatever onError says.
[[nodiscard]] Status container_started(const core::Settings& settings, Log& log,
                                       const ContainerEvent& event, const Timeouts& timeouts = {});

enum class Followed : std::uint8_t {
  kNow,
  kLater,  ///< containers still hold a value of the pod up: for a recomputation once they do not
};

/// The engine has changed resources of a container, or of a pod, of which it tells by the sandbox:
/// pod and tiers follow (core/resize.h). A container that is not known yet is counted as it is.
[[nodiscard]] Result<Followed> resources_changed(const core::Settings& settings, Log& log,
                                                 const ContainerEvent& event,
                                                 const Timeouts& timeouts = {});

/// All that an engine has: what ended unseen is released, what was placed and has started unseen is
/// confirmed, what came unseen is counted and stays as it is. Failures are logged, each container's
/// for itself. The first piece compares all records with the list; what is new on a full node is
/// taken in piece by piece after that, so that neither its engine nor whoever else wants the lock
/// waits for the whole.
class Synchronization {
 public:
  /// A pod's sandbox stands before its containers: it knows what the whole pod may use.
  explicit Synchronization(std::vector<ContainerEvent> all);

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// The engine has said since that it has removed it.
  void forget(std::string_view id);
  /// Is anything of this sandbox's pod to come?
  [[nodiscard]] bool awaits(std::string_view sandbox) const;
  /// One piece. An error leaves what is to come for the next call.
  /// @param listener  with the ids of what the engine has besides
  /// @param at_most   how long, the wait for the lock and the comparison not counted; one container
  ///                  at least is looked at
  /// @return whether all has been taken
  [[nodiscard]] Result<bool> resume(const core::Settings& settings, Log& log,
                                    const Listener& listener, std::chrono::milliseconds at_most,
                                    const Timeouts& timeouts = {});
  /// The same for all of one sandbox's pod, before the engine's news of it are acted on.
  [[nodiscard]] Result<bool> run_pod(const core::Settings& settings, Log& log,
                                     const Listener& listener, std::string_view sandbox,
                                     const Timeouts& timeouts = {});

 private:
  /// What one call of the above is about.
  struct Piece {
    std::size_t end;  ///< as far as the one before
    std::optional<std::chrono::milliseconds> at_most;
    Timeouts timeouts;
  };
  [[nodiscard]] Result<bool> run(const core::Settings& settings, Log& log, const Listener& listener,
                                 const Piece& piece);
  [[nodiscard]] Status compare(Transaction& transaction, const Listener& listener);
  [[nodiscard]] Status prepare(Transaction& transaction, const Listener& listener);

  std::vector<ContainerEvent> all_;
  std::size_t next_ = 0;
  bool compared_ = false;   ///< what has ended is released
  bool kept_mark_ = false;  ///< a piece has left something to the next recomputation
  Ids live_;                ///< known already
};

/// A container has ended; one try.
[[nodiscard]] Result<Ending> container_ended(const core::Settings& settings, Log& log,
                                             const std::string& id, Pid caller,
                                             const Timeouts& timeouts = {});

/// Releases what waits for its time; with `everything`, brings state and cgroups to the truth.
/// @param listener  with the ids of those that the engine is making: what the listener has placed
///                  besides, and what has not started, is released
[[nodiscard]] Status housekeep(const core::Settings& settings, Log& log, const Listener& listener,
                               bool everything, const Timeouts& timeouts = {});

}  // namespace podqos::app

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/events/decide_departure.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

using core::ContainerKey;
using core::EndState;

/// What to do with a container that is still dying (EndState::kDying).
enum class IfStillDying : std::uint8_t {
  kLeave,  ///< change nothing, return kDying
  kDrop,   ///< remove it; an empty pod ends once its cgroup is empty
};

/// The result of end_container().
struct EndResult {
  EndState state = EndState::kDone;
  std::vector<Refusal> unfinished = {};  ///< of its pod and of trees without pods, for follow_up()
};

/// A container that has ended, as reported by the engine.
struct EndReport {
  std::string id;
  std::string bundle;  ///< canonical; empty if the engine reports none
  /// The process that placed the container. If it is the recorded creator, creation failed and the
  /// container is removed although its creator runs.
  Pid caller;
};

/// Removes a container from its pod and releases the pod with its last container. Makes one attempt
/// under the lock; the caller retries on kDying and kStillAlive.
/// @return kConflict if several containers share the id and the engine reports no bundle.
[[nodiscard]] Result<EndResult> end_container(const core::Settings& settings, Log& log,
                                              const EndReport& report, IfStillDying if_still_dying,
                                              const Timeouts& timeouts = {});
/// As above, in a transaction of the caller, which this function finishes.
[[nodiscard]] Result<EndResult> end_container(Transaction& transaction, const EndReport& report,
                                              IfStillDying if_still_dying);

/// Removes one container from its pod's record and its index entry, and releases the pod if no
/// other container runs. Does nothing if the record does not contain it.
[[nodiscard]] Status drop_container(Transaction& transaction, const core::PodRecord& record,
                                    const ContainerKey& key);

/// Removes what runtimes have left of the cgroups of ended containers in a pod that lives on: of
/// one that was created and never started, and whose runtime has gone. One that holds a process
/// stays.
void remove_left(Transaction& transaction, const core::PodRecord& record,
                 std::span<const core::ContainerRecord> ended);

/// Removes a container that was admitted in this transaction and could not be placed, so that it
/// does not count in its pod. Errors are logged.
void withdraw(Transaction& transaction, const core::PodRecord& record,
              const core::ContainerRecord& container, const Error& reason);

/// Handles pods that are due: removes cgroups of released ones, writes values that were refused. At
/// most four pods per call, to bound the time under the lock. Errors are logged per pod and left to
/// the next transaction.
void handle_what_is_due(Transaction& transaction);
/// The same for one pod.
/// @return whether it was due
bool handle_if_due(Transaction& transaction, const std::string& uid);

/// Retries what a transaction left unfinished (Transaction::unfinished()), in transactions of its
/// own for up to 1.3 s; the lock is free in between. Not for a container's start, which waits for
/// no cgroup of an ended pod.
/// @return the first reason if some of it is still unfinished; later transactions retry it.
[[nodiscard]] Status follow_up(const core::Settings& settings, Log& log,
                               std::vector<Refusal> unfinished, const Timeouts& timeouts = {});
/// One attempt of follow_up(), in a transaction of the caller, which this function finishes.
/// @param unfinished  keeps what still is
[[nodiscard]] Status retry_unfinished(Transaction& transaction, std::vector<Refusal>& unfinished);

/// Handles a pod that is due, or that a reconciliation has released: removes its cgroup and record,
/// writes refused values again, or postpones it once more.
/// @return what the machine has refused, for the log or a report
[[nodiscard]] Result<std::optional<Error>> handle_due(Transaction& transaction,
                                                      const core::PodRecord& record);

/// Handles placed containers whose creating process has ended without a confirmation: confirms
/// those that run and drops the others. Errors are logged per pod and left to the next transaction.
/// At most four containers and 16 creators per call, to bound the time under the lock; the others
/// have their turn in later calls.
/// @param handled  container that the caller is handling itself; others with its id in another
///         bundle are not
/// @param list  the caller's list if it places containers for an engine: those that it placed and
///         that are not in the list are dropped although the caller runs
void expire_pending(Transaction& transaction, const ContainerKey& handled,
                    const core::EngineList* list = nullptr);

}  // namespace podqos::app

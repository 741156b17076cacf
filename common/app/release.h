#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/app/engine_list.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::app {

/// True if the container's init runs, or while it is pending, the process that creates it.
[[nodiscard]] bool lives(cgroup::Machine& machine, const core::ContainerRecord& container);
/// True if any container of the pod does.
[[nodiscard]] bool has_living_container(cgroup::Machine& machine, const core::PodRecord& record);

/// Removes an ended container from the requests of a kubelet's pod (core::forget_container), unless
/// another container with its name runs.
void forget_ended(cgroup::Machine& machine, core::PodRecord& record,
                  const core::ContainerRecord& ended);

/// Removes one container from its pod's record and its index entry, and releases the pod if no
/// other container runs. Does nothing if the record does not contain it.
[[nodiscard]] Status drop_container(Transaction& transaction, core::PodRecord record,
                                    std::string_view id, std::string_view bundle);

/// Releases the pod if none of its containers is live or pending and its cgroup is unpopulated;
/// otherwise saves the record. The requests of a released pod leave the sums at once. Its cgroup
/// and record are removed, unless tmpfs memory is still charged to the cgroup or its removal
/// failed: then both are kept for releaseDelay.
[[nodiscard]] Status release_or_save(Transaction& transaction, core::PodRecord record);

/// Marks the values of a live pod's cgroup as unknown after the kernel refused them.
/// release_retained() writes them again: in the next transaction if the refusal is temporary
/// (kBusy), otherwise after releaseDelay.
void leave_unwritten(Transaction& transaction, const core::PodRecord& record, const Error& reason);

/// Removes a container that was admitted in this transaction and could not be placed, so that it
/// does not count in its pod, and finishes the transaction. Errors are logged.
void withdraw(Transaction& transaction, const core::PodRecord& record,
              const core::ContainerRecord& container, const Error& reason);

/// Handles retained pods that are due: removes cgroups of released pods, writes values that were
/// refused. At most four pods per call, to bound the time under the lock. Errors are logged per pod
/// and left to the next transaction.
void release_retained(Transaction& transaction);
/// Removes the cgroup and the record of a pod that has left the sums (released_at is set), or
/// retains them; see release_or_save().
[[nodiscard]] Status end_pod(Transaction& transaction, core::PodRecord record);

/// A container by its id and bundle; the bundle may be unknown.
struct ContainerKey {
  std::string_view id;
  std::string_view bundle;
};

/// Handles placed containers whose creating process has ended without a confirmation: confirms
/// those that run and drops the others. Errors are logged per pod and left to the next transaction.
/// @param handled  container that the caller is handling itself; others with its id in another
///         bundle are not
/// @param list  the caller's list if it places containers for an engine: those that it placed and
///         that are not in the list are dropped although the caller runs
void expire_pending(Transaction& transaction, const ContainerKey& handled,
                    const EngineList* list = nullptr);

/// Makes a pending container live if its cgroup is populated; its oldest process is its init.
/// @return false if there is no process in the cgroup, or if the cgroup is not the container's
///         alone.
[[nodiscard]] bool confirm_from_cgroup(Transaction& transaction, core::ContainerRecord& container);

}  // namespace podqos::app

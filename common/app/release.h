#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/app/engine_list.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::app {

/// Does the container live: its init, or while it is pending the process that creates it?
[[nodiscard]] bool lives(const core::ContainerRecord& container);

/// Lets a container that has ended count no longer for a kubelet's pod (core::forget_container),
/// unless another one of its name lives.
void forget_ended(core::PodRecord& record, const core::ContainerRecord& ended);

/// Takes one container out of its pod's record, and releases the pod if nothing of it lives.
[[nodiscard]] Status drop_container(Transaction& transaction, core::PodRecord record,
                                    std::string_view id, std::string_view bundle);

/// Releases the pod if no container of it lives, none is pending and its cgroup is unpopulated: its
/// requests leave the sums at once; cgroup and record go too, unless tmpfs memory is still charged
/// to the cgroup (then both stay for releaseDelay) or a dead container has not been deleted yet.
/// Otherwise saves the record.
[[nodiscard]] Status settle_pod(Transaction& transaction, core::PodRecord record);

/// Removes the cgroups directly below `cgroup` in which nothing lives: what runtimes that were
/// killed, or containers that nobody has deleted yet, have left. A populated one refuses to go.
/// @param except  containers whose cgroups stay: a runtime may be about to use an empty one
[[nodiscard]] Status remove_empty_children(Transaction& transaction, const std::string& cgroup,
                                           std::span<const core::ContainerRecord> except = {});

/// For a living pod whose values the kernel has refused: its cgroup's values count as unknown, and
/// release_retained() writes them again, at the next event where the refusal may pass (kBusy), else
/// after releaseDelay.
void leave_unwritten(Transaction& transaction, const core::PodRecord& record, const Error& reason);

/// Takes out a container that joined in this event and cannot have its place, so that it does not
/// count for its pod, and finishes the transaction.
void withdraw(Transaction& transaction, const core::PodRecord& record,
              const core::ContainerRecord& container, const Error& reason);

/// Does what has waited for its time: removes cgroups of released pods, writes values that were
/// refused. A few a call, so that an event's cost stays bounded. What fails with one pod is logged,
/// and left to the next transaction.
void release_retained(Transaction& transaction);
/// What happens to the cgroup and the record of a pod that has left the sums (released_at is set).
[[nodiscard]] Status end_pod(Transaction& transaction, core::PodRecord record);

/// Containers that were placed, but whose creating process has gone without a confirmation: those
/// that live nevertheless are confirmed, the others dropped. What fails with one pod is logged, and
/// left to the next transaction.
/// @param list  of the process that calls, if it places containers for an engine: of its own it
/// creates only those
void expire_pending(Transaction& transaction, std::string_view except_id,
                    const EngineList* list = nullptr);

/// Turns a pending container whose cgroup is populated into a live one.
/// @return false if there is no process in it.
[[nodiscard]] bool confirm_from_cgroup(Transaction& transaction, core::ContainerRecord& container);

}  // namespace podqos::app

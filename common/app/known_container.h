#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/identity.h"
#include "common/core/reconciliation.h"
#include "common/core/record.h"

namespace podqos::app {

/// A recorded container: its pod's record and its index in it.
struct KnownContainer {
  core::PodRecord record;
  std::size_t index = 0;
  /// The container's entry in `record`.
  [[nodiscard]] core::ContainerRecord& container() { return record.containers[index]; }
};

/// Finds a container by id and bundle: an exact match, or the only one of that id whose bundle is
/// not known yet; if `bundle` is empty, the only one of that id.
/// @return nullopt if there is none; kConflict if several match.
[[nodiscard]] Result<std::optional<KnownContainer>> find_container(Transaction& transaction,
                                                                   const std::string& id,
                                                                   const std::string& bundle);

/// The uid of the pod with the container's sandbox, as recorded by whichever interface (NRI, hook
/// or wrapper) reported the sandbox first: not all of them report the uid. For an unknown pod, the
/// uid in `identity`.
[[nodiscard]] Result<std::string> uid_by_sandbox(Transaction& transaction,
                                                 const core::Identity& identity,
                                                 const std::string& id);

/// Matches a container that is recorded without its bundle and reported with it, or the other way
/// round, and sets the bundle in both.
/// @return its old index entry, if that must be removed.
[[nodiscard]] std::optional<core::IndexEntry> recognise(Transaction& transaction,
                                                        core::PodRecord& record,
                                                        core::ContainerFacts& facts);

/// The cgroup of a process in the memory controller's hierarchy, or in the first one listed.
/// @return kNotFound if the process has ended or is in no cgroup.
/// @note /proc/PID/cgroup, cgroups(7).
[[nodiscard]] Result<std::string> real_cgroup(Pid pid);

/// True if the container's init runs, or while it is pending, the process that creates it.
[[nodiscard]] bool lives(cgroup::Machine& machine, const core::ContainerRecord& container);
/// True if any container of the pod does.
[[nodiscard]] bool has_living_container(cgroup::Machine& machine, const core::PodRecord& record);

/// True if a living container of an adopted pod has the name of `ended`. Not observed for other
/// pods, where it does not matter (core::forget_container()).
[[nodiscard]] bool is_replaced(cgroup::Machine& machine, const core::PodRecord& record,
                               const core::ContainerRecord& ended);

/// The init process of a container, found in its cgroup.
/// @return nullopt if there is no process in the cgroup, or if the cgroup is not the container's
///         alone.
[[nodiscard]] std::optional<core::InitProcess> find_init(cgroup::Machine& machine,
                                                         const core::ContainerRecord& container);

}  // namespace podqos::app

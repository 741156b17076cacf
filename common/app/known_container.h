#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/identity.h"
#include "common/core/record.h"

namespace podqos::app {

/// A container that podqos knows: its pod's record, and where it stands there.
struct KnownContainer {
  core::PodRecord record;
  std::size_t index = 0;
  [[nodiscard]] core::ContainerRecord& container() { return record.containers[index]; }
};

/// The container that id and bundle mean: an exact match, else the only one of that id whose bundle
/// is not known yet, or, where none is named, the only one of that id.
/// @return nullopt for one that is not known; kConflict where several may be meant.
[[nodiscard]] Result<std::optional<KnownContainer>> find_container(Transaction& transaction,
                                                                   const std::string& id,
                                                                   const std::string& bundle);

/// The uid of the pod whose sandbox is the container's, whichever way in has told of it first: not
/// each of an engine's names the uid. Of a pod that is not known, the uid that `identity` has.
[[nodiscard]] Result<std::string> uid_by_sandbox(Transaction& transaction,
                                                 const core::Identity& identity,
                                                 const std::string& id);

/// Lets a container that is known under its id, and is told of with its bundle or the other way
/// round, have one name in both.
/// @return its entry so far, if that is to go.
[[nodiscard]] std::optional<core::IndexEntry> recognise(Transaction& transaction,
                                                        core::PodRecord& record,
                                                        core::ContainerFacts& facts);

/// The real cgroup of a process in memory's hierarchy, else in the first.
[[nodiscard]] Result<std::string> real_cgroup(Pid pid);

}  // namespace podqos::app

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

}  // namespace podqos::app

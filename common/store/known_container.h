#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/core/pods/identity.h"
#include "common/core/record.h"
#include "common/store/record_store.h"

namespace podqos::store {

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
[[nodiscard]] Result<std::optional<KnownContainer>> find_container(RecordStore& records,
                                                                   const std::string& id,
                                                                   const std::string& bundle);

/// The uid of the pod with the container's sandbox, as recorded by whichever interface (NRI, hook
/// or wrapper) reported the sandbox first: not all of them report the uid. For an unknown pod, the
/// uid in `identity`.
[[nodiscard]] Result<std::string> uid_by_sandbox(RecordStore& records,
                                                 const core::Identity& identity,
                                                 const std::string& id);

}  // namespace podqos::store

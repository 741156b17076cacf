#pragma once

#include <optional>

#include "common/base/error.h"
#include "common/store/memory_store.h"
#include "common/store/store.h"
#include "common/sys/file_lock.h"

namespace podqos::store {

/// A copy of a state directory. No transaction takes place as long as this object lives.
struct StateCopy {
  StoredRecords records;
  std::optional<sys::FileLock> lock;  ///< absent on a file system that is mounted read-only
};

/// Copies a state directory under its lock and leaves it unchanged: corrupt files stay where they
/// are, and the copy's incidents name them.
/// @return nullopt if the state directory is missing; the errors of Store::open_existing().
[[nodiscard]] Result<std::optional<StateCopy>> copy_state(const StoreOptions& options);

}  // namespace podqos::store

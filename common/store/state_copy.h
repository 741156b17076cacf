#pragma once

#include <optional>
#include <string>
#include <string_view>

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

/// Records and tiers without the lock, and without the index: it never waits for a transaction, but
/// may see a part of one, mostly with `dirty` set. Each file is complete, since it is replaced by
/// rename. Records that cannot be read are counted.
/// @param path  the state directory
/// @return kTooLarge for more than 4,096 records; kCorrupt for tiers that cannot be parsed
[[nodiscard]] Result<std::optional<StoredRecords>> read_state(const std::string& path);

/// Whether the end of this container may change the state. False only if no transaction was
/// interrupted and the index has no entry for the id: entries are written before the pod's record
/// and removed after it. True if the state cannot be read. Takes no lock.
[[nodiscard]] bool may_involve(const std::string& state_dir, std::string_view id);

}  // namespace podqos::store

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// An entry of the index that leads from a container to its pod's record. Ids with the same hash
/// share a name, and so may containers of different pods: the records tell.
struct IndexEntry {
  std::string name;  ///< index_name() of the container's id
  std::string uid;   ///< of its pod
  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

/// Name of the entries of a container id: its 64-bit FNV-1a hash as 16 hex digits.
[[nodiscard]] std::string index_name(std::string_view id);

/// Whether `name` has the form that index_name() returns. False for temporary and corrupt files.
[[nodiscard]] bool is_index_name(std::string_view name);

/// Reads the entries of a name: a symbolic link whose target is the pods' uids, separated by '/'.
/// @return empty if the link is missing; kCorrupt for a file of another kind or an invalid uid
[[nodiscard]] Result<std::vector<std::string>> read_entries(const sys::Directory& index,
                                                            const std::string& name);
/// Adds an entry; one that is there stays. The caller must hold the lock.
/// @return the errors of read_entries() and write_entries()
[[nodiscard]] Status add_entry(const sys::Directory& index, const IndexEntry& entry);
/// Replaces the entries of a name: in one step, so that a reader finds the old or the new ones. The
/// caller must hold the lock.
/// @return kTooLarge for more uids than a link can hold, some 100
[[nodiscard]] Status write_entries(const sys::Directory& index, const std::string& name,
                                   const std::vector<std::string>& uids);

}  // namespace podqos::store

#pragma once

#include <string>
#include <string_view>

namespace podqos::store {

/// Name of the index file of a container id: the 64-bit FNV-1a hash as 16 hex digits. Ids with the
/// same hash share a file, so each entry holds its id.
[[nodiscard]] std::string index_name(std::string_view id);

/// Whether `name` has the form that index_name() returns. False for temporary and corrupt files.
[[nodiscard]] bool is_index_name(std::string_view name);

}  // namespace podqos::store

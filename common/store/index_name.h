#pragma once

#include <string>
#include <string_view>

namespace podqos::store {

/// File name of an index entry: FNV-1a of the id as 16 hex digits. Ids that collide share a file;
/// entries carry the id.
[[nodiscard]] std::string index_name(std::string_view id);

/// Can `name` come from index_name()? False for temporary files and those set aside.
[[nodiscard]] bool is_index_name(std::string_view name);

}  // namespace podqos::store

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace podqos::cgroup {

/// The value of `key` in a flat keyed file ("key value" per line); nullopt if the key is missing or
/// its value is not an integer.
/// @note Documentation/admin-guide/cgroup-v2.rst, "Format".
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

}  // namespace podqos::cgroup

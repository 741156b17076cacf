#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace podqos::cgroup {

/// Returns the text before the next separator, or all of it if there is none, and removes both from
/// `rest`.
std::string_view read_until(std::string_view& rest, char separator);

/// The value of `key` in a flat keyed file ("key value" per line); nullopt if the key is missing or
/// its value is not an integer.
/// @note Documentation/admin-guide/cgroup-v2.rst, "Format".
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

}  // namespace podqos::cgroup

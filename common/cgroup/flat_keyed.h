#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace podqos::cgroup {

/// What stands before the next separator, or all; both are taken from `rest`.
std::string_view read_until(std::string_view& rest, char separator);

/// The value behind `key` in "key value" lines, the kernel's flat keyed files.
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

}  // namespace podqos::cgroup

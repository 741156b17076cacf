#pragma once

#include <string_view>

// Absolute paths of cgroups, "/a/b": no '/' at the end but that of the root, "/".
namespace podqos {

/// "/a" of "/a/b"; "/" of "/a" and of "/".
[[nodiscard]] std::string_view parent_of(std::string_view path);
/// "b" of "/a/b"; "" of "/".
[[nodiscard]] std::string_view leaf_of(std::string_view path);
/// Whether `path` lies below `top`, at any depth; false if either is "".
[[nodiscard]] bool is_below(std::string_view path, std::string_view top);
/// Whether `path` is `top` or lies below it; false if `top` is "".
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view top);

}  // namespace podqos

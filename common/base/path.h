#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

// Absolute paths of cgroups, "/a/b": no '/' at the end but that of the root, "/".
namespace podqos {

/// "/a" of "/a/b"; "/" of "/a" and of "/".
[[nodiscard]] inline std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "/" : path.substr(0, std::max<std::size_t>(slash, 1));
}
/// "b" of "/a/b"; "" of "/".
[[nodiscard]] inline std::string_view leaf_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}
/// Whether `path` lies below `top`, at any depth; false if either is "".
[[nodiscard]] inline bool is_below(std::string_view path, std::string_view top) {
  if (top == "/") return path.size() > 1;
  return !top.empty() && path.starts_with(top) && path.substr(top.size()).starts_with('/');
}
/// Whether `path` is `top` or lies below it; false if `top` is "".
[[nodiscard]] inline bool is_at_or_below(std::string_view path, std::string_view top) {
  return is_below(path, top) || (path == top && !top.empty());
}

}  // namespace podqos

#include "common/base/path.h"

#include <algorithm>
#include <cstddef>

namespace podqos {

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "/";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string_view leaf_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool is_below(std::string_view path, std::string_view top) {
  if (top == "/") return path.size() > 1;
  return !top.empty() && path.size() > top.size() && path.starts_with(top) &&
         path[top.size()] == '/';
}

bool is_at_or_below(std::string_view path, std::string_view top) {
  return is_below(path, top) || (path == top && !top.empty());
}

}  // namespace podqos

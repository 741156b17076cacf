#include "common/cgroup/open_hierarchy.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

/// Ten hierarchies of a v1 host stay well below the usual limit of 1024 descriptors.
constexpr std::size_t kMaxOpenDirectories = 32;

bool is_at_or_below(std::string_view path, std::string_view top) {
  if (top == "/" || path == top) return true;
  return path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/';
}

}  // namespace

OpenHierarchy::OpenHierarchy(Hierarchy description, sys::Directory root, sys::Resolve resolve)
    : description_(std::move(description)),
      root_(std::make_shared<const sys::Directory>(std::move(root))),
      resolve_(resolve) {}

bool OpenHierarchy::has(std::string_view controller) const {
  return std::ranges::find(description_.controllers, controller) != description_.controllers.end();
}

Result<DirectoryRef> OpenHierarchy::directory(std::string_view path) {
  if (path == "/") return root_;
  if (const auto found = directories_.find(path); found != directories_.end()) {
    return found->second;
  }
  // A lone "." would open the root once more under another name.
  if (!path.starts_with('/') || path == "/.") {
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(path), "\" is no path of a cgroup"));
  }
  Result<sys::Directory> opened = root_->open_directory(path.substr(1), resolve_);
  if (!opened) return fail(std::move(opened).error());
  if (directories_.size() >= kMaxOpenDirectories) directories_.clear();
  auto directory = std::make_shared<const sys::Directory>(std::move(*opened));
  directories_.emplace(path, directory);
  return directory;
}

void OpenHierarchy::forget(std::string_view path) {
  std::erase_if(directories_,
                [path](const auto& entry) { return is_at_or_below(entry.first, path); });
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return std::string{path.substr(0, slash)};
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace podqos::cgroup

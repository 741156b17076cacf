#include "common/cgroup/open_hierarchy.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/control_file.h"

namespace podqos::cgroup {

namespace {

/// With ten v1 hierarchies this stays well below the usual limit of 1024 descriptors.
constexpr std::size_t kMaxOpenDirectories = 32;

/// Whether the file system is a cgroup hierarchy of this version.
bool is_of(core::CgroupVersion version, const struct statfs& file_system) {
  switch (version) {
    case core::CgroupVersion::kV1: return file_system.f_type == CGROUP_SUPER_MAGIC;
    case core::CgroupVersion::kV2: return file_system.f_type == CGROUP2_SUPER_MAGIC;
  }
  return false;
}

}  // namespace

OpenHierarchy::OpenHierarchy(Hierarchy description, sys::Resolve resolve)
    : description_(std::move(description)), resolve_(resolve) {}

Result<bool> OpenHierarchy::is_usable() {
  if (!root_) {
    PODQOS_ASSIGN(root_, open_root());
  }
  return *root_ != nullptr;
}

Result<bool> OpenHierarchy::is_writable() {
  PODQOS_ASSIGN(const bool usable, is_usable());
  return usable && description_.writable;
}

std::optional<ino_t> OpenHierarchy::root_inode() {
  struct stat file{};
  if (!is_usable().value_or(false) || ::fstat((*root_)->fd(), &file) != 0 ||
      file.st_dev != description_.device)
    return std::nullopt;
  return file.st_ino;
}

Result<DirectoryRef> OpenHierarchy::open_root() {
  Result<sys::Directory> root = sys::Directory::open(description_.mount_point);
  if (!root && root.error().code == ErrorCode::kNotFound) return nullptr;
  if (!root) return fail(std::move(root).error());
  struct statfs file_system{};
  if (::fstatfs(root->fd(), &file_system) != 0)
    return fail_errno(errno, cat("statfs ", description_.mount_point));
  if (!is_of(description_.version, file_system)) return nullptr;
  // Includes a read-only bind mount: statfs(2) reports the flags of the mount.
  description_.writable = (static_cast<std::uint64_t>(file_system.f_flags) & ST_RDONLY) == 0;
  if (description_.version == core::CgroupVersion::kV2) {
    PODQOS_ASSIGN(const auto controllers, read_value(*root, "cgroup.controllers"));
    description_.controllers = parts_of(controllers, ' ');
  }
  return std::make_shared<const sys::Directory>(std::move(*root));
}

bool OpenHierarchy::has(std::string_view controller) const {
  return std::ranges::find(description_.controllers, controller) !=
             description_.controllers.end() &&
         refusal_of(controller) == nullptr;
}

void OpenHierarchy::refuse(std::string_view controller, std::string why) {
  refused_.insert_or_assign(std::string{controller}, std::move(why));
}

const std::string* OpenHierarchy::refusal_of(std::string_view controller) const {
  const auto found = refused_.find(controller);
  return found == refused_.end() ? nullptr : &found->second;
}

Result<DirectoryRef> OpenHierarchy::directory(std::string_view path) {
  PODQOS_ASSIGN(const bool usable, is_usable());
  if (!usable)
    return fail(ErrorCode::kNotFound, cat(description_.mount_point, ": no longer mounted"));
  if (path == "/") return *root_;
  if (const auto found = directories_.find(path); found != directories_.end()) {
    return found->second;
  }
  // "/." would open the root a second time under another name.
  if (!path.starts_with('/') || path == "/.") {
    return fail(ErrorCode::kInvalidArgument, cat("\"", printable(path), "\" is not a cgroup path"));
  }
  PODQOS_ASSIGN(auto opened, (*root_)->open_directory(path.substr(1), resolve_));
  if (directories_.size() >= kMaxOpenDirectories) directories_.clear();
  auto directory = std::make_shared<const sys::Directory>(std::move(opened));
  directories_.emplace(path, directory);
  return directory;
}

Result<DirectoryRef> OpenHierarchy::find(std::string_view path) {
  auto found = directory(path);
  if (!found && found.error().code == ErrorCode::kNotFound) return nullptr;
  return found;
}

void OpenHierarchy::forget(std::string_view path) {
  std::erase_if(directories_,
                [path](const auto& entry) { return is_at_or_below(entry.first, path); });
}

}  // namespace podqos::cgroup

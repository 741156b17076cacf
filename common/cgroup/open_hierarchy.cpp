#include "common/cgroup/open_hierarchy.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/value.h"
#include "common/sys/wake_up.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxAttribute = 65'536;  // XATTR_SIZE_MAX of the kernel
// Attributes of podqos are small; the first read avoids a larger buffer.
constexpr std::size_t kFirstAttribute = 4'096;

/// Writes the whole value with one write(2), since the kernel parses each write on its own, and
/// takes it whole or not at all: EIO for a partial write.
OrErrno<void> write_value(const OrErrno<sys::UniqueFd>& file, std::string_view value) {
  if (!file) return std::unexpected(file.error());
  const ssize_t size = ::write(file->get(), value.data(), value.size());
  if (size == std::ssize(value)) return {};
  return std::unexpected(size < 0 ? errno : EIO);
}

/// How long the kernel may make room for a lower limit of cgroup v1: what a transaction waits for
/// others.
constexpr std::chrono::milliseconds kMakingRoom{50};

/// As write_value(), and EBUSY if the kernel has not made room in time. It reclaims until the usage
/// fits, as long as that frees anything at all: for ever, where pods read page cache back as fast
/// (mm/memcontrol-v1.c mem_cgroup_resize_max). Only a signal ends it.
OrErrno<void> lower_limit(const OrErrno<sys::UniqueFd>& file, std::string_view value) {
  const sys::WakeUp wake_up{kMakingRoom};
  auto written = write_value(file, value);
  if (!written && written.error() == EINTR) return std::unexpected(EBUSY);
  return written;
}

/// Which limit of cgroups leaves no room for one of this path, and the remedy; "" if none does.
/// @note kernel/cgroup/cgroup.c cgroup_check_hierarchy_limits()
std::string describe_full(OpenHierarchy& hierarchy, std::string_view path) {
  std::int64_t depth = 0;
  for (; path != "/"; ++depth) {
    path = parent_of(path);
    const auto stat = hierarchy.read(path, "cgroup.stat");
    const auto descendants = stat ? find_key(*stat, "nr_descendants") : std::nullopt;
    for (const auto& [file, held] : {std::pair{"cgroup.max.descendants", descendants.value_or(0)},
                                     std::pair{"cgroup.max.depth", depth}}) {
      const auto text = hierarchy.read(path, file);
      const auto most = text ? parse_int(*text) : std::nullopt;
      if (most && held >= *most)
        return cat(" (", hierarchy.description().mount_point, path == "/" ? "" : path, "/", file,
                   " is ", *most, ", which is reached: raise it)");
    }
  }
  return {};
}

}  // namespace

Result<std::string> read_control(const OrErrno<sys::UniqueFd>& file, std::string_view what) {
  constexpr std::size_t kMaxControl = 1U << 20U;
  if (!file) return fail_errno(file.error(), cat("open ", what));
  auto text = sys::read_all(file->get(), kMaxControl, what, sys::FileEnd::kShortRead);
  if (text) text->resize(without_newline(*text).size());
  return text;
}

OpenHierarchy::OpenHierarchy(Hierarchy description, sys::Resolve resolve)
    : description_(std::move(description)), resolve_(resolve) {}

Result<bool> OpenHierarchy::is_usable() {
  if (!is_opened_) PODQOS_TRY(open_root());
  is_opened_ = true;
  return root_.has_value();
}

Result<bool> OpenHierarchy::is_writable() {
  PODQOS_ASSIGN(const bool usable, is_usable());
  return usable && description_.writable;
}

Status OpenHierarchy::open_root() {
  Result<sys::Directory> root = sys::Directory::open(description_.mount_point, resolve_);
  // It may be gone, or a file be mounted over it.
  std::error_code ignored;
  if (!root && !std::filesystem::is_directory(description_.mount_point, ignored)) return {};
  if (!root) return fail(std::move(root).error());
  struct statfs file_system{};
  struct stat file{};
  const bool compares = description_.device != 0;
  if (::fstatfs(root->fd(), &file_system) != 0 || (compares && ::fstat(root->fd(), &file) != 0))
    return fail_errno(errno, cat("stat ", description_.mount_point));
  const bool is_v2 = description_.version == core::CgroupVersion::kV2;
  if (file_system.f_type != (is_v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC)) return {};
  if (compares && file.st_dev != description_.device) return {};
  // Includes a read-only bind mount: statfs(2) reports the flags of the mount.
  description_.writable = (static_cast<std::uint64_t>(file_system.f_flags) & ST_RDONLY) == 0;
  root_ = std::move(*root);
  return is_v2 ? read_controllers() : Status{};
}

Status OpenHierarchy::read_controllers() {
  constexpr std::string_view kFile = "cgroup.controllers";
  PODQOS_ASSIGN(const auto controllers, read_control(root_->open_any(kFile, O_RDONLY),
                                                     cat(description_.mount_point, "/", kFile)));
  description_.controllers = parts_of(controllers, ' ');
  return {};
}

Status OpenHierarchy::begin_again() {
  refused_.clear();
  const bool is_v2 = description_.version == core::CgroupVersion::kV2;
  return is_v2 && root_ ? read_controllers() : Status{};
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

Result<std::string> OpenHierarchy::beneath(std::string_view path) {
  PODQOS_ASSIGN(const bool usable, is_usable());
  if (!usable)
    return fail(ErrorCode::kNotFound, cat(description_.mount_point, ": no longer mounted"));
  if (path == "/") return std::string{};
  if (path.starts_with('/') && sys::is_relative_path(path.substr(1)))
    return std::string{path.substr(1)};
  return fail(ErrorCode::kInvalidArgument, cat("\"", printable(path), "\" is not a cgroup path"));
}

std::string OpenHierarchy::place_of(std::string_view path) const {
  return cat(description_.mount_point, path == "/" ? "" : path);
}

Result<bool> OpenHierarchy::exists(std::string_view path) {
  PODQOS_ASSIGN(const std::string below, beneath(path));
  struct stat status{};
  if (below.empty() || ::fstatat(root_->fd(), below.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return true;
  if (errno == ENOENT) return false;
  return fail_errno(errno, cat("stat ", place_of(path)));
}

Result<std::vector<std::string>> OpenHierarchy::children(std::string_view path) {
  PODQOS_ASSIGN(const std::string below, beneath(path));
  struct stat status{};
  // Most have none, and need not be opened.
  if (::fstatat(root_->fd(), below.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      sys::has_no_subdirectories(status))
    return std::vector<std::string>{};
  PODQOS_ASSIGN(const auto cgroup, root_->open_directory(below));
  return cgroup.subdirectories();
}

Result<sys::Directory> OpenHierarchy::directory(std::string_view path) {
  PODQOS_ASSIGN(const std::string below, beneath(path));
  return root_->open_directory(below);
}

OrErrno<sys::UniqueFd> OpenHierarchy::open_file(std::string_view path, std::string_view file,
                                                int flags) {
  const auto below = beneath(path);
  if (!below && below.error().code == ErrorCode::kNotFound) return std::unexpected(ENOENT);
  if (!below || file.contains('/')) return std::unexpected(EINVAL);
  return root_->open_any(cat(*below, below->empty() ? "" : "/", file), flags | O_NOFOLLOW);
}

Result<std::string> OpenHierarchy::read(std::string_view path, std::string_view file) {
  return read_control(open_file(path, file, O_RDONLY), cat(place_of(path), "/", file));
}

OrErrno<void> OpenHierarchy::write(std::string_view path, std::string_view file,
                                   std::string_view value) {
  return write_value(open_file(path, file, O_WRONLY), value);
}

OrErrno<std::optional<std::string>> OpenHierarchy::change(const core::WriteFile& step) {
  // With O_NONBLOCK newer kernels set a memory limit without reclaiming first, which may take
  // seconds.
  const int wait = step.controller == core::Controller::kMemory ? O_NONBLOCK : 0;
  auto file = open_file(step.path, step.file, O_RDWR | wait);
  if (!file && file.error() == EACCES) file = open_file(step.path, step.file, O_WRONLY | wait);
  // A file that cannot be read is always written.
  const auto current = read_control(file, step.file);
  if (current && holds_value(step.file, *current, step.value)) return std::nullopt;
  const auto written = current && makes_room(step.file, *current, step.value)
                           ? lower_limit(file, step.value)
                           : write_value(file, step.value);
  if (!written) return std::unexpected(written.error());
  return current.value_or("");
}

Result<bool> OpenHierarchy::make(std::string_view path) {
  PODQOS_ASSIGN(const std::string below, beneath(path));
  if (::mkdirat(root_->fd(), below.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) == 0) return true;
  const int err = errno;
  if (err == EEXIST) return false;
  Error error = Error::from_errno(err, cat("mkdir ", place_of(path)));
  // Not a lack of memory on the host: the cgroup's structures are charged to its parent.
  if (err == ENOMEM) error.message += " (the parent's memory limit is exhausted)";
  if (err == EAGAIN) error.message += describe_full(*this, path);
  return fail(std::move(error));
}

Status OpenHierarchy::remove(std::string_view path) {
  const auto below = beneath(path);
  if (!below && below.error().code == ErrorCode::kNotFound) return {};
  if (!below) return fail(below.error());
  if (::unlinkat(root_->fd(), below->c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, cat("rmdir ", place_of(path)));
}

Result<std::optional<std::string>> OpenHierarchy::attribute(std::string_view path,
                                                            const char* name) {
  PODQOS_TRY(beneath(path));
  const std::string place = place_of(path);
  std::string value(kFirstAttribute, '\0');
  ssize_t size = ::lgetxattr(place.c_str(), name, value.data(), value.size());
  if (size < 0 && errno == ERANGE) {
    value.resize(kMaxAttribute);
    size = ::lgetxattr(place.c_str(), name, value.data(), value.size());
  }
  if (size < 0) {
    if (errno == ENODATA || errno == EOPNOTSUPP) return std::nullopt;
    return fail_errno(errno, cat("read attribute ", name, " of ", place));
  }
  value.resize(static_cast<std::size_t>(size));
  return value;
}

Status OpenHierarchy::set_attribute(std::string_view path, const char* name,
                                    std::string_view value) {
  PODQOS_TRY(beneath(path));
  const std::string place = place_of(path);
  if (::lsetxattr(place.c_str(), name, value.data(), value.size(), 0) == 0) return {};
  return fail_errno(errno, cat("set attribute ", name, " of ", place));
}

}  // namespace podqos::cgroup

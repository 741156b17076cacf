#include "common/sys/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "common/base/text.h"

namespace podqos::sys {

namespace {

constexpr std::uint64_t kBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
constexpr mode_t kNewFileMode = 0600;
constexpr std::size_t kMaxComponent = NAME_MAX;
constexpr std::size_t kMaxPath = PATH_MAX - 1;
// Without O_NOFOLLOW, with which openat2(2) also reports a symlink as ENOTDIR; neither variant
// follows symlinks.
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

using Opened = OrErrno<UniqueFd>;

/// Wraps the result of an open call.
Opened opened(long fd) {
  if (fd < 0) return std::unexpected(errno);
  return UniqueFd{static_cast<int>(fd)};
}

std::string join(const std::string& directory, std::string_view path) {
  return cat(directory, directory.ends_with('/') ? "" : "/", printable(path, kMaxPath));
}

/// Whether `name` is a single path component other than "." and "..".
bool is_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxComponent &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::unexpected<Error> refuse_path(const std::string& directory, std::string_view path) {
  return fail(ErrorCode::kInvalidArgument,
              cat(directory, ": \"", printable(path), "\" is not a valid path beneath it"));
}

bool is_symlink(int directory, const char* name) {
  struct stat status{};
  return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

OrErrno<bool> is_same_file_system(int fd, int base) {
  struct stat status{};
  struct stat base_status{};
  if (::fstat(fd, &status) != 0 || ::fstat(base, &base_status) != 0) return std::unexpected(errno);
  if (status.st_dev == base_status.st_dev) return true;
  // On overlayfs st_dev may be that of the layer that holds the file; statfs(2) reports the overlay
  // itself.
  struct statfs own{};
  struct statfs of_base{};
  if (::fstatfs(fd, &own) != 0 || ::fstatfs(base, &of_base) != 0) return std::unexpected(errno);
  return own.f_type == OVERLAYFS_SUPER_MAGIC && of_base.f_type == OVERLAYFS_SUPER_MAGIC &&
         std::ranges::equal(own.f_fsid.__val, of_base.f_fsid.__val);
}

/// @param base  the directory beneath which files are opened
Opened open_component(int directory, const char* name, int flags, int base) {
  Opened fd = opened(::openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, kNewFileMode));
  if (!fd) {
    // With O_DIRECTORY openat(2) fails with ENOTDIR for a symlink; ELOOP is what openat2(2)
    // returns.
    if (fd.error() == ENOTDIR && is_symlink(directory, name)) return std::unexpected(ELOOP);
    return fd;
  }
  const OrErrno<bool> same = is_same_file_system(fd->get(), base);
  if (!same) return std::unexpected(same.error());
  if (!*same) return std::unexpected(EXDEV);
  return fd;
}

/// openat(2) for each component: equivalent to openat2(2) with kBeneath, at one call per component.
Opened open_componentwise(int directory, std::string_view path, int flags) {
  UniqueFd held;
  int at = directory;
  while (true) {
    const std::size_t slash = path.find('/');
    const bool last = slash == std::string_view::npos;
    const std::string name{path.substr(0, slash)};
    Opened next = open_component(at, name.c_str(), last ? flags : O_PATH | O_DIRECTORY, directory);
    if (!next || last) return next;
    held = std::move(*next);
    at = held.get();
    path.remove_prefix(slash + 1);
  }
}

/// Opens a path without leaving the directory or its file system and without following symlinks.
Opened open_beneath(int directory, std::string_view path, int flags, Resolve resolve) {
  if (resolve == Resolve::kOpenat2) {
    const open_how how{.flags = static_cast<unsigned>(flags),
                       .mode = (flags & O_CREAT) != 0 ? kNewFileMode : 0,
                       .resolve = kBeneath};
    const std::string name{path};
    Opened fd = opened(::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how));
    // ENOSYS before Linux 5.6; EPERM from the seccomp profiles of container engines.
    if (fd || (fd.error() != ENOSYS && fd.error() != EPERM)) return fd;
  }
  return open_componentwise(directory, path, flags);
}

std::unexpected<Error> refuse_kind(const std::string& path) {
  return fail(ErrorCode::kConflict, cat("open ", path, ": not a regular file"));
}

enum class Entries : std::uint8_t { kAll, kDirectories };

/// The names of entries except "." and "..", the first `most` of them.
// getdents64(2) on the existing descriptor: opendir(3) would open, stat and allocate once more.
Result<std::vector<std::string>> list(const Directory& directory, Entries which, std::size_t most) {
  const std::string what = cat("list ", directory.path());
  // The descriptor's offset is shared by all calls.
  if (::lseek(directory.fd(), 0, SEEK_SET) != 0) return fail_errno(errno, what);
  alignas(dirent64) std::array<char, 16'384> buffer;  // NOLINT(*-member-init): the kernel fills it
  std::vector<std::string> names;
  while (true) {
    const ssize_t size = ::getdents64(directory.fd(), buffer.data(), buffer.size());
    if (size < 0) return fail_errno(errno, what);
    if (size == 0) return names;
    const dirent64* entry = nullptr;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size); at += entry->d_reclen) {
      entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      const std::string_view name{static_cast<const char*>(entry->d_name)};
      const bool is_wanted = which == Entries::kAll || entry->d_type == DT_DIR;
      if (is_wanted && name != "." && name != "..") names.emplace_back(name);
      if (names.size() >= most) return names;
    }
  }
}

}  // namespace

bool is_relative_path(std::string_view path) {
  if (path.empty() || path.ends_with('/') || path.size() > kMaxPath) return false;
  while (!path.empty()) {
    if (!is_component(read_until(path, '/'))) return false;
  }
  return true;
}

namespace {

/// Waits until there is something to read, or the end.
/// @return false if there was neither for so long.
bool await_input(int fd, std::optional<std::chrono::milliseconds> patience) {
  if (!patience) return true;
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, static_cast<int>(patience->count()));
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

}  // namespace

Result<std::string> read_all(int fd, std::size_t limit, std::string_view what, FileEnd end,
                             std::optional<std::chrono::milliseconds> patience) {
  // One read for most files, a config.json included, into an uninitialised buffer on the stack.
  std::array<char, 65'536> chunk;  // NOLINT(*-member-init): read(2) fills it
  std::string content;
  while (content.size() <= limit) {
    if (!await_input(fd, patience))
      return fail(ErrorCode::kTimeout, cat("read ", what, ": its writer has not closed it"));
    const ssize_t size = ::read(fd, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(errno, cat("read ", what));
    content.append(chunk.data(), static_cast<std::size_t>(size));
    const bool is_short = static_cast<std::size_t>(size) < chunk.size();
    const bool is_last = size == 0 || (is_short && end == FileEnd::kShortRead);
    if (is_last && content.size() <= limit) return content;
  }
  return fail(ErrorCode::kTooLarge, cat("read ", what, ": more than ", limit, " bytes"));
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", path));
  return read_all(file.get(), limit, path, FileEnd::kShortRead);
}

bool has_no_subdirectories(const struct stat& status) {
  // Its name, its "." and, on file systems that count them, each ".."; kernfs, which sysfs and
  // cgroups are in, does (fs/kernfs/inode.c kernfs_refresh_inode()).
  constexpr nlink_t kLinksOfNone = 2;
  return S_ISDIR(status.st_mode) && status.st_nlink == kLinksOfNone;
}

Result<Directory> Directory::open(const std::string& path, Resolve resolve) {
  Opened fd = opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string name = printable(path, kMaxPath);
  if (!fd) return fail_errno(fd.error(), cat("open ", name));
  return Directory{std::move(*fd), std::move(name), resolve};
}

std::string Directory::path_of(std::string_view name) const {
  return join(path_, name);
}

Result<Directory> Directory::open_directory(std::string_view path) const {
  if (path.empty() || path == ".") {
    Opened same = opened(::openat(fd(), ".", kDirectoryFlags));
    if (!same) return fail_errno(same.error(), cat("open ", path_));
    return Directory{std::move(*same), path_, resolve_};
  }
  if (!is_relative_path(path)) return refuse_path(path_, path);
  Opened below = open_beneath(fd(), path, kDirectoryFlags, resolve_);
  std::string name = join(path_, path);
  if (!below) return fail_errno(below.error(), cat("open ", name));
  return Directory{std::move(*below), std::move(name), resolve_};
}

OrErrno<UniqueFd> Directory::open_any(std::string_view path, int flags) const {
  if (!is_relative_path(path)) return std::unexpected(EINVAL);
  return open_beneath(fd(), path, flags | O_CLOEXEC, resolve_);
}

Result<OpenFile> Directory::open_file(std::string_view path, int flags) const {
  if (!is_relative_path(path)) return refuse_path(path_, path);
  const int safe_flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Opened file = open_beneath(fd(), path, safe_flags, resolve_);
  if (!file) {
    const int err = file.error();
    // Returned for write access to a FIFO without a reader, a socket or a directory.
    if (err == ENXIO || err == EISDIR) return refuse_kind(join(path_, path));
    return fail_errno(err, cat("open ", join(path_, path)));
  }
  OpenFile opened{.fd = std::move(*file)};
  if (::fstat(opened.fd.get(), &opened.status) != 0)
    return fail_errno(errno, cat("stat ", join(path_, path)));
  if (!S_ISREG(opened.status.st_mode)) return refuse_kind(join(path_, path));
  return opened;
}

Result<std::string> Directory::read_file(std::string_view path, std::size_t limit) const {
  PODQOS_ASSIGN(const auto file, open_file(path, O_RDONLY));
  return read_all(file.fd.get(), limit, join(path_, path), FileEnd::kShortRead);
}

Result<bool> Directory::make_directory(std::string_view name, mode_t mode) const {
  if (!is_component(name)) return refuse_path(path_, name);
  const std::string terminated{name};
  if (::mkdirat(fd(), terminated.c_str(), mode) == 0) return true;
  const int err = errno;
  const std::string what = cat("mkdir ", join(path_, name));
  struct stat status{};
  if (err != EEXIST || ::fstatat(fd(), terminated.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(err, what);
  if (S_ISDIR(status.st_mode)) return false;
  return fail(ErrorCode::kConflict, cat(what, ": exists and is not a directory"));
}

Result<bool> Directory::unlink(std::string_view name, const char* verb, int flags) const {
  if (!is_component(name)) return refuse_path(path_, name);
  if (::unlinkat(fd(), std::string{name}.c_str(), flags) == 0) return true;
  const int err = errno;
  if (err == ENOENT) return false;
  return fail_errno(err, cat(verb, join(path_, name)));
}

Result<std::vector<std::string>> Directory::entries() const {
  return list(*this, Entries::kAll, SIZE_MAX);
}

Result<std::vector<std::string>> Directory::subdirectories(std::size_t most) const {
  struct stat status{};
  if (::fstat(fd(), &status) == 0 && has_no_subdirectories(status))
    return std::vector<std::string>{};
  return list(*this, Entries::kDirectories, most);
}

}  // namespace podqos::sys

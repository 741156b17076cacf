#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sys/fd.h"

namespace podqos::sys {

/// How a path beneath a directory is resolved safely.
enum class Resolve : std::uint8_t {
  kOpenat2,  ///< openat2(RESOLVE_BENEATH|NO_SYMLINKS|NO_XDEV|NO_MAGICLINKS); falls back by itself
             ///< on ENOSYS or EPERM
  kComponentwise,  ///< openat(O_NOFOLLOW) per component, each checked to lie on the same file
                   ///< system
};

/// How the end of a file is detected.
enum class FileEnd : std::uint8_t {
  kEmptyRead,  ///< a read that returns 0 bytes: correct for any file
  /// A read that does not fill the buffer: correct for regular files and for files of /proc, /sys
  /// and cgroupfs that the kernel produces in one piece, but not for its lists (mountinfo,
  /// cgroup.procs), which arrive a few lines at a time. Saves one system call.
  kShortRead,
};

/// Whether `path` is relative, and has proper components only: none of them is "", "." or "..".
[[nodiscard]] bool is_relative_path(std::string_view path);

/// Reads all of `fd`, at most `limit` bytes; kTooLarge beyond.
/// @param what      name of the file, for errors
/// @param patience  kTimeout once nothing has come for so long; nullopt waits without limit
[[nodiscard]] Result<std::string> read_all(
    int fd, std::size_t limit, std::string_view what, FileEnd end = FileEnd::kEmptyRead,
    std::optional<std::chrono::milliseconds> patience = std::nullopt);

/// Reads a file of /proc or /sys, which the kernel produces in one piece.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t limit);

/// A file that was opened, and its state then.
struct OpenFile {
  UniqueFd fd;
  struct stat status = {};
};

/// Whether a directory has no subdirectories, as far as its link count tells: false on file systems
/// that do not count them.
[[nodiscard]] bool has_no_subdirectories(const struct stat& status);

/// A directory held open by its descriptor. All access is beneath it: symlinks, ".." and mount
/// points are not followed. `path` arguments are relative ("a/b"); errors name the full path.
class Directory {
 public:
  /// Opens an absolute path given by the operator or the kernel; symlinks are followed.
  /// @param resolve  of all paths beneath it
  static Result<Directory> open(const std::string& path, Resolve resolve = Resolve::kOpenat2);

  /// Opens a subdirectory; "" and "." open the directory itself again.
  /// @return kConflict for a symlink or a mount point on the way; kInvalidArgument for a path that
  /// is absolute, has "." or "..", or has an empty or overlong component.
  [[nodiscard]] Result<Directory> open_directory(std::string_view path) const;
  /// Opens what is there, whatever its kind; O_CLOEXEC is added to `flags`.
  /// @return EINVAL for a path that is not is_relative_path()
  [[nodiscard]] OrErrno<UniqueFd> open_any(std::string_view path, int flags) const;
  /// Opens a regular file. O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK|O_NOCTTY are added to `flags`, so that a
  /// FIFO does not block; a file created by O_CREAT gets mode 0600.
  /// @return kConflict for anything but a regular file, and for a symlink or mount point on the
  /// way.
  [[nodiscard]] Result<OpenFile> open_file(std::string_view path, int flags) const;
  /// Reads a regular file of at most `limit` bytes; kTooLarge beyond.
  [[nodiscard]] Result<std::string> read_file(std::string_view path, std::size_t limit) const;

  /// mkdir(2) of one component. False if the directory exists; kConflict if the name is used by
  /// anything else, symlinks included.
  [[nodiscard]] Result<bool> make_directory(std::string_view name, mode_t mode) const;
  /// rmdir(2) of one component. False if it does not exist; kBusy if it is not empty.
  [[nodiscard]] Result<bool> remove_directory(std::string_view name) const {
    return unlink(name, "rmdir ", AT_REMOVEDIR);
  }
  /// unlink(2) of one component. False if it does not exist.
  [[nodiscard]] Result<bool> remove_file(std::string_view name) const {
    return unlink(name, "remove ", 0);
  }
  /// Names of all entries except "." and "..", in the order of the file system.
  [[nodiscard]] Result<std::vector<std::string>> entries() const;
  /// Names of the subdirectories only; the first `most` of them.
  [[nodiscard]] Result<std::vector<std::string>> subdirectories(std::size_t most = SIZE_MAX) const;

  /// The descriptor stays owned by the object.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The path as it was opened, printable(), for messages only.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The path of `name` beneath it, for messages only.
  [[nodiscard]] std::string path_of(std::string_view name) const;

 private:
  [[nodiscard]] Result<bool> unlink(std::string_view name, const char* verb, int flags) const;

  Directory(UniqueFd fd, std::string path, Resolve resolve)
      : fd_(std::move(fd)), path_(std::move(path)), resolve_(resolve) {}
  UniqueFd fd_;
  std::string path_;
  Resolve resolve_;
};

}  // namespace podqos::sys

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sys/fd.h"

namespace podqos::sys {

/// How a path beneath a directory is opened safely.
enum class Resolve : std::uint8_t {
  kOpenat2,  ///< openat2(RESOLVE_BENEATH|NO_SYMLINKS|NO_XDEV|NO_MAGICLINKS); falls back by itself
             ///< on ENOSYS or EPERM
  kComponentwise,  ///< openat(O_NOFOLLOW) per component, each checked to lie on the same file
                   ///< system
};

/// How a file shows that there is no more to read.
enum class FileEnd : std::uint8_t {
  kEmptyRead,  ///< any file
  /// A regular file, and one of /proc, /sys or cgroupfs that the kernel writes in one piece; not
  /// its lists (mountinfo, cgroup.procs), which come a few lines at a time. One syscall less.
  kShortRead,
};

/// Reads everything up to `limit` bytes from `fd`; more is kTooLarge.
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t limit, std::string_view what,
                                           FileEnd end = FileEnd::kEmptyRead);
/// The same for a regular file of `size` bytes, which may have changed since: one read.
[[nodiscard]] Result<std::string> read_regular(int fd, std::size_t size, std::size_t limit,
                                               std::string_view what);

/// A directory held by descriptor. All access goes beneath it: no symlink, no "..", no other file
/// system is followed. `path` arguments are relative, "a/b"; error messages name the whole path.
class Directory {
 public:
  /// Opens an absolute path that the operator or the kernel named (symlinks on the way are
  /// followed).
  static Result<Directory> open(const std::string& path);

  /// Opens a subdirectory; "" and "." give a second descriptor of the same. kConflict for a symlink
  /// or another file system on the way, kInvalidArgument for a path that is absolute, has "." or
  /// ".." or an empty or over-long component.
  [[nodiscard]] Result<Directory> open_directory(std::string_view path,
                                                 Resolve resolve = Resolve::kOpenat2) const;
  /// Opens a file: O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK|O_NOCTTY are added (a FIFO must not block us), a
  /// file that O_CREAT makes gets mode 0600. kConflict for everything that is no regular file, and
  /// for a symlink or another file system on the way.
  [[nodiscard]] Result<UniqueFd> open_file(std::string_view path, int flags,
                                           Resolve resolve = Resolve::kOpenat2) const;
  [[nodiscard]] Result<std::string> read_file(std::string_view path, std::size_t limit) const;

  /// mkdir of one component. false: it was there already (and is a directory, no symlink).
  [[nodiscard]] Result<bool> make_directory(std::string_view name, mode_t mode) const;
  /// rmdir of one component. false: it was not there.
  [[nodiscard]] Result<bool> remove_directory(std::string_view name) const;
  [[nodiscard]] Result<bool> remove_file(std::string_view name) const;
  /// Names of the entries, "." and ".." left out.
  [[nodiscard]] Result<std::vector<std::string>> entries() const;
  /// Names of the subdirectories only.
  [[nodiscard]] Result<std::vector<std::string>> subdirectories() const;

  /// Extended attribute of at most 64 KiB of the directory itself; nullopt where it is not set or
  /// the file system has none.
  [[nodiscard]] Result<std::optional<std::string>> attribute(const char* name) const;
  [[nodiscard]] Status set_attribute(const char* name, std::string_view value) const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Directory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace podqos::sys

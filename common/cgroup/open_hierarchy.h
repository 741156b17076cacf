#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/layout.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::cgroup {

using sys::OrErrno;

/// A mounted cgroup hierarchy.
struct Hierarchy {
  core::CgroupVersion version = core::CgroupVersion::kV2;
  /// v1: "cpu", "cpuacct" … or "name=systemd", possibly among other options of the mount. v2:
  /// cgroup.controllers of the root, filled in when the hierarchy is opened.
  std::vector<std::string> controllers;
  /// Absolute path, escapes decoded.
  std::string mount_point;
  bool writable = true;  ///< false if mounted read-only; set when it is opened
  dev_t device = 0;      ///< device number of the file system; 0 if the text does not tell it
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

/// Reads an open control file of at most 1 MiB, which the kernel produces in one piece, trailing
/// newlines removed.
/// @param file  or why it could not be opened
/// @param what  its full path, for errors
[[nodiscard]] Result<std::string> read_control(const OrErrno<sys::UniqueFd>& file,
                                               std::string_view what);

/// A hierarchy whose root is opened at first use: of the ten hierarchies of a v1 host most
/// transactions need three. Cgroups are found beneath it by their path each time, so that one that
/// was removed is not taken for its successor.
class OpenHierarchy {
 public:
  OpenHierarchy(Hierarchy description, sys::Resolve resolve);

  /// Opens the root. False if it is gone or another file system is mounted over it.
  /// @return an error if that cannot be told; the next call tries again.
  [[nodiscard]] Result<bool> is_usable();
  /// Opens the root. Whether it is usable and not mounted read-only.
  /// @return the errors of is_usable()
  [[nodiscard]] Result<bool> is_writable();
  /// For the next transaction with a hierarchy that stays open: forgets what was refused, and reads
  /// the controllers of v2 again, which come and go with v1's hierarchies.
  [[nodiscard]] Status begin_again();
  /// The description; `writable`, and for v2 `controllers`, are only valid after is_usable().
  [[nodiscard]] const Hierarchy& description() const { return description_; }
  /// Whether the hierarchy has this controller; for v2 only valid after is_usable().
  /// A refused one counts as missing.
  [[nodiscard]] bool has(std::string_view controller) const;
  /// Notes that the kernel does not enable this controller for child cgroups, and why.
  void refuse(std::string_view controller, std::string why);
  /// Why a controller is not enabled for child cgroups; nullptr if it is, or that was not tried.
  [[nodiscard]] const std::string* refusal_of(std::string_view controller) const;
  /// The path of a cgroup for messages, and for system calls that take no directory.
  [[nodiscard]] std::string place_of(std::string_view path) const;

  // What follows is about the cgroup `path`; "/" is the root. Errors: kNotFound or ENOENT if the
  // cgroup does not exist or the hierarchy is not usable; kInvalidArgument or EINVAL for a path
  // that is not absolute or has an improper component; those of is_usable(), which write() and
  // change() report as EINVAL.

  [[nodiscard]] Result<bool> exists(std::string_view path);
  /// The names of its child cgroups.
  [[nodiscard]] Result<std::vector<std::string>> children(std::string_view path);
  /// Opens its directory, to list it.
  [[nodiscard]] Result<sys::Directory> directory(std::string_view path);
  /// Opens a control file; O_CLOEXEC|O_NOFOLLOW are added to `flags`.
  [[nodiscard]] OrErrno<sys::UniqueFd> open_file(std::string_view path, std::string_view file,
                                                 int flags);
  /// As read_control().
  [[nodiscard]] Result<std::string> read(std::string_view path, std::string_view file);
  /// Writes a control file.
  [[nodiscard]] OrErrno<void> write(std::string_view path, std::string_view file,
                                    std::string_view value);
  /// Writes a control file unless it holds the value already, see holds_value().
  /// @return what it held before, "" if that cannot be read; nullopt: it holds the value
  [[nodiscard]] OrErrno<std::optional<std::string>> change(const core::WriteFile& step);
  /// mkdir(2) of a cgroup whose parent exists, mode 0755; false if it exists itself. The error
  /// names a limit of cgroups (cgroup v2) that is reached.
  [[nodiscard]] Result<bool> make(std::string_view path);
  /// rmdir(2), if it exists; kBusy if it is in use.
  [[nodiscard]] Status remove(std::string_view path);
  /// An extended attribute of at most 64 KiB; nullopt if it is not set or the file system does not
  /// support attributes.
  [[nodiscard]] Result<std::optional<std::string>> attribute(std::string_view path,
                                                             const char* name);
  /// Creates or replaces the attribute.
  [[nodiscard]] Status set_attribute(std::string_view path, const char* name,
                                     std::string_view value);

 private:
  [[nodiscard]] Status open_root();
  [[nodiscard]] Status read_controllers();
  /// The path beneath the root's directory: "" for "/".
  [[nodiscard]] Result<std::string> beneath(std::string_view path);

  Hierarchy description_;
  bool is_opened_ = false;
  std::optional<sys::Directory> root_;  ///< once opened: nullopt if it is not usable
  sys::Resolve resolve_;
  std::map<std::string, std::string, std::less<>> refused_;  ///< controllers, and why
};

}  // namespace podqos::cgroup

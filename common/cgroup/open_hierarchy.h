#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/cgroup/mountinfo.h"
#include "common/sys/directory.h"

namespace podqos::cgroup {

/// Shared ownership, since the cache may drop an entry while a caller still uses it.
using DirectoryRef = std::shared_ptr<const sys::Directory>;

/// A hierarchy whose root is opened at first use: of the ten hierarchies of a v1 host most
/// transactions need three. Directories stay open, so that a transaction opens each cgroup once.
/// The directory of a removed cgroup fails with ENODEV or ENOENT; call forget() then.
class OpenHierarchy {
 public:
  OpenHierarchy(Hierarchy description, sys::Resolve resolve);

  /// Opens the root. False if it is gone or another file system is mounted over it.
  /// @return an error if that cannot be told; the next call tries again.
  [[nodiscard]] Result<bool> is_usable();
  /// Opens the root. Its inode number, if it is on the file system that the description names, and
  /// no other one is mounted over it; nullopt also if that cannot be told.
  [[nodiscard]] std::optional<ino_t> root_inode();
  /// Opens the root. Whether it is usable and not mounted read-only.
  /// @return the errors of is_usable()
  [[nodiscard]] Result<bool> is_writable();
  /// The description; `writable`, and for v2 `controllers`, are only valid after is_usable().
  [[nodiscard]] const Hierarchy& description() const { return description_; }
  /// Whether the hierarchy has this controller; for v2 only valid after is_usable().
  /// A refused one counts as missing.
  [[nodiscard]] bool has(std::string_view controller) const;
  /// Notes that the kernel does not enable this controller for child cgroups, and why.
  void refuse(std::string_view controller, std::string why);
  /// Why a controller is not enabled for child cgroups; nullptr if it is, or that was not tried.
  [[nodiscard]] const std::string* refusal_of(std::string_view controller) const;

  /// The directory of cgroup `path` ("/" is the root).
  /// @return kNotFound if the cgroup does not exist or the hierarchy is not usable;
  /// kInvalidArgument for a path that is not absolute or has an invalid component; the errors of
  /// is_usable().
  [[nodiscard]] Result<DirectoryRef> directory(std::string_view path);
  /// The same; null if the cgroup does not exist.
  [[nodiscard]] Result<DirectoryRef> find(std::string_view path);
  /// Removes `path` and everything below it from the cache.
  void forget(std::string_view path);

 private:
  [[nodiscard]] Result<DirectoryRef> open_root();

  Hierarchy description_;
  std::optional<DirectoryRef> root_;  ///< unset: not opened yet; null: not usable
  sys::Resolve resolve_;
  std::map<std::string, DirectoryRef, std::less<>> directories_;
  std::map<std::string, std::string, std::less<>> refused_;  ///< controllers, and why
};

}  // namespace podqos::cgroup

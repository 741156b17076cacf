#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/cgroup/mountinfo.h"
#include "common/sys/directory.h"

namespace podqos::cgroup {

/// Shared, as the cache may drop an entry that a caller still works with.
using DirectoryRef = std::shared_ptr<const sys::Directory>;

/// A hierarchy, its root opened at the first use: of a v1 host's ten most events use three. Keeps
/// the directories that it opened, so that one event opens each cgroup once; a directory of a
/// removed cgroup answers ENODEV or ENOENT, then forget() it.
class OpenHierarchy {
 public:
  OpenHierarchy(Hierarchy description, sys::Resolve resolve);

  /// Opens the root. false: it cannot be opened, or another file system is visible at the mount
  /// point.
  [[nodiscard]] bool is_usable();
  /// Opens the root. Is it the topmost cgroup of the file system that the description names?
  [[nodiscard]] bool is_described();
  [[nodiscard]] bool is_writable() { return is_usable() && description_.writable; }
  [[nodiscard]] const Hierarchy& description() const { return description_; }
  [[nodiscard]] bool has(std::string_view controller) const;

  /// The directory of cgroup `path` ("/" is the root). kNotFound when there is none or the
  /// hierarchy is not usable,
  /// kInvalidArgument for a path that is not absolute or has an improper component.
  [[nodiscard]] Result<DirectoryRef> directory(std::string_view path);
  /// Drops `path` and what is below it from the cache.
  void forget(std::string_view path);

 private:
  [[nodiscard]] DirectoryRef open_root();

  Hierarchy description_;
  std::optional<DirectoryRef> root_;  ///< null: not usable
  sys::Resolve resolve_;
  std::map<std::string, DirectoryRef, std::less<>> directories_;
};

/// "/a" for "/a/b", "/" for "/a" and for "/".
[[nodiscard]] std::string parent_of(std::string_view path);
/// "b" for "/a/b".
[[nodiscard]] std::string_view name_of(std::string_view path);

}  // namespace podqos::cgroup

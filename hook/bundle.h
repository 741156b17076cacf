#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"

namespace podqos::hook {

/// An OCI bundle, opened once: all file access is relative to the directory's descriptor, so that a
/// path replaced in the meantime has no effect.
/// @note OCI runtime-spec, bundle.md.
class Bundle {
 public:
  /// Opens the bundle's directory; fails with kNotFound if it does not exist.
  static Result<Bundle> open(const std::string& path);

  /// The directory's path with all symlinks resolved. Records identify bundles by it.
  [[nodiscard]] const std::string& canonical() const { return canonical_; }

  /// The canonical path; "" without a config.json, for such a directory is no bundle. crun reports
  /// "/" to the hooks of a container with a user namespace and devices (crun#2025, #2261, #2263).
  [[nodiscard]] std::string identity() const;

  /// Reads the file, at most codec::kMaxConfigSize bytes, and saves its owner and mode for
  /// write_config().
  [[nodiscard]] Result<std::string> read_config(std::string_view name = "config.json");
  /// Replaces the file atomically, with the owner and mode saved by read_config().
  [[nodiscard]] Status write_config(std::string_view text,
                                    std::string_view name = "config.json") const;

 private:
  Bundle(sys::Directory directory, std::string canonical)
      : directory_(std::move(directory)), canonical_(std::move(canonical)) {}
  sys::Directory directory_;
  std::string canonical_;
  sys::FileOwner owner_;
};

/// The path with all symlinks resolved; returned unchanged if it cannot be opened, for example
/// after the bundle was deleted; "" for a directory that is no bundle, see Bundle::identity().
[[nodiscard]] std::string canonical_bundle(const std::string& path);

}  // namespace podqos::hook

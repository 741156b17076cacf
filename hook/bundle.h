#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
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
  /// The open directory, which stays owned by the bundle.
  [[nodiscard]] int fd() const { return directory_.fd(); }

  /// Reads config.json, at most codec::kMaxConfigSize bytes.
  [[nodiscard]] Status read_config();
  /// The text of config.json, without the edits that were taken back.
  [[nodiscard]] const std::string& config() const { return former_ ? *former_ : file_; }
  /// Takes back what podqos has filled in for an earlier container of this bundle: it has no
  /// meaning for another one, its cgroup least of all. See codec::former_config(), which parses
  /// untrusted text.
  /// @return false: there is no such edit
  bool take_edits_back();
  /// Replaces the file that was read atomically, keeping its owner and mode, unless it has this
  /// text already.
  [[nodiscard]] Status write_config(const std::string& text);
  /// Gives config.json the text that read_config() found, whatever another process has made of it
  /// since.
  [[nodiscard]] Status restore_config();

 private:
  Bundle(sys::Directory directory, std::string canonical)
      : directory_(std::move(directory)), canonical_(std::move(canonical)) {}
  sys::Directory directory_;
  std::string canonical_;
  std::string file_;                   ///< text of config.json
  std::optional<std::string> former_;  ///< config(), if it differs
  sys::FileOwner owner_;
};

/// The path with all symlinks resolved; returned unchanged if it cannot be opened, for example
/// after the bundle was deleted; "" for a directory that is no bundle, see Bundle::identity().
[[nodiscard]] std::string canonical_bundle(const std::string& path);

}  // namespace podqos::hook

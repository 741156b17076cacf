#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"

namespace podqos::app {

/// An OCI bundle, held by descriptor: everything happens beneath the directory that was opened.
class Bundle {
 public:
  static Result<Bundle> open(const std::string& path);

  /// The directory's path with all symlinks resolved: the bundle's identity in the state.
  [[nodiscard]] const std::string& canonical() const { return canonical_; }

  /// Reads the configuration, at most codec::kMaxConfigSize bytes, and remembers owner and mode.
  [[nodiscard]] Result<std::string> read_config(std::string_view name = "config.json");
  /// Replaces the configuration that was read, keeping owner and mode.
  [[nodiscard]] Status write_config(std::string_view text,
                                    std::string_view name = "config.json") const;

 private:
  Bundle(sys::Directory directory, std::string canonical)
      : directory_(std::move(directory)), canonical_(std::move(canonical)) {}
  sys::Directory directory_;
  std::string canonical_;
  sys::FileOwner owner_;
};

/// Canonical form of a bundle path; the text itself if it cannot be opened (a bundle that is gone).
[[nodiscard]] std::string canonical_bundle(const std::string& path);

}  // namespace podqos::app

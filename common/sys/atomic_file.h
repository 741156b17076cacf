#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::sys {

/// Suffix of the temporary file: ".NAME.podqos-tmp".
constexpr std::string_view kTemporarySuffix = ".podqos-tmp";

/// Owner and mode of the file after it was replaced.
struct FileOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0600;
  friend bool operator==(const FileOwner&, const FileOwner&) = default;
};

/// Replaces a file by writing a temporary file and renaming it: a reader sees the old or the new
/// content, never a part of it. The temporary name is fixed for each target, and a leftover of that
/// name is removed first, so the caller must hold the state lock. On failure the temporary file is
/// removed and the target is unchanged.
/// @return kInvalidArgument if `name` is not a file name; otherwise the errno of the failing call
/// with the path.
[[nodiscard]] Status replace_file(const Directory& directory, std::string_view name,
                                  std::string_view content, const FileOwner& owner);
/// The same, with the new file owned by the calling process and mode 0600.
[[nodiscard]] Status replace_file(const Directory& directory, std::string_view name,
                                  std::string_view content);

/// As replace_file(), with a symbolic link to `target`, which need not exist.
/// @return kTooLarge for a target that is too long, otherwise the errno with the path
[[nodiscard]] Status replace_link(const Directory& directory, const std::string& name,
                                  const std::string& target);

/// replace_file() for a file that outlives the boot: file and directory are on the disk when it
/// returns. The caller must hold a lock of its own.
[[nodiscard]] Status replace_durable_file(const Directory& directory, std::string_view name,
                                          std::string_view content, const FileOwner& owner);

/// Makes `name` a symlink to `target`, durably.
/// @return kAlreadyExists if the name is taken, otherwise the errno with the path.
[[nodiscard]] Status make_durable_link(const Directory& directory, const std::string& name,
                                       const std::string& target);

/// Removes `name`, durably. Success if it does not exist.
[[nodiscard]] Status remove_durable_file(const Directory& directory, const std::string& name);

}  // namespace podqos::sys

#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::sys {

/// Suffix of the temporary file: ".NAME.podqos-tmp", ".NAME.RANDOM.podqos-tmp".
constexpr std::string_view kTemporarySuffix = ".podqos-tmp";

/// Owner and mode of the file after it was replaced.
struct FileOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0600;
  friend bool operator==(const FileOwner&, const FileOwner&) = default;
};

/// Whether a file has to survive a crash of the machine.
enum class Durability : std::uint8_t {
  /// No fsync(2): the state is on a tmpfs and is lost with the boot it describes, and the
  /// config.json of a bundle is written again before each create.
  kUntilBoot,
  /// File and directory are on the disk when a function returns. For files of others, which keep
  /// their extended attributes.
  kDurable,
};

/// Replaces a file by writing a temporary file and renaming it: a reader sees the old or the new
/// content, never a part of it. The temporary name is fixed for each target, and a leftover of that
/// name is removed first, so the caller must hold the state lock or one of its own. On failure the
/// temporary file is removed and the target is unchanged.
/// @param owner  nullopt: the calling process, with mode 0600
/// @return kInvalidArgument if `name` is not a file name; otherwise the errno of the failing call
/// with the path.
[[nodiscard]] Status replace_file(const Directory& directory, std::string_view name,
                                  std::string_view content,
                                  const std::optional<FileOwner>& owner = {},
                                  Durability durability = Durability::kUntilBoot);

/// As replace_file(), for a directory that others may write to at the same time: the temporary name
/// is random, so that no lock is needed and no other user can take it. A killed process leaves it.
[[nodiscard]] Status replace_shared_file(const Directory& directory, std::string_view name,
                                         std::string_view content,
                                         const std::optional<FileOwner>& owner = {});

/// As replace_file(), with a symbolic link to `target`, which need not exist.
/// @return kTooLarge for a target that is too long, otherwise the errno with the path
[[nodiscard]] Status replace_link(const Directory& directory, const std::string& name,
                                  const std::string& target);

/// Makes `name` a symlink to `target`, durably.
/// @return kAlreadyExists if the name is taken, otherwise the errno with the path.
[[nodiscard]] Status make_durable_link(const Directory& directory, const std::string& name,
                                       const std::string& target);

/// Removes `name`, durably. Success if it does not exist.
[[nodiscard]] Status remove_durable_file(const Directory& directory, const std::string& name);

}  // namespace podqos::sys

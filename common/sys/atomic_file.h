#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::sys {

/// How the temporary name ends: ".NAME.podqos-tmp".
constexpr std::string_view kTemporarySuffix = ".podqos-tmp";

/// Owner and mode that a replaced file keeps.
struct FileOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0600;
};

/// Writes a whole file by temporary file and rename(2): a reader sees the old or the new content,
/// never a part. The temporary name is fixed per target (".NAME.podqos-tmp", O_EXCL after an unlink
/// of a leftover): the caller holds the lock. A failed write removes the temporary file and leaves
/// the target as it was.
[[nodiscard]] Status replace_file(const Directory& directory, std::string_view name,
                                  std::string_view content, const FileOwner& owner);
/// The same; the new file belongs to the caller, who alone can read and write it (mode 0600).
[[nodiscard]] Status replace_file(const Directory& directory, std::string_view name,
                                  std::string_view content);

/// Removes `name` if it is a temporary file that a process left which died before the rename. Only
/// under the lock: then nobody is about to rename it.
[[nodiscard]] Status remove_leftover(const Directory& directory, const std::string& name);

}  // namespace podqos::sys

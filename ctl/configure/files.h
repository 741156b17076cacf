#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/sys/atomic_file.h"
#include "common/sys/file_lock.h"

namespace podqos::ctl {

/// Appended to the name of a file for the copy of it that is kept before its first change.
constexpr std::string_view kBackupSuffix = ".podqos-backup";

/// What is at a path.
struct FileState {
  enum class Kind : std::uint8_t { kAbsent, kFile, kLink };
  Kind kind = Kind::kAbsent;
  std::string text = {};      ///< a file's content, a symlink's target
  sys::FileOwner owner = {};  ///< where nothing is, that of a new file

  [[nodiscard]] bool exists() const { return kind != Kind::kAbsent; }
  /// A file of this content in the place of this one.
  [[nodiscard]] FileState with(std::string content) const {
    return {.kind = Kind::kFile, .text = std::move(content), .owner = owner};
  }
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// One file that changes.
struct FileChange {
  std::string path;
  FileState before = {};
  FileState after = {};
  std::string what = {};    ///< "handler podqos", for the line that is printed
  bool is_removal = false;  ///< what is removed even without --undo
  bool is_update = false;   ///< of a registration that is there, by older lines of podqos's
  bool backup = false;      ///< whether `before` is kept beside the file unless a backup is there
  /// Whether the backup has become the file again, so that it is removed.
  bool drop_backup = false;
};

/// How deep a directory is listed.
enum class Depth : std::uint8_t { kOne, kAll };

/// The files of engines below a root directory, and the only way in which `configure` changes them.
/// Paths are absolute, without the root in front.
///
/// On the machine itself (root "") directories may be reached through symlinks, which only root can
/// make in /etc. Below another root no symlink is followed on the way to a file that changes, and
/// none out of the tree on the way to one that is read, unless one is changed meanwhile.
class EngineFiles {
 public:
  /// Largest file that is read: no engine's is near it.
  static constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

  /// @param root  path of a tree; "" for the machine itself
  explicit EngineFiles(std::string root = {}) : root_(std::move(root)) {}

  /// The state of a path; an error for what cannot be read or is too large.
  [[nodiscard]] Result<FileState> read(const std::string& file) const;
  /// The content of the file that a path leads to, symlinks followed; nullopt if there is none. For
  /// files that are looked at and never changed.
  [[nodiscard]] Result<std::optional<std::string>> follow(const std::string& file) const;
  /// Whether a path leads to anything.
  [[nodiscard]] bool exists(const std::string& file) const;
  /// Paths of what is in a directory, those of directories with a "/" at the end, each directory's
  /// sorted by their bytes; empty if it does not exist.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory,
                                                      Depth depth = Depth::kOne) const;

  /// Makes all changes, with missing directories (0755), and replaces each file at once. Locks out
  /// another podqosctl until the object ends.
  /// @return an error, after which everything is as before; kTimeout if another one does not end,
  ///         kBusy if a file was changed after it was read.
  [[nodiscard]] Status apply(const std::vector<FileChange>& changes);

  /// Undoes apply(): the bytes, owners and modes from before. Directories stay.
  /// @return the error that is the reason, with what became of the files
  [[nodiscard]] std::unexpected<Error> roll_back(Error reason);

 private:
  [[nodiscard]] Result<sys::Directory> open(const std::string& directory) const;
  [[nodiscard]] std::string resolve(const std::string& file) const;
  [[nodiscard]] Status make_directories(const std::string& directory) const;
  [[nodiscard]] Status write(const std::string& file, const FileState& state) const;
  [[nodiscard]] Status lock();
  [[nodiscard]] Status make(const FileChange& change);

  std::string root_;
  std::optional<sys::FileLock> lock_;
  std::vector<std::pair<std::string, FileState>> made_;  ///< paths that were changed, as they were
};

}  // namespace podqos::ctl

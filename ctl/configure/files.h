#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"
#include "ctl/configure/plan.h"

namespace podqos::ctl {

/// When a file or directory was last changed.
struct LastChange {
  std::string path;
  std::chrono::sys_time<std::chrono::nanoseconds> time;
};

/// The files of engines below a root directory, and the only way in which `configure` changes them.
///
/// On the machine itself (root "") directories may be reached through symlinks, which only root can
/// make in /etc. Below another root no symlink is followed on the way to a file that changes, and
/// none out of the tree on the way to one that is read.
class EngineFiles {
 public:
  /// Largest file that is read: no engine's is near it.
  static constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

  /// @param root  absolute or relative path of a tree; "" for the machine itself
  explicit EngineFiles(std::string root) : root_(std::move(root)) {}

  /// For plans; valid as long as this object.
  [[nodiscard]] ConfigSource source() const;
  /// Whether there is anything at a path.
  [[nodiscard]] bool exists(const std::string& path) const;

  /// The file or directory of these that changed last, and when (st_ctime, which no program sets);
  /// nullopt if there is none.
  [[nodiscard]] std::optional<LastChange> last_change(const std::vector<std::string>& paths) const;

  /// Carries out a plan: makes missing directories (0755), keeps a backup where the plan says so,
  /// and replaces each file at once with owner and mode as they were (a new file: the caller's,
  /// 0644). Locks out another podqosctl until the object ends.
  /// @return an error, after which everything is as before; kTimeout if another one does not end,
  ///         kBusy if a file was changed after the plan was made.
  [[nodiscard]] Status apply(const ConfigurePlan& plan);

  /// Undoes apply(): the bytes, owners and modes from before. Directories stay.
  [[nodiscard]] Status roll_back();

 private:
  /// A change that was made, with what it takes to undo it.
  struct Made {
    sys::Directory directory;
    std::string name;
    FileState state;  ///< before
    sys::FileOwner owner;
  };

  [[nodiscard]] Result<sys::Directory> open(const std::string& directory) const;
  [[nodiscard]] Result<FileState> read(const std::string& path) const;
  [[nodiscard]] Result<std::optional<std::string>> follow(const std::string& path) const;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) const;
  [[nodiscard]] Status make_directories(const std::string& directory) const;
  [[nodiscard]] Status lock();
  [[nodiscard]] Status make(const FileChange& change);
  [[nodiscard]] Status put(const std::string& path, const FileState& after,
                           const sys::FileOwner& owner);

  std::string root_;
  std::optional<sys::FileLock> lock_;
  std::vector<Made> made_;
};

}  // namespace podqos::ctl

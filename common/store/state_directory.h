#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/store/state_files.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "common/sys/file_lock.h"

namespace podqos::store {

/// Locked by the podqos-nri that serves the node's runtime. Its first lines are that one's pid, and
/// what it says of the runtime (ServicePorts::record); both stay when it has ended.
constexpr const char* kPluginFile = "nri.lock";

/// Opens the state directory; creates it (mode 0700) if it is missing. Its parent must exist.
/// Checks that no other user can change or replace the state, and sets mode 0700 where others could
/// read it.
/// @return kConflict if the directory is a symlink, has another owner than the caller or is
///         writable by group or others; or if one of its parents belongs to a user other than root
///         and the caller, or is writable by others without the sticky bit.
[[nodiscard]] Result<sys::Directory> make_state_directory(const std::string& path);

/// The same for one that exists; kNotFound if it is missing.
[[nodiscard]] Result<sys::Directory> open_state_directory(const std::string& path);

/// Whether the end of this container may change the state. False only if the index has no entry for
/// the id: entries are written before the pod's record and removed after it. True if the state
/// cannot be read. Takes no lock.
[[nodiscard]] bool may_involve(const std::string& state_dir, std::string_view id);
/// Whether the index has an entry for this container. Takes no lock.
[[nodiscard]] bool is_indexed(const std::string& state_dir, std::string_view id);

/// Whether `path` is on a file system that is mounted read-only.
[[nodiscard]] bool is_read_only(const std::string& path);

/// How to open a Store.
struct StoreOptions {
  std::string path = "/run/podqos";              ///< the state directory
  std::chrono::milliseconds lock_timeout{5000};  ///< per lock holder, see sys::FileLock
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  ///< for the whole wait for the lock
  const sys::Clock* clock = &sys::kSteadyClock;      ///< never null
};

/// What to do with a state directory.
enum class Opening : std::uint8_t {
  kMake,      ///< create it (mode 0700) if it is missing; its parent must exist
  kExisting,  ///< fail with kNotFound if it is missing
  /// As kExisting, for a reader: without the lock where its file system is mounted read-only.
  kRead,
  /// The same, never with the lock: it waits for no transaction, but may see a part of one, in rows
  /// that are being changed. Each file is whole, since it is replaced by a rename, and each row.
  kReadUnlocked,
};

/// The files of a state directory, whose lock the object holds as long as it lives, or until
/// unlock().
class StateDirectory final : public StateFiles {
 public:
  /// @return the errors of make_state_directory(); kTimeout if the lock is not free in time
  static Result<StateDirectory> open(const StoreOptions& options, Opening opening);

  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) override;
  [[nodiscard]] Status write(const std::string& path, std::string_view content) override;
  [[nodiscard]] Status remove(const std::string& path) override;
  [[nodiscard]] Result<std::string> read_rows() override;
  [[nodiscard]] Status write_rows(std::size_t offset, std::string_view bytes) override;
  /// Appends ".corrupt-<n>", which overwrites no earlier one.
  [[nodiscard]] Result<std::string> set_aside(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view subdirectory) override;
  [[nodiscard]] Status unlock() override {
    lock_.reset();
    return {};
  }
  [[nodiscard]] const sys::Directory* directory() const override { return &top_; }

 private:
  StateDirectory(sys::Directory top, bool reads) : top_(std::move(top)), reads_(reads) {}

  /// Opens a subdirectory once; nullptr while it does not exist.
  Result<const sys::Directory*> find(std::string_view subdirectory);
  Result<const sys::Directory*> find_or_make(std::string_view subdirectory);

  sys::Directory top_;
  bool reads_;          ///< nothing is written
  sys::UniqueFd rows_;  ///< once they are read or written
  std::optional<sys::FileLock> lock_;
  std::map<std::string, sys::Directory, std::less<>> subdirectories_;
};

}  // namespace podqos::store

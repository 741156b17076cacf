#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/stamp.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// The state read without the lock. It never waits for a transaction and changes nothing, but it
/// may see a transaction in progress. Each file is complete, since it is replaced by rename.
class UnlockedState {
 public:
  /// Reads tiers.json.
  /// @param path  the state directory
  /// @return nullopt if there is no state directory; kConflict as check_state_directory();
  ///         kCorrupt for a damaged tiers.json, kUnsupported for one of a newer version.
  [[nodiscard]] static Result<std::optional<UnlockedState>> open(const std::string& path);

  /// Whether tiers.json has not been replaced since open(). Before Linux 6.13 a mark set in place
  /// within the tick in which the file was written is not noticed; if the process that set it is
  /// killed, the next transaction recomputes the sums.
  [[nodiscard]] bool is_current() const;

  /// tiers.json as read by open(); empty if the file is missing.
  [[nodiscard]] const core::TiersRecord& tiers() const { return tiers_; }
  /// Whether a transaction was in progress or interrupted at open().
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  /// The state directory. Valid as long as this object.
  [[nodiscard]] const sys::Directory& directory() const { return directory_; }

  /// Reads a pod's record from disk.
  /// @return nullopt if there is none; kInvalidArgument for a uid that check_pod_uid() rejects;
  ///         kCorrupt for a damaged record, kUnsupported for one of a newer version.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid) const;
  /// Stamp of the pod's record; nullopt if there is none.
  [[nodiscard]] std::optional<Stamp> stamp_of_pod(std::string_view uid) const;
  /// Like the function below, but uses the tiers that open() has read.
  [[nodiscard]] bool may_involve(std::string_view id) const;

 private:
  explicit UnlockedState(sys::Directory directory) : directory_(std::move(directory)) {}

  [[nodiscard]] std::string tiers_path() const;

  sys::Directory directory_;
  std::optional<Stamp> stamp_;  ///< of the tiers.json that was read; nullopt if it was missing
  core::TiersRecord tiers_;
  bool interrupted_ = false;
};

/// Whether the end of this container may change the state. False only if no transaction was
/// interrupted and the index has no file for the id: index entries are written before the pod's
/// record and removed after it. True if the state cannot be read.
[[nodiscard]] bool may_involve(const std::string& state_dir, std::string_view id);

}  // namespace podqos::store

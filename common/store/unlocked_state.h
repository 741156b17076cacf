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

/// The state as its files say it, read without the lock: never waits for an event, changes nothing,
/// and what it sees may be from the middle of one. Every file is whole, since each is put in place
/// by a rename.
class UnlockedState {
 public:
  /// @return nullopt: there is no state. kConflict for a directory in which somebody else could
  /// change it, kCorrupt and kUnsupported for a tiers.json that is damaged or of a newer version.
  [[nodiscard]] static Result<std::optional<UnlockedState>> open(const std::string& path);

  /// Are these still the tiers that the path leads to? Pods are read anew each time. Before
  /// Linux 6.13 a mark that is set within the tick in which the file was put in place goes unseen;
  /// an event that leaves one because it was killed is made good by the next that takes the lock.
  [[nodiscard]] bool is_current() const;

  [[nodiscard]] const core::TiersRecord& tiers() const { return tiers_; }
  /// An event is under way, or has left its mark.
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] const sys::Directory& directory() const { return directory_; }

  /// nullopt: no such pod. kInvalidArgument for a uid that is no file name; kCorrupt and
  /// kUnsupported as above.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid) const;
  /// Which file the pod's record is; nullopt: there is none.
  [[nodiscard]] std::optional<Stamp> stamp_of_pod(std::string_view uid) const;
  /// May the end of this container change it? See below; what was read at open() is not read anew.
  [[nodiscard]] bool may_involve(std::string_view id) const;

 private:
  explicit UnlockedState(sys::Directory directory) : directory_(std::move(directory)) {}

  [[nodiscard]] std::string tiers_path() const;

  sys::Directory directory_;
  std::optional<Stamp> stamp_;  ///< of tiers.json as it was read; none: there was none
  core::TiersRecord tiers_;
  bool interrupted_ = false;
};

/// May the end of this container change the state in this directory? Not where no event has been
/// interrupted and the index has no entry for the id, which stands there before the record does,
/// and longer. True where there is any doubt.
[[nodiscard]] bool may_involve(const std::string& state_dir, std::string_view id);

}  // namespace podqos::store

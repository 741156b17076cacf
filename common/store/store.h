#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/index_name.h"  // IWYU pragma: export
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "common/sys/file_lock.h"

namespace podqos::store {

/// How to open a Store.
struct StoreOptions {
  std::string path = "/run/podqos";              ///< the state directory
  std::chrono::milliseconds lock_timeout{5000};  ///< per lock holder, see sys::FileLock
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  ///< for the whole wait for the lock
  const sys::Clock* clock = &sys::kSteadyClock;      ///< never null
};

/// The shared state of all podqos processes: <path>/{lock, tiers.json, pods/<uid>.json,
/// containers/<hash>}. An object of this class holds the exclusive lock as long as it lives.
///
/// A transaction calls begin() before its first change, then puts and erases records and index
/// entries, and calls commit() after its last change. begin() sets a mark in tiers.json and
/// commit() clears it. A process that finds the mark set when it opens the store must recompute the
/// sums, since the previous transaction was interrupted (dirty() is true).
class Store {
 public:
  /// Creates the state directory if it is missing (mode 0700; its parent must exist), takes the
  /// lock and reads tiers.json.
  /// @return kConflict if the state directory or a file in it is a symlink, or if the directory
  ///         fails check_state_directory(); kTimeout if the lock is not free in time; kUnsupported
  ///         for a tiers.json of a newer version, which is left unchanged.
  static Result<Store> open(const StoreOptions& options);
  /// Like open(), but fails with kNotFound if the state directory is missing.
  static Result<Store> open_existing(const StoreOptions& options);

  /// tiers.json as read by open(). If the file is missing: empty, and dirty if a pod record exists.
  /// If it is corrupt: empty and dirty, and the file is renamed.
  [[nodiscard]] core::TiersRecord& tiers() { return tiers_; }
  /// Whether the sums in tiers() are unreliable and must be recomputed from the records. Also
  /// becomes true when a corrupt file is renamed later.
  [[nodiscard]] bool dirty() const { return dirty_; }

  /// Sets the mark on disk. Further calls do nothing. The put and erase functions call it, so that
  /// no change is made without the mark.
  [[nodiscard]] Status begin();
  /// Makes commit() keep the mark, because this transaction leaves the sums uncertain.
  void keep_mark() { keep_mark_ = true; }
  /// Writes tiers() and clears the mark. The mark stays if keep_mark() was called or a corrupt file
  /// was renamed: then the next transaction recomputes the sums.
  [[nodiscard]] Status commit();

  /// Writes tiers() with the mark set, for values that must be on disk before the next step.
  [[nodiscard]] Status checkpoint();

  /// Reads a pod's record. A corrupt record is renamed to <uid>.json.corrupt-<n>, which overwrites
  /// no earlier one, and added to incidents().
  /// @return nullopt if there is no record or it is corrupt; kInvalidArgument for a uid that
  ///         check_pod_uid() rejects; kUnsupported for a record of a newer version, which stays.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid);
  /// Creates or replaces a pod's record.
  /// @return kTooLarge for a record beyond codec::kMaxRecordSize, kInvalidArgument for a uid that
  ///         check_pod_uid() rejects.
  [[nodiscard]] Status put_pod(const core::PodRecord& record);
  /// The same for a record that codec::format_pod_record() has formatted.
  [[nodiscard]] Status put_pod(const std::string& uid, std::string_view text);
  /// Removes a pod's record. A missing record is not an error.
  [[nodiscard]] Status erase_pod(std::string_view uid);
  /// Uids of all records, sorted. Lists the whole directory, so ordinary transactions do without.
  [[nodiscard]] Result<std::vector<std::string>> pod_uids();

  /// Index entries of all containers with this id; each has a different bundle.
  [[nodiscard]] Result<std::vector<core::IndexEntry>> containers(std::string_view id);
  /// Adds the entry or replaces the one with the same id and bundle. Writes nothing if they are
  /// equal.
  [[nodiscard]] Status put_container(const core::IndexEntry& entry);
  /// Removes the entry that equals `entry`. One with the same id and bundle but another pod stays.
  [[nodiscard]] Status erase_container(const core::IndexEntry& entry);
  /// All index entries. Reads the whole index, so only reconciliation uses it.
  [[nodiscard]] Result<std::vector<core::IndexEntry>> all_containers();

  /// The state directory, for other files in it. Valid as long as this object.
  [[nodiscard]] const sys::Directory& directory() const { return directory_; }
  /// Corrupt files found so far, one sentence each for the log.
  [[nodiscard]] const std::vector<std::string>& incidents() const { return incidents_; }

 private:
  /// The index file that was read last: a transaction looks an id up and then writes its entry.
  struct IndexFile {
    std::string name;
    std::vector<core::IndexEntry> entries;
  };
  using OptionalDirectory = std::optional<sys::Directory>;

  Store(sys::Directory directory, sys::FileLock lock);

  static Result<Store> lock_directory(sys::Directory directory, const StoreOptions& options);
  Status load_tiers();
  Status read_tiers(sys::UniqueFd fd);
  [[nodiscard]] Status write_tiers(bool marked);

  /// Opens the subdirectory once; nullptr while it does not exist.
  Result<const sys::Directory*> find(OptionalDirectory& slot, std::string_view name);
  Result<const sys::Directory*> find_or_make(OptionalDirectory& slot, std::string_view name);

  Result<IndexFile*> index_file(const std::string& name);
  Result<std::vector<core::IndexEntry>> read_index(const std::string& name);
  Status write_index(const IndexFile& file);
  [[nodiscard]] Status write_index_file(const IndexFile& file);
  /// Renames a corrupt file and marks the sums as dirty, in memory and on disk.
  Status set_aside(const sys::Directory& directory, const std::string& name, const Error& cause);
  Status set_aside_tiers(const Error& cause);
  Status move_aside(const sys::Directory& directory, const std::string& name, const Error& cause);

  sys::Directory directory_;
  sys::FileLock lock_;
  OptionalDirectory pods_;
  OptionalDirectory containers_;
  sys::UniqueFd tiers_fd_;  ///< open if the mark of tiers.json can be set in place
  std::optional<IndexFile> index_;
  core::TiersRecord tiers_;
  bool dirty_ = false;
  bool marked_ = false;     ///< begin() was called
  bool keep_mark_ = false;  ///< keep_mark() was called or a corrupt record was renamed
  std::vector<std::string> incidents_;
};

}  // namespace podqos::store

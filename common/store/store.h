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

struct StoreOptions {
  std::string path = "/run/podqos";
  std::chrono::milliseconds lock_timeout{5000};  ///< see sys::FileLock
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  ///< of the wait for the lock, in any case
  const sys::Clock* clock = &sys::kSteadyClock;      ///< never null
};

/// The file-locked shared state: <path>/{lock, tiers.json, pods/<uid>.json, containers/<hash>}. An
/// object of this class holds the lock; everything is read and written under it.
///
/// Order of an event: begin() before the first change, put/erase records and index entries,
/// commit() after the last. Whoever finds the mark of begin() set without a commit() must recompute
/// (dirty() is true).
class Store {
 public:
  /// Makes the state directory if it is missing (0700, its parent must exist) and takes the lock.
  /// @return kConflict for a state directory or file that is a symlink, and for a directory that is
  /// not owned by the
  ///         caller or is writable by others; kTimeout when the lock is not free in time;
  ///         kUnsupported for a tiers.json of a newer version, of which nothing is changed.
  static Result<Store> open(const StoreOptions& options);
  /// Like open, but kNotFound if there is no state directory: makes none.
  static Result<Store> open_existing(const StoreOptions& options);

  /// tiers.json as read when the store was opened. Missing: empty, and dirty if any record exists
  /// (the pods directory is only listed then). Corrupt: empty, the file set aside, and dirty.
  [[nodiscard]] core::TiersRecord& tiers() { return tiers_; }
  /// The sums cannot be believed: recompute from the records. Also becomes true when a file is set
  /// aside later.
  [[nodiscard]] bool dirty() const { return dirty_; }

  /// Sets the mark. A second call does nothing; put and erase call it themselves, so that no change
  /// goes unmarked.
  [[nodiscard]] Status begin();
  /// Makes commit() leave the mark: this event leaves something uncertain.
  void keep_mark() { keep_mark_ = true; }
  /// Writes tiers() without the mark, or with it if it is kept or a file was set aside since the
  /// store was opened: then the next event recomputes once more, whether or not this one has.
  [[nodiscard]] Status commit();

  /// Writes tiers() with the mark still set: what must be on disk before the event goes on.
  [[nodiscard]] Status checkpoint();

  /// nullopt: no such pod. A corrupt record is set aside as <uid>.json.corrupt-<n> (never
  /// overwritten) and reported as nullopt with the incident in incidents(); a record of a newer
  /// version is kUnsupported and stays.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid);
  /// @return kTooLarge for a record beyond codec::kMaxRecordSize, kInvalidArgument for a uid that
  /// is no file name.
  [[nodiscard]] Status put_pod(const core::PodRecord& record);
  /// The same for a record that is formatted already (codec::format_pod_record).
  [[nodiscard]] Status put_pod(const std::string& uid, std::string_view text);
  /// A pod that is not there is no error.
  [[nodiscard]] Status erase_pod(std::string_view uid);
  /// Sorted. Reads the whole directory: for recomputing and for people, not for an ordinary event.
  [[nodiscard]] Result<std::vector<std::string>> pod_uids();

  /// Entries of all containers with this id (different bundles, under different runtimes).
  [[nodiscard]] Result<std::vector<core::IndexEntry>> containers(std::string_view id);
  /// Replaces the entry of the same id and bundle; writes nothing if it is there already.
  [[nodiscard]] Status put_container(const core::IndexEntry& entry);
  /// Removes exactly this entry; one that names another pod by now stays.
  [[nodiscard]] Status erase_container(const core::IndexEntry& entry);
  /// Every index entry there is; for reconcile.
  [[nodiscard]] Result<std::vector<core::IndexEntry>> all_containers();

  /// The state directory, for what is kept there beside the records. Valid as long as this object.
  [[nodiscard]] const sys::Directory& directory() const { return directory_; }
  /// Incidents met on the way (files set aside), each a sentence for the log.
  [[nodiscard]] const std::vector<std::string>& incidents() const { return incidents_; }

 private:
  /// The index file that was read last: an event looks an id up and then writes it.
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

  /// The subdirectory, opened once; nullptr while it does not exist.
  Result<const sys::Directory*> find(OptionalDirectory& slot, std::string_view name);
  Result<const sys::Directory*> find_or_make(OptionalDirectory& slot, std::string_view name);

  Result<IndexFile*> index_file(const std::string& name);
  Result<std::vector<core::IndexEntry>> read_index(const std::string& name);
  Status write_index(const IndexFile& file);
  [[nodiscard]] Status write_index_file(const IndexFile& file);
  /// Moves a corrupt file out of the way and makes the sums dirty, on disk too.
  Status set_aside(const sys::Directory& directory, const std::string& name, const Error& cause);
  Status set_aside_tiers(const Error& cause);
  Status move_aside(const sys::Directory& directory, const std::string& name, const Error& cause);

  sys::Directory directory_;
  sys::FileLock lock_;
  OptionalDirectory pods_;
  OptionalDirectory containers_;
  sys::UniqueFd tiers_fd_;  ///< of a tiers.json whose mark can be set in place
  std::optional<IndexFile> index_;
  core::TiersRecord tiers_;
  bool dirty_ = false;
  bool marked_ = false;     ///< begin() was called
  bool keep_mark_ = false;  ///< keep_mark() was called, or a file set aside that the sums may miss
  std::vector<std::string> incidents_;
};

}  // namespace podqos::store

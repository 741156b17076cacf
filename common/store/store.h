#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/core/pods/identity.h"
#include "common/core/record.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"

namespace podqos::store {

/// An entry of the index that leads from a container to its pod's record. Ids with the same hash
/// share a name, and so may containers of different pods: the records tell.
struct IndexEntry {
  std::string name;  ///< index_name() of the container's id
  std::string uid;   ///< of its pod
  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

/// The node's records, shared by all podqos processes: the tiers' sums, one record per pod, and an
/// index from container ids to pods.
///
/// A transaction calls begin() before its first change, then puts and erases records and index
/// entries, and calls commit() after its last change. begin() sets a mark, commit() clears it. Who
/// finds the mark set when opening the records must recompute the sums, since an earlier
/// transaction was interrupted (dirty() is true); until then commit() keeps the mark.
class Store {
 public:
  /// Opens the state directory and reads the tiers' sums. The object holds the exclusive lock as
  /// long as it lives. A corrupt tiers.json is renamed. A reader changes nothing, and finds a
  /// directory that is missing empty.
  /// @return kConflict if the state directory or a file in it is a symlink, or if the directory
  ///         fails make_state_directory(); kTimeout if the lock is not free in time; kUnsupported
  ///         for a tiers.json of a newer version, which is left unchanged.
  static Result<Store> open(const StoreOptions& options, Opening opening = Opening::kMake);
  /// The records in these files.
  static Result<Store> over(std::unique_ptr<StateFiles> files);

  /// The sums of the tiers as opened. If they are missing: empty, and dirty if a pod record exists.
  /// If they are corrupt: empty and dirty.
  [[nodiscard]] core::TiersRecord& tiers() { return tiers_; }
  /// Whether the sums in tiers() are unreliable and must be recomputed from the records. Also
  /// becomes true when a corrupt record is found later.
  [[nodiscard]] bool dirty() const { return dirty_; }

  /// Whether the mark is set now, for a reader without the lock.
  [[nodiscard]] bool is_marked();

  /// Sets the mark. Further calls do nothing. The put and erase functions call it, so that no
  /// change is made without the mark.
  [[nodiscard]] Status begin();
  /// Makes commit() keep the mark, because this transaction leaves the sums uncertain.
  void keep_mark() { keep_mark_ = true; }
  /// The sums have been recomputed from the records that are left: takes back dirty() and
  /// keep_mark().
  void recomputed() { dirty_ = keep_mark_ = false; }
  /// Writes tiers(), if they have changed, and clears the mark. The mark stays if the sums are
  /// uncertain, since dirty() is true or keep_mark() was called: then the next transaction
  /// recomputes them.
  [[nodiscard]] Status commit();
  /// Writes tiers() with the mark set, for values that must be stored before the next step.
  [[nodiscard]] Status checkpoint();

  /// Reads a pod's record. A corrupt one is renamed to <uid>.json.corrupt-<n>, and added to
  /// incidents().
  /// @return nullopt for a missing or corrupt record; kInvalidArgument for a uid that
  ///         check_pod_uid() rejects; kUnsupported for a record of a newer version, which stays.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid);
  /// Creates or replaces a pod's record.
  /// @return kTooLarge for a record beyond codec::kMaxRecordSize, kInvalidArgument for a uid that
  ///         check_pod_uid() rejects.
  [[nodiscard]] Status put_pod(const core::PodRecord& record);
  /// Removes a pod's record. A missing record is not an error.
  [[nodiscard]] Status erase_pod(std::string_view uid);
  /// Uids of all records, sorted. Lists all of them, so ordinary transactions do without.
  [[nodiscard]] Result<std::vector<std::string>> pod_uids();

  /// Uids of the pods that may have a container with this id.
  [[nodiscard]] Result<std::vector<std::string>> uids_with(std::string_view id);
  /// Adds an index entry; one that is there stays.
  /// @return kTooLarge for more uids than a link can hold, some 100
  [[nodiscard]] Status put_entry(const IndexEntry& entry);
  /// Removes an index entry. A missing one is not an error.
  [[nodiscard]] Status erase_entry(const IndexEntry& entry);
  /// All index entries. Reads the whole index, so only reconciliation uses it.
  [[nodiscard]] Result<std::vector<IndexEntry>> all_entries();

  /// The state directory; nullptr if the files are in none.
  [[nodiscard]] const sys::Directory* directory() const { return files_->directory(); }

  /// Corrupt records found so far, one sentence each for the log.
  [[nodiscard]] const std::vector<std::string>& incidents() const { return incidents_; }

 private:
  explicit Store(std::unique_ptr<StateFiles> files) : files_(std::move(files)) {}

  Status load_tiers();
  [[nodiscard]] Status write_tiers();

  /// The path of a file, for messages.
  [[nodiscard]] std::string full(std::string_view path) const;
  /// The names in a subdirectory. Temporary files of killed processes are removed; those that
  /// cannot be are never read.
  Result<std::vector<std::string>> list(std::string_view subdirectory);
  /// The uids of a name of the index; a corrupt file is set aside.
  Result<std::vector<std::string>> uids_at(const std::string& name);
  Status write_uids(const std::string& name, const std::vector<std::string>& uids);
  /// Sets a corrupt file aside and marks the sums as dirty, in memory and on disk.
  /// @return the error itself if it is of another kind
  Status set_aside(const std::string& path, const Error& cause);

  std::unique_ptr<StateFiles> files_;
  std::map<std::string, std::vector<std::string>> entries_;  ///< read so far: uids by name
  core::TiersRecord tiers_;
  std::string stored_;  ///< tiers.json as it is
  bool dirty_ = false;
  bool marked_ = false;     ///< the mark is set
  bool keep_mark_ = false;  ///< keep_mark() was called
  std::vector<std::string> incidents_;
};

/// A recorded container: its pod's record and its index in it.
struct KnownContainer {
  core::PodRecord record;
  std::size_t index = 0;
  /// The container's entry in `record`.
  [[nodiscard]] core::ContainerRecord& container() { return record.containers[index]; }
};

/// Finds a container by id and bundle: an exact match, or the only one of that id whose bundle is
/// not known yet; if `bundle` is empty, the only one of that id.
/// @return nullopt if there is none; kConflict if several match.
[[nodiscard]] Result<std::optional<KnownContainer>> find_container(Store& records,
                                                                   const std::string& id,
                                                                   const std::string& bundle);

/// The uid of the pod with the container's sandbox, as recorded by whichever interface (NRI, hook
/// or wrapper) reported the sandbox first: not all of them report the uid. For an unknown pod, the
/// uid in `identity`.
[[nodiscard]] Result<std::string> uid_by_sandbox(Store& records, const core::Identity& identity,
                                                 const std::string& id);

}  // namespace podqos::store

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/core/pods/counting.h"
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

/// The node's records, shared by all podqos processes: what is known of the node, one record per
/// pod with its row, and an index from container ids to pods.
///
/// A transaction calls begin() for each pod before it changes anything of it, then puts and erases
/// records and index entries, and calls commit() after its last change. begin() sets
/// `being_changed` in the pod's row, commit() clears it. Who finds it set when opening the records
/// must make that pod as its record says (take_interrupted()), since an earlier transaction was
/// interrupted.
class Store {
 public:
  /// Opens the state directory and reads node and rows. The object holds the exclusive lock as long
  /// as it lives. A corrupt node.json is renamed; rows that are missing, or are another release's,
  /// are made from the records. A reader changes nothing, and finds a directory that is missing
  /// empty.
  /// @return kConflict if the state directory or a file in it is a symlink, or if the directory
  ///         fails make_state_directory(); kTimeout if the lock is not free in time; kUnsupported
  ///         for a node.json of a newer version, which is left unchanged.
  static Result<Store> open(const StoreOptions& options, Opening opening = Opening::kMake);
  /// The records in these files.
  static Result<Store> over(std::unique_ptr<StateFiles> files);

  /// What is known of the node. The rows, and with them the sums, are those of the records that
  /// were put; the rest is written by commit().
  [[nodiscard]] core::NodeState& node() { return node_; }
  /// Whether records or rows have been lost, so that everything must be compared with what there
  /// is. Also becomes true when a corrupt record is found later.
  [[nodiscard]] bool dirty() const { return dirty_; }
  /// Uids of the pods that an earlier transaction was changing and did not finish, once.
  [[nodiscard]] std::vector<std::string> take_interrupted() {
    return std::exchange(interrupted_, {});
  }

  /// Whether anything is being changed now, for a reader without the lock.
  [[nodiscard]] bool is_marked();

  /// Begins to change a pod. Further calls do nothing.
  [[nodiscard]] Status begin(std::string_view uid);
  /// Makes commit() leave the pod as one that is being changed: not all could be done.
  void leave_unfinished(std::string_view uid) { unfinished_.emplace(uid); }
  /// Begins to compare everything: until compared(), and the commit() after it, dirty() is true for
  /// each transaction.
  [[nodiscard]] Status begin_comparison();
  /// Everything has been compared: takes back dirty().
  void compared() { dirty_ = false; }
  /// Writes what has changed of node() and the rows, and clears the marks.
  [[nodiscard]] Status commit();
  /// Writes node() now, for values that must be stored before the next step.
  [[nodiscard]] Status write_node();

  /// Reads a pod's record. A corrupt one is renamed to <uid>.json.corrupt-<n>, and added to
  /// incidents().
  /// @return nullopt for a missing or corrupt record; kInvalidArgument for a uid that
  ///         check_pod_uid() rejects; kUnsupported for a record of a newer version, which stays.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid);
  /// For a reader: reads the text of all records, and gives up the lock, so that others do not wait
  /// while pod() parses them.
  [[nodiscard]] Status unlock() { return files_->unlock(); }
  /// Creates or replaces a pod's record and its row; calls begin().
  /// @param names  in the index that lead to the pod from now on, before there is a record
  /// @return kTooLarge for a record beyond codec::kMaxRecordSize, kInvalidArgument for a uid that
  ///         check_pod_uid() rejects.
  [[nodiscard]] Status put_pod(const core::PodRecord& record,
                               const std::vector<std::string>& names = {});
  /// The record as put_pod() writes it. It is printed once, however often it is asked for.
  [[nodiscard]] const std::string& text_of(const core::PodRecord& record);
  /// Makes the pod's row that of this record, which is stored already; calls begin() if it is not.
  [[nodiscard]] Status put_row(const core::PodRecord& record);
  /// Forgets the row of a pod that has no record.
  [[nodiscard]] Status drop_row(std::string_view uid);
  /// Looks again at a pod at this time whose record cannot be written.
  void postpone(std::string_view uid, BootSeconds due);
  /// Removes a pod's record and its row; calls begin(). A missing record is not an error.
  [[nodiscard]] Status erase_pod(std::string_view uid);
  /// Uids of all records, sorted. Lists all of them, so ordinary transactions do without.
  [[nodiscard]] Result<std::vector<std::string>> pod_uids();

  /// Uids of the pods that may have a container with this id.
  [[nodiscard]] Result<std::vector<std::string>> uids_with(std::string_view id);
  /// Adds an index entry; one that is there stays.
  /// @return kTooLarge for more uids than a link can hold, some 100
  [[nodiscard]] Status put_entry(const IndexEntry& entry);
  /// Removes an index entry, with commit(): the end of its container is reported once more where
  /// this transaction is interrupted. A missing one is not an error.
  [[nodiscard]] Status erase_entry(const IndexEntry& entry);
  /// All index entries. Reads the whole index, so only reconciliation uses it.
  [[nodiscard]] Result<std::vector<IndexEntry>> all_entries();

  /// The state directory; nullptr if the files are in none.
  [[nodiscard]] const sys::Directory* directory() const { return files_->directory(); }

  /// Corrupt records found so far, one sentence each for the log.
  [[nodiscard]] const std::vector<std::string>& incidents() const { return incidents_; }

 private:
  explicit Store(std::unique_ptr<StateFiles> files) : files_(std::move(files)) {}

  Status load_node();
  Status load_rows();
  /// Makes the rows from the records.
  Status make_rows();
  /// Writes one row, the head, or all of it into the file.
  [[nodiscard]] Status write_row(std::size_t place, const core::PodRow& row);
  [[nodiscard]] Status write_head();
  [[nodiscard]] Status write_rows();
  /// Writes the rows that have changed, and makes free those that have gone.
  [[nodiscard]] Status write_changed();
  /// A pod's row; nullptr if it has none.
  [[nodiscard]] core::PodRow* find(std::string_view uid) { return core::find_row(node_, uid); }
  /// The place of a row in the file.
  [[nodiscard]] std::size_t& place_of(const core::PodRow& row) {
    return places_.at(static_cast<std::size_t>(&row - node_.rows.data()));
  }
  /// Adds a row, at a free place.
  core::PodRow& add_row(std::string_view uid);

  /// The path of a file, for messages.
  [[nodiscard]] std::string full(std::string_view path) const;
  /// The names in a subdirectory. Temporary files of killed processes are removed; those that
  /// cannot be are never read.
  Result<std::vector<std::string>> list(std::string_view subdirectory);
  /// The uids of a name of the index; a corrupt file is set aside.
  Result<std::vector<std::string>> uids_at(const std::string& name);
  Status write_uids(const std::string& name, const std::vector<std::string>& uids);
  /// Sets a corrupt file aside, after which everything must be compared.
  /// @return the error itself if it is of another kind
  Status set_aside(const std::string& path, const Error& cause);

  std::unique_ptr<StateFiles> files_;
  std::map<std::string, std::vector<std::string>> entries_;  ///< read so far: uids by name
  core::NodeState node_;
  std::string stored_;       ///< node.json as it is
  core::PodRecord printed_;  ///< what `text_` is of
  std::string text_;
  std::vector<std::size_t> places_;  ///< of the rows of node_, in the file
  std::vector<std::size_t> free_;    ///< places in the file
  std::vector<std::string> interrupted_;
  std::set<std::string> shortened_;  ///< names in the index from which entries are to be removed
  std::set<std::string, std::less<>> begun_;  ///< uids
  /// Places of rows that have gone, by uid: a pod that comes back before the file is written has
  /// its place again.
  std::map<std::string, std::size_t, std::less<>> dropped_;
  std::set<std::string, std::less<>> moved_;       ///< uids of rows that changed without begin()
  std::set<std::string, std::less<>> unfinished_;  ///< uids
  std::string head_;                               ///< of the file with the rows, as it is
  bool is_file_lost_ = false;                      ///< there is none, or another
  bool dirty_ = false;
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

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/container_index.h"

namespace podqos::store {

/// The node's records: the tiers' sums, one record per pod, and an index from container ids to
/// pods.
///
/// A transaction calls begin() before its first change, then puts and erases records and index
/// entries, and calls commit() after its last change. begin() sets a mark, commit() clears it. Who
/// finds the mark set when opening the records must recompute the sums, since an earlier
/// transaction was interrupted (dirty() is true); until then commit() keeps the mark.
class RecordStore {
 public:
  RecordStore() = default;
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;
  RecordStore(RecordStore&&) = default;
  RecordStore& operator=(RecordStore&&) = default;
  virtual ~RecordStore() = default;

  /// The sums of the tiers as opened. If they are missing: empty, and dirty if a pod record exists.
  /// If they are corrupt: empty and dirty.
  [[nodiscard]] virtual core::TiersRecord& tiers() = 0;
  /// Whether the sums in tiers() are unreliable and must be recomputed from the records. Also
  /// becomes true when a corrupt record is found later.
  [[nodiscard]] virtual bool dirty() const = 0;

  /// Sets the mark. Further calls do nothing. The put and erase functions call it, so that no
  /// change is made without the mark.
  [[nodiscard]] virtual Status begin() = 0;
  /// Makes commit() keep the mark, because this transaction leaves the sums uncertain.
  virtual void keep_mark() = 0;
  /// The sums have been recomputed from the records that are left: takes back dirty() and
  /// keep_mark().
  virtual void recomputed() = 0;
  /// Writes tiers() and clears the mark. The mark stays if the sums are uncertain, since dirty() is
  /// true or keep_mark() was called: then the next transaction recomputes them.
  [[nodiscard]] virtual Status commit() = 0;
  /// Writes tiers() with the mark set, for values that must be stored before the next step.
  [[nodiscard]] virtual Status checkpoint() = 0;

  /// Reads a pod's record. A corrupt one is set aside and added to incidents().
  /// @return nullopt for a missing or corrupt record; kInvalidArgument for a uid that
  ///         check_pod_uid() rejects; kUnsupported for a record of a newer version, which stays.
  [[nodiscard]] virtual Result<std::optional<core::PodRecord>> pod(std::string_view uid) = 0;
  /// Creates or replaces a pod's record.
  /// @return kTooLarge for a record beyond codec::kMaxRecordSize, kInvalidArgument for a uid that
  ///         check_pod_uid() rejects.
  [[nodiscard]] virtual Status put_pod(const core::PodRecord& record) = 0;
  /// Removes a pod's record. A missing record is not an error.
  [[nodiscard]] virtual Status erase_pod(std::string_view uid) = 0;
  /// Uids of all records, sorted. Lists all of them, so ordinary transactions do without.
  [[nodiscard]] virtual Result<std::vector<std::string>> pod_uids() = 0;

  /// Uids of the pods that may have a container with this id.
  [[nodiscard]] virtual Result<std::vector<std::string>> uids_with(std::string_view id) = 0;
  /// Adds an index entry; one that is there stays.
  [[nodiscard]] virtual Status put_entry(const IndexEntry& entry) = 0;
  /// Removes an index entry. A missing one is not an error.
  [[nodiscard]] virtual Status erase_entry(const IndexEntry& entry) = 0;
  /// All index entries. Reads the whole index, so only reconciliation uses it.
  [[nodiscard]] virtual Result<std::vector<IndexEntry>> all_entries() = 0;

  /// Corrupt records found so far, one sentence each for the log.
  [[nodiscard]] virtual const std::vector<std::string>& incidents() const = 0;
};

}  // namespace podqos::store

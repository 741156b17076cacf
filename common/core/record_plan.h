#pragma once

#include <string>
#include <variant>
#include <vector>

#include "common/core/record.h"

// The changes of the stored records, as values. A program may die between any two of them: the
// plans here put them in an order in which the next transaction, which finds the mark of the
// interrupted one, can make good what is missing.
namespace podqos::core {

/// Creates or replaces a pod's record.
struct SaveRecord {
  PodRecord record;
  friend bool operator==(const SaveRecord&, const SaveRecord&) = default;
};
/// Removes a pod's record; a missing one is fine.
struct EraseRecord {
  std::string uid;
  friend bool operator==(const EraseRecord&, const EraseRecord&) = default;
};
/// Adds an index entry, or replaces the one with the same id and bundle.
struct SaveIndexEntry {
  IndexEntry entry;
  friend bool operator==(const SaveIndexEntry&, const SaveIndexEntry&) = default;
};
/// Removes exactly this index entry; a missing one is fine.
struct EraseIndexEntry {
  IndexEntry entry;
  friend bool operator==(const EraseIndexEntry&, const EraseIndexEntry&) = default;
};

using RecordStep = std::variant<SaveRecord, EraseRecord, SaveIndexEntry, EraseIndexEntry>;
using RecordPlan = std::vector<RecordStep>;

/// The index entry that leads from a container to its pod.
[[nodiscard]] IndexEntry index_entry(const PodRecord& record, const ContainerRecord& container);

/// Adds a container to its pod: its entry, then the record. An entry without a record is harmless;
/// to a record without an entry nothing would lead when the container ends.
[[nodiscard]] RecordPlan plan_arrival(const PodRecord& record, const ContainerRecord& container);
/// Saves the record of a container whose bundle has become known: its new entry, the record, and
/// only then away with the entry that led to it until now.
[[nodiscard]] RecordPlan plan_renaming(const PodRecord& record, const ContainerRecord& container,
                                       IndexEntry old);
/// Saves a restored pod: the entries of all its containers, then the record, as for an arrival.
[[nodiscard]] RecordPlan plan_restoration(const PodRecord& record);
/// Erases a pod: its record, then the entries of its containers, which lead nowhere from then on.
[[nodiscard]] RecordPlan plan_erasure(const PodRecord& record);

}  // namespace podqos::core

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/units.h"
#include "common/core/plan.h"
#include "common/core/pod_plan.h"
#include "common/core/record.h"

// All that an event changes, of the stored records and of the machine, as a list of steps. A
// program may die between any two of them: the plans put them in an order in which the next
// transaction, which finds the mark of the interrupted one, can make good what is missing.
namespace podqos::core {

/// Sets the mark: from here on the tiers' record may not tell what the machine holds.
struct SetMark {
  friend bool operator==(const SetMark&, const SetMark&) = default;
};
/// Saves the tiers' record, the mark set: what it says must be known before the next step.
struct SaveTiers {
  friend bool operator==(const SaveTiers&, const SaveTiers&) = default;
};
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

/// Executes steps of the machine, together.
struct Execute {
  Plan plan;
  Transient transient = Transient::kNone;
  friend bool operator==(const Execute&, const Execute&) = default;
};
/// Makes root and tiers. Their values follow when the transaction ends.
struct MakeTree {
  std::string kubepods;
  Plan plan;
  friend bool operator==(const MakeTree&, const MakeTree&) = default;
};
/// Removes tiers and root, of which no pod is left, and the cgroups above that podqos has made.
/// What another program uses stays, and the root with it; then they remain the ones in use.
struct RemoveTree {
  std::string kubepods;
  std::string top;  ///< see TreeRecord
  friend bool operator==(const RemoveTree&, const RemoveTree&) = default;
};
/// Removes what an earlier pod, or ended containers, have left below a pod's cgroup: it has old
/// limits, which the kernel checks the pod's new ones against. Children that remain are no error.
struct RemoveChildren {
  enum class Until : std::uint8_t {
    kOnce,   ///< one attempt
    kEmpty,  ///< repeated until no child is left: that of a killed process is busy until it exits
  };
  std::string cgroup;
  Until until = Until::kOnce;
  std::vector<std::string> except = {};  ///< cgroups that a runtime may be about to use
  friend bool operator==(const RemoveChildren&, const RemoveChildren&) = default;
};

/// What follows if the kernel refuses a pod's values.
enum class IfRefused : std::uint8_t {
  kReport,  ///< the caller is told, and comes back to the pod
  /// A refusal that passes (kBusy) is left to the next transaction; any other ends the plan.
  kWriteAgainIfBusy,
  kWriteAgain,  ///< left to a later transaction, whatever the refusal
};
/// Writes the values of a pod's cgroup, and keeps a copy of the record saved last on it.
struct WritePod {
  std::string uid;
  std::string cgroup;
  /// kNo: the plan writes what has changed; if the cgroup has vanished, it is made again with all
  /// its values.
  Make make = Make::kYes;
  Plan plan;
  Transient transient = Transient::kNone;
  IfRefused if_refused = IfRefused::kWriteAgainIfBusy;
  UnixSeconds retry_at = {};  ///< when to write again what was refused; kBusy: at once
  friend bool operator==(const WritePod&, const WritePod&) = default;
};
/// Marks the values of a live pod's cgroup as unknown, so that a later transaction writes all of
/// them.
struct LeaveUnwritten {
  std::string uid;
  std::string cgroup;
  UnixSeconds until;  ///< when that transaction may come
  friend bool operator==(const LeaveUnwritten&, const LeaveUnwritten&) = default;
};
/// Removes the cgroup of a released pod and all that is left below it, then the pod's record and
/// index entries. Where the cgroup remains, it is retained with its record.
struct RemovePod {
  PodRecord record;
  UnixSeconds retry_at;  ///< when to try again; at once if only systemd still holds the cgroup
  friend bool operator==(const RemovePod&, const RemovePod&) = default;
};

using EventStep = std::variant<SetMark, SaveTiers, SaveRecord, EraseRecord, SaveIndexEntry,
                               EraseIndexEntry, Execute, MakeTree, RemoveTree, RemoveChildren,
                               WritePod, LeaveUnwritten, RemovePod>;
/// The steps of an event in order: carried out by app::Transaction::execute(), up to the first that
/// fails; compared by tests.
using EventPlan = std::vector<EventStep>;

/// The index entry that leads from a container to its pod.
[[nodiscard]] IndexEntry index_entry(const PodRecord& record, const ContainerRecord& container);

/// Saves the record of a container whose bundle has become known: its new entry, the record, and
/// only then away with the entry that led to it until now.
[[nodiscard]] EventPlan plan_renaming(const PodRecord& record, const ContainerRecord& container,
                                      IndexEntry old);
/// Saves a restored pod: the entries of all its containers, then the record. An entry without a
/// record is harmless; to a record without an entry nothing would lead when the container ends.
[[nodiscard]] EventPlan plan_restoration(const PodRecord& record);
/// Erases a pod: its record, then the entries of its containers, which lead nowhere from then on.
[[nodiscard]] EventPlan plan_erasure(const PodRecord& record);

}  // namespace podqos::core

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/stamp.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// The part of a pod's record that metrics and sums need.
struct PodSnapshot {
  std::string cgroup;
  core::QosClass qos_class = core::QosClass::kBestEffort;
  bool adopted = false;    ///< placed by a kubelet
  bool released = false;   ///< none of its containers is running
  core::TierSum requests;  ///< granted requests; claimed requests of an adopted pod
  friend bool operator==(const PodSnapshot&, const PodSnapshot&) = default;
};

/// Tiers and pods of the node as read without the lock.
struct NodeSnapshot {
  core::TiersRecord tiers;
  bool interrupted = false;  ///< a transaction is in progress or was interrupted
  std::vector<PodSnapshot> pods;
  std::size_t unreadable = 0;  ///< records that are corrupt or have a newer version
};

/// Reads the state repeatedly without the lock (unlocked_state.h). Records that have not changed
/// since the previous read() are not read again.
class SnapshotReader {
 public:
  static constexpr std::size_t kMaxPods = 4096;  ///< files in the pods directory
  static constexpr std::size_t kMaxReads = 512;  ///< records that one read() reads

  /// @param path  the state directory
  explicit SnapshotReader(std::string path) : path_(std::move(path)) {}

  /// Reads new and changed records.
  /// @return nullopt if there is no state directory; kTooLarge for more than kMaxPods files; kBusy
  ///         for more than kMaxReads new records (call again to read the rest); the errors of
  ///         UnlockedState::open().
  [[nodiscard]] Result<std::optional<NodeSnapshot>> read();

 private:
  struct Known {
    Stamp stamp;
    std::optional<PodSnapshot> pod;  ///< nullopt if the record is unreadable
  };
  [[nodiscard]] Status read_pods(const sys::Directory& state);
  void read_pod(const sys::Directory& pods, const std::string& name,
                std::map<std::string, Known>& seen);

  std::string path_;
  std::map<std::string, Known> known_;  ///< by file name
  std::size_t reads_ = 0;               ///< new records found by this read()
};

}  // namespace podqos::store

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

/// One pod, as far as the sums of a node go.
struct PodSnapshot {
  std::string cgroup;
  core::QosClass qos_class = core::QosClass::kBestEffort;
  bool adopted = false;    ///< a kubelet has placed it
  bool released = false;   ///< no container of it lives
  core::TierSum requests;  ///< what counts of them; of an adopted pod what it claims
  friend bool operator==(const PodSnapshot&, const PodSnapshot&) = default;
};

struct NodeSnapshot {
  core::TiersRecord tiers;
  bool interrupted = false;  ///< an event is under way, or has left its mark
  std::vector<PodSnapshot> pods;
  std::size_t unreadable = 0;  ///< records that are damaged or of a newer version
};

/// Looks at the state again and again without its lock (unlocked_state.h); a record that has not
/// changed since the last look is not read again.
class SnapshotReader {
 public:
  /// As many pods as are looked at at most, and as many records as one look reads.
  static constexpr std::size_t kMaxPods = 4096;
  static constexpr std::size_t kMaxReads = 512;

  /// @param path  of the state directory.
  explicit SnapshotReader(std::string path) : path_(std::move(path)) {}

  /// @return nullopt: there is no state. kTooLarge: more than kMaxPods records; kBusy: more than
  /// kMaxReads that are new, of which the next look reads more; the errors of the state directory.
  [[nodiscard]] Result<std::optional<NodeSnapshot>> read();

 private:
  struct Known {
    Stamp stamp;
    std::optional<PodSnapshot> pod;  ///< nullopt: unreadable
  };
  [[nodiscard]] Status read_pods(const sys::Directory& state);
  void read_pod(const sys::Directory& pods, const std::string& name,
                std::map<std::string, Known>& seen);

  std::string path_;
  std::map<std::string, Known> known_;  ///< by the file's name
  std::size_t reads_ = 0;               ///< of this look
};

}  // namespace podqos::store

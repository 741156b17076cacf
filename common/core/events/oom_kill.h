#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/core/cgroups/layout.h"
#include "common/core/record.h"

// By whose limit a container was OOM-killed, from the counters of its pod's cgroups.
namespace podqos::core {

/// What the kernel counts of one cgroup that runs out of memory. cgroup v2 counts what happens
/// below a cgroup, too; v1 does not.
/// @note Documentation/admin-guide/cgroup-v2.rst, memory.events and memory.events.local;
///       cgroup-v1/memory.rst, oom_kill of memory.oom_control and memory.failcnt.
struct OomCounters {
  std::int64_t kills = 0;  ///< processes that the OOM killer has ended
  /// How often the cgroup's limit was met with nothing left to reclaim; v1: or with something.
  std::int64_t ooms = 0;
  std::int64_t own_ooms = 0;  ///< the same without the limits of those below
};

/// The counters of a pod's cgroups when it is asked whether a container of it was OOM-killed.
struct OomSnapshot {
  CgroupVersion version = CgroupVersion::kV2;
  /// The container's; nullopt if it has ended, and its runtime has removed the cgroup.
  std::optional<OomCounters> container = std::nullopt;
  OomCounters pod = {};
  /// Sums over the pod's other containers of what was not reported, as far as they have cgroups.
  OomCounters others = {};
  std::int64_t tier = 0;  ///< own_ooms of its tier; 0 for a Guaranteed pod, which has none
  std::int64_t root = 0;  ///< own_ooms of the root
};

/// Whose memory limit it was that had processes killed, the nearest to them first.
enum class OomLimit : std::uint8_t { kContainer, kPod, kTier, kRoot };

/// Whether a pod's counters tell of kills that were not reported.
[[nodiscard]] bool has_new_kills(const OomCounts& reported, const OomCounters& pod);

/// Decides whether processes of a container were OOM-killed, and whose limit was met.
/// @param pod  its pod's record; what was reported, and is now, is noted there
/// @param container  of that record
/// @return nullopt: none since it was reported last. The limits that were met: of cgroup v2 the
///         nearest; v1 counts limits that reclaim has helped with, too, so that it may be any of
///         several. Empty if it was none of them, but the node, or a cgroup above the root.
[[nodiscard]] std::optional<std::vector<OomLimit>> decide_oom_kill(PodRecord& pod,
                                                                   ContainerRecord& container,
                                                                   const OomSnapshot& snapshot);

/// What a sentence about a kill names.
struct OomWords {
  std::array<std::optional<Bytes>, 4> limits = {};  ///< by OomLimit; absent if not known
  std::string_view tier = {};                       ///< "besteffort"
  std::string_view root = {};                       ///< its cgroup
  std::optional<Bytes> peak = std::nullopt;         ///< the most memory that the pod has used
};

/// "OOM-killed by the limit of tier besteffort (380Mi); its pod had used up to 371Mi".
[[nodiscard]] std::string describe_oom_kill(const std::vector<OomLimit>& met,
                                            const OomWords& words);

}  // namespace podqos::core

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/cgroup/cgroup_usage.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/record.h"
#include "ctl/cli/json.h"
#include "ctl/node/records.h"

namespace podqos::ctl {

using Permille = Unit<struct PermilleTag>;  ///< thousandths of a whole

/// What a tree, tier, pod or container uses, over the time between two samples. nullopt where it is
/// not known: without an earlier sample, a controller, a quota, PSI.
struct Usage {
  std::optional<MilliCpu> cpu = {};
  std::optional<Permille> throttled = {};  ///< of the periods of its own quota
  std::optional<Bytes> memory = {};
  std::optional<Bytes> working_set = {};  ///< memory without page cache that was not used lately
  std::optional<Bytes> swap = {};
  std::optional<std::int64_t> pids = {};       ///< processes and threads
  std::optional<std::int64_t> oom_kills = {};  ///< since it was made
  /// PSI: for how much of the time at least one task, or all at once, waited.
  std::optional<Permille> cpu_waiting = {};
  std::optional<Permille> cpu_stalled = {};
  std::optional<Permille> memory_waiting = {};
  std::optional<Permille> memory_stalled = {};
  friend bool operator==(const Usage&, const Usage&) = default;
};

/// The usage between two looks at one cgroup.
/// @param before  nullopt: not seen before; the same for counters that have gone back
[[nodiscard]] Usage usage_between(const std::optional<cgroup::CgroupUsage>& before,
                                  const cgroup::CgroupUsage& now);

/// Requests or limits; nullopt for none.
struct Amounts {
  std::optional<MilliCpu> cpu = {};
  std::optional<Bytes> memory = {};
  friend bool operator==(const Amounts&, const Amounts&) = default;
};

/// CPU and memory of a list; nullopt for what it does not name.
[[nodiscard]] Amounts amounts_of(const core::ResourceList& list);
/// What the pod requests; nullopt for 0, which is as good as none.
[[nodiscard]] Amounts requests_of(const core::PodRecord& record);
/// The limits that the kernel has.
[[nodiscard]] Amounts limits_in(const cgroup::CgroupView& cgroup);
/// {"cpuMilli": 500, "memoryBytes": null}.
[[nodiscard]] Json json_of(const Amounts& amounts);

inline constexpr std::array kClasses = {core::QosClass::kGuaranteed, core::QosClass::kBurstable,
                                        core::QosClass::kBestEffort};

enum class EntryKind : std::uint8_t { kTree, kTier, kPod, kContainer };

/// One thing whose usage is shown.
struct UsageEntry {
  static constexpr std::size_t kNoParent = std::numeric_limits<std::size_t>::max();

  EntryKind kind = EntryKind::kTree;
  std::size_t parent = kNoParent;  ///< index of the tier, pod …; always before it
  core::QosClass qos_class = core::QosClass::kGuaranteed;  ///< of all but trees
  /// "" for the tier of Guaranteed pods, whose usage is the sum of its pods', since their cgroups
  /// lie in that of the tree beside the other tiers.
  std::string cgroup = {};
  std::optional<core::Engine> engine = {};  ///< of pods and containers, as namespace and uid
  std::string pod_namespace = {};
  std::string uid = {};
  std::string id = {};        ///< of pods by engine_id(), and of containers
  std::string name = {};      ///< of pods and containers; "" if it is not known
  bool kubelets_own = false;  ///< a pod, or container of one, that a kubelet has placed
  Amounts requests = {};
  Amounts limits = {};
  core::OomKills earlier_kills = {};  ///< of pods
  Usage usage = {};
};

/// The trees of podqos and of a kubelet with their tiers, pods and containers, each followed by
/// what is in it. Tiers without pods and sandboxes are left out, and released pods. Usage and the
/// limits of all but containers are yet to be read.
[[nodiscard]] std::vector<UsageEntry> entries_of(const NodeRecords& records);

/// Computes the usage of tiers that have no cgroup of their own, and adds to OOM kills what cgroup
/// v1 counts in the cgroups below only, and of pods what app::count_oom_kills() does.
/// @param memory  version that carries the memory controller
void add_sums(std::vector<UsageEntry>& entries, std::optional<core::CgroupVersion> memory);

/// "app", or the first digits of its id; of all but containers full_name(). Not yet printable.
[[nodiscard]] std::string label_of(const std::vector<UsageEntry>& entries, std::size_t index);
/// "default/web/app", "default/web", "Burstable", "/podqos/kubepods"; uid or id where there is no
/// name. Not yet printable.
[[nodiscard]] std::string full_name(const std::vector<UsageEntry>& entries, std::size_t index);

/// A look at the node.
struct UsageSample {
  std::int64_t interval_ms = 0;  ///< since the look before
  std::vector<UsageEntry> entries = {};
};

/// Leaves the wanted entries, and what they are in.
/// @param wanted  by index
[[nodiscard]] std::vector<UsageEntry> leave(std::vector<UsageEntry> entries,
                                            std::vector<bool> wanted);

/// Which entries are wanted.
struct UsageFilter {
  std::optional<core::QosClass> tier = {};
  std::string pod_namespace = {};  ///< "": all
  std::string text = {};           ///< part of the full name, uid or id; "": all
  friend bool operator==(const UsageFilter&, const UsageFilter&) = default;
};
/// Leaves the wanted pods and containers, and what they are in.
[[nodiscard]] std::vector<UsageEntry> filtered(std::vector<UsageEntry> entries,
                                               const UsageFilter& filter);

/// As `podqosctl top -o json` prints it; see podqosctl(1).
[[nodiscard]] Json usage_json(const UsageSample& sample);

}  // namespace podqos::ctl

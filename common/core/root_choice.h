#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/driver.h"
#include "common/core/record.h"

namespace podqos::core {

/// What is needed before a root holds podqos's pods.
enum class RootStep : std::uint8_t {
  kUse,      ///< nothing: it is in use
  kCheck,    ///< check_root(); then it is made where it is missing
  kReplace,  ///< the root in use, which has no pods, is removed; then as kCheck
};

/// The root for podqos's own pods.
struct RootChoice {
  RootStep step = RootStep::kUse;
  std::string root;
  friend bool operator==(const RootChoice&, const RootChoice&) = default;
};

/// Chooses the root for podqos's own pods: the one in use while it has pods, otherwise
/// <cgroupRoot>/kubepods.
/// @param tiers  the root in use, and whether it has pods
/// @param driver  of the container's runtime
/// @return kConflict if the root in use has pods and is the other driver's, or has been taken over
///         by a kubelet; kInvalidArgument if `cgroup_root` is needed and cannot be a slice
[[nodiscard]] Result<RootChoice> choose_root(const TiersRecord& tiers, std::string_view cgroup_root,
                                             Driver driver);

/// What was observed of a cgroup that may become the root.
struct RootSnapshot {
  bool exists = false;
  bool marked = false;  ///< it has podqos's mark
  /// Its values are a new cgroup's, and the container that its runtime has just started is all it
  /// holds: that runtime created it for a path in config.json. Observed only without the mark.
  bool made_by_runtime = false;
  /// How a kubelet was detected on this machine; observed only for the root that kubelets use, and
  /// if is_available().
  std::optional<std::string> kubelet = std::nullopt;
};

/// True if podqos created the cgroup, or may create or take it.
[[nodiscard]] bool is_available(const RootSnapshot& snapshot);
/// True if it is a root of podqos's: of which the state was lost, if the state does not name it.
[[nodiscard]] bool is_own_root(const RootSnapshot& snapshot);
/// Checks that podqos may use the root.
/// @return kConflict with the remedy if it exists without podqos's mark, or belongs to a kubelet
[[nodiscard]] Status check_root(const std::string& root, const RootSnapshot& snapshot);

/// kConflict for a root that had to be replaced (RootStep::kReplace) and still exists.
/// @param holder  a cgroup of another program in it; nullopt if there is none
[[nodiscard]] Error describe_remaining_root(const std::string& in_use, Driver driver,
                                            const std::optional<std::string>& holder);

/// True if a kubelet has created a pod's cgroup in the root in use: the root is the kubelet's then.
[[nodiscard]] bool is_taken_over(const TiersRecord& tiers, std::string_view adopted_pod_cgroup);

}  // namespace podqos::core

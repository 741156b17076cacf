#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/naming.h"
#include "common/core/record.h"

namespace podqos::core {

/// What is needed before a root holds podqos's pods.
enum class RootStep : std::uint8_t {
  kUse,    ///< nothing: it is in use
  kCheck,  ///< check_root(); then it is made where it is missing
};

/// The root for podqos's own pods of one driver.
struct RootChoice {
  RootStep step = RootStep::kUse;
  std::string root;
  friend bool operator==(const RootChoice&, const RootChoice&) = default;
};

/// Chooses the root for podqos's own pods of a driver: the one in use while it has pods, otherwise
/// <cgroupRoot>/kubepods. The pods of the other driver have a tree of their own.
/// @param tiers  the trees, and whether they have pods
/// @param driver  of the container's runtime
/// @return kInvalidArgument if `cgroup_root` is needed and cannot be a slice
[[nodiscard]] Result<RootChoice> choose_root(const TiersRecord& tiers, std::string_view cgroup_root,
                                             Driver driver);

/// What was observed of a cgroup that may become the root.
struct RootSnapshot {
  bool exists = false;
  bool marked = false;  ///< it has podqos's mark
  /// An engine has created it on its way to a pod, as podqos or a user named the path: it has a new
  /// cgroup's values, and holds nothing but tiers and pods. Observed only without the mark.
  bool made_by_engine = false;
};

/// Checks that podqos has created the root, or may create or take it.
/// @return kConflict with the remedy if it is another program's
[[nodiscard]] Status check_root(const std::string& root, const RootSnapshot& snapshot);

}  // namespace podqos::core

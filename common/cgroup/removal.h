#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/machine.h"

namespace podqos::cgroup {

/// How to remove the children of a pod's cgroup.
struct RemoveChildren {
  enum class Until : std::uint8_t {
    kOnce,   ///< one attempt
    kEmpty,  ///< repeated until no child is left: that of a killed process is busy until it exits
  };
  std::string cgroup;
  Until until = Until::kOnce;
  std::vector<std::string> except = {};  ///< cgroups that a runtime may be about to use
  std::vector<std::string> only = {};    ///< children to remove; if empty, all of them
};

/// Removes the unpopulated cgroups directly below a pod's: left behind by killed runtimes, or of
/// ended containers that were not deleted, with what containers have nested in them. The kernel
/// refuses to remove populated ones. A monitor is moved back to the root cgroup first: it ends
/// slightly later than the pod, and would keep the pod's cgroup from being removed.
[[nodiscard]] Result<Report> remove_children(Machine& machine, const RemoveChildren& step);

/// What became of a cgroup that was to be removed.
enum class Removed : std::uint8_t {
  kGone,
  kInUse,          ///< it holds a process or a cgroup that is not podqos's
  kPartly,         ///< its containers have nested more in it than one plan removes
  kHeldBySystemd,  ///< empty, but a unit of systemd, which releases units asynchronously
};
/// The result of a removal.
struct Removal {
  Removed removed = Removed::kGone;
  Report report = {};
};
/// Removes the cgroup of a released pod, with all that is left below it; with the cgroupfs driver
/// in the hierarchies that podqos may write to. Waits for systemd within the budget of the
/// transaction.
[[nodiscard]] Result<Removal> remove_pod(Machine& machine, const std::string& cgroup);
/// Removes tiers and root, and then the cgroups above it that podqos has made. Those that have
/// children were not created by podqos, or are still in use.
/// @param top  the outermost cgroup above `kubepods` that podqos has made; "" for none
[[nodiscard]] Result<Removal> remove_tree(Machine& machine, const std::string& kubepods,
                                          const std::string& top);

}  // namespace podqos::cgroup

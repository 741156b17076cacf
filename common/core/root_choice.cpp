#include "common/core/root_choice.h"

#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/pod_plan.h"

namespace podqos::core {

namespace {

/// The beginning of a message about a root in use that is the other driver's.
std::string describe_driver(Driver driver) {
  return cat("its runtime uses the ", format_driver(driver), " driver, but ");
}

}  // namespace

Result<RootChoice> choose_root(const TiersRecord& tiers, std::string_view cgroup_root,
                               Driver driver) {
  const std::string& in_use = tiers.kubepods;
  RootChoice configured{.step = RootStep::kCheck, .root = root_path(cgroup_root, driver)};
  if (in_use.empty()) return configured;
  if (driver_of(in_use) != driver) {
    if (has_pods(tiers)) {
      return fail(ErrorCode::kConflict,
                  cat(describe_driver(driver), "the node's pods are in ", in_use,
                      ": configure all engines for one driver, and set cgroupDriver to it"));
    }
    configured.step = RootStep::kReplace;
    return configured;
  }
  if (tiers.yielded) {
    if (!has_pods(tiers)) return configured;
    return fail(ErrorCode::kConflict,
                cat("a kubelet has taken over cgroup ", in_use,
                    ", which holds podqos's pods: stop them, and set cgroupRoot to a cgroup "
                    "other than \"/\" for new ones"));
  }
  if (has_pods(tiers) || in_use == configured.root)
    return RootChoice{.step = RootStep::kUse, .root = in_use};
  return configured;
}

bool is_available(const RootSnapshot& snapshot) {
  return !snapshot.exists || snapshot.marked || snapshot.made_by_runtime;
}

bool is_own_root(const RootSnapshot& snapshot) {
  return snapshot.exists && snapshot.marked && !snapshot.kubelet;
}

Status check_root(const std::string& root, const RootSnapshot& snapshot) {
  if (!is_available(snapshot)) {
    return fail(
        ErrorCode::kConflict,
        cat("cgroup ", root,
            " exists but was not created by podqos: set cgroupRoot to a cgroup reserved for podqos "
            "(default: /podqos), or remove ",
            root, " if nothing uses it"));
  }
  if (!snapshot.kubelet) return {};
  return fail(ErrorCode::kConflict,
              cat("cgroup ", root, " belongs to the kubelet that was found on this machine (",
                  printable(*snapshot.kubelet),
                  "): remove cgroupRoot \"/\" from podqos's "
                  "configuration, so that its own pods are placed below /podqos"));
}

Error describe_remaining_root(const std::string& in_use, Driver driver,
                              const std::optional<std::string>& holder) {
  const std::string remedy =
      holder ? cat("stop what runs in ", printable(*holder), " and remove it")
             : cat("stop the processes in it, or retry if systemd has not removed it yet");
  return {ErrorCode::kConflict, cat(describe_driver(driver), in_use,
                                    ", which held the node's pods, still exists: ", remedy)};
}

bool is_taken_over(const TiersRecord& tiers, std::string_view adopted_pod_cgroup) {
  return is_kubelets_root(tiers.kubepods) &&
         adopted_pod_cgroup.starts_with(cat(tiers.kubepods, "/"));
}

}  // namespace podqos::core

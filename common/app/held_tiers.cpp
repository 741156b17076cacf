#include "common/app/held_tiers.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "common/app/reconcile.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/root.h"
#include "common/core/events/tier_write.h"

namespace podqos::app {

std::vector<HeldTier> held_tiers(Transaction& transaction) {
  std::vector<HeldTier> held;
  const core::Settings& settings = transaction.settings();
  const core::TiersRecord& tiers = transaction.tiers();
  for (const core::TreeRecord& tree : tiers.trees) {
    core::TierValues wanted =
        core::wanted_tiers(tree.sums, tiers.sums, settings, transaction.capacity());
    wanted.root = core::root_limits(tiers, tree, settings, transaction.capacity());
    const auto add = [&](core::QosClass qos_class, const core::CgroupValues& values) {
      std::string path = core::tier_path(tree.kubepods, qos_class);
      const auto usage = transaction.machine().memory_usage(path);
      if (!values.memory_limit || !usage) return;
      const Bytes excess = core::excess_of_limit(*values.memory_limit, *usage, settings);
      const bool root = qos_class == core::QosClass::kGuaranteed;
      if (excess > Bytes{0}) held.push_back({std::move(path), excess, root});
    };
    add(core::QosClass::kGuaranteed, wanted.root);
    add(core::QosClass::kBurstable, wanted.burstable);
    add(core::QosClass::kBestEffort, wanted.besteffort);
  }
  return held;
}

namespace {

constexpr int kLoweringSteps = 20;
constexpr std::chrono::milliseconds kLoweringPause{20};

/// Asks the kernel to reclaim `excess` bytes of each tier (memory.reclaim, cgroup v2, Linux 5.19).
/// Called without the lock: it may take long.
/// @note Documentation/admin-guide/cgroup-v2.rst, memory.reclaim.
void reclaim(const std::vector<HeldTier>& held) {
  auto cgroups = cgroup::Cgroupfs::open();
  if (!cgroups || cgroups->layout().memory != core::CgroupVersion::kV2) return;
  for (const HeldTier& tier : held) {
    // Fails with EAGAIN if less could be reclaimed; the file exists since Linux 5.19.
    const auto asked =
        cgroups->execute({core::WriteFile{.path = tier.path,
                                          .controller = core::Controller::kMemory,
                                          .file = "memory.reclaim",
                                          .value = std::to_string(tier.excess.value()),
                                          .reason = "lower the tier's limit",
                                          .on_refusal = core::OnRefusal::kIgnore}});
    if (!asked) return;
  }
}

}  // namespace

Result<std::vector<HeldTier>> lower_step_by_step(const core::Settings& settings, Log& log,
                                                 std::vector<HeldTier> held) {
  for (int step = 0; step < kLoweringSteps && !held.empty(); ++step) {
    reclaim(held);
    std::this_thread::sleep_for(kLoweringPause);
    PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log));
    PODQOS_TRY(recover(transaction));
    // A root's limit is else written only if its rule has changed.
    if (std::ranges::any_of(held, &HeldTier::root)) transaction.remake_trees();
    PODQOS_TRY(transaction.finish());
    held = held_tiers(transaction);
  }
  return held;
}

}  // namespace podqos::app

#include "common/app/held_tiers.h"

#include <string>

#include "common/cgroup/cgroupfs.h"
#include "common/core/pod_plan.h"
#include "common/core/tier_plan.h"

namespace podqos::app {

namespace {

/// Adds the tiers of a tree whose memory limit is above the rule because their usage is.
void find_held(Transaction& transaction, const core::TreeRecord& tree,
               std::vector<HeldTier>& held) {
  const core::TierValues wanted = core::wanted_tiers(
      tree.sums, transaction.tiers().sums, transaction.settings(), transaction.capacity());
  for (const auto qos_class : {core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
    const auto& limit = qos_class == core::QosClass::kBurstable ? wanted.burstable.memory_limit
                                                                : wanted.besteffort.memory_limit;
    const std::string path = core::tier_path(tree.kubepods, qos_class);
    const auto usage = transaction.machine().memory_usage(path);
    if (!limit || !usage) continue;
    const Bytes excess = core::excess_of_limit(*limit, *usage, transaction.settings());
    if (excess > Bytes{0}) held.push_back({.path = path, .excess = excess});
  }
}

}  // namespace

std::vector<HeldTier> held_tiers(Transaction& transaction) {
  std::vector<HeldTier> held;
  for (const core::TreeRecord& tree : transaction.tiers().trees) {
    if (!tree.yielded) find_held(transaction, tree, held);
  }
  return held;
}

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

}  // namespace podqos::app

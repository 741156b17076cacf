#include "common/app/held_tiers.h"

#include <algorithm>
#include <string>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/tier.h"

namespace podqos::app {

std::vector<HeldTier> held_tiers(Transaction& transaction) {
  std::vector<HeldTier> held;
  if (transaction.tiers().kubepods.empty() || transaction.tiers().yielded) return held;
  const core::TierValues wanted = transaction.wanted_tiers();
  for (const auto qos_class : {core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
    const auto& limit = qos_class == core::QosClass::kBurstable ? wanted.burstable.memory_limit
                                                                : wanted.besteffort.memory_limit;
    const std::string path = core::tier_path(transaction.tiers().kubepods, qos_class);
    const auto usage = transaction.machine().memory_usage(path);
    if (!limit || !usage) continue;
    const Bytes least = std::max(*limit, transaction.settings().tier_memory_floor);
    const Bytes now =
        core::bounded_tier_limit(*limit, *usage, transaction.settings().tier_memory_floor);
    if (now > least) held.push_back({.path = path, .excess = Bytes{now.value() - least.value()}});
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

#include "common/app/counting.h"

#include <vector>

#include "common/core/policy.h"

namespace podqos::app {

void grant_pod(Transaction& transaction, core::PodRecord& record,
               const std::optional<core::PodRecord>& before) {
  core::grant_requests(record, core::sums_beside(transaction.tiers(), before),
                       transaction.settings(), transaction.capacity());
}

void count_pod(Transaction& transaction, const core::PodRecord& record,
               const std::optional<core::PodRecord>& before) {
  core::TiersRecord& tiers = transaction.tiers();
  if (before && !before->released_at) core::remove_pod(tiers, *before);
  core::add_pod(tiers, record);
  std::erase_if(tiers.retained,
                [&](const core::RetainedEntry& entry) { return entry.uid == record.pod.uid; });
}

void note_pending(core::TiersRecord& tiers, const core::PodRecord& record,
                  const core::ContainerRecord& container) {
  std::erase_if(tiers.pending, [&](const core::PendingEntry& entry) {
    return entry.id == container.id && entry.bundle == container.bundle;
  });
  if (container.state != core::ContainerState::kPending) return;
  tiers.pending.push_back({.uid = record.pod.uid,
                           .id = container.id,
                           .bundle = container.bundle,
                           .pid = container.pid,
                           .start_time = container.start_time});
}

}  // namespace podqos::app

#include "common/core/cut_requests.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/core/counting.h"
#include "common/core/reservation.h"

namespace podqos::core {

namespace {

// The tiers' record is written with each event.
constexpr std::size_t kMostListed = 64;
constexpr std::size_t kMostAtOnce = 4;

}  // namespace

void note_cut(TiersRecord& tiers, const PodRecord& record, const Settings& settings) {
  const TierSum most = countable(record, record.claimed, settings);
  CutEntry entry{
      .uid = record.pod.uid,
      .cpu = MilliCpu{saturating_sub(most.cpu.value(), record.granted.cpu.value())},
      .memory = Bytes{saturating_sub(most.memory.value(), record.granted.memory.value())}};
  const bool cut = !record.released_at && (entry.cpu > MilliCpu{0} || entry.memory > Bytes{0});
  const auto known = std::ranges::find(tiers.cut, entry.uid, &CutEntry::uid);
  if (!cut) {
    forget_cut(tiers, entry.uid);
  } else if (known != tiers.cut.end()) {
    *known = std::move(entry);
  } else if (tiers.cut.size() < kMostListed) {
    tiers.cut.push_back(std::move(entry));
  }
}

void forget_cut(TiersRecord& tiers, std::string_view uid) {
  std::erase_if(tiers.cut, [&](const CutEntry& entry) { return entry.uid == uid; });
}

std::vector<std::string> grantable(const TiersRecord& tiers, const Settings& settings,
                                   const NodeCapacity& capacity) {
  std::vector<std::string> uids;
  TierSum free = free_resources(tiers.sums, settings, capacity);
  for (const CutEntry& entry : tiers.cut) {
    const MilliCpu cpu = std::min(entry.cpu, free.cpu);
    const Bytes memory = std::min(entry.memory, free.memory);
    if (uids.size() == kMostAtOnce) break;
    if (cpu <= MilliCpu{0} && memory <= Bytes{0}) continue;
    uids.push_back(entry.uid);
    free.cpu = MilliCpu{free.cpu.value() - cpu.value()};
    free.memory = Bytes{free.memory.value() - memory.value()};
  }
  return uids;
}

void grant_again(PodRecord& record, TiersRecord& tiers, const Settings& settings,
                 const NodeCapacity& capacity) {
  remove_pod(tiers, record);
  grant_requests(record, tiers.sums, settings, capacity);
  add_pod(tiers, record);
}

}  // namespace podqos::core

#include "common/core/events/oom_kill.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/text.h"

namespace podqos::core {

namespace {

/// Whether a counter has grown. One that is lower now is of a new cgroup.
bool has_grown(std::int64_t before, std::int64_t now) {
  return now > before || (now < before && now > 0);
}

/// In whole Mi, of at least one.
Bytes whole(Bytes amount) {
  constexpr std::int64_t kMi = std::int64_t{1} << 20U;
  return amount < Bytes{kMi} ? amount : Bytes{amount.value() / kMi * kMi};
}

std::string_view subject_of(OomLimit limit) {
  switch (limit) {
    case OomLimit::kContainer: return "its own limit";
    case OomLimit::kPod: return "the limit of its pod";
    case OomLimit::kTier: return "the limit of tier ";
    case OomLimit::kRoot: return "the limit of all pods, ";
  }
  return {};
}

std::string describe_limit(OomLimit limit, const OomWords& words) {
  const auto& amount = words.limits.at(static_cast<std::size_t>(limit));
  return cat(subject_of(limit),
             limit == OomLimit::kTier   ? words.tier
             : limit == OomLimit::kRoot ? words.root
                                        : std::string_view{},
             amount ? cat(" (", format_amount(*amount), ")") : "");
}

}  // namespace

bool has_new_kills(const OomCounts& reported, const OomCounters& pod) {
  return has_grown(reported.kills, pod.kills);
}

std::optional<std::vector<OomLimit>> decide_oom_kill(PodRecord& pod, ContainerRecord& container,
                                                     const OomSnapshot& snapshot) {
  const bool is_v2 = snapshot.version == CgroupVersion::kV2;
  const OomCounters& now = snapshot.pod;
  const ReportedOoms reported = container.oom.value_or(ReportedOoms{});
  OomCounts before = pod.oom.value_or(OomCounts{});
  // The kernel counts from 0 in a cgroup that was made again.
  if (is_v2 && now.kills < before.kills) before.kills = before.below = before.pod = 0;
  const auto& own = snapshot.container;
  const std::int64_t kills =
      own ? own->kills - reported.kills : now.kills - before.kills - snapshot.others.kills;
  const std::int64_t ooms = own ? own->ooms - reported.ooms
                                : now.ooms - now.own_ooms - before.below - snapshot.others.ooms;
  if (kills <= 0) return std::nullopt;
  std::vector<OomLimit> limits;
  for (const auto& [limit, met] :
       {std::pair{OomLimit::kContainer, ooms > 0},
        std::pair{OomLimit::kPod, has_grown(before.pod, now.own_ooms)},
        std::pair{OomLimit::kTier, has_grown(before.tier, snapshot.tier)},
        std::pair{OomLimit::kRoot, has_grown(before.root, snapshot.root)}}) {
    if (met && (!is_v2 || limits.empty())) limits.push_back(limit);
  }
  if (own) container.oom = {.kills = own->kills, .ooms = own->ooms};
  pod.oom = {.kills = before.kills + kills,
             .below = before.below + std::max<std::int64_t>(ooms, 0),
             .pod = now.own_ooms,
             .tier = snapshot.tier,
             .root = snapshot.root};
  return limits;
}

std::string describe_oom_kill(const std::vector<OomLimit>& met, const OomWords& words) {
  std::string text = "OOM-killed";
  std::string_view before = " by ";
  for (const OomLimit limit : met)
    text += cat(std::exchange(before, " or "), describe_limit(limit, words));
  if (met.empty()) text += cat(" as the node, or a cgroup above ", words.root, ", was full");
  if (words.peak) text += cat("; its pod had used up to ", format_amount(whole(*words.peak)));
  return text;
}

}  // namespace podqos::core

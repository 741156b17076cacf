#include "common/core/events/oom_kill.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

using Met = std::optional<std::vector<OomLimit>>;

/// A pod of which one container has ended.
struct Pod {
  Pod() = default;
  explicit Pod(const OomCounts& reported) { record.oom = reported; }

  PodRecord record;
  ContainerRecord container;

  Met decide(const OomSnapshot& snapshot) { return decide_oom_kill(record, container, snapshot); }
};

// Counters of Linux 6.12 and 6.18, of a container that took all memory, with memory.oom.group where
// it is killed by its own or its tier's limit. The kernel counts the first victim twice then.

TEST(DecideOomKill, ByTheContainersOwnLimit) {
  Pod pod;
  EXPECT_THAT(pod.decide({.pod = {.kills = 3, .ooms = 1, .own_ooms = 0}}),
              Optional(ElementsAre(OomLimit::kContainer)));
  EXPECT_THAT(pod.record.oom, Optional(Eq(OomCounts{.kills = 3, .below = 1})));
}

TEST(DecideOomKill, ByThePodsLimit) {
  Pod pod{OomCounts{.kills = 3, .below = 1}};
  EXPECT_THAT(pod.decide({.pod = {.kills = 4, .ooms = 2, .own_ooms = 1}}),
              Optional(ElementsAre(OomLimit::kPod)));
  EXPECT_THAT(pod.record.oom, Optional(Eq(OomCounts{.kills = 4, .below = 1, .pod = 1})));
}

TEST(DecideOomKill, ByTheTiersLimit) {
  Pod pod{OomCounts{.kills = 4, .below = 1, .pod = 1}};
  EXPECT_THAT(pod.decide({.pod = {.kills = 7, .ooms = 2, .own_ooms = 1}, .tier = 1}),
              Optional(ElementsAre(OomLimit::kTier)));
}

TEST(DecideOomKill, ByTheRootsLimit) {
  Pod pod{OomCounts{.kills = 7, .below = 1, .pod = 1, .tier = 1}};
  EXPECT_THAT(pod.decide({.pod = {.kills = 8, .ooms = 2, .own_ooms = 1}, .tier = 1, .root = 1}),
              Optional(ElementsAre(OomLimit::kRoot)));
}

TEST(DecideOomKill, ByNoneOfTheseLimits) {
  Pod pod{OomCounts{.kills = 8, .below = 1, .pod = 1, .tier = 1, .root = 1}};
  EXPECT_THAT(pod.decide({.pod = {.kills = 9, .ooms = 2, .own_ooms = 1}, .tier = 1, .root = 1}),
              Optional(IsEmpty()));
}

TEST(DecideOomKill, NamesTheNearestLimit) {
  Pod pod;
  EXPECT_THAT(pod.decide({.pod = {.kills = 1, .ooms = 9, .own_ooms = 2}, .tier = 4, .root = 1}),
              Optional(ElementsAre(OomLimit::kContainer)));
}

TEST(DecideOomKill, ReportsNothingOfAContainerThatEndedByItself) {
  Pod pod;
  EXPECT_EQ(pod.decide({.pod = {}, .tier = 5, .root = 5}), std::nullopt);
  EXPECT_EQ(pod.record.oom, std::nullopt);
}

TEST(DecideOomKill, ReportsNothingTwice) {
  Pod pod;
  const OomSnapshot snapshot{.pod = {.kills = 2, .ooms = 1}};
  EXPECT_NE(pod.decide(snapshot), std::nullopt);
  EXPECT_EQ(pod.decide(snapshot), std::nullopt);
}

TEST(DecideOomKill, LeavesTheKillsOfAnotherContainerToItsEnd) {
  Pod pod;
  const OomCounters all{.kills = 2, .ooms = 1};
  EXPECT_EQ(pod.decide({.pod = all, .others = {.kills = 2, .ooms = 1}}), std::nullopt);
  EXPECT_THAT(pod.decide({.pod = all}), Optional(ElementsAre(OomLimit::kContainer)));
}

TEST(DecideOomKill, DoesNotTakeTheLimitOfAnotherContainerForItsOwn) {
  Pod pod;
  EXPECT_THAT(
      pod.decide({.pod = {.kills = 3, .ooms = 1}, .others = {.kills = 1, .ooms = 1}, .tier = 1}),
      Optional(ElementsAre(OomLimit::kTier)));
}

TEST(DecideOomKill, BelievesTheContainersOwnCountersWhileTheyAreThere) {
  Pod pod;
  const OomSnapshot snapshot{.container = OomCounters{.kills = 1, .ooms = 0},
                             .pod = {.kills = 5, .ooms = 1, .own_ooms = 1}};
  EXPECT_THAT(pod.decide(snapshot), Optional(ElementsAre(OomLimit::kPod)));
  EXPECT_THAT(pod.container.oom, Optional(Eq(ReportedOoms{.kills = 1})));
  EXPECT_THAT(pod.record.oom, Optional(Eq(OomCounts{.kills = 1, .pod = 1})));
  EXPECT_EQ(pod.decide(snapshot), std::nullopt);
}

TEST(DecideOomKill, CountsFromZeroInACgroupThatWasMadeAgain) {
  Pod pod{OomCounts{.kills = 8, .below = 4, .pod = 3}};
  EXPECT_THAT(pod.decide({.pod = {.kills = 1, .ooms = 1, .own_ooms = 1}}),
              Optional(ElementsAre(OomLimit::kPod)));
}

TEST(DecideOomKill, OfVersion1NamesAllLimitsThatWereMet) {
  Pod pod;
  EXPECT_THAT(pod.decide({.version = CgroupVersion::kV1,
                          .container = OomCounters{.kills = 1, .ooms = 66, .own_ooms = 66},
                          .pod = {.kills = 0, .ooms = 86, .own_ooms = 86},
                          .tier = 93}),
              Optional(ElementsAre(OomLimit::kContainer, OomLimit::kPod, OomLimit::kTier)));
  EXPECT_THAT(pod.record.oom,
              Optional(Eq(OomCounts{.kills = 1, .below = 66, .pod = 86, .tier = 93})));
}

TEST(DecideOomKill, OfVersion1ReportsNothingOfAContainerWithoutACgroup) {
  Pod pod;
  EXPECT_EQ(pod.decide({.version = CgroupVersion::kV1, .pod = {.ooms = 86, .own_ooms = 86}}),
            std::nullopt);
}

constexpr Bytes kTier{380 * kMi};

TEST(DescribeOomKill, NamesLimitAmountAndUse) {
  const OomWords words{.limits = {std::nullopt, std::nullopt, kTier, std::nullopt},
                       .tier = "besteffort",
                       .root = "/podqos/kubepods",
                       .peak = Bytes{371 * kMi + 5}};
  EXPECT_EQ(describe_oom_kill({OomLimit::kTier}, words),
            "OOM-killed by the limit of tier besteffort (380Mi); its pod had used up to 371Mi");
  EXPECT_EQ(
      describe_oom_kill({}, words),
      "OOM-killed as the node, or a cgroup above /podqos/kubepods, was full; its pod had used "
      "up to 371Mi");
}

TEST(DescribeOomKill, NamesAllThatItMayBe) {
  const OomWords words{.limits = {Bytes{24 * kMi}, Bytes{32 * kMi}, kTier, Bytes{700 * kMi}},
                       .tier = "burstable",
                       .root = "/podqos/kubepods"};
  EXPECT_EQ(describe_oom_kill({OomLimit::kContainer, OomLimit::kPod}, words),
            "OOM-killed by its own limit (24Mi) or the limit of its pod (32Mi)");
  EXPECT_EQ(describe_oom_kill({OomLimit::kRoot}, words),
            "OOM-killed by the limit of all pods, /podqos/kubepods (700Mi)");
}

}  // namespace
}  // namespace podqos::core

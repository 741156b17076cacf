#include "common/codec/kernel_log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::OomKill;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMi = std::int64_t{1} << 20U;

// Lines of Linux 6.18, shortened where lines are left out, the cgroups' names apart.

constexpr std::string_view kByPod =
    "<4>[34672.429176] dd invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
    "oom_score_adj=993\n"
    "<6>[34672.429354] memory: usage 102400kB, limit 102400kB, failcnt 18\n"
    "<6>[34672.429356] memory+swap: usage 102400kB, limit 9007199254740988kB, failcnt 0\n"
    "<6>[34672.429450] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=app,"
    "mems_allowed=0,oom_memcg=/podqos/kubepods/burstable/poda,task_memcg=/podqos/kubepods/"
    "burstable/poda/app,task=dd,pid=19039,uid=0\n"
    "<3>[34672.429528] Memory cgroup out of memory: Killed process 19039 (dd) total-vm:109788kB, "
    "anon-rss:101888kB, file-rss:872kB, shmem-rss:0kB, UID:0 pgtables:244kB oom_score_adj:993\n";

/// With CONFIG_PRINTK_CALLER.
constexpr std::string_view kGlobal =
    "<6>[   71.500012][  T321] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,"
    "mems_allowed=0,global_oom,task_memcg=/podqos/kubepods/besteffort/podb/web,task=hog,pid=321,"
    "uid=1000\n"
    "<3>[   71.500312][  T321] Out of memory: Killed process 321 (hog) total-vm:1kB\n";

/// The eleventh within five seconds.
constexpr std::string_view kBare =
    "<3>[34623.695898] Memory cgroup out of memory: Killed process 14246 (dd) total-vm:53468kB, "
    "anon-rss:23808kB, file-rss:892kB, shmem-rss:0kB, UID:0 pgtables:88kB oom_score_adj:1000\n";

const OomKill kKilledByPod{.at = 34'672'429'450,
                           .pid = Pid{19039},
                           .cgroup = "/podqos/kubepods/burstable/poda/app",
                           .limited = "/podqos/kubepods/burstable/poda",
                           .limit = Bytes{100 * kMi}};

TEST(ParseOomKills, FindsWhoWasKilledByWhoseLimit) {
  EXPECT_THAT(parse_oom_kills(kByPod), ElementsAre(kKilledByPod));
}

TEST(ParseOomKills, FindsKillsOfTheNode) {
  EXPECT_THAT(parse_oom_kills(std::string{kByPod} + std::string{kGlobal}),
              ElementsAre(kKilledByPod, OomKill{.at = 71'500'012,
                                                .pid = Pid{321},
                                                .cgroup = "/podqos/kubepods/besteffort/podb/web",
                                                .limited = ""}));
}

TEST(ParseOomKills, KnowsThePidAloneOfKillsThatTheKernelLogsBriefly) {
  EXPECT_THAT(parse_oom_kills(kBare),
              ElementsAre(OomKill{.at = 34'623'695'898, .pid = Pid{14246}}));
}

TEST(ParseOomKills, DoesNotTakeALimitFromAnotherKill) {
  const std::string text =
      std::string{"<6>[    1.000000] memory: usage 4kB, limit 4kB, failcnt 1\n"} +
      std::string{kBare} + std::string{kByPod.substr(kByPod.find("<6>[34672.429450]"))};
  const auto kills = parse_oom_kills(text);
  ASSERT_EQ(kills.size(), 2U);
  EXPECT_EQ(kills.back().limit, std::nullopt);
}

TEST(ParseOomKills, PassesOverWhatAProgramHasWritten) {
  std::string text{kByPod};
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 2))
    text.insert(at + 1, "1");
  EXPECT_THAT(parse_oom_kills(text), IsEmpty()) << text;
}

/// The summary with another text in it.
std::string summary(std::string_view part, std::string_view other) {
  std::string text{kByPod.substr(0, kByPod.find("<3>"))};
  return text.replace(text.find(part), part.size(), other);
}

TEST(ParseOomKills, PassesOverNamesThatPretendToBeMembers) {
  for (const auto& [part, other] :
       {std::pair{"cpuset=app", "cpuset=x,oom_memcg=/a,task_memcg=/b,task=c,pid=1,uid=0"},
        std::pair{"poda/app,", "poda/app/x,task_memcg=/podqos/kubepods/burstable/podb/app,"},
        std::pair{"burstable/poda,", "burstable/poda/app/x,oom_memcg=/podqos/kubepods,"},
        std::pair{"task=dd", "task=,task_memcg=/a"}})
    EXPECT_THAT(parse_oom_kills(summary(part, other)), IsEmpty()) << other;
}

TEST(ParseOomKills, TakesTheLastOfWhatMayBeAProcessesName) {
  const auto kills = parse_oom_kills(summary("task=dd", "task=,pid=1,uid=2"));
  EXPECT_THAT(kills, ElementsAre(kKilledByPod));
}

TEST(ParseOomKills, TakesNoCgroupFromAProcessesName) {
  const auto kills = parse_oom_kills(summary("task=dd", "task=a,task=b"));
  EXPECT_THAT(kills, ElementsAre(kKilledByPod));
}

TEST(ParseOomKills, TakesNoLimitFromACpusetsName) {
  std::string text{kGlobal};
  text.replace(text.find("cpuset=/"), 8, "cpuset=x,oom_memcg=y");
  const auto kills = parse_oom_kills(text);
  ASSERT_EQ(kills.size(), 1U);
  EXPECT_EQ(kills.front().limited, "");
}

// What Linux 6.18 logs of an overlay that a process without privileges has mounted in a user
// namespace of its own; the name of the lower directory has a line break.
TEST(ParseOomKills, PassesOverWhatIsTheRestOfAnotherMessage) {
  for (const std::string_view forged :
       {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,"
        "oom_memcg=/podqos,task_memcg=/podqos/kubepods/podb/app,task=dd,pid=1,uid=0",
        "Out of memory: Killed process 19039 (dd)"}) {
    const std::string text = cat("<3>[40694.481925] overlayfs: failed to resolve '/x\n",
                                 "<3>[40694.481925] ", forged, "': -2\n");
    EXPECT_THAT(parse_oom_kills(text), IsEmpty()) << forged;
  }
}

TEST(ParseOomKills, PassesOverDamagedLines) {
  for (const std::string_view text :
       {"", "\n", "<", "<6>", "<6>[", "<6>[]", "<6>[.]", "<6>[1.2", "<6>[ 1.2] oom-kill:",
        "<6>[ 1.2] oom-kill:,task_memcg=", "<6>[ 1.2][", "<3>[ 1.2] Out of memory",
        "<3>[ 1.2] Out of memory: Killed process x (y)", "<6>oom-kill:constraint=CONSTRAINT_NONE",
        "<3>[99999999999999999999.1] Out of memory: Killed process 1 (y)",
        "<3>[9223372036854.775807] Out of memory: Killed process 1 (y)"})
    EXPECT_THAT(parse_oom_kills(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace podqos::codec

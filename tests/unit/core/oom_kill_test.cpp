#include "common/core/events/oom_kill.h"

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

/// Pod "a" with the containers "app" and "other".
PodRecord pod_a() {
  PodRecord pod;
  pod.cgroup = "/podqos/kubepods/burstable/poda";
  pod.qos_class = QosClass::kBurstable;
  for (const char* name : {"app", "other"}) {
    ContainerRecord& container = pod.containers.emplace_back();
    container.name = name;
    container.cgroup = pod.cgroup + "/" + name;
    container.state = ContainerState::kLive;
    container.pid = Pid{name[0]};
  }
  return pod;
}

const ContainerRecord* find(const PodRecord& pod, const char* cgroup, std::int64_t pid = 1) {
  return find_killed(pod, {.pid = Pid{pid}, .cgroup = cgroup});
}

TEST(FindKilled, IsTheContainerOfTheProcessesCgroup) {
  const PodRecord pod = pod_a();
  const ContainerRecord* const app = &pod.containers.front();
  EXPECT_EQ(find(pod, "/podqos/kubepods/burstable/poda/app"), app);
  EXPECT_EQ(find(pod, "/podqos/kubepods/burstable/poda/app/nested"), app);
  EXPECT_EQ(find(pod, "/podqos/kubepods/burstable/poda/app2"), nullptr);
  EXPECT_EQ(find(pod, "/podqos/kubepods/burstable/podb/app"), nullptr);
  EXPECT_EQ(find(pod, "/podqos/kubepods/burstable/poda/app2", 'a'), nullptr);
  EXPECT_EQ(find(pod, "", 'a'), app) << "a kill that the kernel logs briefly";
  EXPECT_EQ(find(pod, "", 'b'), nullptr);
}

TEST(FindKilled, IsNoContainerOutsideAllCgroups) {
  PodRecord pod = pod_a();
  pod.containers.front().cgroup = "/";
  EXPECT_EQ(find(pod, "/system.slice/ssh.service"), nullptr);
}

std::string describe(const PodRecord& pod, const std::optional<std::string>& limited,
                     std::optional<Bytes> limit = std::nullopt) {
  return describe_oom_kill(pod, limited, limit, std::nullopt);
}

TEST(DescribeOomKill, NamesTheLimitAsItWasThen) {
  const PodRecord pod = pod_a();
  EXPECT_EQ(describe(pod, "/podqos/kubepods/burstable/poda/app", Bytes{24 * kMi}),
            "OOM-killed by its own limit (24Mi)");
  EXPECT_EQ(describe(pod, "/podqos/kubepods/burstable/poda", Bytes{32 * kMi}),
            "OOM-killed by the limit of its pod (32Mi)");
  EXPECT_EQ(describe(pod, "/podqos/kubepods/burstable", Bytes{380 * kMi}),
            "OOM-killed by the limit of tier burstable (380Mi)");
  EXPECT_EQ(describe(pod, "/podqos/kubepods", Bytes{700 * kMi}),
            "OOM-killed by the limit of all pods, /podqos/kubepods (700Mi)");
  EXPECT_EQ(describe(pod, "/podqos"), "OOM-killed by the limit of cgroup /podqos");
  EXPECT_EQ(describe(pod, ""), "OOM-killed as the node's memory was full");
  EXPECT_EQ(describe(pod, std::nullopt),
            "OOM-killed; the kernel's log does not say by whose limit");
}

TEST(DescribeOomKill, KnowsThatAGuaranteedPodHasNoTier) {
  PodRecord pod = pod_a();
  pod.cgroup = "/podqos/kubepods/poda";
  pod.qos_class = QosClass::kGuaranteed;
  EXPECT_EQ(describe(pod, "/podqos/kubepods", Bytes{700 * kMi}),
            "OOM-killed by the limit of all pods, /podqos/kubepods (700Mi)");
}

TEST(DescribeOomKill, NamesWhatThePodHasUsed) {
  EXPECT_EQ(
      describe_oom_kill(pod_a(), "/podqos/kubepods", Bytes{380 * kMi}, Bytes{(371 * kMi) + 5}),
      "OOM-killed by the limit of all pods, /podqos/kubepods (380Mi); its pod had used up to "
      "371Mi");
}

}  // namespace
}  // namespace podqos::core

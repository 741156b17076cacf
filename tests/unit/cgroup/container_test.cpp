#include "common/cgroup/container.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

constexpr const char* kPod = "/podqos/kubepods/pod1";
constexpr const char* kContainer = "/podqos/kubepods/pod1/c";

struct Case {
  const char* name;
  std::string cgroups;  ///< of /proc/PID/cgroup
  std::string pod_cgroup;
  std::string recorded;
  std::optional<std::string> want;
};

class StrayCgroup : public ::testing::TestWithParam<Case> {};

TEST_P(StrayCgroup, IsOneThatIsNeitherTheContainersNorItsPods) {
  const Case& c = GetParam();
  EXPECT_EQ(stray_cgroup(sys::parse_proc_cgroup(c.cgroups), c.pod_cgroup, c.recorded), c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, StrayCgroup,
    ::testing::Values(
        Case{"InItsPlace", "0::/podqos/kubepods/pod1/c\n", kPod, kContainer, std::nullopt},
        // As crun makes one, or systemd in the container.
        Case{"Below", "0::/podqos/kubepods/pod1/c/container/init.scope\n", kPod, kContainer,
             std::nullopt},
        Case{"ElsewhereInItsPod", "0::/podqos/kubepods/pod1/d\n", kPod, kContainer, std::nullopt},
        Case{"Outside", "0::/user.slice\n", kPod, kContainer, "/user.slice"},
        Case{"InTheRoot", "0::/\n", kPod, kContainer, "/"},
        Case{"InAnotherPodOfSimilarName", "0::/podqos/kubepods/pod11/c\n", kPod, kContainer,
             "/podqos/kubepods/pod11/c"},
        Case{"OutsideOfItsScopeOfSimilarName", "0::/engine/cc\n", kPod, "/engine/c", "/engine/cc"},
        // Misplaced from the start, as podqos knows.
        Case{"WhereTheEngineHasIt", "0::/engine/c\n", kPod, "/engine/c", std::nullopt},
        Case{"ElsewhereThanTheEngineHadIt", "0::/other\n", kPod, "/engine/c", "/other"},
        Case{"MemoryOfV1", "2:cpu,cpuacct:/podqos/kubepods/pod1/c\n1:memory:/\n", kPod, kContainer,
             "/"},
        Case{"CpuOfV1", "2:cpu,cpuacct:/\n1:memory:/podqos/kubepods/pod1/c\n", kPod, kContainer,
             "/"},
        // Where an engine leaves a process out of its pod.
        Case{"OtherHierarchiesOfV1",
             "3:pids:/engine/c\n2:cpu,memory:/podqos/kubepods/pod1/c\n1:name=systemd:/x\n0::/\n",
             kPod, kContainer, std::nullopt},
        Case{"SeenFromACgroupNamespace", "0::/../../pod1/c\n", kPod, kContainer, std::nullopt},
        Case{"NoCgroups", "", kPod, kContainer, std::nullopt}),
    [](const auto& c) { return c.param.name; });

/// Beyond PID_MAX_LIMIT: /proc tells of it what it tells of one that has just been killed.
constexpr Pid kKilled{1 << 23};
constexpr Pid kEnded{7};
constexpr Pid kCaller{8};

struct EndingCase {
  const char* name;
  Pid recorded;
  std::optional<Pid> in_cgroup;  ///< nullopt: the cgroup is gone; kEnded: it holds no process
  core::Ending want;
};

class ObserveEnding : public ::testing::TestWithParam<EndingCase> {};

TEST_P(ObserveEnding, FollowsFromItsProcesses) {
  const auto& [name, recorded, in_cgroup, want] = GetParam();
  FakeTree tree{core::CgroupVersion::kV2};
  if (in_cgroup) tree.make(kContainer);
  if (in_cgroup && in_cgroup != kEnded)
    tree.processes[*in_cgroup] = {.start_time = StartTime{1}, .cgroup = kContainer};
  FakeMachine machine{tree, [](const std::string&) { return Status{}; }};
  core::ContainerRecord container;
  if (recorded != kCaller) container.state = core::ContainerState::kLive;
  container.pid = recorded;
  container.start_time = StartTime{1};
  container.cgroup = kContainer;
  EXPECT_EQ(observe_ending(machine, container, kCaller), want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ObserveEnding,
    ::testing::Values(EndingCase{"CreationFailed", kCaller, kCaller, core::Ending::kDone},
                      EndingCase{"CgroupIsGone", kEnded, std::nullopt, core::Ending::kDone},
                      EndingCase{"InitRuns", Pid{::getpid()}, Pid{::getpid()},
                                 core::Ending::kStillAlive},
                      EndingCase{"InitWasKilled", kKilled, kKilled, core::Ending::kEnding},
                      EndingCase{"OthersWereKilled", kEnded, kKilled, core::Ending::kEnding},
                      EndingCase{"OthersMayStay", kEnded, Pid{::getpid()}, core::Ending::kDone},
                      EndingCase{"NoneIsLeft", kEnded, kEnded, core::Ending::kDone}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace podqos::cgroup

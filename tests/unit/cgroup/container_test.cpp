#include "common/cgroup/container.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

constexpr const char* kPod = "/podqos/kubepods/pod1";
constexpr const char* kContainer = "/podqos/kubepods/pod1/c";

TEST(StrayCgroup, IsOneThatIsNeitherTheContainersNorItsPods) {
  struct Case {
    const char* cgroups;  ///< of /proc/PID/cgroup
    const char* recorded;
    std::optional<std::string> want;
  };
  for (const auto& [cgroups, recorded, want] :
       {Case{"0::/podqos/kubepods/pod1/c\n", kContainer, std::nullopt},
        // As crun makes one, or systemd in the container.
        Case{"0::/podqos/kubepods/pod1/c/container/init.scope\n", kContainer, std::nullopt},
        Case{"0::/podqos/kubepods/pod1/d\n", kContainer, std::nullopt},
        Case{"0::/user.slice\n", kContainer, "/user.slice"}, Case{"0::/\n", kContainer, "/"},
        Case{"0::/podqos/kubepods/pod11/c\n", kContainer, "/podqos/kubepods/pod11/c"},
        Case{"0::/engine/cc\n", "/engine/c", "/engine/cc"},
        // Misplaced from the start, as podqos knows.
        Case{"0::/engine/c\n", "/engine/c", std::nullopt},
        Case{"0::/other\n", "/engine/c", "/other"},
        Case{"2:cpu,cpuacct:/podqos/kubepods/pod1/c\n1:memory:/\n", kContainer, "/"},
        Case{"2:cpu,cpuacct:/\n1:memory:/podqos/kubepods/pod1/c\n", kContainer, "/"},
        // Where an engine leaves a process out of its pod.
        Case{"3:pids:/engine/c\n2:cpu,memory:/podqos/kubepods/pod1/c\n1:name=systemd:/x\n0::/\n",
             kContainer, std::nullopt},
        Case{"0::/../../pod1/c\n", kContainer, std::nullopt}, Case{"", kContainer, std::nullopt}}) {
    EXPECT_EQ(misplaced_cgroup(sys::parse_proc_cgroup(cgroups), kPod, recorded), want)
        << cgroups << recorded;
  }
}

TEST(BoundingCgroup, IsThatOfMemoryOrCpuElseOfV2) {
  for (const auto& [cgroups, want] : std::vector<std::pair<const char*, const char*>>{
           {"0::/pod1/c\n", "/pod1/c"},
           // As a VPN client, elogind and those who run CentOS 7 mount them beside v2.
           {"1:net_cls:/\n0::/pod1/c\n", "/pod1/c"},
           {"2:name=systemd:/\n1:name=elogind:/2\n0::/pod1/c\n", "/pod1/c"},
           {"3:pids:/x\n2:cpu,cpuacct:/y\n1:memory:/pod1/c\n0::/z\n", "/pod1/c"},
           {"3:pids:/x\n2:cpu,cpuacct:/pod1/c\n0::/z\n", "/pod1/c"}}) {
    EXPECT_EQ(bounding_cgroup(Pid{7}, sys::parse_proc_cgroup(cgroups)), want) << cgroups;
  }
  for (const char* none : {"", "1:net_cls:/\n"}) {
    const auto found = bounding_cgroup(Pid{7}, sys::parse_proc_cgroup(none));
    ASSERT_FALSE(found) << none;
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  }
}

/// Beyond PID_MAX_LIMIT: /proc tells of it what it tells of one that has just been killed.
constexpr Pid kKilled{1 << 23};
constexpr Pid kEnded{7};
constexpr Pid kCaller{8};

TEST(ObserveEnding, FollowsFromItsProcesses) {
  const Pid own{::getpid()};
  struct Case {
    const char* name;
    Pid recorded;
    std::optional<Pid> in_cgroup;  ///< nullopt: the cgroup is gone; kEnded: it holds no process
    core::EndState want;
  };
  for (const auto& [name, recorded, in_cgroup, want] :
       {Case{"creation failed", kCaller, kCaller, core::EndState::kDone},
        Case{"cgroup is gone", kEnded, std::nullopt, core::EndState::kDone},
        Case{"init runs", own, own, core::EndState::kStillAlive},
        Case{"init was killed", kKilled, kKilled, core::EndState::kDying},
        Case{"others were killed", kEnded, kKilled, core::EndState::kDying},
        Case{"others may stay", kEnded, own, core::EndState::kDone},
        Case{"none is left", kEnded, kEnded, core::EndState::kDone}}) {
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
    EXPECT_EQ(observe_end_state(machine, container, kCaller), want) << name;
  }
}

}  // namespace
}  // namespace podqos::cgroup

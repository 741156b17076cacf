#include "common/core/events/oom_kill.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kMi;

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

#include "common/app/inventory.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/store/store.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

core::Settings settings_in(const std::string& directory) {
  core::Settings settings;
  settings.state_dir = directory + "/state";
  settings.cgroup_root = cat("/podqos-test-nowhere-", ::getpid());
  settings.node_memory = Bytes{8LL << 30};
  return settings;
}

TEST(TakeInventory, GivesNothingWithoutState) {
  const TemporaryDirectory directory;
  const auto inventory = read_inventory(settings_in(directory.path()));
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_THAT(inventory->pods, IsEmpty());
  EXPECT_THAT(inventory->warnings, IsEmpty());
  EXPECT_NE(::access((directory.path() + "/state").c_str(), F_OK), 0);
}

/// Records the pod u-1 with a container in this cgroup; "" for one in the pod's.
void record_pod(const core::Settings& settings, const std::string& cgroup) {
  const std::string kubepods = settings.cgroup_root + "/kubepods";
  auto store = store::Store::open({.path = settings.state_dir, .lock_timeout = {}});
  ASSERT_TRUE(store) << store.error().message;
  core::PodRecord record;
  record.pod.uid = "u-1";
  record.pod.name = "web";
  record.pod.pod_namespace = "default";
  record.complete = true;
  record.cgroup = kubepods + "/besteffort/podu-1";
  record.containers = {{.id = "c1",
                        .bundle = "",
                        .name = "a",
                        .state = core::ContainerState::kLive,
                        .pid = Pid{::getpid()},
                        .start_time = StartTime{1},
                        .cgroup = cgroup.empty() ? record.cgroup + "/c1" : cgroup}};
  ASSERT_TRUE(store->put_pod(record));
  store->tiers().trees = {{.kubepods = kubepods}};
  store->tiers().trees[0].sums.besteffort.pods = 1;
  store->tiers().sums.besteffort.pods = 1;
  ASSERT_TRUE(store->commit());
}

TEST(TakeInventory, WarnsOfWhatIsRecordedButGone) {
  if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
    GTEST_SKIP() << cgroups.error().message;
  const TemporaryDirectory directory;
  const core::Settings settings = settings_in(directory.path());
  record_pod(settings, "");
  const auto inventory = read_inventory(settings);
  ASSERT_TRUE(inventory) << inventory.error().message;
  ASSERT_EQ(inventory->pods.size(), 1U);
  EXPECT_FALSE(inventory->pods[0].containers.at(0).alive);
  ASSERT_EQ(inventory->trees.size(), 1U);
  EXPECT_EQ(inventory->trees[0].tiers.size(), 3U);
  EXPECT_EQ(inventory->trees[0].tiers.at(1).rule.cpu_shares, CpuShares{2});
  EXPECT_THAT(inventory->warnings, Contains(HasSubstr("pod default/web (u-1): its cgroup")));
  EXPECT_THAT(inventory->warnings, Contains(HasSubstr("container c1 is recorded")));
}

/// Names, where a container is, why it is outside its pod and what helps.
TEST(TakeInventory, SaysWhyAContainerIsOutsideItsPod) {
  if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
    GTEST_SKIP() << cgroups.error().message;
  constexpr const char* kTooEarly = "because it was started before podqos could place it: recreate";
  constexpr const char* kNoParent = "because its engine set no cgroup parent for the pod";
  using core::WithoutParent;
  struct Case {
    const char* cgroup;
    std::optional<WithoutParent> setting;
    const char* reason;
  };
  for (const Case& each : std::vector<Case>{
           {"/k8s.io/c1", std::nullopt, kTooEarly},
           {"/k8s.io/c1", WithoutParent::kStay, kNoParent},
           {"/crio/crio-c1", std::nullopt, kNoParent},
           {"/crio/crio-c1", WithoutParent::kPlace, kTooEarly},
           {"/system.slice/crio-c1.scope", std::nullopt, kNoParent},
           {"/system.slice/docker-c1.scope", std::nullopt, kTooEarly},
       }) {
    const TemporaryDirectory directory;
    core::Settings settings = settings_in(directory.path());
    settings.without_parent = each.setting;
    record_pod(settings, each.cgroup);
    const auto inventory = read_inventory(settings);
    ASSERT_TRUE(inventory) << inventory.error().message;
    EXPECT_THAT(inventory->warnings,
                Contains(AllOf(HasSubstr(each.cgroup), HasSubstr(each.reason))))
        << each.cgroup;
  }
}

/// The kernel's pid_max is 4194304 at most.
TEST(TakeInventory, WarnsOfLimitsThatAddUpToMoreProcessesThanThereAre) {
  if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
    GTEST_SKIP() << cgroups.error().message;
  const TemporaryDirectory directory;
  core::Settings settings = settings_in(directory.path());
  settings.pod_pids_limit = 4'194'304;
  {
    auto store = store::Store::open({.path = settings.state_dir, .lock_timeout = {}});
    ASSERT_TRUE(store) << store.error().message;
    store->tiers().sums.besteffort.pods = 2;
    ASSERT_TRUE(store->begin());
    ASSERT_TRUE(store->commit());
  }
  const auto warned = HasSubstr("podPidsLimit 4194304 for each of 2 pods is more than the node's");
  auto inventory = read_inventory(settings);
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_THAT(inventory->warnings, ElementsAre(warned));
  settings.admission.pids = core::AdmissionPolicy::kOff;
  inventory = read_inventory(settings);
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_THAT(inventory->warnings, IsEmpty());
}

}  // namespace
}  // namespace podqos::app

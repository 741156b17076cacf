#include "ctl/inventory.h"

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
#include "ctl/inventory_view.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
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

/// The inventory with these settings; a failure if it cannot be read.
Json inventory_of(const core::Settings& settings) {
  app::ConfigurationReport configuration;
  configuration.settings = settings;
  const auto inventory = read_inventory(configuration);
  if (!inventory) ADD_FAILURE() << inventory.error().message;
  return inventory.value_or(Json{});
}

std::vector<std::string> warnings_of(const core::Settings& settings) {
  return inventory_of(settings).value("warnings", std::vector<std::string>{});
}

TEST(ReadInventory, HasTheSameMembersWithoutState) {
  const TemporaryDirectory directory;
  EXPECT_EQ(
      dump(inventory_of(settings_in(directory.path()))),
      R"({"enabled":true,"errors":[],"adopted":{"pods":0,"requests":{"cpuMilli":0,"memoryBytes":0}},)"
      R"("weightFormula":"log","trees":[],"pods":[],"warnings":[]})");
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

TEST(ReadInventory, WarnsOfWhatIsRecordedButGone) {
  if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
    GTEST_SKIP() << cgroups.error().message;
  const TemporaryDirectory directory;
  const core::Settings settings = settings_in(directory.path());
  record_pod(settings, "");
  const Json inventory = inventory_of(settings);
  EXPECT_EQ(inventory["pods"][0]["containers"][0]["state"], "dead");
  ASSERT_EQ(inventory["trees"].size(), 1U);
  const Json& tiers = inventory["trees"][0]["tiers"];
  ASSERT_EQ(tiers.size(), 3U);
  EXPECT_EQ(tiers[1]["rule"]["cpuShares"], 2);
  const std::vector<std::string> warnings = inventory["warnings"];
  EXPECT_THAT(warnings, Contains(HasSubstr("pod u-1 (default/web): its cgroup")));
  EXPECT_THAT(warnings, Contains(HasSubstr("container c1 is recorded")));
}

/// Names, where a container is, why it is outside its pod and what helps.
TEST(ReadInventory, SaysWhyAContainerIsOutsideItsPod) {
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
    EXPECT_THAT(warnings_of(settings),
                Contains(AllOf(HasSubstr(each.cgroup), HasSubstr(each.reason))))
        << each.cgroup;
  }
}

/// The kernel's pid_max is 4194304 at most.
TEST(ReadInventory, WarnsOfLimitsThatAddUpToMoreProcessesThanThereAre) {
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
  EXPECT_THAT(warnings_of(settings), ElementsAre(warned));
  settings.admission.pids = core::AdmissionPolicy::kOff;
  EXPECT_THAT(warnings_of(settings), IsEmpty());
}

/// A machine with the cgroup /pod, for an inventory that only reads.
class ViewedPod : public ::testing::Test {
 protected:
  ViewedPod() {
    tree_.make("/pod");
    record_.pod.uid = "u-1";
    record_.cgroup = "/pod";
    record_.qos_class = core::QosClass::kBurstable;
  }
  /// The pod of an inventory.
  Json pod() {
    const NodeRecords records{.tiers = {}, .pods = {record_}, .warnings = {"a \"quoted\" \xff"}};
    auto inventory = inventory_json({}, records, machine_);
    if (!inventory) ADD_FAILURE() << inventory.error().message;
    const Json shown = Json::parse(dump(inventory.value_or(Json{})));
    EXPECT_EQ(shown["warnings"][0], "a \"quoted\" \xef\xbf\xbd");
    return shown["pods"][0];
  }

  core::PodRecord record_;
  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  std::map<std::string, std::string, std::less<>>& files_ = tree_.cgroups["/pod"].files;
  cgroup::FakeMachine machine_{
      tree_, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
};

TEST_F(ViewedPod, IsShownWithItsContainers) {
  core::Container app;
  app.name = "app";
  app.resources.requests.emplace(core::kCpu, core::Quantity::from_milli(100));
  record_.pod.containers = {app};
  record_.complete = true;
  record_.claimed.cpu = MilliCpu{100};
  record_.containers = {core::ContainerRecord{}};
  files_["cpu.weight"] = "4";
  const Json shown = pod();
  EXPECT_EQ(shown["uid"], "u-1");
  EXPECT_EQ(shown["qosClass"], "Burstable");
  EXPECT_EQ(shown["rule"]["cpuShares"], 102);
  EXPECT_TRUE(shown["rule"]["memoryLimitBytes"].is_null());
  EXPECT_EQ(shown["cpuWeight"], 4);
  EXPECT_TRUE(shown["memoryLimitBytes"].is_null());
  EXPECT_EQ(shown["containers"][0]["state"], "dead");
  EXPECT_TRUE(shown["containers"][0]["oomScoreAdj"].is_null());
}

// What bounds a kubelet's pod is in its cgroup, whatever its annotations say.
TEST_F(ViewedPod, HasTheKernelsLimitsIfItIsAdopted) {
  record_.adopted = true;
  files_["cpu.max"] = "25000 50000";
  files_["memory.max"] = "1073741824";
  EXPECT_EQ(dump(pod()["limits"]), R"({"cpuMilli":500,"memoryBytes":1073741824})");
}

TEST(FormatNotices, SaysWhatIsWrongBeforeThePods) {
  app::ConfigurationReport report;
  EXPECT_EQ(format_notices(report, ColourMode::kPlain), "");
  report.errors = {"a.json: unknown field x", "b.json: writable by others"};
  report.ignored = {"/etc/podqos/conf.d/c.yaml"};
  report.settings.enabled = false;
  EXPECT_EQ(
      format_notices(report, ColourMode::kPlain),
      "error: a.json: unknown field x\n"
      "error: b.json: writable by others\n"
      "warning: with errors in the configuration, podqos-hook and podqos-runtime leave new "
      "containers unmanaged\n"
      "warning: /etc/podqos/conf.d/c.yaml: not read: the names of files in conf.d end in "
      ".json\n"
      "warning: podqos is switched off by \"enabled\": false: new containers start unmanaged, "
      "and earlier ones are released when they end\n");
}

TEST(PodTitle, IsTheUidWithoutAName) {
  Json pod = {{"uid", "u-1"}, {"name", ""}, {"namespace", ""}};
  EXPECT_EQ(pod_title(pod), "u-1");
  pod["name"] = "web";
  EXPECT_EQ(pod_title(pod), "web");
  pod["namespace"] = "shop";
  EXPECT_EQ(pod_title(pod), "shop/web");
}

}  // namespace
}  // namespace podqos::ctl

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/sys/process.h"
#include "ctl/node/node_checks.h"
#include "ctl/node/node_json.h"
#include "ctl/node/node_model.h"
#include "ctl/view/node_text.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/ctl/stored.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMebibyte = 1LL << 20U;

/// A state directory, and a root where nothing is.
class ReadNode : public ::testing::Test {
 protected:
  ReadNode() {
    settings_.state_dir = directory_.path() + "/state";
    settings_.cgroup_root = cat("/podqos-test-nowhere-", ::getpid());
    settings_.node_memory = Bytes{8LL << 30};
  }
  void SetUp() override {
    if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
      GTEST_SKIP() << cgroups.error().message;
  }
  [[nodiscard]] Json inventory() const {
    app::ConfigurationReport configuration;
    configuration.settings = settings_;
    auto records = read_records(settings_);
    auto cgroups = cgroup::Cgroupfs::open({.access = cgroup::Access::kRead});
    if (!records || !cgroups) return {};
    const auto node = read_checked_node(configuration, *std::move(records), *cgroups);
    if (!node) ADD_FAILURE() << node.error().message;
    return node ? node_json(*node) : Json{};
  }
  [[nodiscard]] std::vector<std::string> warnings() const { return inventory().at("warnings"); }

  /// Records the pod u-1 with a container in this cgroup; "" for one in the pod's.
  void record_pod(const std::string& cgroup) const {
    const std::string kubepods = settings_.cgroup_root + "/kubepods";
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
    write(record, {{.kubepods = kubepods}});
  }
  void write(const core::PodRecord& record, std::vector<core::TreeRecord> trees = {}) const {
    NodeRecords records;
    records.pods = {record};
    records.node.trees = std::move(trees);
    store_records(settings_, records);
  }

  TemporaryDirectory directory_;
  core::Settings settings_;
};

TEST_F(ReadNode, HasTheSameMembersWithoutState) {
  Json shown = inventory();
  shown.erase("node");  // it depends on the machine
  EXPECT_EQ(
      dump(shown),
      R"({"enabled":true,"files":[],"ignored":[],"errors":[],"kubelets":{"pods":0,"requests":{"cpuMilli":0,"memoryBytes":0}},)"
      R"("weightFormula":"log","trees":[],"pods":[],"warnings":[],"warningKinds":[],"notManaged":[],"plugin":null})");
  EXPECT_NE(::access(settings_.state_dir.c_str(), F_OK), 0);
}

TEST_F(ReadNode, WarnsOfWhatIsRecordedButGone) {
  record_pod("");
  const Json shown = inventory();
  EXPECT_EQ(shown["pods"][0]["containers"][0]["state"], "dead");
  ASSERT_EQ(shown["trees"].size(), 1U);
  const Json& tiers = shown["trees"][0]["tiers"];
  ASSERT_EQ(tiers.size(), 3U);
  EXPECT_EQ(tiers[1]["rule"]["cpuShares"], 2);
  const std::vector<std::string> warnings = shown["warnings"];
  EXPECT_THAT(warnings, Contains(HasSubstr("pod default/web: its cgroup")));
  EXPECT_THAT(warnings, Contains(HasSubstr("container c1 is recorded")));
  EXPECT_EQ(shown["warningKinds"].size(), warnings.size());
  EXPECT_THAT(std::vector<std::string>(shown["warningKinds"]),
              AllOf(Contains("values"), Contains("containers")));
}

/// Names, where a container is, why it is outside its pod and what helps.
TEST_F(ReadNode, SaysWhyAContainerIsOutsideItsPod) {
  constexpr const char* kTooEarly = "it was started before podqos could place it: then recreate";
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
           // crun makes a cgroup in its scope.
           {"/system.slice/crio-c1.scope/container", std::nullopt, kNoParent},
           {"/system.slice/docker-c1.scope", std::nullopt, kTooEarly},
       }) {
    settings_.without_parent = each.setting;
    record_pod(each.cgroup);
    EXPECT_THAT(warnings(), Contains(AllOf(HasSubstr(each.cgroup), HasSubstr(each.reason))))
        << each.cgroup;
  }
}

/// The kernel's pid_max is 4194304 at most.
TEST_F(ReadNode, WarnsOfLimitsThatAddUpToMoreProcessesThanThereAre) {
  settings_.pod_pids_limit = 4'194'304;
  core::PodRecord record;
  for (const char* uid : {"a", "b"}) {
    record.pod.uid = uid;
    write(record);
  }
  const auto warned = HasSubstr("podPidsLimit 4194304 for each of 2 pods is more than the node's");
  EXPECT_THAT(warnings(), Contains(warned));
  settings_.admission.pids = core::AdmissionPolicy::kOff;
  EXPECT_THAT(warnings(), Not(Contains(warned)));
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
  Json pod() { return inventory()["pods"][0]; }
  Json inventory() {
    const NodeRecords records{.node = {}, .pods = {record_}, .warnings = {"a \"quoted\" \xff"}};
    app::ConfigurationReport configuration;
    configuration.settings = settings_;
    const auto node = read_node(configuration, records, machine_);
    if (!node) ADD_FAILURE() << node.error().message;
    Json shown = Json::parse(dump(node ? node_json(*node) : Json{}));
    EXPECT_EQ(shown["warnings"][0], "a \"quoted\" \xef\xbf\xbd");
    return shown;
  }

  core::Settings settings_;
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
  record_.capped_request.cpu = MilliCpu{100};
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

/// The rule beside what the kernel has, whose memory.high was raised. memory.low is the author's.
TEST_F(ViewedPod, ShowsBurstAndMemoryQosOfAContainer) {
  core::Container app;
  app.name = "app";
  app.resources.requests.emplace(core::kMemory, core::Quantity::from_units(100 * kMebibyte));
  app.resources.limits.emplace(core::kMemory, core::Quantity::from_units(200 * kMebibyte));
  record_.pod.containers = {app};
  record_.cpu_burst = 40;
  core::ContainerRecord container;
  container.name = "app";
  container.cgroup = "/pod/app";
  container.memory_qos.high = Bytes{175 * kMebibyte};
  container.throttling = core::Throttling{.events = 9, .since = BootSeconds{1}};
  record_.containers = {container};
  tree_.make("/pod/app");
  auto& files = tree_.cgroups.at("/pod/app").files;
  files["cpu.max"] = "50000 100000";
  files["cpu.max.burst"] = "10000";
  files["memory.low"] = "4096";
  files["memory.high"] = cat(175 * kMebibyte);
  settings_.cpu_burst.burstable = 60;
  settings_.reserve_memory = true;
  settings_.memory_throttling_thousandths = 500;
  const Json shown = pod()["containers"][0];
  EXPECT_EQ(shown["throttled"], true);
  EXPECT_EQ(dump(shown["rule"]),
            cat(R"({"cpuBurstUs":20000,"memoryMinBytes":null,)",
                R"("memoryLowBytes":null,"memoryHighBytes":)", 150 * kMebibyte, "}"));
  EXPECT_EQ(shown["cpuBurstUs"], 10'000);
  EXPECT_EQ(shown["memoryLowBytes"], 4096);
  EXPECT_EQ(shown["memoryHighBytes"], 175 * kMebibyte);
}

/// As reconcile would write them: a memory.high that podqos has raised is right, what the author
/// has set is not compared, and 4 MiB of memory.low are not the rule's 100.
TEST_F(ViewedPod, WarnsOfMemoryQosThatAContainerLacks) {
  core::Container app;
  app.name = "app";
  app.resources.requests.emplace(core::kMemory, core::Quantity::from_units(100 * kMebibyte));
  app.resources.limits.emplace(core::kMemory, core::Quantity::from_units(200 * kMebibyte));
  record_.pod.containers = {app};
  record_.capped_request.memory = record_.counted_request.memory = Bytes{100 * kMebibyte};
  core::ContainerRecord container;
  container.name = "app";
  container.state = core::ContainerState::kLive;
  container.cgroup = "/pod/app";
  container.memory_qos = {.low = Bytes{100 * kMebibyte}, .high = Bytes{150 * kMebibyte}};
  container.throttling = core::Throttling{.raised = Bytes{175 * kMebibyte}};
  record_.containers = {container};
  tree_.make("/pod/app");
  auto& files = tree_.cgroups.at("/pod/app").files;
  files["memory.min"] = "4096";
  files["memory.low"] = cat(4 * kMebibyte);
  files["memory.high"] = cat(175 * kMebibyte);
  settings_.reserve_memory = true;
  settings_.memory_throttling_thousandths = 500;
  const std::vector<std::string> warnings = inventory()["warnings"];
  EXPECT_THAT(warnings, Contains("pod u-1: container app, cgroup /pod/app: memory.low is 4Mi, the "
                                 "rule says 100Mi"));
  EXPECT_THAT(warnings, Not(Contains(HasSubstr("memory.high"))));
  EXPECT_THAT(warnings, Not(Contains(HasSubstr("memory.min"))));
}

// What bounds a kubelet's pod is in its cgroup, whatever its annotations say.
TEST_F(ViewedPod, HasTheKernelsLimitsIfItIsAKubelets) {
  record_.kubelets_own = true;
  files_["cpu.max"] = "25000 50000";
  files_["memory.max"] = "1073741824";
  EXPECT_EQ(dump(pod()["limits"]), R"({"cpuMilli":500,"memoryBytes":1073741824})");
}

TEST_F(ViewedPod, HasNoLimitThatTheKernelDoesNotHave) {
  core::Container app;
  app.name = "app";
  app.resources.requests.emplace(core::kCpu, core::Quantity::from_units(0));
  core::Container log = app;
  log.name = "log";
  log.resources.limits.emplace(core::kCpu, core::Quantity::from_milli(200));
  record_.pod.containers = {app, log};
  files_["cpu.max"] = "max 100000";
  const Json shown = pod();
  EXPECT_EQ(dump(shown["limits"]), R"({"cpuMilli":null,"memoryBytes":null})");
  // As top has it.
  EXPECT_EQ(dump(shown["requests"]), R"({"cpuMilli":null,"memoryBytes":null})");
}

/// As docker pause does; crun's own cgroup below the scope is frozen with it.
/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup.events
TEST_F(ViewedPod, TellsThatAContainerIsPaused) {
  core::ContainerRecord container;
  container.id = "app-id";
  container.state = core::ContainerState::kLive;
  container.pid = Pid{::getpid()};
  container.start_time = sys::start_time_of(container.pid).value().value();
  container.cgroup = "/pod/app";
  record_.containers = {container};
  tree_.make("/pod/app");
  auto& files = tree_.cgroups.at("/pod/app").files;
  files["cgroup.events"] = "populated 1\nfrozen 0\n";
  EXPECT_EQ(pod()["containers"][0]["paused"], false);
  files["cgroup.events"] = "populated 1\nfrozen 1\n";
  EXPECT_EQ(pod()["containers"][0]["paused"], true);
}

TEST_F(ViewedPod, TellsThatItHasEnded) {
  EXPECT_EQ(pod()["released"], false);
  record_.released_at = BootSeconds{1};
  EXPECT_EQ(pod()["released"], true);
}

/// Records, and a state directory with those of a later time.
class ReadCheckedNode : public ViewedPod {
 protected:
  ReadCheckedNode() { settings_.state_dir = directory_.path() + "/state"; }
  [[nodiscard]] Json checked(NodeRecords before, std::string_view uid = "") {
    app::ConfigurationReport configuration;
    configuration.settings = settings_;
    const auto seen = read_checked_node(configuration, std::move(before), machine_, uid);
    if (!seen) ADD_FAILURE() << seen.error().message;
    return seen ? node_json(*seen) : Json{};
  }
  static core::PodRecord pod_of(const std::string& uid) {
    core::PodRecord record;
    record.pod.uid = uid;
    record.kubelets_own = true;
    record.cgroup = "/kubepods/besteffort/pod" + uid;
    core::ContainerRecord container;
    container.id = "id-of-" + uid;
    container.cgroup = record.cgroup + "/app";
    container.pid = Pid{::getpid()};
    container.start_time = sys::start_time_of(container.pid).value().value();
    record.containers = {container};
    return record;
  }

  TemporaryDirectory directory_;
};

/// One has ended since the records were read, and one has come.
TEST_F(ReadCheckedNode, WarnsOfNothingWhilePodsComeAndGo) {
  tree_.make("/kubepods/besteffort/podcomes");
  tree_.make("/kubepods/besteffort/podcomes/app");
  store_records(settings_, {.node = {}, .pods = {pod_of("comes")}, .warnings = {}});
  const Json seen = checked({.node = {}, .pods = {pod_of("goes")}, .warnings = {}});
  EXPECT_THAT(std::vector<std::string>(seen["warnings"]), IsEmpty());
  ASSERT_EQ(seen["pods"].size(), 1);
  EXPECT_EQ(seen["pods"][0]["uid"], "comes");
}

TEST_F(ReadCheckedNode, WarnsOfWhatDiffersStill) {
  const NodeRecords records{.node = {}, .pods = {pod_of("a"), pod_of("b")}, .warnings = {}};
  store_records(settings_, records);
  EXPECT_THAT(std::vector<std::string>(checked(records)["warnings"]),
              ElementsAre("pod a: its cgroup /kubepods/besteffort/poda does not exist: run "
                          "podqosctl reconcile",
                          "pod b: its cgroup /kubepods/besteffort/podb does not exist: run "
                          "podqosctl reconcile"));
  const Json only = checked(records, "b");
  ASSERT_EQ(only["pods"].size(), 1);
  EXPECT_THAT(std::string(only["pods"][0]["warnings"][0]), HasSubstr("pod b: "));
}

/// CRI-O makes that of a sandbox long before its first container, and puts nothing in it.
TEST(UnmanagedPods, LeavesOutAnEmptyCgroup) {
  cgroup::FakeTree tree{core::CgroupVersion::kV2};
  cgroup::FakeMachine machine{tree, [](const std::string& /*change*/) { return Status{}; }};
  const std::string tier = "/podqos/kubepods/besteffort";
  for (const std::string& path :
       {std::string{"/podqos"}, std::string{"/podqos/kubepods"}, tier, tier + "/podu-1"})
    tree.make(path);
  EXPECT_THAT(unmanaged_pods(tier, {}, machine), IsEmpty());
  tree.processes[Pid{7}].cgroup = tier + "/podu-1";
  EXPECT_THAT(
      unmanaged_pods(tier, {}, machine),
      ElementsAre("pod cgroup /podqos/kubepods/besteffort/podu-1 is not managed by podqos"));
}

TEST(FormatNotices, SaysWhatIsWrongBeforeThePods) {
  app::ConfigurationReport report;
  EXPECT_EQ(format_notices(report, Screen{}), "");
  report.errors = {"a.json: unknown field x", "b.json: writable by others"};
  report.source = app::SettingsSource::kLastValid;
  report.ignored = {"/etc/podqos/conf.d/c.yaml"};
  report.settings.enabled = false;
  EXPECT_EQ(
      format_notices(report, Screen{}),
      "error: a.json: unknown field x\n"
      "error: b.json: writable by others\n"
      "warning: until it is corrected, the last valid settings stay in force\n"
      "warning: /etc/podqos/conf.d/c.yaml: not read: the names of files in conf.d end in "
      ".json\n"
      "warning: podqos is switched off by \"enabled\": false: new containers start unmanaged, "
      "and earlier ones are released when they end\n");
}

}  // namespace
}  // namespace podqos::ctl

#include "ctl/inventory_view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::ctl {
namespace {

using nlohmann::json;

/// A machine with the cgroup /pod, for views that only read.
class ViewedPod : public ::testing::Test {
 protected:
  ViewedPod() { tree_.make("/pod"); }

  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  std::map<std::string, std::string, std::less<>>& files_ = tree_.cgroups["/pod"].files;
  cgroup::FakeMachine machine_{
      tree_, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
  app::PodEntry pod_{.record = {}, .rule = {}, .cgroup = {machine_, "/pod"}, .containers = {}};
};

TEST(FormatInventory, HasTheSameMembersWithoutState) {
  EXPECT_EQ(
      dump(view_json({})),
      R"({"enabled":true,"errors":[],"adopted":{"pods":0,"requests":{"cpuMilli":0,"memoryBytes":0}},)"
      R"("weightFormula":"linear","trees":[],"pods":[],"warnings":[]})");
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

TEST_F(ViewedPod, IsShownWithItsContainers) {
  app::Inventory inventory;
  inventory.trees.push_back({.kubepods = "/podqos/kubepods", .tiers = {}, .top = {}});
  inventory.warnings = {"a \"quoted\" \xff"};
  app::PodEntry& pod = inventory.pods.emplace_back(pod_);
  pod.record.pod.uid = "u-1";
  pod.record.qos_class = core::QosClass::kBurstable;
  pod.rule.cpu_shares = CpuShares{102};
  pod.rule.memory_limit = Bytes{-1};
  files_["cpu.weight"] = "4";
  app::ContainerEntry container{.record = {}, .oom_score_adj = -997, .cgroup = {machine_, ""}};
  container.record.id = "c-1";
  pod.containers.push_back(container);
  const json shown =
      json::parse(dump(view_json({.configuration = {}, .inventory = std::move(inventory)})));
  EXPECT_EQ(shown["warnings"][0], "a \"quoted\" \xef\xbf\xbd");
  const json& entry = shown["pods"][0];
  EXPECT_EQ(entry["uid"], "u-1");
  EXPECT_EQ(entry["qosClass"], "Burstable");
  EXPECT_EQ(entry["rule"]["cpuShares"], 102);
  EXPECT_TRUE(entry["rule"]["memoryLimitBytes"].is_null());
  EXPECT_EQ(entry["cpuWeight"], 4);
  EXPECT_TRUE(entry["memoryLimitBytes"].is_null());
  EXPECT_EQ(entry["containers"][0]["state"], "dead");
  EXPECT_EQ(entry["containers"][0]["oomScoreAdj"], -997);
}

// What bounds a kubelet's pod is in its cgroup, whatever its annotations say.
TEST_F(ViewedPod, HasTheKernelsLimitsIfItIsAdopted) {
  pod_.record.adopted = true;
  files_["cpu.max"] = "25000 50000";
  files_["memory.max"] = "1073741824";
  app::Inventory inventory;
  inventory.pods.push_back(pod_);
  const Json view = view_json({.configuration = {}, .inventory = std::move(inventory)});
  EXPECT_EQ(dump(view["pods"][0]["limits"]), R"({"cpuMilli":500,"memoryBytes":1073741824})");
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

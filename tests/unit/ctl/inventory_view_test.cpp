#include "ctl/inventory_view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace podqos::ctl {
namespace {

using nlohmann::json;

TEST(FormatInventory, HasTheSameMembersWithoutState) {
  EXPECT_EQ(format_inventory({}),
            R"({"kubepods":null,"adopted":{"pods":0,"requests":{"cpuMilli":0,"memoryBytes":0}},)"
            R"("top":null,"weightFormula":"linear","tiers":[],"pods":[],"warnings":[]})"
            "\n");
}

TEST(FormatInventory, ShowsAPodWithItsContainers) {
  app::Inventory inventory;
  inventory.kubepods = "/podqos/kubepods";
  inventory.warnings = {"a \"quoted\" \xff"};
  app::PodEntry& pod = inventory.pods.emplace_back();
  pod.record.pod.uid = "u-1";
  pod.record.qos_class = core::QosClass::kBurstable;
  pod.rule.cpu_shares = CpuShares{102};
  pod.rule.memory_limit = Bytes{-1};
  pod.reading.exists = true;
  pod.reading.cpu_weight = CpuWeight{4};
  app::ContainerEntry& container = pod.containers.emplace_back();
  container.record.id = "c-1";
  container.oom_score_adj = -997;
  const json shown = json::parse(format_inventory(inventory));
  EXPECT_EQ(shown["warnings"][0], "a \"quoted\" \xef\xbf\xbd");
  const json& entry = shown["pods"][0];
  EXPECT_EQ(entry["uid"], "u-1");
  EXPECT_EQ(entry["qosClass"], "Burstable");
  EXPECT_EQ(entry["rule"]["shares"], 102);
  EXPECT_TRUE(entry["rule"]["memoryLimitBytes"].is_null());
  EXPECT_EQ(entry["weight"], 4);
  EXPECT_TRUE(entry["memoryLimitBytes"].is_null());
  EXPECT_EQ(entry["containers"][0]["state"], "dead");
  EXPECT_EQ(entry["containers"][0]["oomScoreAdj"], -997);
}

// What bounds a kubelet's pod is in its cgroup, whatever its annotations say.
TEST(LimitsShown, AreTheKernelsForAnAdoptedPod) {
  app::PodEntry pod;
  pod.record.adopted = true;
  pod.reading.cpu_quota = Micros{25'000};
  pod.reading.cpu_period = Micros{50'000};
  pod.reading.memory_limit = Bytes{1LL << 30U};
  const core::ResourceList limits = limits_shown(pod);
  EXPECT_EQ(limits.at("cpu").milli_value(), 500);
  EXPECT_EQ(limits.at("memory").value(), 1LL << 30U);
}

TEST(PodTitle, IsTheUidWithoutAName) {
  core::Pod pod;
  pod.uid = "u-1";
  EXPECT_EQ(pod_title(pod), "u-1");
  pod.name = "web";
  EXPECT_EQ(pod_title(pod), "web");
  pod.pod_namespace = "shop";
  EXPECT_EQ(pod_title(pod), "shop/web");
}

}  // namespace
}  // namespace podqos::ctl

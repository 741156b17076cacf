#include "common/core/pod_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using layouts::with_2mb_pages;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct RootCase {
  const char* name;
  const char* cgroup_root;
  const char* root;
};
class RootPath : public TestWithParam<RootCase> {};

TEST_P(RootPath, LiesBelowTheConfiguredRoot) {
  EXPECT_EQ(root_path(GetParam().cgroup_root, Driver::kCgroupfs), GetParam().root);
}

INSTANTIATE_TEST_SUITE_P(Table, RootPath,
                         ValuesIn<RootCase>({
                             {"TheHostsRoot", "/", "/kubepods"},
                             {"AnotherRoot", "/a/b", "/a/b/kubepods"},
                             {"ASlashAtTheEnd", "/a/", "/a/kubepods"},
                             {"ManySlashes", "//", "/kubepods"},
                         }),
                         [](const TestParamInfo<RootCase>& row) {
                           return std::string{row.param.name};
                         });

TEST(PodPath, PutsGuaranteedPodsIntoTheRootItself) {
  EXPECT_EQ(tier_path("/kubepods", QosClass::kGuaranteed), "/kubepods");
  EXPECT_EQ(pod_path("/kubepods", QosClass::kGuaranteed, "42"), "/kubepods/pod42");
  EXPECT_EQ(pod_path("/kubepods", QosClass::kBurstable, "42"), "/kubepods/burstable/pod42");
  EXPECT_EQ(pod_path("/x/kubepods", QosClass::kBestEffort, "42"), "/x/kubepods/besteffort/pod42");
}

TEST(PlanTree, MakesBothTiers) {
  EXPECT_EQ(render(plan_tree("/kubepods")),
            "mkdir  /kubepods/burstable\n"
            "mkdir  /kubepods/besteffort\n");
}

TEST(TiersAndRoot, NameTheRootLast) {
  EXPECT_EQ(tiers_and_root("/kubepods"),
            (std::vector<std::string>{"/kubepods/burstable", "/kubepods/besteffort", "/kubepods"}));
}

TEST(DirectoriesAbove, AreThoseThatPodqosHasMade) {
  EXPECT_EQ(directories_above("/a/b/kubepods", "/a"), (std::vector<std::string>{"/a", "/a/b"}));
  EXPECT_EQ(directories_above("/a/b/kubepods", "/a/b"), (std::vector<std::string>{"/a/b"}));
  EXPECT_TRUE(directories_above("/a/b/kubepods", "").empty());
  EXPECT_TRUE(directories_above("/ab/kubepods", "/a").empty());
}

TEST(PlanTop, WritesTheSharesOfAllRequests) {
  EXPECT_EQ(render(plan_top({"/podqos"}, CpuShares{153}, with_2mb_pages(kV1), WeightFormula::kLog)),
            "write  /podqos/cpu.shares = 153  # all pods of podqos\n");
  EXPECT_EQ(
      render(plan_top({"/podqos"}, CpuShares{1024}, with_2mb_pages(kV2), WeightFormula::kLinear)),
      "write  /podqos/cpu.weight = 39  # all pods of podqos\n");
}

TEST(PlanTiers, WritesSharesOnV1) {
  const TierValues values{.burstable = {.cpu_shares = CpuShares{133}},
                          .besteffort = {.cpu_shares = CpuShares{2}}};
  EXPECT_EQ(render(plan_tiers("/kubepods", values, with_2mb_pages(kV1), WeightFormula::kLog)),
            "write  /kubepods/burstable/cpu.shares = 133  # burstable tier\n"
            "write  /kubepods/besteffort/cpu.shares = 2  # besteffort tier\n");
}

TEST(PlanTiers, WritesWeightsByTheFormulaOnV2) {
  const TierValues values{.burstable = {.cpu_shares = CpuShares{1024}},
                          .besteffort = {.cpu_shares = CpuShares{2}}};
  EXPECT_EQ(render(plan_tiers("/kubepods", values, with_2mb_pages(kV2), WeightFormula::kLinear)),
            "write  /kubepods/burstable/cpu.weight = 39  # burstable tier\n"
            "write  /kubepods/besteffort/cpu.weight = 1  # besteffort tier\n");
  EXPECT_EQ(render(plan_tiers("/kubepods", values, with_2mb_pages(kV2), WeightFormula::kLog)),
            "write  /kubepods/burstable/cpu.weight = 100  # burstable tier\n"
            "write  /kubepods/besteffort/cpu.weight = 1  # besteffort tier\n");
}

TEST(PlanTiers, WritesMemoryLimitsAndLiftsThem) {
  const TierValues values{.burstable = {.memory_limit = Bytes{7'000'000'000}},
                          .besteffort = {.memory_limit = Bytes{-1}}};
  EXPECT_EQ(render(plan_tiers("/kubepods", values, with_2mb_pages(kV2), WeightFormula::kLog)),
            "write  /kubepods/burstable/memory.max = 7000000000  # burstable tier\n"
            "write  /kubepods/besteffort/memory.max = max  # besteffort tier\n");
}

TEST(PlanTiers, WritesTheIoWeightsBelowARootThatEnablesIo) {
  const TierValues values{.burstable = {.io_weight = 100}, .besteffort = {.io_weight = 10}};
  CgroupLayout layout = with_2mb_pages(kV2);
  layout.io = kV2;
  EXPECT_EQ(render(plan_tiers("/kubepods", values, layout, WeightFormula::kLog)),
            "mkdir  /kubepods +io\n"
            "write  /kubepods/burstable/io.weight = 100  # burstable tier\n"
            "write  /kubepods/burstable/io.bfq.weight = 100  # burstable tier\n"
            "attr   /kubepods/burstable trusted.podqos.ioweight\n"
            "mkdir  /kubepods +io\n"
            "write  /kubepods/besteffort/io.weight = 10  # besteffort tier\n"
            "write  /kubepods/besteffort/io.bfq.weight = 10  # besteffort tier\n"
            "attr   /kubepods/besteffort trusted.podqos.ioweight\n");
}

TEST(PlanTiers, NeverBoundsHugePages) {
  const TierValues values{.burstable = {.hugepages = {{"2MB", Bytes{4'194'304}}}},
                          .besteffort = {}};
  EXPECT_EQ(render(plan_tiers("/kubepods", values, with_2mb_pages(kV2), WeightFormula::kLog)), "");
}

TEST(PlanTiers, LeavesOutControllersThatTheMachineLacks) {
  const TierValues values{
      .burstable = {.cpu_shares = CpuShares{133}, .memory_limit = Bytes{1'048'576}},
      .besteffort = {.cpu_shares = CpuShares{2}}};
  CgroupLayout layout = with_2mb_pages(kV1);
  layout.cpu.reset();
  EXPECT_EQ(render(plan_tiers("/kubepods", values, layout, WeightFormula::kLog)),
            "write  /kubepods/burstable/memory.limit_in_bytes = 1048576  # burstable tier\n");
}

TEST(PlanPod, MakesTheCgroupFirst) {
  CgroupLayout layout = with_2mb_pages(kV1);
  layout.hugetlb.reset();
  EXPECT_EQ(render(plan_pod("/kubepods/pod42",
                            {.cpu_shares = CpuShares{112}, .memory_limit = Bytes{4096}}, layout,
                            WeightFormula::kLog, Make::kYes)),
            "mkdir  /kubepods/pod42\n"
            "write  /kubepods/pod42/cpu.shares = 112  # pod\n"
            "write  /kubepods/pod42/memory.limit_in_bytes = 4096  # pod\n");
}

TEST(PlanPod, OnlyWritesWhereTheCgroupIsThere) {
  CgroupLayout layout = with_2mb_pages(kV1);
  layout.hugetlb.reset();
  EXPECT_EQ(render(plan_pod("/kubepods/pod42", {.cpu_shares = CpuShares{112}}, layout,
                            WeightFormula::kLog, Make::kNo)),
            "write  /kubepods/pod42/cpu.shares = 112  # pod\n");
}

TEST(PlanPod, BoundsHugePagesThatThePodDoesNotName) {
  EXPECT_EQ(
      render(plan_pod("/kubepods/pod42", {}, with_2mb_pages(kV2), WeightFormula::kLog, Make::kNo)),
      "write  /kubepods/pod42/hugetlb.2MB.max = 0  # pod\n"
      "write  /kubepods/pod42/hugetlb.2MB.rsvd.max = 0  # pod\n");
}

}  // namespace
}  // namespace podqos::core

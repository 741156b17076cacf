// The plans of the systemd driver. Values and properties are those of a kubelet
// (opencontainers/cgroups systemd/v2.go).
#include "common/core/cgroups/pod_plan.h"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/plan.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using layouts::with_2mb_pages;

TEST(Render, PrintsOneLineAStep) {
  const Plan plan{
      EnsureCgroup{.path = "/kubepods", .also = Controller::kIo},
      EnsureCgroup{.path = "/kubepods/pod42"},
      WriteFile{.path = "/kubepods/pod42",
                .file = "cpu.weight",
                .value = "39",
                .reason = "sum of requests"},
      WriteFile{.path = "/kubepods/pod42", .file = "cpu.max", .value = "max 100000", .reason = ""},
      MoveProcess{.path = "/kubepods/pod42/ctr", .pid = Pid{7}},
      SetOomScore{.pid = Pid{7}, .start_time = StartTime{99}, .score = -997},
      RemoveCgroup{.path = "/kubepods/pod41"},
      RemoveCgroup{.path = "/kubepods/pod40", .nested = true},
  };
  EXPECT_EQ(render(plan),
            "mkdir  /kubepods +io\n"
            "mkdir  /kubepods/pod42\n"
            "write  /kubepods/pod42/cpu.weight = 39  # sum of requests\n"
            "write  /kubepods/pod42/cpu.max = max 100000\n"
            "move   7 -> /kubepods/pod42/ctr\n"
            "oom    /proc/7/oom_score_adj = -997\n"
            "rmdir  /kubepods/pod41\n"
            "rmdir  /kubepods/pod40 and all below\n");
}

TEST(Render, KeepsTheRootPathPlain) {
  EXPECT_EQ(render({WriteFile{
                .path = "/", .file = "cgroup.subtree_control", .value = "+cpu", .reason = ""}}),
            "write  /cgroup.subtree_control = +cpu\n");
}

TEST(Render, PrintsNothingForNothing) {
  EXPECT_EQ(render({}), "");
}

// Names are compared with Kubernetes' own (names_vectors_test.cpp, pods_vectors_test.cpp).
TEST(RootPath, TakesSlashesTooMany) {
  EXPECT_EQ(root_path("/a/", Driver::kCgroupfs), "/a/kubepods");
  EXPECT_EQ(root_path("//", Driver::kCgroupfs), "/kubepods");
  EXPECT_EQ(root_path("/a-b/c", Driver::kSystemd), "/a_b.slice/a_b-c.slice/a_b-c-kubepods.slice");
}

TEST(PlanTree, MakesBothTiers) {
  EXPECT_EQ(render(plan_tree("/kubepods")),
            "mkdir  /kubepods/burstable\n"
            "mkdir  /kubepods/besteffort\n");
  // They are removed before the root.
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
  EXPECT_EQ(render(plan_top({"/podqos"}, {.cpu_shares = CpuShares{153}}, with_2mb_pages(kV1),
                            WeightFormula::kLog)),
            "write  /podqos/cpu.shares = 153  # all pods of podqos\n");
  EXPECT_EQ(render(plan_top({"/podqos"}, {.cpu_shares = CpuShares{1024}}, with_2mb_pages(kV2),
                            WeightFormula::kLinear)),
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
                            WeightFormula::kLog, Cgroup::kCreate)),
            "mkdir  /kubepods/pod42\n"
            "write  /kubepods/pod42/cpu.shares = 112  # pod\n"
            "write  /kubepods/pod42/memory.limit_in_bytes = 4096  # pod\n");
}

TEST(PlanPod, OnlyWritesWhereTheCgroupIsThere) {
  CgroupLayout layout = with_2mb_pages(kV1);
  layout.hugetlb.reset();
  EXPECT_EQ(render(plan_pod("/kubepods/pod42", {.cpu_shares = CpuShares{112}}, layout,
                            WeightFormula::kLog, Cgroup::kExists)),
            "write  /kubepods/pod42/cpu.shares = 112  # pod\n");
}

TEST(PlanPod, BoundsHugePagesThatThePodDoesNotName) {
  EXPECT_EQ(render(plan_pod("/kubepods/pod42", {}, with_2mb_pages(kV2), WeightFormula::kLog,
                            Cgroup::kExists)),
            "write  /kubepods/pod42/hugetlb.2MB.max = 0  # pod\n"
            "write  /kubepods/pod42/hugetlb.2MB.rsvd.max = 0  # pod\n");
}

constexpr CgroupLayout kLayoutV2{
    .cpu = CgroupVersion::kV2, .memory = CgroupVersion::kV2, .pids = CgroupVersion::kV2};
constexpr CgroupLayout kLayoutV1{
    .cpu = CgroupVersion::kV1, .memory = CgroupVersion::kV1, .pids = CgroupVersion::kV1};

std::string new_slice(const std::string& unit, const std::string& what, const std::string& parent) {
  return "start  " + unit + " Description=\"podqos " + what + "\" Wants=" + parent +
         " DefaultDependencies=no CPUAccounting=yes MemoryAccounting=yes IOAccounting=yes "
         "TasksAccounting=yes";
}

TEST(SlicePlanTree, StartsEachUnitBeforeItsDirectory) {
  EXPECT_EQ(render(plan_tree("/kubepods.slice")),
            new_slice("kubepods.slice", "root of the pods", "-.slice") +
                "\nmkdir  /kubepods.slice\n" +
                new_slice("kubepods-burstable.slice", "burstable tier", "kubepods.slice") +
                "\nmkdir  /kubepods.slice/kubepods-burstable.slice\n" +
                new_slice("kubepods-besteffort.slice", "besteffort tier", "kubepods.slice") +
                "\nmkdir  /kubepods.slice/kubepods-besteffort.slice\n");
}

TEST(SlicePlanTree, StartsWhatItMakesAboveTheRoot) {
  const std::string plan =
      render(plan_tree("/podqos.slice/podqos-kubepods.slice", "/podqos.slice"));
  EXPECT_THAT(plan, ::testing::StartsWith(new_slice("podqos.slice", "tree", "-.slice") +
                                          "\nmkdir  /podqos.slice\n"));
}

TEST(SlicePlanTop, TellsSystemd) {
  EXPECT_EQ(render(plan_top({"/podqos.slice"}, {.cpu_shares = CpuShares{1024}}, kLayoutV2,
                            WeightFormula::kLinear)),
            "write  /podqos.slice/cpu.weight = 39  # all pods of podqos\n"
            "set    podqos.slice CPUWeight=39\n");
}

TEST(SlicePlanTiers, TellsSystemdWhatItWrites) {
  const TierValues values{.burstable = {.cpu_shares = CpuShares{1024}},
                          .besteffort = {.memory_limit = Bytes{-1}}};
  EXPECT_EQ(render(plan_tiers("/kubepods.slice", values, kLayoutV2, WeightFormula::kLinear)),
            "write  /kubepods.slice/kubepods-burstable.slice/cpu.weight = 39  # burstable tier\n"
            "set    kubepods-burstable.slice CPUWeight=39\n"
            "write  /kubepods.slice/kubepods-besteffort.slice/memory.max = max  # besteffort tier\n"
            "set    kubepods-besteffort.slice MemoryMax=infinity\n");
}

TEST(SlicePlanTiers, TellsSystemdTheIoWeight) {
  const TierValues values{.burstable = {}, .besteffort = {.io_weight = 10}};
  const CgroupLayout layout{.io = CgroupVersion::kV2};
  const Plan plan = plan_tiers("/kubepods.slice", values, layout, WeightFormula::kLinear);
  EXPECT_EQ(render({plan.back()}), "set    kubepods-besteffort.slice IOWeight=10\n");
}

// 60 % and 40 % of 2^32 - 1, as `systemctl show` prints them; microseconds.
TEST(SlicePlanTiers, TellsSystemdOfEvictionOneByOne) {
  const std::string tier = "podqos-kubepods-besteffort.slice";
  const std::string path = "/podqos.slice/podqos-kubepods.slice/" + tier;
  TierValues values;
  values.besteffort.oomd_pressure = MemoryPressure{.percent = 60, .seconds = 30};
  const auto lines = [&] {
    return render(
        plan_tiers("/podqos.slice/podqos-kubepods.slice", values, kLayoutV2, WeightFormula::kLog));
  };
  EXPECT_THAT(lines(), ::testing::EndsWith(
                           "set    " + tier + " ManagedOOMMemoryPressureLimit=2576980377\n" +
                           "set    " + tier + " ManagedOOMMemoryPressureDurationUSec=30000000\n" +
                           "set    " + tier + " ManagedOOMMemoryPressure=\"kill\"\n" + "attr   " +
                           path + " trusted.podqos.eviction\n" + "set    " + tier + "\n"));
  values.besteffort.oomd_pressure->percent = 40;
  EXPECT_THAT(lines(), ::testing::HasSubstr("Limit=1717986918\n"));
  // Half of 2^32 - 1 is rounded up, and 1 % and a second are a threshold.
  values.besteffort.oomd_pressure->percent = 50;
  EXPECT_THAT(lines(), ::testing::HasSubstr("Limit=2147483648\n"));
  values.besteffort.oomd_pressure = MemoryPressure{.percent = 1, .seconds = 1};
  EXPECT_THAT(lines(), ::testing::AllOf(::testing::HasSubstr("DurationUSec=1000000\n"),
                                        ::testing::HasSubstr("Pressure=\"kill\"\n")));
  values.besteffort.oomd_pressure = MemoryPressure{};
  EXPECT_THAT(lines(), ::testing::AllOf(
                           ::testing::HasSubstr("ManagedOOMMemoryPressureLimit=0\n"),
                           ::testing::HasSubstr("ManagedOOMMemoryPressureDurationUSec=infinity\n"),
                           ::testing::HasSubstr("ManagedOOMMemoryPressure=\"auto\"\n")));
}

/// The values of the attributes that a plan sets on cgroups.
std::vector<std::string> attributes(const Plan& plan) {
  std::vector<std::string> values;
  for (const Step& step : plan)
    if (const auto* attribute = std::get_if<SetAttribute>(&step))
      values.push_back(attribute->value);
  return values;
}

// Of what systemd keeps they say whether it is podqos's.
TEST(SlicePlanTiers, MarksWhatIsSetAndWhatIsTakenBack) {
  const auto marks = [](const CgroupValues& besteffort) {
    return attributes(plan_tiers("/kubepods.slice", {.burstable = {}, .besteffort = besteffort},
                                 {.memory = CgroupVersion::kV2, .io = CgroupVersion::kV2},
                                 WeightFormula::kLog));
  };
  using Marks = std::vector<std::string>;
  EXPECT_EQ(marks({.oomd_pressure = MemoryPressure{.percent = 1, .seconds = 1}}), Marks{"1"});
  EXPECT_EQ(marks({.oomd_pressure = MemoryPressure{}}), Marks{"0"});
  EXPECT_EQ(marks({.io_weight = 99}), Marks{"1"});
  EXPECT_EQ(marks({.io_weight = 100}), Marks{"0"});
}

// A unit that is made is told what its files hold already; a refused file keeps none of the others
// from being written.
TEST(SlicePlanTiers, TellsANewUnitAlwaysAndTriesRefusedFilesAgain) {
  const TierValues values{.burstable = {.cpu_shares = CpuShares{1024}},
                          .besteffort = {.memory_limit = Bytes{-1}}};
  for (const Cgroup make_it : {Cgroup::kExists, Cgroup::kCreate})
    for (const Step& step :
         plan_tiers("/kubepods.slice", values, kLayoutV2, WeightFormula::kLinear, make_it)) {
      if (const auto* told = std::get_if<SetUnit>(&step)) {
        EXPECT_EQ(told->always, make_it == Cgroup::kCreate) << render({step});
      }
      if (const auto* file = std::get_if<WriteFile>(&step)) {
        EXPECT_EQ(file->on_refusal, OnRefusal::kRetryAfterPlan) << render({step});
      }
    }
}

// systemd-oomd knows units and cgroup v2 alone.
TEST(IsWatchedByOomd, WithSystemdOnV2) {
  EXPECT_TRUE(is_watched_by_oomd("/kubepods.slice", {.memory = CgroupVersion::kV2}));
  EXPECT_FALSE(is_watched_by_oomd("/kubepods.slice", {.memory = CgroupVersion::kV1}));
  EXPECT_FALSE(is_watched_by_oomd("/kubepods", {.memory = CgroupVersion::kV2}));
}

TEST(SlicePlanPod, TellsSystemdWhatOomdTakesLast) {
  const Plan plan = plan_pod("/kubepods.slice/kubepods-pod42.slice", {.oomd_avoid = true},
                             kLayoutV2, WeightFormula::kLog, Cgroup::kCreate);
  EXPECT_THAT(render(plan),
              ::testing::EndsWith("set    kubepods-pod42.slice ManagedOOMPreference=\"avoid\"\n"
                                  "attr   /kubepods.slice/kubepods-pod42.slice user.oomd_avoid\n"
                                  "attr   /kubepods.slice/kubepods-pod42.slice "
                                  "trusted.podqos.eviction\n"));
  EXPECT_THAT(render(plan_container("/m.slice/crun-c.scope", {.oomd_avoid = false}, kLayoutV2,
                                    WeightFormula::kLog)),
              ::testing::StartsWith("set    crun-c.scope ManagedOOMPreference=\"none\"\n"));
  EXPECT_EQ(render(plan_container("/m/c", {.oomd_avoid = true}, kLayoutV2, WeightFormula::kLog)),
            "");
}

const CgroupValues kPodValues{.cpu_shares = CpuShares{1024},
                              .cpu_quota = Micros{33'300},
                              .cpu_period = Micros{100'000},
                              .memory_limit = Bytes{134'217'728},
                              .pids_limit = 64};

TEST(SlicePlanPod, RoundsTheQuotaAsSystemdDoes) {
  const std::string cgroup = "/kubepods.slice/kubepods-pod42.slice";
  const std::string properties =
      " CPUWeight=39 CPUQuotaPeriodUSec=100000 CPUQuotaPerSecUSec=340000 MemoryMax=134217728 "
      "TasksMax=64\n";
  EXPECT_EQ(
      render(plan_pod(cgroup, kPodValues, kLayoutV2, WeightFormula::kLinear, Cgroup::kCreate)),
      new_slice("kubepods-pod42.slice", "pod", "kubepods.slice") + properties + "mkdir  " + cgroup +
          "\nwrite  " + cgroup + "/cpu.weight = 39  # pod\nwrite  " + cgroup +
          "/cpu.max = 34000 100000  # pod\nwrite  " + cgroup + "/pids.max = 64  # pod\nwrite  " +
          cgroup + "/memory.max = 134217728  # pod\n");
  // Where the unit is there already it is told, if that changes anything.
  const Plan again =
      plan_pod(cgroup, kPodValues, kLayoutV2, WeightFormula::kLinear, Cgroup::kExists);
  EXPECT_EQ(render({again.back()}), "set    kubepods-pod42.slice" + properties);
}

TEST(SlicePlanPod, HasTheOldPropertiesOnV1) {
  const Plan plan = plan_pod("/kubepods.slice/kubepods-pod42.slice", kPodValues, kLayoutV1,
                             WeightFormula::kLinear, Cgroup::kExists);
  EXPECT_EQ(render({plan.back()}),
            "set    kubepods-pod42.slice CPUShares=1024 CPUQuotaPeriodUSec=100000 "
            "CPUQuotaPerSecUSec=340000 MemoryLimit=134217728 TasksMax=64\n");
}

TEST(SlicePlanRemoval, StopsTheUnitLast) {
  EXPECT_EQ(render(plan_removal("/kubepods.slice/kubepods-pod42.slice")),
            "rmdir  /kubepods.slice/kubepods-pod42.slice\nstop   kubepods-pod42.slice\n");
  EXPECT_EQ(render(plan_removal("/kubepods/pod42")), "rmdir  /kubepods/pod42\n");
}

TEST(PlanContainer, TellsSystemdOfAScope) {
  const CgroupValues values{.memory_limit = Bytes{4096}};
  EXPECT_EQ(render(plan_container("/m.slice/crun-c.scope/container", values, kLayoutV2,
                                  WeightFormula::kLog)),
            "write  /m.slice/crun-c.scope/container/memory.max = 4096  # container\n"
            "set    crun-c.scope MemoryMax=4096\n");
  EXPECT_EQ(render(plan_container("/m/c", values, kLayoutV2, WeightFormula::kLog)),
            "write  /m/c/memory.max = 4096  # container\n");
}

TEST(PlanMonitor, HasACgroupOfItsOwnInThePod) {
  EXPECT_EQ(render(plan_monitor("/kubepods/pod42", Pid{9})),
            "mkdir  /kubepods/pod42/podqos-monitor\n"
            "move   9 -> /kubepods/pod42/podqos-monitor\n");
  const std::string scope =
      "/kubepods.slice/kubepods-pod42.slice/podqos-monitor-kubepods-pod42.scope";
  EXPECT_EQ(render(plan_monitor("/kubepods.slice/kubepods-pod42.slice", Pid{9})),
            "mkdir  " + scope + "\nmove   9 -> " + scope +
                "\nstart  podqos-monitor-kubepods-pod42.scope Description=\"podqos scope\" "
                "Slice=\"kubepods-pod42.slice\" PIDs=9 Delegate=yes DefaultDependencies=no "
                "CPUAccounting=yes MemoryAccounting=yes IOAccounting=yes TasksAccounting=yes\n");
}

}  // namespace
}  // namespace podqos::core

#include "ctl/node/usage.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/usage_sample.h"

namespace podqos::ctl {
namespace {

using cgroup::CgroupUsage;
using cgroup::Pressure;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::chrono::steady_clock::time_point kBegin{};

TEST(UsageBetween, DividesByTheTimeBetween) {
  const CgroupUsage before{
      .at = kBegin,
      .cpu = Micros{1'000'000},
      .periods = 10,
      .throttled_periods = 2,
      .cpu_pressure = Pressure{.waiting = Micros{0}, .stalled = Micros{0}},
      .memory_pressure = Pressure{.waiting = Micros{7}, .stalled = std::nullopt}};
  const CgroupUsage now{
      .at = kBegin + std::chrono::seconds{2},
      .cpu = Micros{1'500'000},
      .periods = 30,
      .throttled_periods = 7,
      .memory = Bytes{100},
      .inactive_file = Bytes{30},
      .swap = Bytes{5},
      .oom_kills = 1,
      .pids = 3,
      .cpu_pressure = Pressure{.waiting = Micros{500'000}, .stalled = Micros{20'000}},
      .memory_pressure = Pressure{.waiting = Micros{7}, .stalled = std::nullopt}};
  EXPECT_EQ(usage_between(before, now), (Usage{.cpu = MilliCpu{250},
                                               .throttled = Permille{250},
                                               .memory = Bytes{100},
                                               .working_set = Bytes{70},
                                               .swap = Bytes{5},
                                               .pids = 3,
                                               .oom_kills = 1,
                                               .cpu_waiting = Permille{250},
                                               .cpu_stalled = Permille{10},
                                               .memory_waiting = Permille{0},
                                               .memory_stalled = std::nullopt}));
}

TEST(UsageBetween, KnowsNoRatesWithoutAnEarlierSample) {
  const CgroupUsage now{
      .at = kBegin, .cpu = Micros{5}, .periods = 1, .throttled_periods = 1, .memory = Bytes{10}};
  const Usage amounts{.memory = Bytes{10}, .working_set = Bytes{10}};
  EXPECT_EQ(usage_between(std::nullopt, now), amounts);
  EXPECT_EQ(usage_between(now, now), amounts) << "no time has passed";
}

TEST(UsageBetween, TakesNoRateFromACounterThatWasSetBack) {
  const CgroupUsage before{.at = kBegin, .cpu = Micros{5}, .periods = 9, .throttled_periods = 9};
  const CgroupUsage now{.at = kBegin + std::chrono::seconds{1},
                        .cpu = Micros{4},
                        .periods = 8,
                        .throttled_periods = 8};
  EXPECT_EQ(usage_between(before, now), Usage{});
}

TEST(UsageBetween, IsThrottledInNoPeriodWithoutAQuota) {
  const CgroupUsage before{.at = kBegin, .periods = 0, .throttled_periods = 0};
  CgroupUsage now = before;
  now.at += std::chrono::seconds{1};
  EXPECT_EQ(usage_between(before, now).throttled, std::nullopt);
}

TEST(EntriesOf, FollowsTheTree) {
  std::vector<std::string> names;
  const std::vector<UsageEntry> entries = entries_of(three_pods());
  for (std::size_t i = 0; i < entries.size(); ++i)
    names.push_back(full_name(entries, i));
  EXPECT_THAT(names, ElementsAre("/podqos/kubepods", "Guaranteed", "default/db", "default/db/app",
                                 "Burstable", "shop/web", "shop/web/app", "shop/web/log",
                                 "BestEffort", "u-be", "u-be/0123456789abcdef"));
  EXPECT_EQ(entries[0].cgroup, "/podqos/kubepods");
  EXPECT_EQ(entries[1].cgroup, "") << "Guaranteed pods lie beside the other tiers";
  EXPECT_EQ(entries[4].cgroup, "/podqos/kubepods/burstable");
  EXPECT_EQ(entries[4].requests, (Amounts{.cpu = MilliCpu{300}, .memory = Bytes{64}}));
  EXPECT_EQ(entries[5].requests, (Amounts{.cpu = MilliCpu{300}, .memory = Bytes{64}}));
  EXPECT_EQ(entries[5].limits, Amounts{}) << "the kernel's, which are read later";
  EXPECT_EQ(entries[6].requests, (Amounts{.cpu = MilliCpu{200}, .memory = Bytes{64}}));
  EXPECT_EQ(entries[6].limits, Amounts{.cpu = MilliCpu{500}});
  EXPECT_EQ(entries[7].limits, Amounts{});
}

/// By its engine's id, as status and selectors have it.
TEST(FullName, IsThatOfOtherCommands) {
  NodeRecords records = three_pods();
  core::PodRecord& best = records.pods[1];
  best.pod.uid = "1b16b1f423b109e5db4f328e5f60718293a4b5c6d7e8f90a1b2c3d4e5f607182";
  best.pod_id = "b31e07e7a953d5b2a6b7e7c5a3f1d2e4c6b8a0d9e8f7c6b5a4d3c2b1a0f9e8d7";
  EXPECT_EQ(full_name(entries_of(records), 9), "b31e07e7a953");
}

/// As status does: of cgroup v1 the kills of containers that have ended are in the record.
TEST(AddSums, CountsOomKillsThatWereReported) {
  NodeRecords records = three_pods();
  records.pods[0].oom_kills = core::OomKills{.reported = 3, .counted = 1};
  for (const auto memory : {core::CgroupVersion::kV1, core::CgroupVersion::kV2}) {
    std::vector<UsageEntry> entries = entries_of(records);
    const std::size_t counting = memory == core::CgroupVersion::kV1 ? 6 : 5;
    entries[counting].usage.oom_kills = 2;  // one more than were there at the last look
    add_sums(entries, memory);
    EXPECT_EQ(entries[5].usage.oom_kills, 4);
  }
}

TEST(EntriesOf, LeavesOutSandboxesAndReleasedPods) {
  NodeRecords records = three_pods();
  for (core::PodRecord& pod : records.pods) {
    for (core::ContainerRecord& container : pod.containers)
      container.sandbox = true;
    if (pod.pod.uid == "u-be") pod.released_at = BootSeconds{1};
  }
  std::vector<EntryKind> kinds;
  for (const UsageEntry& entry : entries_of(records))
    kinds.push_back(entry.kind);
  EXPECT_THAT(kinds, ElementsAre(EntryKind::kTree, EntryKind::kTier, EntryKind::kPod,
                                 EntryKind::kTier, EntryKind::kPod));
  EXPECT_THAT(entries_of({}), IsEmpty());
}

TEST(EntriesOf, SumsUpARootOfAKubelet) {
  NodeRecords records = three_pods();
  records.node.trees.clear();
  for (core::PodRecord& pod : records.pods) {
    pod.kubelets_own = true;
    pod.capped_request = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{1}};
  }
  const std::vector<UsageEntry> entries = entries_of(records);
  EXPECT_EQ(entries[0].requests, (Amounts{.cpu = MilliCpu{300}, .memory = Bytes{3}}));
  EXPECT_EQ(entries[5].limits, Amounts{}) << "the kernel knows what the kubelet has set";
  EXPECT_TRUE(entries[5].kubelets_own);
}

TEST(AddSums, MakesTheGuaranteedTierOfItsPods) {
  std::vector<UsageEntry> entries = sample().entries;
  add_sums(entries, core::CgroupVersion::kV2);
  EXPECT_EQ(entries[1].usage, (Usage{.cpu = MilliCpu{40},
                                     .memory = Bytes{30 << 20},
                                     .working_set = Bytes{20 << 20},
                                     .pids = 2,
                                     .oom_kills = 0}));
  EXPECT_EQ(entries[5].usage.oom_kills, 1);
  EXPECT_EQ(entries[4].usage.oom_kills, 1);
}

TEST(AddSums, AddsKillsThatV1CountsBelow) {
  std::vector<UsageEntry> entries = sample().entries;
  for (UsageEntry& entry : entries)
    entry.usage.oom_kills = entry.kind == EntryKind::kContainer ? 1 : 0;
  add_sums(entries, core::CgroupVersion::kV1);
  EXPECT_EQ(entries[5].usage.oom_kills, 2) << "of two containers";
  EXPECT_EQ(entries[4].usage.oom_kills, 2);
  EXPECT_EQ(entries[1].usage.oom_kills, 1);
  EXPECT_EQ(entries[0].usage.oom_kills, 4);
}

TEST(Filtered, LeavesWhatIsWantedAndWhatItIsIn) {
  const auto names = [](const UsageFilter& filter) {
    const auto entries = filtered(sample().entries, filter);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < entries.size(); ++i)
      all.push_back(full_name(entries, i));
    return all;
  };
  EXPECT_EQ(names({}).size(), 11U);
  EXPECT_THAT(names({.tier = core::QosClass::kGuaranteed}),
              ElementsAre("/podqos/kubepods", "Guaranteed", "default/db", "default/db/app"));
  EXPECT_THAT(names({.pod_namespace = "shop", .text = "log"}),
              ElementsAre("/podqos/kubepods", "Burstable", "shop/web", "shop/web/log"));
  EXPECT_THAT(names({.text = "0123"}),
              ElementsAre("/podqos/kubepods", "BestEffort", "u-be", "u-be/0123456789abcdef"));
  EXPECT_THAT(names({.pod_namespace = "none"}), IsEmpty());
}

TEST(UsageJson, NestsContainersInPodsAndTiersInTrees) {
  UsageSample one = sample();
  one.entries = filtered(std::move(one.entries), {.text = "web/log"});
  EXPECT_EQ(
      dump(usage_json(one)),
      R"({"intervalMs":2000,"trees":[{"kubepods":"/podqos/kubepods",)"
      R"("requests":{"cpuMilli":500,"memoryBytes":4160},)"
      R"("limits":{"cpuMilli":null,"memoryBytes":null},"cpuMilli":300,)"
      R"("throttledPercent":null,"memoryUsageBytes":null,"workingSetBytes":null,)"
      R"("swapBytes":null,"pids":null,"oomKills":null,"cpuWaitingPercent":null,)"
      R"("cpuStalledPercent":null,"memoryWaitingPercent":null,"memoryStalledPercent":null,)"
      R"("tiers":[{"qosClass":"Burstable","requests":{"cpuMilli":300,"memoryBytes":64},)"
      R"("limits":{"cpuMilli":null,"memoryBytes":null},"cpuMilli":250,)"
      R"("throttledPercent":null,"memoryUsageBytes":null,"workingSetBytes":null,)"
      R"("swapBytes":null,"pids":null,"oomKills":1,"cpuWaitingPercent":null,)"
      R"("cpuStalledPercent":null,"memoryWaitingPercent":null,"memoryStalledPercent":null}]}],)"
      R"("pods":[{"engine":"podman","namespace":"shop","name":"web","uid":"u-web","qosClass":"Burstable",)"
      R"("kubeletsOwn":false,"cgroup":"/podqos/kubepods/burstable/podu-web",)"
      R"("requests":{"cpuMilli":300,"memoryBytes":64},)"
      R"("limits":{"cpuMilli":500,"memoryBytes":null},"cpuMilli":250,)"
      R"("throttledPercent":12.5,"memoryUsageBytes":104857600,"workingSetBytes":94371840,)"
      R"("swapBytes":0,"pids":12,"oomKills":1,"cpuWaitingPercent":3.0,)"
      R"("cpuStalledPercent":1.0,"memoryWaitingPercent":0.5,"memoryStalledPercent":0.0,)"
      R"("containers":[{"id":"c-log","name":"log",)"
      R"("cgroup":"/podqos/kubepods/burstable/podu-web/c-log",)"
      R"("requests":{"cpuMilli":100,"memoryBytes":null},)"
      R"("limits":{"cpuMilli":null,"memoryBytes":null},"cpuMilli":50,)"
      R"("throttledPercent":null,"memoryUsageBytes":1048576,"workingSetBytes":1048576,)"
      R"("swapBytes":null,"pids":null,"oomKills":null,"cpuWaitingPercent":null,)"
      R"("cpuStalledPercent":null,"memoryWaitingPercent":null,"memoryStalledPercent":null}]}]})");
}

}  // namespace
}  // namespace podqos::ctl

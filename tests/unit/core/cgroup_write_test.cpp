#include "common/core/events/cgroup_write.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/choose_root.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/layouts.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;
using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// A whole Burstable pod of one container.
PodRecord whole_pod_with(ResourceList requests, ResourceList limits) {
  return record_of({container("web", std::move(requests), std::move(limits))}, true);
}

/// 256 shares, and a quota of 50 ms in 100 ms.
PodRecord bounded_pod() {
  return whole_pod_with(list({{"cpu", "250m"}, {"memory", "64Mi"}}),
                        list({{"cpu", "500m"}, {"memory", "128Mi"}}));
}

/// A whole Burstable pod with this limit and nothing else; without one for "".
PodRecord pod_with_memory_limit(const char* limit) {
  return whole_pod_with(list({{"memory", "1Mi"}}),
                        *limit == '\0' ? ResourceList{} : pod_text::memory(limit));
}

class DecidePodWrite : public ::testing::Test {
 protected:
  Result<PodWrite> try_decide(const PodRecord& record) {
    return decide_pod_write(record,
                            {.written = written_,
                             .may_differ = may_differ_,
                             .has_io_weight = has_io_weight_,
                             .has_eviction = has_eviction_},
                            settings_);
  }

  PodWrite decide(const PodRecord& record) {
    auto write = try_decide(record);
    if (write) return std::move(*write);
    ADD_FAILURE() << write.error().message;
    return {};
  }

  std::optional<PodRecord> written_;
  bool may_differ_ = false;
  bool has_io_weight_ = false;
  bool has_eviction_ = false;
  Settings settings_;
};

TEST_F(DecidePodWrite, ACriticalPodIsSparedWhereItsTierLosesPods) {
  PodRecord record = bounded_pod();
  record.pod.priority = 2'000'000'000;
  EXPECT_EQ(decide(record).values.oomd_avoid, std::nullopt);
  settings_.eviction.besteffort = MemoryPressure{.percent = 60, .seconds = 30};
  EXPECT_EQ(decide(record).values.oomd_avoid, std::nullopt);
  settings_.eviction.burstable = MemoryPressure{.percent = 60, .seconds = 30};
  EXPECT_EQ(decide(record).values.oomd_avoid, true);
  record.pod.priority = 1'999'999'999;
  EXPECT_EQ(decide(record).values.oomd_avoid, std::nullopt);
  may_differ_ = has_eviction_ = true;
  EXPECT_EQ(decide(record).values.oomd_avoid, false);
  written_ = record;
  EXPECT_EQ(decide(record).values.oomd_avoid, std::nullopt);
}

TEST_F(DecidePodWrite, ACgroupIsMadeAndGetsAllValues) {
  settings_.pod_pids_limit = 77;
  const PodWrite write = decide(bounded_pod());
  EXPECT_EQ(write.make, Cgroup::kCreate);
  EXPECT_EQ(write.values, (CgroupValues{.cpu_shares = CpuShares{256},
                                        .cpu_quota = Micros{50'000},
                                        .cpu_period = Micros{100'000},
                                        .memory_limit = Bytes{128 * kMi},
                                        .pids_limit = 77}));
}

TEST_F(DecidePodWrite, ACgroupOfKnownValuesIsNotMade) {
  written_ = bounded_pod();
  const PodWrite write = decide(whole_pod_with(list({{"cpu", "500m"}, {"memory", "64Mi"}}),
                                               list({{"cpu", "1"}, {"memory", "256Mi"}})));
  EXPECT_EQ(write.make, Cgroup::kExists);
  EXPECT_EQ(write.values, (CgroupValues{.cpu_shares = CpuShares{512},
                                        .cpu_quota = Micros{100'000},
                                        .cpu_period = Micros{100'000},
                                        .memory_limit = Bytes{256 * kMi}}));
  EXPECT_FALSE(write.may_cut);
}

TEST_F(DecidePodWrite, APartialPodThatIsUnboundedLosesItsLimits) {
  written_ = record_of({limited("a", "1", "128Mi")});
  const PodWrite write =
      decide(record_of({limited("a", "1", "128Mi"), container("b", list({{"cpu", "100m"}}))}));
  EXPECT_EQ(write.values.cpu_quota, Micros{-1});
  EXPECT_EQ(write.values.memory_limit, Bytes{-1});
}

TEST_F(DecidePodWrite, RemovesTheLimitsOfOtherPrograms) {
  struct ForeignLimitCase {
    const char* name;
    QosClass qos_class;
    ResourceList limits;
    Micros quota;
    Bytes memory_limit;
  };
  for (const auto& row : std::vector<ForeignLimitCase>{
           {"NoLimit", QosClass::kBurstable, {}, Micros{-1}, Bytes{-1}},
           {"CpuLimit", QosClass::kBurstable, list({{"cpu", "500m"}}), Micros{10'000}, Bytes{-1}},
           {"MemoryLimit", QosClass::kBurstable, list({{"memory", "128Mi"}}), Micros{-1},
            Bytes{128 * kMi}},
           {"BestEffort", QosClass::kBestEffort, {}, Micros{-1}, Bytes{-1}},
           // Kubernetes sets quota and limit to 0, which it writes as "none" and not at all.
           {"GuaranteedByStatus", QosClass::kGuaranteed, {}, Micros{0}, Bytes{-1}},
       }) {
    SCOPED_TRACE(row.name);
    settings_.cpu_cfs_quota_period = Micros{20'000};
    PodRecord record = whole_pod_with({}, row.limits);
    record.qos_class = row.qos_class;
    may_differ_ = true;
    const CgroupValues values = decide(record).values;
    EXPECT_EQ(values.cpu_quota, row.quota);
    EXPECT_EQ(values.cpu_period, Micros{20'000});
    EXPECT_EQ(values.memory_limit, row.memory_limit);
  }
}

/// Of a podPidsLimit that has been taken back, or another program's; a new cgroup has none.
TEST_F(DecidePodWrite, RemovesALimitOfProcessesThatNoRuleAsksFor) {
  EXPECT_EQ(decide(bounded_pod()).values.pids_limit, std::nullopt);
  may_differ_ = true;
  EXPECT_EQ(decide(bounded_pod()).values.pids_limit, -1);
  settings_.pod_pids_limit = 77;
  EXPECT_EQ(decide(bounded_pod()).values.pids_limit, 77);
}

/// systemd may still have a unit of its name, with the limits of an earlier pod.
TEST_F(DecidePodWrite, RemovesLimitsOfAUnitWhoseCgroupIsGone) {
  const CgroupValues values = decide(whole_pod_with({}, {})).values;
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.cpu_period, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST_F(DecidePodWrite, ALimitOfACgroupOfUnknownValuesMayCut) {
  EXPECT_FALSE(decide(bounded_pod()).may_cut);
  may_differ_ = true;
  EXPECT_TRUE(decide(bounded_pod()).may_cut);
  EXPECT_FALSE(decide(pod_with_memory_limit("")).may_cut);
}

TEST(HoldAboveUsage, KeepsALimitAboveWhatIsInUse) {
  PodWrite write{.values = {.memory_limit = Bytes{134'217'728}}};
  EXPECT_EQ(hold_above_usage(write, "/kubepods/burstable/pod42", Bytes{209'715'200}),
            "cgroup /kubepods/burstable/pod42: memory limit lowered to 216Mi instead of 128Mi: "
            "200Mi in use");
  // 16 MiB above the usage.
  EXPECT_EQ(write.values.memory_limit, Bytes{226'492'416});
}

TEST(HoldAboveUsage, LeavesALimitThatCutsNothing) {
  PodWrite write{.values = {.memory_limit = Bytes{134'217'728}}};
  EXPECT_EQ(hold_above_usage(write, "/kubepods/burstable/pod42", std::nullopt), std::nullopt);
  EXPECT_EQ(write.values.memory_limit, Bytes{134'217'728});
}

TEST_F(DecidePodWrite, CutsWithALoweredLimitOnly) {
  struct LimitChangeCase {
    const char* name;
    const char* before;
    const char* now;
    bool may_cut;
  };
  for (const auto& row : std::vector<LimitChangeCase>{
           {"Lowered", "128Mi", "64Mi", true},
           {"FirstLimit", "", "64Mi", true},
           {"Same", "64Mi", "64Mi", false},
           {"Raised", "64Mi", "128Mi", false},
           {"NoLimitAnyMore", "64Mi", "", false},
       }) {
    SCOPED_TRACE(row.name);
    written_ = pod_with_memory_limit(row.before);
    EXPECT_EQ(decide(pod_with_memory_limit(row.now)).may_cut, row.may_cut);
  }
}

TEST_F(DecidePodWrite, WritesTheIoWeightOnce) {
  struct PodIoWeightCase {
    const char* name;
    std::optional<std::int64_t> configured;
    bool has_io_weight;
    bool is_written;
    std::optional<std::int64_t> want;
  };
  for (const auto& row : std::vector<PodIoWeightCase>{
           {"Wanted", 500, false, false, 500},
           {"WantedAgain", 500, true, false, 500},
           // The kernel's default.
           {"NoLongerWanted", {}, true, false, 100},
           {"NeverWanted", {}, false, false, {}},
           {"KnownToBeWritten", 500, true, true, {}},
           {"KnownAndNoLongerWanted", {}, true, true, {}},
       }) {
    SCOPED_TRACE(row.name);
    settings_.io_weight.guaranteed = row.configured;
    may_differ_ = has_io_weight_ = row.has_io_weight;
    PodRecord record = bounded_pod();
    record.qos_class = QosClass::kGuaranteed;
    written_ = row.is_written ? std::optional{record} : std::nullopt;
    EXPECT_EQ(decide(record).values.io_weight, row.want);
  }
}

PodRecord with_pages(const char* amount) {
  const ResourceList pages = *amount == '\0' ? ResourceList{} : list({{"hugepages-2Mi", amount}});
  return whole_pod_with(pages, pages);
}

TEST_F(DecidePodWrite, WritesHugePagesIfTheyMayDiffer) {
  struct HugePageWriteCase {
    const char* name;
    std::optional<const char*> before;  ///< pages of 2 MiB; nullopt: the values are not known
    const char* now;
    bool want;
  };
  for (const auto& row : std::vector<HugePageWriteCase>{
           {"NewPodWithout", {}, "", true},
           {"NewPodWith", {}, "4Mi", true},
           {"StillNone", "", "", false},
           {"Same", "4Mi", "4Mi", false},
           {"First", "", "4Mi", true},
           {"Changed", "4Mi", "8Mi", true},
           {"NoLonger", "4Mi", "", true},
       }) {
    SCOPED_TRACE(row.name);
    written_ = row.before.transform(with_pages);
    EXPECT_EQ(decide(with_pages(row.now)).hugepages, row.want);
  }
}

TEST_F(DecidePodWrite, HugePagesKeepTheirLimitsInTheValues) {
  const ResourceList pages = list({{"hugepages-2Mi", "4Mi"}});
  EXPECT_THAT(decide(whole_pod_with(pages, pages)).values.hugepages,
              ElementsAre(std::pair{"2MB", Bytes{4 * kMi}}));
}

/// An earlier event may have held it above the usage; a reconciliation lowers it.
TEST_F(DecidePodWrite, AMemoryLimitThatDoesNotChangeIsNotWritten) {
  written_ = pod_with_memory_limit("128Mi");
  EXPECT_EQ(decide(pod_with_memory_limit("128Mi")).values.memory_limit, std::nullopt);
  EXPECT_EQ(decide(pod_with_memory_limit("160Mi")).values.memory_limit, Bytes{160 * kMi});
}

TEST_F(DecidePodWrite, LimitsThatAWholePodNoLongerHasAreLifted) {
  written_ = bounded_pod();
  const CgroupValues values =
      decide(whole_pod_with(list({{"cpu", "250m"}, {"memory", "64Mi"}}), {})).values;
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.cpu_period, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST_F(DecidePodWrite, ReturnsTheErrorOfThePodsValues) {
  const PodRecord broken = whole_pod_with(list({{"hugepages-x", "4Mi"}}), {});
  for (const auto& [now, before] : {std::pair{broken, std::optional<PodRecord>{}},
                                    std::pair{bounded_pod(), std::optional{broken}}}) {
    written_ = before;
    const auto write = try_decide(now);
    ASSERT_FALSE(write);
    EXPECT_EQ(write.error().code, ErrorCode::kInvalidArgument);
  }
}

/// A node of 10Gi, 2Gi of them reserved, on which a kubelet's pods request 1Gi.
class RootLimits : public ::testing::Test {
 protected:
  RootLimits() {
    settings_.system_reserved.memory = Bytes{kGi};
    settings_.kube_reserved.memory = Bytes{kGi};
    tiers_.sums.kubelets = {.pods = 1, .cpu = {}, .memory = Bytes{kGi}};
    tiers_.trees = {{.kubepods = "/podqos/kubepods"}};
  }

  Settings settings_;
  NodeCapacity capacity_{.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}, .pids = 32'768};
  NodeState tiers_;
};

TEST_F(RootLimits, AreWhatIsAllocatableLessWhatOthersRequest) {
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_),
            (CgroupValues{.memory_limit = Bytes{7 * kGi}, .pids_limit = 32'768}));
}

// The pods of another driver lie outside the tree as a kubelet's do.
TEST_F(RootLimits, LeaveTheOtherTreeItsRequests) {
  tiers_.sums.burstable = {.pods = 2, .cpu = {}, .memory = Bytes{3 * kGi}};
  tiers_.trees[0].sums.burstable = {.pods = 1, .cpu = {}, .memory = Bytes{kGi}};
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_).memory_limit,
            Bytes{5 * kGi});
}

TEST_F(RootLimits, AreNeverBelowZero) {
  tiers_.sums.kubelets.memory = Bytes{20 * kGi};
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_).memory_limit, Bytes{0});
}

TEST_F(RootLimits, AreAbsentWhereNothingIsEnforcedOrKnown) {
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, {.memory = Bytes{kGi}, .cpu = {}}),
            CgroupValues{});
  settings_.enforce_node_allocatable = false;
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_), CgroupValues{});
}

/// Guaranteed pods request 750m and 1Gi, Burstable ones 250m and 2Gi, a kubelet's 4 CPUs and 1Gi.
TierSums requested_sums() {
  return {{.guaranteed = {.pods = 1, .cpu = MilliCpu{750}, .memory = Bytes{kGi}},
           .burstable = {.pods = 2, .cpu = MilliCpu{250}, .memory = Bytes{2 * kGi}}},
          {.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{kGi}}};
}

TEST(WantedTiers, ReserveMemoryOfWhatIsAllocatable) {
  Settings settings;
  settings.reserve_memory_percent = 50;
  settings.system_reserved.memory = Bytes{kGi};
  settings.kube_reserved.memory = Bytes{kGi};
  const TierValues tiers = wanted_tiers(requested_sums(), requested_sums(), settings,
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  // Of 10Gi, 2Gi are reserved for the node, and 1Gi is a kubelet's pod's.
  EXPECT_EQ(tiers.burstable,
            (CgroupValues{.cpu_shares = CpuShares{256}, .memory_limit = Bytes{7 * kGi - kGi / 2}}));
  EXPECT_EQ(tiers.besteffort,
            (CgroupValues{.cpu_shares = CpuShares{2}, .memory_limit = Bytes{6 * kGi - kGi / 2}}));
}

TEST(WantedTiers, LimitNoMemoryWithoutQosReserved) {
  const TierValues tiers = wanted_tiers(requested_sums(), requested_sums(), {},
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  EXPECT_EQ(tiers.burstable, CgroupValues{.cpu_shares = CpuShares{256}});
  EXPECT_EQ(tiers.besteffort, CgroupValues{.cpu_shares = CpuShares{2}});
}

// The pods of a node may be in two trees. The tiers of one compete with each other only; the node's
// memory is that of all.
TEST(WantedTiers, HaveSharesOfTheirTreeAndMemoryOfTheNode) {
  Settings settings;
  settings.reserve_memory_percent = 100;
  const TierSums tree{{.burstable = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{kGi}}}};
  const TierValues tiers = wanted_tiers(tree, requested_sums(), settings,
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  EXPECT_EQ(tiers.burstable,
            (CgroupValues{.cpu_shares = CpuShares{102}, .memory_limit = Bytes{8 * kGi}}));
  EXPECT_EQ(tiers.besteffort,
            (CgroupValues{.cpu_shares = CpuShares{2}, .memory_limit = Bytes{6 * kGi}}));
}

class DecideTierWrite : public ::testing::Test {
 protected:
  [[nodiscard]] TierValues decide(TreeState tree) const {
    return decide_tier_write(wanted_, tree, observed_, settings_);
  }

  TierValues wanted_{.burstable = {.cpu_shares = CpuShares{256}},
                     .besteffort = {.cpu_shares = CpuShares{2}}};
  Settings settings_;
  TierSnapshots observed_;
};

TEST_F(DecideTierWrite, WhatIsConstantIsNotWrittenAgain) {
  settings_.io_weight = {.guaranteed = {}, .burstable = 200, .besteffort = 10};
  observed_.burstable.has_io_weight = observed_.besteffort.has_io_weight = true;
  const TierValues values = decide(TreeState::kUnchanged);
  EXPECT_EQ(values.burstable, CgroupValues{.cpu_shares = CpuShares{256}});
  EXPECT_EQ(values.besteffort, CgroupValues{});
}

TEST_F(DecideTierWrite, OomdIsToldOfItsTiersAloneAndOnce) {
  constexpr MemoryPressure kThreshold{.percent = 60, .seconds = 30};
  settings_.eviction.besteffort = kThreshold;
  EXPECT_EQ(decide(TreeState::kFresh).besteffort.oomd_pressure, std::nullopt);
  observed_.watched_by_oomd = true;
  for (const TreeState tree : {TreeState::kMissing, TreeState::kFresh}) {
    EXPECT_EQ(decide(tree).besteffort.oomd_pressure, kThreshold);
    EXPECT_EQ(decide(tree).burstable.oomd_pressure, std::nullopt);
    EXPECT_EQ(decide(tree).root.oomd_pressure, std::nullopt);
  }
  EXPECT_EQ(decide(TreeState::kUnchanged).besteffort.oomd_pressure, std::nullopt);
}

TEST_F(DecideTierWrite, OomdIsToldThatASettingHasGone) {
  observed_.watched_by_oomd = true;
  observed_.burstable.has_eviction = true;
  EXPECT_EQ(decide(TreeState::kMissing).burstable.oomd_pressure, MemoryPressure{});
  EXPECT_EQ(decide(TreeState::kMissing).besteffort.oomd_pressure, std::nullopt);
}

TEST_F(DecideTierWrite, TheRootsLimitStaysAboveItsUsage) {
  wanted_.root = {.memory_limit = Bytes{kGi}, .pids_limit = 100};
  observed_.root.usage = Bytes{2 * kGi};
  EXPECT_EQ(decide(TreeState::kUnchanged).root,
            (CgroupValues{.memory_limit = Bytes{2 * kGi + 16 * kMi}, .pids_limit = 100}));
  wanted_.root = {};
  EXPECT_EQ(decide(TreeState::kUnchanged).root, CgroupValues{});
  EXPECT_EQ(decide(TreeState::kMissing).root, (CgroupValues{.cpu_quota = Micros{-1},
                                                            .cpu_idle = false,
                                                            .memory_limit = Bytes{-1},
                                                            .pids_limit = -1}));
}

/// They have none of their own: what is there is another program's.
TEST_F(DecideTierWrite, ATreeThatMayHaveChangedLosesOtherLimits) {
  for (const auto& [tree, lifted] : {std::pair{TreeState::kUnchanged, false},
                                     {TreeState::kFresh, false},
                                     {TreeState::kMissing, true}}) {
    const TierValues values = decide(tree);
    for (const CgroupValues& each : {values.burstable, values.besteffort}) {
      EXPECT_EQ(each.cpu_quota, lifted ? std::optional{Micros{-1}} : std::nullopt);
      EXPECT_EQ(each.pids_limit, lifted ? std::optional<std::int64_t>{-1} : std::nullopt);
    }
  }
}

/// A tier full of page cache fills whatever limit it has: with usage and margin alone each event
/// would give it 16 MiB more.
TEST_F(DecideTierWrite, AFullTiersLimitIsNotRaisedAboveTheRule) {
  struct FullTierCase {
    const char* name;
    std::int64_t rule;
    std::int64_t usage;
    std::optional<std::int64_t> limit;  ///< the kernel's
    std::int64_t want;
  };
  for (const auto& row : std::vector<FullTierCase>{
           {"AtTheRule", kGi, kGi, kGi, kGi},
           {"AboveTheRule", kGi, 2 * kGi, 2 * kGi, 2 * kGi},
           {"UsageHasFallen", kGi, 2 * kGi, 3 * kGi, 2 * kGi + 16 * kMi},
           {"ALowerLimitIsRaisedToTheRule", kGi, kGi - kMi, kGi - kMi, kGi},
           {"NoLimit", kGi, 2 * kGi, {}, 2 * kGi + 16 * kMi},
       }) {
    SCOPED_TRACE(row.name);
    wanted_.burstable.memory_limit = Bytes{row.rule};
    observed_.burstable.usage = Bytes{row.usage};
    observed_.burstable.limit =
        row.limit.transform([](std::int64_t limit) { return Bytes{limit}; });
    EXPECT_EQ(decide(TreeState::kUnchanged).burstable.memory_limit, Bytes{row.want});
  }
}

TEST_F(DecideTierWrite, AnyTreeHoldsLimitsAboveUsageAndFloor) {
  settings_.tier_memory_floor = Bytes{32 * kMi};
  wanted_.burstable.memory_limit = Bytes{1'073'741'824};
  wanted_.besteffort.memory_limit = Bytes{0};
  observed_.burstable.usage = Bytes{2'147'483'648};
  for (const auto tree : {TreeState::kUnchanged, TreeState::kMissing, TreeState::kFresh}) {
    const TierValues values = decide(tree);
    // 16 MiB above the usage.
    EXPECT_EQ(values.burstable.memory_limit, Bytes{2'164'260'864});
    EXPECT_EQ(values.besteffort.memory_limit, Bytes{33'554'432});
  }
}

TEST_F(DecideTierWrite, ANewTreeGetsAllValuesAndLosesLimits) {
  settings_.io_weight = {.guaranteed = 500, .burstable = 200, .besteffort = 10};
  for (const TreeState tree : {TreeState::kMissing, TreeState::kFresh}) {
    const TierValues values = decide(tree);
    for (const auto& [tier, shares, io_weight] :
         {std::tuple{values.burstable, 256, 200}, {values.besteffort, 2, 10}}) {
      EXPECT_EQ(tier.cpu_shares, CpuShares{shares});
      EXPECT_EQ(tier.memory_limit, Bytes{-1});
      EXPECT_EQ(tier.io_weight, io_weight);
    }
  }
}

/// Of the two tiers, only besteffort is to have a weight. 100 is the kernel's default.
TEST_F(DecideTierWrite, ResetsAnIoWeightThatIsNoLongerWanted) {
  struct TierIoWeightCase {
    const char* name;
    TreeState tree;
    bool has_io_weight;
    std::optional<std::int64_t> want;
  };
  settings_.io_weight.besteffort = 10;
  for (const auto& row : std::vector<TierIoWeightCase>{
           {"AsItWas", TreeState::kUnchanged, true, {}},
           {"JustMade", TreeState::kFresh, true, {}},
           {"ToMakeWithOne", TreeState::kMissing, true, 100},
           {"ToMakeWithout", TreeState::kMissing, false, {}},
       }) {
    SCOPED_TRACE(row.name);
    observed_.burstable.has_io_weight = row.has_io_weight;
    EXPECT_EQ(decide(row.tree).burstable.io_weight, row.want);
  }
}

}  // namespace
}  // namespace podqos::core

#include "common/core/events/pod_write.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::ValuesIn;
using ::testing::WithParamInterface;

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
    return decide_pod_write(record, {.written = written_, .has_io_weight = has_io_weight_},
                            settings_);
  }

  PodWrite decide(const PodRecord& record) {
    auto write = try_decide(record);
    if (write) return std::move(*write);
    ADD_FAILURE() << write.error().message;
    return {};
  }

  std::optional<PodRecord> written_;
  bool has_io_weight_ = false;
  Settings settings_;
};

TEST_F(DecidePodWrite, ACgroupOfUnknownValuesIsMadeAndGetsAllOfThem) {
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

struct ForeignLimitCase {
  const char* name;
  QosClass qos_class;
  ResourceList limits;
  Micros quota;
  Bytes memory_limit;
};

class DecidePodWriteRemoves : public DecidePodWrite, public WithParamInterface<ForeignLimitCase> {};

TEST_P(DecidePodWriteRemoves, TheLimitsOfOtherPrograms) {
  settings_.cpu_cfs_quota_period = Micros{20'000};
  PodRecord record = whole_pod_with({}, GetParam().limits);
  record.qos_class = GetParam().qos_class;
  const CgroupValues values = decide(record).values;
  EXPECT_EQ(values.cpu_quota, GetParam().quota);
  EXPECT_EQ(values.cpu_period, Micros{20'000});
  EXPECT_EQ(values.memory_limit, GetParam().memory_limit);
}

INSTANTIATE_TEST_SUITE_P(
    All, DecidePodWriteRemoves,
    ValuesIn(std::vector<ForeignLimitCase>{
        {"NoLimit", QosClass::kBurstable, {}, Micros{-1}, Bytes{-1}},
        {"CpuLimit", QosClass::kBurstable, list({{"cpu", "500m"}}), Micros{10'000}, Bytes{-1}},
        {"MemoryLimit", QosClass::kBurstable, list({{"memory", "128Mi"}}), Micros{-1},
         Bytes{128 * kMi}},
        {"BestEffort", QosClass::kBestEffort, {}, Micros{-1}, Bytes{-1}},
        // Kubernetes sets quota and limit to 0, which it writes as "none" and not at all.
        {"GuaranteedByStatus", QosClass::kGuaranteed, {}, Micros{0}, Bytes{-1}},
    }),
    [](const TestParamInfo<ForeignLimitCase>& row) { return row.param.name; });

TEST_F(DecidePodWrite, ALimitOfANewCgroupMayCut) {
  const PodWrite write = decide(bounded_pod());
  EXPECT_TRUE(write.may_cut);
  EXPECT_EQ(write.values.memory_limit, Bytes{134'217'728});
}

TEST_F(DecidePodWrite, ANewCgroupWithoutALimitCutsNothing) {
  const PodWrite write = decide(pod_with_memory_limit(""));
  EXPECT_EQ(write.values.memory_limit, Bytes{-1});
  EXPECT_FALSE(write.may_cut);
}

TEST(HoldAboveUsage, KeepsALimitAboveWhatIsInUse) {
  PodWrite write{.values = {.memory_limit = Bytes{134'217'728}}};
  EXPECT_EQ(hold_above_usage(write, "/kubepods/burstable/pod42", Bytes{209'715'200}),
            "cgroup /kubepods/burstable/pod42: memory limit lowered to 226492416 instead of "
            "134217728: 209715200 bytes are in use");
  // 16 MiB above the usage.
  EXPECT_EQ(write.values.memory_limit, Bytes{226'492'416});
}

TEST(HoldAboveUsage, LeavesALimitThatCutsNothing) {
  PodWrite write{.values = {.memory_limit = Bytes{134'217'728}}};
  EXPECT_EQ(hold_above_usage(write, "/kubepods/burstable/pod42", std::nullopt), std::nullopt);
  EXPECT_EQ(write.values.memory_limit, Bytes{134'217'728});
}

struct LimitChangeCase {
  const char* name;
  const char* before;
  const char* now;
  bool may_cut;
};

class DecidePodWriteCuts : public DecidePodWrite, public WithParamInterface<LimitChangeCase> {};

TEST_P(DecidePodWriteCuts, WithALoweredLimitOnly) {
  written_ = pod_with_memory_limit(GetParam().before);
  EXPECT_EQ(decide(pod_with_memory_limit(GetParam().now)).may_cut, GetParam().may_cut);
}

INSTANTIATE_TEST_SUITE_P(All, DecidePodWriteCuts,
                         ValuesIn(std::vector<LimitChangeCase>{
                             {"Lowered", "128Mi", "64Mi", true},
                             {"FirstLimit", "", "64Mi", true},
                             {"Same", "64Mi", "64Mi", false},
                             {"Raised", "64Mi", "128Mi", false},
                             {"NoLimitAnyMore", "64Mi", "", false},
                         }),
                         [](const TestParamInfo<LimitChangeCase>& row) { return row.param.name; });

struct PodIoWeightCase {
  const char* name;
  std::optional<std::int64_t> configured;
  bool has_io_weight;
  bool is_written;
  std::optional<std::int64_t> want;
};

class DecidePodWriteIoWeight : public DecidePodWrite, public WithParamInterface<PodIoWeightCase> {};

TEST_P(DecidePodWriteIoWeight, IsWrittenOnce) {
  settings_.io_weight.guaranteed = GetParam().configured;
  has_io_weight_ = GetParam().has_io_weight;
  PodRecord record = bounded_pod();
  record.qos_class = QosClass::kGuaranteed;
  if (GetParam().is_written) written_ = record;
  EXPECT_EQ(decide(record).values.io_weight, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(All, DecidePodWriteIoWeight,
                         ValuesIn(std::vector<PodIoWeightCase>{
                             {"Wanted", 500, false, false, 500},
                             {"WantedAgain", 500, true, false, 500},
                             // The kernel's default.
                             {"NoLongerWanted", {}, true, false, 100},
                             {"NeverWanted", {}, false, false, {}},
                             {"KnownToBeWritten", 500, true, true, {}},
                             {"KnownAndNoLongerWanted", {}, true, true, {}},
                         }),
                         [](const TestParamInfo<PodIoWeightCase>& row) { return row.param.name; });

struct HugePageWriteCase {
  const char* name;
  std::optional<const char*> before;  ///< pages of 2 MiB; nullopt: the values are not known
  const char* now;
  bool want;
};

class DecidePodWriteHugePages : public DecidePodWrite,
                                public WithParamInterface<HugePageWriteCase> {
 protected:
  static PodRecord with_pages(const char* amount) {
    const ResourceList pages = *amount == '\0' ? ResourceList{} : list({{"hugepages-2Mi", amount}});
    return whole_pod_with(pages, pages);
  }
};

TEST_P(DecidePodWriteHugePages, AreWrittenIfTheyMayDiffer) {
  if (GetParam().before) written_ = with_pages(*GetParam().before);
  EXPECT_EQ(decide(with_pages(GetParam().now)).hugepages, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(All, DecidePodWriteHugePages,
                         ValuesIn(std::vector<HugePageWriteCase>{
                             {"NewPodWithout", {}, "", true},
                             {"NewPodWith", {}, "4Mi", true},
                             {"StillNone", "", "", false},
                             {"Same", "4Mi", "4Mi", false},
                             {"First", "", "4Mi", true},
                             {"Changed", "4Mi", "8Mi", true},
                             {"NoLonger", "4Mi", "", true},
                         }),
                         [](const TestParamInfo<HugePageWriteCase>& row) {
                           return row.param.name;
                         });

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
  const auto write = try_decide(whole_pod_with(list({{"hugepages-x", "4Mi"}}), {}));
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(DecidePodWrite, ReturnsTheErrorOfTheWrittenValues) {
  written_ = whole_pod_with(list({{"hugepages-x", "4Mi"}}), {});
  const auto write = try_decide(bounded_pod());
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace podqos::core

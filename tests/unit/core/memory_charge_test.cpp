#include "common/core/memory_charge.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::int64_t kMi = 1'048'576;
constexpr Bytes kPage{4096};

struct Charge {
  const char* name;
  std::int64_t usage;
  std::int64_t counted;
  std::int64_t shmem;
  std::int64_t processors;
  bool held;
};
class MayHoldShmem : public TestWithParam<Charge> {};

TEST_P(MayHoldShmem, TrustsTheStatisticsWithinTheirBounds) {
  const Charge& row = GetParam();
  const MemoryCharge charge{.usage = Bytes{row.usage * kMi},
                            .counted = Bytes{row.counted * kMi},
                            .shmem = Bytes{row.shmem * kMi}};
  EXPECT_EQ(may_hold_shmem(charge, row.processors, kPage), row.held);
}

INSTANTIATE_TEST_SUITE_P(Table, MayHoldShmem,
                         ValuesIn<Charge>({
                             {"Nothing", 0, 0, 0, 1, false},
                             {"Counted", 8, 8, 8, 1, true},
                             {"CountedBesideOthers", 100, 100, 1, 128, true},
                             {"PageCacheOnly", 100, 100, 0, 1, false},
                             // As measured: 8 MiB written to tmpfs, none of it in memory.stat.
                             {"AllUncounted", 8, 0, 0, 2, true},
                             // 64 pages of 4 KiB in the statistics and 64 in advance, of each.
                             {"AsUncountedAsMayBe", 101, 100, 0, 2, false},
                             {"MoreUncounted", 102, 100, 0, 2, true},
                             {"OnALargeMachine", 164, 100, 0, 128, false},
                             {"CountedTooMuch", 90, 100, 0, 1, false},
                         }),
                         [](const TestParamInfo<Charge>& row) {
                           return std::string{row.param.name};
                         });

}  // namespace
}  // namespace podqos::core

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "common/core/events/departure.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr Bytes kPage{4096};

constexpr auto kNone = ShmemCharge::kNone;
constexpr auto kUncertain = ShmemCharge::kUncertain;
constexpr auto kSome = ShmemCharge::kSome;

struct Charge {
  const char* name;
  std::int64_t usage;
  std::int64_t counted;
  std::int64_t shmem;
  std::int64_t processors;
  ShmemCharge held;
};
class ShmemChargeTest : public TestWithParam<Charge> {};

TEST_P(ShmemChargeTest, TrustsTheStatisticsWithinTheirBounds) {
  const Charge& row = GetParam();
  const MemoryCharge charge{.usage = Bytes{row.usage * kMi},
                            .counted = Bytes{row.counted * kMi},
                            .shmem = Bytes{row.shmem * kMi}};
  EXPECT_EQ(shmem_charge(charge, row.processors, kPage), row.held);
}

INSTANTIATE_TEST_SUITE_P(Table, ShmemChargeTest,
                         ValuesIn<Charge>({
                             {"Nothing", 0, 0, 0, 1, kNone},
                             {"Counted", 8, 8, 8, 1, kSome},
                             {"CountedBesideOthers", 100, 100, 1, 128, kSome},
                             {"PageCacheOnly", 100, 100, 0, 1, kNone},
                             // As measured: 8 MiB written to tmpfs, none of it in memory.stat.
                             {"AllUncounted", 8, 0, 0, 2, kUncertain},
                             // 64 pages of 4 KiB in the statistics and 64 in advance, of each.
                             {"AsUncountedAsMayBe", 101, 100, 0, 2, kNone},
                             {"MoreUncounted", 102, 100, 0, 2, kUncertain},
                             {"OnALargeMachine", 164, 100, 0, 128, kNone},
                             {"CountedTooMuch", 10, 500, 0, 2, kUncertain},
                             {"CountedALittleTooMuch", 99, 100, 0, 2, kNone},
                         }),
                         [](const TestParamInfo<Charge>& row) {
                           return std::string{row.param.name};
                         });

}  // namespace
}  // namespace podqos::core

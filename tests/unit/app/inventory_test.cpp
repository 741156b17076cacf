#include "common/app/inventory.h"

#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/cgroup_reading.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/lowering.h"
#include "common/core/plan.h"
#include "common/store/store.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Bytes kPage{4096};

CgroupReading v1_reading() {
  return {.exists = true,
          .cpu_shares = CpuShares{102},
          .cpu_weight = {},
          .cpu_quota = Micros{10'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{1 << 30},
          .memory_usage = Bytes{4096},
          .pids_limit = 7,
          .pids = 1};
}

core::CgroupValues same_rule() {
  return {.cpu_shares = CpuShares{102},
          .cpu_quota = Micros{10'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{1 << 30},
          .hugepages = {},
          .pids_limit = 7,
          .unified = {}};
}

TEST(Differences, FindsNoneWhereTheRuleHolds) {
  EXPECT_THAT(differences(v1_reading(), same_rule(), core::WeightFormula::kLinear, kPage),
              IsEmpty());
}

TEST(Differences, NamesEachValueWithBothNumbers) {
  core::CgroupValues rule = same_rule();
  rule.cpu_shares = CpuShares{2};
  rule.cpu_quota = Micros{20'000};
  rule.memory_limit = Bytes{2LL << 30};
  rule.pids_limit = 8;
  EXPECT_THAT(
      differences(v1_reading(), rule, core::WeightFormula::kLinear, kPage),
      ElementsAre("cpu.shares is 102, the rule says 2", "cpu quota is 10000, the rule says 20000",
                  "memory limit is 1073741824, the rule says 2147483648",
                  "pids.max is 7, the rule says 8"));
}

TEST(Differences, AnAbsentLimitMeansUnlimited) {
  core::CgroupValues rule = same_rule();
  rule.cpu_quota.reset();
  rule.memory_limit.reset();
  EXPECT_THAT(differences(v1_reading(), rule, core::WeightFormula::kLinear, kPage),
              ElementsAre("cpu quota is 10000, the rule says unlimited",
                          "memory limit is 1073741824, the rule says unlimited"));
  CgroupReading reading = v1_reading();
  reading.cpu_quota.reset();
  reading.memory_limit.reset();
  rule.cpu_quota = Micros{-1};
  rule.memory_limit = Bytes{-1};
  EXPECT_THAT(differences(reading, rule, core::WeightFormula::kLinear, kPage), IsEmpty());
}

TEST(Differences, LessThanAPageIsNone) {
  core::CgroupValues rule = same_rule();
  rule.memory_limit = Bytes{(1 << 30) + 4095};
  EXPECT_THAT(differences(v1_reading(), rule, core::WeightFormula::kLinear, kPage), IsEmpty());
}

TEST(Differences, ComparesWeightsByTheFormulaInUse) {
  CgroupReading reading = v1_reading();
  reading.cpu_shares.reset();
  reading.cpu_weight = CpuWeight{100};
  core::CgroupValues rule = same_rule();
  rule.cpu_shares = CpuShares{1024};
  EXPECT_THAT(differences(reading, rule, core::WeightFormula::kLog, kPage), IsEmpty());
  EXPECT_THAT(differences(reading, rule, core::WeightFormula::kLinear, kPage),
              ElementsAre("cpu.weight is 100, the rule says 39"));
}

TEST(SharesOf, TakesTheRuleWhereItsWeightIsFound) {
  CgroupReading reading;
  reading.cpu_weight = CpuWeight{39};
  EXPECT_EQ(shares_of(reading, CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{1024});
  // The inverse cannot know: 39 stands for 26 different numbers of shares.
  EXPECT_EQ(shares_of(reading, {}, core::WeightFormula::kLinear), CpuShares{998});
  reading.cpu_shares = CpuShares{5};
  EXPECT_EQ(shares_of(reading, CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{5});
  EXPECT_EQ(shares_of({}, CpuShares{1024}, core::WeightFormula::kLinear), std::nullopt);
}

/// A cgroup of the test's own, gone with the object.
class ReadCgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cgroups = cgroup::Cgroupfs::open();
    if (!cgroups) GTEST_SKIP() << cgroups.error().message;
    cgroups_.emplace(std::move(*cgroups));
    path_ = cat("/podqos-test-inventory-", ::getpid());
  }
  void TearDown() override {
    if (cgroups_) {
      const auto removed = cgroups_->execute({core::RemoveCgroup{path_, core::OnRefusal::kFail}});
      EXPECT_TRUE(removed) << removed.error().message;
    }
  }
  std::optional<cgroup::Cgroupfs> cgroups_;
  std::string path_;
};

TEST_F(ReadCgroup, ReadsBackWhatWasWritten) {
  core::CgroupValues values = same_rule();
  core::Plan plan =
      core::lower_values(path_, values, cgroups_->layout(), core::WeightFormula::kLinear, "test");
  plan.insert(plan.begin(), core::EnsureCgroup{path_});
  const auto done = cgroups_->execute(plan);
  ASSERT_TRUE(done) << done.error().message;
  const CgroupReading reading = read_cgroup(*cgroups_, path_);
  EXPECT_TRUE(reading.exists);
  EXPECT_THAT(differences(reading, values, core::WeightFormula::kLinear, kPage), IsEmpty());
  EXPECT_EQ(reading.cpu_quota, Micros{10'000});
  EXPECT_EQ(reading.cpu_period, Micros{100'000});
  EXPECT_EQ(reading.memory_limit, Bytes{1 << 30});
}

TEST_F(ReadCgroup, ShowsNoLimitsOfAFreshCgroup) {
  ASSERT_TRUE(cgroups_->execute({core::EnsureCgroup{path_}}));
  const CgroupReading reading = read_cgroup(*cgroups_, path_);
  EXPECT_TRUE(reading.exists);
  EXPECT_EQ(reading.cpu_quota, std::nullopt);
  EXPECT_EQ(reading.memory_limit, std::nullopt);
  EXPECT_EQ(reading.pids_limit, std::nullopt);
}

TEST_F(ReadCgroup, AnAbsentCgroupIsNoError) {
  EXPECT_EQ(read_cgroup(*cgroups_, path_), CgroupReading{});
  EXPECT_EQ(read_cgroup(*cgroups_, ""), CgroupReading{});
}

core::Settings settings_in(const std::string& directory) {
  core::Settings settings;
  settings.state_dir = directory + "/state";
  settings.cgroup_root = cat("/podqos-test-nowhere-", ::getpid());
  settings.node_memory = Bytes{8LL << 30};
  return settings;
}

TEST(TakeInventory, GivesNothingWithoutState) {
  const TemporaryDirectory directory;
  const auto inventory = read_inventory(settings_in(directory.path()));
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_THAT(inventory->pods, IsEmpty());
  EXPECT_THAT(inventory->warnings, IsEmpty());
  EXPECT_NE(::access((directory.path() + "/state").c_str(), F_OK), 0);
}

TEST(TakeInventory, WarnsOfWhatIsRecordedButGone) {
  if (const auto cgroups = cgroup::Cgroupfs::open(); !cgroups)
    GTEST_SKIP() << cgroups.error().message;
  const TemporaryDirectory directory;
  const core::Settings settings = settings_in(directory.path());
  const std::string kubepods = settings.cgroup_root + "/kubepods";
  {
    auto store = store::Store::open({.path = settings.state_dir, .lock_timeout = {}});
    ASSERT_TRUE(store) << store.error().message;
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
                          .cgroup = record.cgroup + "/c1"}};
    ASSERT_TRUE(store->put_pod(record));
    store->tiers().kubepods = kubepods;
    store->tiers().sums.besteffort.pods = 1;
    ASSERT_TRUE(store->commit());
  }
  const auto inventory = read_inventory(settings);
  ASSERT_TRUE(inventory) << inventory.error().message;
  ASSERT_EQ(inventory->pods.size(), 1U);
  EXPECT_FALSE(inventory->pods[0].containers.at(0).alive);
  EXPECT_EQ(inventory->tiers.size(), 3U);
  EXPECT_EQ(inventory->tiers.at(1).rule.cpu_shares, CpuShares{2});
  EXPECT_THAT(inventory->warnings, Contains(HasSubstr("pod default/web (u-1): its cgroup")));
  EXPECT_THAT(inventory->warnings, Contains(HasSubstr("container c1 is recorded")));
}

}  // namespace
}  // namespace podqos::app

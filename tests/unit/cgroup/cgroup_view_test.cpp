#include "common/cgroup/cgroup_view.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/value_table.h"
#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes kPage{4096};

// As Linux 6.1 shows them.
TEST(ParsePressure, TakesTheTotals) {
  const auto both = parse_pressure(
      "some avg10=0.12 avg60=0.00 avg300=0.00 total=1234567\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=89\n");
  EXPECT_EQ(both, (Pressure{.waiting = Micros{1'234'567}, .stalled = Micros{89}}));
  const auto some = parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5");
  EXPECT_EQ(some, (Pressure{.waiting = Micros{5}, .stalled = std::nullopt}));
}

TEST(ParsePressure, RefusesWhatIsNone) {
  for (const char* text : {"", "some", "some avg10=0.00", "some total=", "some total=x", "total=5",
                           "somewhat total=5"})
    EXPECT_FALSE(parse_pressure(text)) << text;
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

/// A pod's cgroup on a fake machine that refuses every change.
class ViewTest : public ::testing::Test {
 protected:
  explicit ViewTest(core::CgroupVersion version = core::CgroupVersion::kV1) : tree_{version} {
    tree_.make("/pod");
    files_ = &tree_.cgroups.at("/pod").files;
  }
  CgroupView view() { return {machine_, "/pod"}; }
  std::vector<std::string> differences(const core::CgroupValues& rule,
                                       core::WeightFormula formula = core::WeightFormula::kLinear) {
    return cgroup::differences(view(), rule, formula, kPage);
  }

  FakeTree tree_;
  std::map<std::string, std::string, std::less<>>* files_ = nullptr;
  FakeMachine machine_{
      tree_, [](const std::string& change) { return Status{fail(ErrorCode::kIo, change)}; }};
};

/// On v1, with the values of same_rule().
class DifferencesV1 : public ViewTest {
 protected:
  DifferencesV1() {
    *files_ = {{"cpu.shares", "102"},
               {"cpu.cfs_quota_us", "10000"},
               {"cpu.cfs_period_us", "100000"},
               {"memory.limit_in_bytes", "1073741824"},
               {"pids.max", "7"},
               {"pids.current", "1"}};
  }
};

TEST_F(DifferencesV1, FindsNoneWhereTheRuleHolds) {
  EXPECT_THAT(differences(same_rule()), IsEmpty());
}

TEST_F(DifferencesV1, NamesEachValueWithBothNumbers) {
  core::CgroupValues rule = same_rule();
  rule.cpu_shares = CpuShares{2};
  rule.cpu_quota = Micros{20'000};
  rule.memory_limit = Bytes{2LL << 30};
  rule.pids_limit = 8;
  EXPECT_THAT(
      differences(rule),
      ElementsAre("cpu.shares is 102, the rule says 2", "cpu quota is 10000, the rule says 20000",
                  "memory limit is 1Gi, the rule says 2Gi", "pids.max is 7, the rule says 8"));
}

TEST_F(DifferencesV1, AnAbsentLimitMeansUnlimited) {
  core::CgroupValues rule = same_rule();
  rule.cpu_quota.reset();
  rule.memory_limit.reset();
  EXPECT_THAT(differences(rule), ElementsAre("cpu quota is 10000, the rule says unlimited",
                                             "memory limit is 1Gi, the rule says unlimited"));
  files_->at("cpu.cfs_quota_us") = "-1";
  files_->at("memory.limit_in_bytes") = "9223372036854771712";
  rule.cpu_quota = Micros{-1};
  rule.memory_limit = Bytes{-1};
  EXPECT_THAT(differences(rule), IsEmpty());
}

TEST_F(DifferencesV1, LessThanAPageIsNone) {
  core::CgroupValues rule = same_rule();
  rule.memory_limit = Bytes{(1 << 30) + 4095};
  EXPECT_THAT(differences(rule), IsEmpty());
}

TEST_F(DifferencesV1, HasTheSharesThatTheKernelShows) {
  files_->at("cpu.shares") = "5";
  EXPECT_EQ(view().shares(CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{5});
}

/// On v2, with the values of a new cgroup.
class ViewV2 : public ViewTest {
 protected:
  ViewV2() : ViewTest{core::CgroupVersion::kV2} {}
};

TEST_F(ViewV2, ComparesWeightsByTheFormulaInUse) {
  core::CgroupValues rule;
  rule.cpu_shares = CpuShares{1024};
  EXPECT_THAT(differences(rule, core::WeightFormula::kLog), IsEmpty());
  EXPECT_THAT(differences(rule), ElementsAre("cpu.weight is 100, the rule says 39"));
}

TEST_F(ViewV2, HasTheSharesOfTheRuleWhereItsWeightIsFound) {
  (*files_)["cpu.weight"] = "39";
  EXPECT_EQ(view().shares(CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{1024});
  // The inverse cannot know: 39 stands for 26 different numbers of shares.
  EXPECT_EQ(view().shares({}, core::WeightFormula::kLinear), CpuShares{998});
}

TEST_F(ViewV2, HasNothingOfAnAbsentCgroup) {
  for (const char* path : {"/absent", ""}) {
    const CgroupView absent{machine_, path};
    EXPECT_FALSE(absent.exists());
    EXPECT_EQ(absent.memory_usage(), std::nullopt);
    EXPECT_EQ(absent.cpu_weight(), std::nullopt);
    EXPECT_EQ(absent.shares(CpuShares{1024}, core::WeightFormula::kLinear), std::nullopt);
  }
}

TEST_F(ViewV2, ReadsEachFileOnce) {
  (*files_)["cpu.max"] = "25000 50000";
  const CgroupView cgroup = view();
  EXPECT_EQ(cgroup.cpu_quota(), Micros{25'000});
  (*files_)["cpu.max"] = "max 100000";
  tree_.cgroups.at("/pod").usage = 4096;
  EXPECT_EQ(cgroup.cpu_period(), Micros{50'000});
  EXPECT_EQ(cgroup.memory_usage(), Bytes{4096});
  tree_.cgroups.at("/pod").usage = 8192;
  EXPECT_EQ(cgroup.memory_usage(), Bytes{4096});
}

TEST_F(ViewV2, ShowsMaxOfAProtectionAsTheLargestNumber) {
  (*files_)["memory.min"] = "max";
  (*files_)["memory.low"] = "4096";
  EXPECT_EQ(view().protection("memory.min"), Bytes{kInt64Max});
  EXPECT_EQ(view().protection("memory.low"), Bytes{4096});
}

/// A cgroup of the test's own, gone with the object.
class LiveCgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cgroups = cgroup::Cgroupfs::open();
    if (!cgroups) GTEST_SKIP() << cgroups.error().message;
    cgroups_.emplace(std::move(*cgroups));
    path_ = cat("/podqos-test-view-", ::getpid());
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

TEST_F(LiveCgroup, ReadsBackWhatWasWritten) {
  core::CgroupValues values = same_rule();
  core::Plan plan =
      core::lower_values(path_, values, cgroups_->layout(), core::WeightFormula::kLinear, "test");
  plan.insert(plan.begin(), core::EnsureCgroup{path_});
  const auto done = cgroups_->execute(plan);
  ASSERT_TRUE(done) << done.error().message;
  const CgroupView cgroup{*cgroups_, path_};
  EXPECT_TRUE(cgroup.exists());
  EXPECT_THAT(differences(cgroup, values, core::WeightFormula::kLinear, kPage), IsEmpty());
  EXPECT_EQ(cgroup.cpu_quota(), Micros{10'000});
  EXPECT_EQ(cgroup.cpu_period(), Micros{100'000});
  EXPECT_EQ(cgroup.memory_limit(), Bytes{1 << 30});
}

TEST_F(LiveCgroup, ShowsNoLimitsOfAFreshCgroup) {
  ASSERT_TRUE(cgroups_->execute({core::EnsureCgroup{path_}}));
  const CgroupView cgroup{*cgroups_, path_};
  EXPECT_TRUE(cgroup.exists());
  EXPECT_EQ(cgroup.cpu_quota(), std::nullopt);
  EXPECT_EQ(cgroup.memory_limit(), std::nullopt);
  EXPECT_EQ(cgroup.pids_limit(), std::nullopt);
}

TEST_F(LiveCgroup, AnAbsentCgroupIsNoError) {
  for (const std::string& path : {path_, std::string{}}) {
    const CgroupView cgroup{*cgroups_, path};
    EXPECT_FALSE(cgroup.exists());
    EXPECT_EQ(cgroup.memory_limit(), std::nullopt);
    EXPECT_EQ(cgroup.memory_usage(), std::nullopt);
    EXPECT_EQ(cgroup.cpu_quota(), std::nullopt);
    EXPECT_EQ(cgroup.pids(), std::nullopt);
  }
}

core::HeldResources held(std::optional<std::int64_t> shares, std::optional<std::int64_t> quota,
                         std::optional<std::int64_t> memory) {
  core::HeldResources out;
  out.values.cpu_shares = shares;
  out.values.cpu_quota = quota;
  if (quota) out.values.cpu_period = 100'000;
  out.values.memory_limit = memory;
  return out;
}

TEST_F(DifferencesV1, TellsNoLimitFromWhatIsNotKnown) {
  EXPECT_EQ(view().held(), held(102, 10'000, 1 << 30));
  files_->at("cpu.cfs_quota_us") = "-1";
  files_->at("memory.limit_in_bytes") = "9223372036854771712";
  EXPECT_EQ(view().held(), held(102, -1, -1));
  files_->erase("memory.limit_in_bytes");
  EXPECT_EQ(view().held(), held(102, -1, std::nullopt));
  EXPECT_EQ((CgroupView{machine_, "/gone"}.held()), core::HeldResources{});
}

TEST_F(ViewV2, TellsNoLimitFromWhatIsNotKnown) {
  core::HeldResources wanted = held(std::nullopt, -1, -1);
  wanted.cpu_weight = CpuWeight{100};
  EXPECT_EQ(view().held(), wanted);
  files_->at("cpu.max") = "50000 100000";
  files_->at("memory.max") = "67108864";
  files_->erase("cpu.weight");
  EXPECT_EQ(view().held(), held(std::nullopt, 50'000, 64 << 20));
}

/// As crun 1.8.1 leaves them with systemd, and as 1.21 does: see runtime_update_test.py.
TEST_F(ViewV2, FindsTheLimitsThatCrunSetsBelowItsScope) {
  const std::string scope = "/pod/crun-web.scope";
  tree_.start(Pid{10}, scope + "/container/init.scope");
  core::ContainerRecord container;
  container.pid = Pid{10};
  container.cgroup = scope;
  auto& above = tree_.cgroups.at(scope).files;
  auto& below = tree_.cgroups.at(scope + "/container").files;
  above.at("cpu.weight") = "20";
  below.at("memory.max") = "67108864";
  below.at("cpu.max") = "33330 100000";
  core::HeldResources wanted = held(std::nullopt, 33'330, 64 << 20);
  wanted.cpu_weight = CpuWeight{20};
  EXPECT_EQ(held_by(machine_, container, {machine_, scope}), wanted);

  above.at("memory.max") = "33554432";
  above.at("cpu.max") = "34000 100000";
  wanted.values.memory_limit = 32 << 20;
  wanted.values.cpu_quota = 34'000;
  EXPECT_EQ(held_by(machine_, container, {machine_, scope}), wanted);

  // A process that was moved elsewhere tells nothing of the cgroup below, nor does an unknown one.
  tree_.processes.at(Pid{10}).cgroup = "/pod";
  EXPECT_EQ(held_by(machine_, container, {machine_, scope}), core::HeldResources{});
  tree_.processes.clear();
  EXPECT_EQ(held_by(machine_, container, {machine_, scope}), core::HeldResources{});
}

}  // namespace
}  // namespace podqos::cgroup

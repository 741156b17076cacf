#include "common/cgroup/cgroup_view.h"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/value_table.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/cgroup/own_cgroup.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes kPage{4096};

core::CgroupValues same_rule() {
  return {.cpu_shares = CpuShares{102},
          .cpu_quota = Micros{10'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{1 << 30},
          .hugepages = {},
          .pids_limit = 7,
          .unified = {}};
}

Status refuse(const std::string& change) {
  ADD_FAILURE() << change;
  return fail(ErrorCode::kIo, change);
}

/// A pod's cgroup on a fake machine that is only looked at.
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
  FakeMachine machine_{tree_, refuse};
};

/// On v1, with the values of same_rule().
class ViewV1 : public ViewTest {
 protected:
  ViewV1() {
    *files_ = {{"cpu.shares", "102"},
               {"cpu.cfs_quota_us", "10000"},
               {"cpu.cfs_period_us", "100000"},
               {"memory.limit_in_bytes", "1073741824"},
               {"pids.max", "7"},
               {"pids.current", "1"}};
  }
};

TEST_F(ViewV1, NamesEachValueWithBothNumbers) {
  core::CgroupValues rule = same_rule();
  EXPECT_THAT(differences(rule), IsEmpty());
  // Less than a page is none.
  rule.memory_limit = Bytes{(1 << 30) + 4095};
  EXPECT_THAT(differences(rule), IsEmpty());
  rule.cpu_shares = CpuShares{2};
  rule.cpu_quota = Micros{20'000};
  rule.memory_limit = Bytes{2LL << 30};
  rule.pids_limit = 8;
  EXPECT_THAT(
      differences(rule),
      ElementsAre("cpu.shares is 102, the rule says 2", "cpu quota is 10ms, the rule says 20ms",
                  "memory limit is 1Gi, the rule says 2Gi", "pids.max is 7, the rule says 8"));
}

TEST_F(ViewV1, AnAbsentLimitMeansUnlimited) {
  core::CgroupValues rule = same_rule();
  rule.cpu_quota.reset();
  rule.memory_limit.reset();
  EXPECT_THAT(differences(rule), ElementsAre("cpu quota is 10ms, the rule says unlimited",
                                             "memory limit is 1Gi, the rule says unlimited"));
  files_->at("cpu.cfs_quota_us") = "-1";
  files_->at("memory.limit_in_bytes") = "9223372036854771712";
  rule.cpu_quota = Micros{-1};
  rule.memory_limit = Bytes{-1};
  EXPECT_THAT(differences(rule), IsEmpty());
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

TEST_F(ViewV2, ComparesIdleAndBurstWhereTheRuleHasThem) {
  EXPECT_THAT(
      differences({.cpu_shares = CpuShares{1024}, .cpu_idle = true}, core::WeightFormula::kLog),
      ElementsAre("cpu.idle is 0, the rule says 1"));
  (*files_)["cpu.idle"] = "1";
  (*files_)["cpu.weight"] = "0";
  (*files_)["cpu.max"] = "50000 100000";
  (*files_)["cpu.max.burst"] = "5000";
  const core::CgroupValues rule{.cpu_shares = CpuShares{2},
                                .cpu_quota = Micros{50'000},
                                .cpu_burst = Micros{25'000},
                                .cpu_idle = true};
  EXPECT_THAT(differences(rule), ElementsAre("cpu burst is 5ms, the rule says 25ms"));
  EXPECT_THAT(
      differences({.cpu_shares = CpuShares{2}, .cpu_quota = Micros{50'000}, .cpu_idle = false}),
      ElementsAre("cpu.idle is 1, the rule says 0"));
  // A kernel without the files.
  files_->erase("cpu.idle");
  files_->erase("cpu.max.burst");
  (*files_)["cpu.weight"] = "1";
  EXPECT_THAT(differences(rule), IsEmpty());
}

TEST_F(ViewV1, HasTheSharesThatTheKernelShows) {
  files_->at("cpu.shares") = "5";
  EXPECT_EQ(view().shares(CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{5});
}

TEST_F(ViewV2, HasTheSharesOfTheRuleWhereItsWeightIsFound) {
  (*files_)["cpu.weight"] = "39";
  EXPECT_EQ(view().shares(CpuShares{1024}, core::WeightFormula::kLinear), CpuShares{1024});
  // The inverse cannot know: 39 stands for 26 different numbers of shares.
  EXPECT_EQ(view().shares({}, core::WeightFormula::kLinear), CpuShares{998});
}

TEST_F(ViewV2, TakesTheTotalsOfPressure) {
  const auto pressure = [&](const char* text) {
    (*files_)["memory.pressure"] = text;
    return view().pressure("memory");
  };
  // As Linux 6.1 shows them.
  EXPECT_EQ(pressure("some avg10=0.12 avg60=0.00 avg300=0.00 total=1234567\n"
                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=89\n"),
            (Pressure{.waiting = Micros{1'234'567}, .stalled = Micros{89}}));
  EXPECT_EQ(pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5"),
            (Pressure{.waiting = Micros{5}, .stalled = std::nullopt}));
  for (const char* none : {"", "some", "some avg10=0.00", "some total=", "some total=x", "total=5",
                           "somewhat total=5"})
    EXPECT_FALSE(pressure(none)) << none;
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

/// On the real kernel.
class LiveView : public OwnCgroup {};

TEST_F(LiveView, ReadsBackWhatWasWritten) {
  core::CgroupValues values = same_rule();
  core::Plan plan =
      core::lower_values(base(), values, cgroupfs().layout(), core::WeightFormula::kLinear, "test");
  plan.insert(plan.begin(), core::EnsureCgroup{base()});
  execute(plan);
  const CgroupView cgroup{cgroupfs(), base()};
  EXPECT_TRUE(cgroup.exists());
  EXPECT_THAT(differences(cgroup, values, core::WeightFormula::kLinear, kPage), IsEmpty());
  EXPECT_EQ(cgroup.cpu_quota(), Micros{10'000});
  EXPECT_EQ(cgroup.cpu_period(), Micros{100'000});
  EXPECT_EQ(cgroup.memory_limit(), Bytes{1 << 30});
}

TEST_F(LiveView, HasNoLimitsOfAFreshOrAbsentCgroup) {
  execute({core::EnsureCgroup{base()}});
  for (const std::string& path : {base(), below("absent"), std::string{}}) {
    const CgroupView cgroup{cgroupfs(), path};
    EXPECT_EQ(cgroup.exists(), path == base()) << path;
    EXPECT_EQ(cgroup.memory_usage().has_value(), path == base()) << path;
    EXPECT_EQ(cgroup.cpu_quota(), std::nullopt) << path;
    EXPECT_EQ(cgroup.memory_limit(), std::nullopt) << path;
    EXPECT_EQ(cgroup.pids_limit(), std::nullopt) << path;
  }
  const CgroupView absent{cgroupfs(), below("absent")};
  EXPECT_EQ(absent.pids(), std::nullopt);
  EXPECT_EQ(absent.shares(CpuShares{1024}, core::WeightFormula::kLinear), std::nullopt);
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

TEST_F(ViewV1, TellsNoLimitFromWhatIsNotKnown) {
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

/// What is found for an I/O weight on a machine of this version whose cgroup has these files.
std::vector<std::string> io_differences(
    core::CgroupVersion version, std::optional<std::int64_t> weight,
    const std::map<std::string, std::string, std::less<>>& files, const char* attribute = "") {
  FakeTree tree{version};
  tree.layout.io = version;
  tree.make("/pod");
  auto& pod = tree.cgroups.at("/pod");
  for (const auto& [file, content] : files)
    pod.files.insert_or_assign(file, content);
  pod.attributes[core::kIoWeightAttribute] = attribute;
  FakeMachine machine{tree, refuse};
  return differences({machine, "/pod"}, {.io_weight = weight}, core::WeightFormula::kLinear, kPage);
}

// io.weight takes 1 to 10000, BFQ 1 to 1000, and CFQ 10 to 1000 with 500 as its default: systemd
// src/basic/cgroup-util.h, src/core/cgroup.c.
TEST(IoWeightDifferences, NameEachFileWithBothNumbers) {
  using enum core::CgroupVersion;
  EXPECT_THAT(
      io_differences(kV2, 500,
                     {{"io.weight", "default 100\n8:0 400"}, {"io.bfq.weight", "default 50"}}),
      ElementsAre("io.weight is 100, the rule says 500", "io.bfq.weight is 50, the rule says 136"));
  EXPECT_THAT(io_differences(kV1, 10, {{"blkio.weight", "500"}, {"blkio.bfq.weight", "100"}}),
              ElementsAre("blkio.weight is 500, the rule says 50",
                          "blkio.bfq.weight is 100, the rule says 10"));
  // A weight that podqos has left.
  EXPECT_THAT(io_differences(kV2, {}, {{"io.weight", "default 7"}}, "1"),
              ElementsAre("io.weight is 7, the rule says 100"));
}

TEST(IoWeightDifferences, AreNoneWhereTheRuleHoldsOrWithoutFileOrRule) {
  using enum core::CgroupVersion;
  EXPECT_THAT(
      io_differences(kV2, 500,
                     {{"io.weight", "default 500\n8:0 7"}, {"io.bfq.weight", "default 136"}}),
      IsEmpty());
  EXPECT_THAT(io_differences(kV1, 500, {{"blkio.bfq.weight", "136"}}), IsEmpty());
  EXPECT_THAT(io_differences(kV2, 500, {}), IsEmpty());
  EXPECT_THAT(io_differences(kV2, {}, {{"io.weight", "default 7"}}), IsEmpty());
  EXPECT_THAT(io_differences(kV2, {}, {{"io.weight", "default 7"}}, "0"), IsEmpty());
}

/// Without the controller.
TEST_F(ViewV2, ComparesNoIoWeight) {
  (*files_)["io.weight"] = "default 7";
  EXPECT_THAT(differences({.io_weight = 500}), IsEmpty());
}

}  // namespace
}  // namespace podqos::cgroup

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/cgroup_view.h"
#include "common/core/cgroups/layout.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class IoWeightDifferences : public testing::Test {
 protected:
  /// A machine of this version whose cgroup "/pod" has these files for weights.
  void make(core::CgroupVersion version,
            const std::map<std::string, std::string, std::less<>>& files) {
    tree_.emplace(version);
    tree_->layout.io = version;
    tree_->make("/pod");
    for (const auto& [file, content] : files)
      tree_->cgroups.at("/pod").files.insert_or_assign(file, content);
  }
  /// What is found for `weight`; a change of the machine fails the test.
  std::vector<std::string> compare(std::optional<std::int64_t> weight) {
    FakeMachine machine{*tree_, [](const std::string& change) -> Status {
                          ADD_FAILURE() << change;
                          return {};
                        }};
    return differences({machine, "/pod"}, {.io_weight = weight}, core::WeightFormula::kLinear,
                       Bytes{4096});
  }
  std::optional<FakeTree> tree_;
};

// io.weight takes 1 to 10000, BFQ 1 to 1000, and CFQ 10 to 1000 with 500 as its default: systemd
// src/basic/cgroup-util.h, src/core/cgroup.c.
TEST_F(IoWeightDifferences, NamesEachFileWithBothNumbers) {
  make(core::CgroupVersion::kV2,
       {{"io.weight", "default 100\n8:0 400"}, {"io.bfq.weight", "default 50"}});
  EXPECT_THAT(compare(500), ElementsAre("io.weight is 100, the rule says 500",
                                        "io.bfq.weight is 50, the rule says 136"));
  make(core::CgroupVersion::kV1, {{"blkio.weight", "500"}, {"blkio.bfq.weight", "100"}});
  EXPECT_THAT(compare(10), ElementsAre("blkio.weight is 500, the rule says 50",
                                       "blkio.bfq.weight is 100, the rule says 10"));
}

TEST_F(IoWeightDifferences, FindsNoneWhereTheRuleHolds) {
  make(core::CgroupVersion::kV2,
       {{"io.weight", "default 500\n8:0 7"}, {"io.bfq.weight", "default 136"}});
  EXPECT_THAT(compare(500), IsEmpty());
  make(core::CgroupVersion::kV1, {{"blkio.bfq.weight", "136"}});
  EXPECT_THAT(compare(500), IsEmpty());
}

TEST_F(IoWeightDifferences, ComparesNothingWithoutFileOrRule) {
  make(core::CgroupVersion::kV2, {});
  EXPECT_THAT(compare(500), IsEmpty());
  make(core::CgroupVersion::kV2, {{"io.weight", "default 7"}});
  EXPECT_THAT(compare({}), IsEmpty());
  tree_->layout.io.reset();
  EXPECT_THAT(compare(500), IsEmpty());
}

TEST_F(IoWeightDifferences, WantsTheDefaultWhereAWeightOfPodqosIsLeft) {
  make(core::CgroupVersion::kV2, {{"io.weight", "default 7"}});
  auto& attributes = tree_->cgroups.at("/pod").attributes;
  attributes[core::kIoWeightAttribute] = "1";
  EXPECT_THAT(compare({}), ElementsAre("io.weight is 7, the rule says 100"));
  attributes[core::kIoWeightAttribute] = "0";
  EXPECT_THAT(compare({}), IsEmpty());
}

}  // namespace
}  // namespace podqos::cgroup

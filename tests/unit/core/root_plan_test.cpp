#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/root.h"

namespace podqos::core {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;
using ::testing::WithParamInterface;

struct ParentsCase {
  const char* name;
  const char* path;
  std::vector<std::string> want;
};

class WithParents : public TestWithParam<ParentsCase> {};

TEST_P(WithParents, NamesACgroupAndThoseAboveIt) {
  EXPECT_EQ(with_parents(GetParam().path), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(All, WithParents,
                         ValuesIn(std::vector<ParentsCase>{
                             {"Deep", "/a/b/c", {"/a/b/c", "/a/b", "/a"}},
                             {"Outermost", "/a", {"/a"}},
                             {"RootOfTheHierarchy", "/", {}},
                             {"Empty", "", {}},
                         }),
                         [](const TestParamInfo<ParentsCase>& row) { return row.param.name; });

/// A mark on a cgroup that podqos has made.
Step mark_on(const char* path) {
  return SetAttribute{.path = path,
                      .name = "trusted.podqos.made",
                      .value = "1",
                      .on_refusal = OnRefusal::kIgnoreIfUnsupported};
}

TreeRecord tree(const char* kubepods, const char* top) {
  return {.kubepods = kubepods, .top = top};
}

class PlanRoot : public ::testing::Test {
 protected:
  Plan plan(const std::string& kubepods) {
    std::vector<std::string> missing = with_parents(kubepods);
    std::erase_if(missing, [this](const std::string& path) { return existing_.contains(path); });
    return plan_root(tiers_, kubepods, missing);
  }

  TiersRecord tiers_;
  std::set<std::string> existing_;
};

TEST_F(PlanRoot, SavesTheRootThenMakesAndMarksAllOfIt) {
  EXPECT_THAT(plan("/podqos/kubepods"),
              ElementsAre(Step{EnsureCgroup{"/podqos/kubepods/burstable"}},
                          Step{EnsureCgroup{"/podqos/kubepods/besteffort"}},
                          mark_on("/podqos/kubepods"), mark_on("/podqos")));
  EXPECT_THAT(tiers_.trees, ElementsAre(tree("/podqos/kubepods", "/podqos")));
}

TEST_F(PlanRoot, MarksNothingThatWasThereBefore) {
  existing_ = {"/a"};
  EXPECT_THAT(plan("/a/b/kubepods"), ElementsAre(Step{EnsureCgroup{"/a/b/kubepods/burstable"}},
                                                 Step{EnsureCgroup{"/a/b/kubepods/besteffort"}},
                                                 mark_on("/a/b/kubepods"), mark_on("/a/b")));
  EXPECT_THAT(tiers_.trees, ElementsAre(tree("/a/b/kubepods", "/a/b")));
}

TEST_F(PlanRoot, TheRootItselfIsMarkedWhetherOrNotItExists) {
  existing_ = {"/a/b/kubepods", "/a/b", "/a"};
  EXPECT_THAT(plan("/a/b/kubepods"), ElementsAre(Step{EnsureCgroup{"/a/b/kubepods/burstable"}},
                                                 Step{EnsureCgroup{"/a/b/kubepods/besteffort"}},
                                                 mark_on("/a/b/kubepods")));
  EXPECT_THAT(tiers_.trees, ElementsAre(tree("/a/b/kubepods", "")));
}

TEST_F(PlanRoot, MarksAgainWhatAnInterruptedTransactionHasMade) {
  existing_ = {"/podqos/kubepods", "/podqos"};
  tiers_.trees = {tree("/podqos/kubepods", "/podqos")};
  EXPECT_THAT(plan("/podqos/kubepods"),
              ElementsAre(Step{EnsureCgroup{"/podqos/kubepods/burstable"}},
                          Step{EnsureCgroup{"/podqos/kubepods/besteffort"}},
                          mark_on("/podqos/kubepods"), mark_on("/podqos")));
  EXPECT_THAT(tiers_.trees, ElementsAre(tree("/podqos/kubepods", "/podqos")));
}

TEST_F(PlanRoot, WhatWasMadeForAnotherRootIsNotMarkedForThisOne) {
  existing_ = {"/a/b", "/a"};
  tiers_.trees = {tree("/a/b/c/kubepods", "/a/b")};
  EXPECT_THAT(plan("/a/b/kubepods"), ElementsAre(Step{EnsureCgroup{"/a/b/kubepods/burstable"}},
                                                 Step{EnsureCgroup{"/a/b/kubepods/besteffort"}},
                                                 mark_on("/a/b/kubepods")));
  EXPECT_THAT(tiers_.trees,
              ElementsAre(tree("/a/b/c/kubepods", "/a/b"), tree("/a/b/kubepods", "")));
}

TEST_F(PlanRoot, TheTreeOfAnotherDriverStaysAsItIs) {
  TreeRecord slices = tree("/podqos.slice/podqos-kubepods.slice", "/podqos.slice");
  slices.sums.burstable.pods = 1;
  tiers_.trees = {slices};
  static_cast<void>(plan("/podqos/kubepods"));
  EXPECT_THAT(tiers_.trees, ElementsAre(slices, tree("/podqos/kubepods", "/podqos")));
}

TEST_F(PlanRoot, SlicesAreMadeFromTheOutermostInwards) {
  const auto made = plan("/podqos.slice/podqos-kubepods.slice");
  std::vector<std::string> units;
  std::vector<std::string> directories;
  for (const Step& step : made) {
    if (const auto* start = std::get_if<StartUnit>(&step)) units.push_back(start->path);
    if (const auto* ensure = std::get_if<EnsureCgroup>(&step)) directories.push_back(ensure->path);
  }
  EXPECT_THAT(units,
              ElementsAre("/podqos.slice", "/podqos.slice/podqos-kubepods.slice",
                          "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice",
                          "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice"));
  EXPECT_EQ(directories, units);
  EXPECT_EQ(made.back(), mark_on("/podqos.slice"));
}

struct RootUseCase {
  const char* name;
  const char* kubepods;
  TierSums sums;
  std::vector<RetainedEntry> retained;
  bool in_use;
};

class IsRootInUse : public PlanRoot, public WithParamInterface<RootUseCase> {};

TEST_P(IsRootInUse, ByPodsOfPodqosOnly) {
  tiers_.trees = {tree(GetParam().kubepods, "/before")};
  tiers_.trees[0].sums = GetParam().sums;
  tiers_.retained = GetParam().retained;
  EXPECT_EQ(is_root_in_use(tiers_, "/podqos/kubepods"), GetParam().in_use);
}

const TierSums kOneOwnPod{
    .guaranteed = {}, .burstable = {}, .besteffort = {.pods = 1, .cpu = {}, .memory = {}}};
const TierSums kOneAdoptedPod{.guaranteed = {},
                              .burstable = {},
                              .besteffort = {},
                              .adopted = {.pods = 1, .cpu = {}, .memory = {}}};
const RetainedEntry kRetainedHere{.uid = "42", .until = {}, .cgroup = "/podqos/kubepods/pod42"};
const RetainedEntry kRetainedElsewhere{.uid = "42", .until = {}, .cgroup = "/kubepods/pod42"};

INSTANTIATE_TEST_SUITE_P(
    All, IsRootInUse,
    ValuesIn(std::vector<RootUseCase>{
        {"APod", "/podqos/kubepods", kOneOwnPod, {}, true},
        {"APodBelowAnotherRoot", "/kubepods", kOneOwnPod, {}, false},
        {"ARetainedPod", "/podqos/kubepods", {}, {kRetainedHere}, true},
        {"ARetainedPodBelowAnotherRoot", "/podqos/kubepods", {}, {kRetainedElsewhere}, false},
        {"AnAdoptedPod", "/podqos/kubepods", kOneAdoptedPod, {}, false},
        {"NoPod", "/podqos/kubepods", {}, {}, false},
    }),
    [](const TestParamInfo<RootUseCase>& row) { return row.param.name; });

TEST(ForgetRoot, KeepsWhatIsKnownOfPodsAndOtherTrees) {
  TiersRecord tiers;
  tiers.sums = kOneAdoptedPod;
  tiers.weight_formula = WeightFormula::kLog;
  tiers.trees = {tree("/podqos.slice/podqos-kubepods.slice", "/podqos.slice")};
  const TiersRecord without_root = tiers;
  tiers.trees.push_back(tree("/podqos/kubepods", "/podqos"));
  forget_root(tiers, "/podqos/kubepods");
  EXPECT_EQ(tiers, without_root);
}

}  // namespace
}  // namespace podqos::core

#include "common/core/events/choose_root.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/counting.h"

namespace podqos::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::TestParamInfo;
using ::testing::ValuesIn;

constexpr const char* kDefaultRoot = "/podqos/kubepods";
constexpr const char* kDefaultSlice = "/podqos.slice/podqos-kubepods.slice";

struct InUse {
  std::string kubepods;
  int pods = 0;
};

void add_tree(NodeState& state, const InUse& in_use) {
  state.trees.push_back({.kubepods = in_use.kubepods});
  for (int pod = 0; pod < in_use.pods; ++pod)
    state.rows.push_back(
        {.uid = std::string_view{std::to_string(pod)}, .tree = tree_key(in_use.kubepods)});
}

NodeState tiers_of(const InUse& in_use) {
  NodeState state;
  if (!in_use.kubepods.empty()) add_tree(state, in_use);
  return state;
}

TEST(ChooseRoot, KeepsTheRootInUseWhileItHasPods) {
  struct Choice {
    const char* name;
    InUse in_use;
    Driver driver;
    const char* chosen;
  };
  for (const auto& row : std::vector<Choice>{
           {"FirstPod", {}, Driver::kCgroupfs, kDefaultRoot},
           {"FirstPodWithSystemd", {}, Driver::kSystemd, kDefaultSlice},
           {"NextPod", {kDefaultRoot, 1}, Driver::kCgroupfs, kDefaultRoot},
           {"WithoutPods", {kDefaultRoot}, Driver::kCgroupfs, kDefaultRoot},
           {"OfAnEarlierConfiguration",
            {"/other/kubepods", 1},
            Driver::kCgroupfs,
            "/other/kubepods"},
           {"NoLongerConfigured", {"/other/kubepods"}, Driver::kCgroupfs, kDefaultRoot},
           {"OtherDriver", {kDefaultRoot, 1}, Driver::kSystemd, kDefaultSlice},
           {"OtherDriverTheOtherWayRound", {kDefaultSlice, 1}, Driver::kCgroupfs, kDefaultRoot},
       }) {
    SCOPED_TRACE(row.name);
    const auto chosen = choose_root(tiers_of(row.in_use), "/podqos", row.driver);
    ASSERT_TRUE(chosen) << chosen.error().to_string();
    EXPECT_EQ(*chosen, row.chosen);
  }
}

// A stock Debian 13 has Podman and Docker with systemd, and containerd with cgroupfs.
TEST(ChooseRoot, PodsOfEachDriverHaveATreeOfTheirOwn) {
  NodeState tiers;
  add_tree(tiers, {kDefaultRoot, 1});
  add_tree(tiers, {kDefaultSlice, 2});
  for (const auto& [driver, root] :
       {std::pair{Driver::kCgroupfs, kDefaultRoot}, std::pair{Driver::kSystemd, kDefaultSlice}}) {
    const auto chosen = choose_root(tiers, "/podqos", driver);
    ASSERT_TRUE(chosen) << chosen.error().to_string();
    EXPECT_EQ(*chosen, root);
  }
}

// Names of units: systemd src/basic/unit-name.h, VALID_CHARS and UNIT_NAME_MAX. The longest slice
// is of a BestEffort pod: -besteffort-pod, 36 characters of its uid, .slice.
TEST(ChooseRoot, NamesWhatCannotBeASlice) {
  const std::string longest = "/" + std::string(255 - 6 - 36 - 15 - 9, 'a');  // -kubepods
  for (const std::string& root : {std::string{"/"}, std::string{"/a-b/c.d:e@f"}, longest})
    EXPECT_TRUE(choose_root({}, root, Driver::kSystemd)) << root;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/mine.slice",
       "cgroupRoot \"/mine.slice\": with the systemd driver, podqos makes the slice "
       "of a name: write \"/mine\""},
      {"/mine.slice/x", "write \"/mine/x\""},
      {"/a b",
       "cgroupRoot \"/a b\": with the systemd driver, a name consists of letters, digits and "
       "\":-.@\""},
      {longest + "b", "with the systemd driver, it has at most 189 bytes"}};
  for (const auto& [root, message] : cases) {
    const auto chosen = choose_root({}, root, Driver::kSystemd);
    ASSERT_FALSE(chosen) << root;
    EXPECT_EQ(chosen.error().code, ErrorCode::kInvalidArgument) << root;
    EXPECT_THAT(chosen.error().message, HasSubstr(message));
    EXPECT_TRUE(choose_root({}, root, Driver::kCgroupfs)) << root;
  }
}

TEST(CheckRoot, AllowsWhatPodqosHasMadeOrWillMakeAndWhatAnEngineMadeOnItsWayToAPod) {
  for (const auto origin : {CgroupOrigin::kNone, CgroupOrigin::kPodqos, CgroupOrigin::kEngine})
    EXPECT_TRUE(check_root(kDefaultRoot, origin));
}

TEST(CheckRoot, RefusesACgroupOfAnotherProgram) {
  const auto checked = check_root(kDefaultRoot, CgroupOrigin::kOther);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kConflict);
  EXPECT_EQ(checked.error().message,
            "cgroup /podqos/kubepods exists but was not created by podqos: set cgroupRoot to a "
            "cgroup reserved for podqos (default: /podqos), or remove /podqos/kubepods (rmdir) if "
            "nothing uses it");
}

TEST(WithParents, NamesACgroupAndThoseAboveIt) {
  struct ParentsCase {
    const char* name;
    const char* path;
    std::vector<std::string> want;
  };
  for (const auto& row : std::vector<ParentsCase>{
           {"Deep", "/a/b/c", {"/a/b/c", "/a/b", "/a"}},
           {"Outermost", "/a", {"/a"}},
           {"RootOfTheHierarchy", "/", {}},
           {"Empty", "", {}},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(with_parents(row.path), row.want);
  }
}

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

  NodeState tiers_;
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

TEST(ForgetRoot, KeepsWhatIsKnownOfPodsAndOtherTrees) {
  NodeState tiers;
  tiers.sums.kubelets.pods = 1;
  tiers.weight_formula = WeightFormula::kLog;
  tiers.trees = {tree("/podqos.slice/podqos-kubepods.slice", "/podqos.slice")};
  const NodeState without_root = tiers;
  tiers.trees.push_back(tree("/podqos/kubepods", "/podqos"));
  forget_root(tiers, "/podqos/kubepods");
  EXPECT_EQ(tiers, without_root);
}

}  // namespace
}  // namespace podqos::core

#include "common/core/root_choice.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr const char* kDefaultRoot = "/podqos/kubepods";
constexpr const char* kDefaultSlice = "/podqos.slice/podqos-kubepods.slice";

struct InUse {
  std::string kubepods;
  int pods = 0;
  bool yielded = false;
};

TreeRecord tree_of(const InUse& in_use) {
  TreeRecord tree{.kubepods = in_use.kubepods, .yielded = in_use.yielded};
  tree.sums.burstable.pods = in_use.pods;
  return tree;
}

TiersRecord tiers_of(const InUse& in_use) {
  TiersRecord tiers;
  if (!in_use.kubepods.empty()) tiers.trees.push_back(tree_of(in_use));
  return tiers;
}

struct Choice {
  const char* name;
  InUse in_use;
  Driver driver;
  RootChoice chosen;
};

class ChooseRoot : public TestWithParam<Choice> {};

TEST_P(ChooseRoot, KeepsTheRootInUseWhileItHasPods) {
  const auto chosen = choose_root(tiers_of(GetParam().in_use), "/podqos", GetParam().driver);
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(*chosen, GetParam().chosen);
}

INSTANTIATE_TEST_SUITE_P(
    All, ChooseRoot,
    ValuesIn(std::vector<Choice>{
        {"FirstPod", {}, Driver::kCgroupfs, {RootStep::kCheck, kDefaultRoot}},
        {"FirstPodWithSystemd", {}, Driver::kSystemd, {RootStep::kCheck, kDefaultSlice}},
        {"NextPod", {kDefaultRoot, 1}, Driver::kCgroupfs, {RootStep::kUse, kDefaultRoot}},
        {"WithoutPods", {kDefaultRoot}, Driver::kCgroupfs, {RootStep::kUse, kDefaultRoot}},
        {"OfAnEarlierConfiguration",
         {"/other/kubepods", 1},
         Driver::kCgroupfs,
         {RootStep::kUse, "/other/kubepods"}},
        {"NoLongerConfigured",
         {"/other/kubepods"},
         Driver::kCgroupfs,
         {RootStep::kCheck, kDefaultRoot}},
        {"OtherDriver", {kDefaultRoot, 1}, Driver::kSystemd, {RootStep::kCheck, kDefaultSlice}},
        {"OtherDriverTheOtherWayRound",
         {kDefaultSlice, 1},
         Driver::kCgroupfs,
         {RootStep::kCheck, kDefaultRoot}},
        {"TakenOver", {"/kubepods", 0, true}, Driver::kCgroupfs, {RootStep::kCheck, kDefaultRoot}},
    }),
    [](const TestParamInfo<Choice>& row) { return row.param.name; });

TEST(ChooseRoot, ARetainedPodKeepsTheRootToo) {
  TiersRecord tiers = tiers_of({.kubepods = "/other/kubepods"});
  tiers.retained.push_back(
      {.uid = "42", .until = UnixSeconds{9}, .cgroup = "/other/kubepods/pod42"});
  const auto chosen = choose_root(tiers, "/podqos", Driver::kCgroupfs);
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->root, "/other/kubepods");
}

// A stock Debian 13 has Podman and Docker with systemd, and containerd with cgroupfs.
TEST(ChooseRoot, PodsOfEachDriverHaveATreeOfTheirOwn) {
  TiersRecord tiers;
  tiers.trees = {tree_of({kDefaultRoot, 1}), tree_of({kDefaultSlice, 2})};
  for (const auto& [driver, root] :
       {std::pair{Driver::kCgroupfs, kDefaultRoot}, std::pair{Driver::kSystemd, kDefaultSlice}}) {
    const auto chosen = choose_root(tiers, "/podqos", driver);
    ASSERT_TRUE(chosen) << chosen.error().to_string();
    EXPECT_EQ(*chosen, (RootChoice{RootStep::kUse, root}));
  }
}

TEST(ChooseRoot, APodIsNotPlacedBesidePodsThatAKubeletWillRemove) {
  const auto chosen = choose_root(tiers_of({.kubepods = "/kubepods", .pods = 1, .yielded = true}),
                                  "/podqos", Driver::kCgroupfs);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::kConflict);
  EXPECT_THAT(chosen.error().message, HasSubstr("a kubelet has taken over cgroup /kubepods"));
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

TEST(CheckRoot, AllowsWhatPodqosHasMadeOrWillMake) {
  EXPECT_TRUE(check_root(kDefaultRoot, {.exists = false}));
  EXPECT_TRUE(check_root(kDefaultRoot, {.exists = true, .marked = true}));
}

TEST(CheckRoot, AllowsWhatAnEngineHasMadeOnItsWayToAPod) {
  EXPECT_TRUE(check_root(kDefaultRoot, {.exists = true, .made_by_engine = true}));
}

TEST(CheckRoot, RefusesACgroupOfAnotherProgram) {
  const auto checked = check_root(kDefaultRoot, {.exists = true});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kConflict);
  EXPECT_THAT(checked.error().message, HasSubstr("was not created by podqos"));
}

TEST(CheckRoot, RefusesTheRootOfAKubelet) {
  const auto checked =
      check_root("/kubepods", {.exists = false, .kubelet = "/var/lib/kubelet/config.yaml"});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kConflict);
  EXPECT_THAT(checked.error().message, HasSubstr("/var/lib/kubelet/config.yaml"));
}

TEST(IsOwnRoot, TheMarkTellsUnlessAKubeletHasCome) {
  EXPECT_TRUE(is_own_root({.exists = true, .marked = true}));
  EXPECT_FALSE(is_own_root({.exists = true, .marked = true, .kubelet = "process 7 (kubelet)"}));
  EXPECT_FALSE(is_own_root({.exists = true, .made_by_engine = true}));
  EXPECT_FALSE(is_own_root({}));
}

TEST(IsTakenOver, ByAKubeletsPodInTheRootInUse) {
  const TreeRecord shared = tree_of({.kubepods = "/kubepods"});
  EXPECT_TRUE(is_taken_over(shared, "/kubepods/burstable/pod42"));
  EXPECT_FALSE(is_taken_over(shared, "/kubepods.slice/kubepods-pod42.slice"));
  EXPECT_FALSE(is_taken_over(tree_of({.kubepods = kDefaultRoot}), "/kubepods/burstable/pod42"));
}

}  // namespace
}  // namespace podqos::core

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/root.h"

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
};

TreeRecord tree_of(const InUse& in_use) {
  TreeRecord tree{.kubepods = in_use.kubepods};
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
  const char* chosen;
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
        {"FirstPod", {}, Driver::kCgroupfs, kDefaultRoot},
        {"FirstPodWithSystemd", {}, Driver::kSystemd, kDefaultSlice},
        {"NextPod", {kDefaultRoot, 1}, Driver::kCgroupfs, kDefaultRoot},
        {"WithoutPods", {kDefaultRoot}, Driver::kCgroupfs, kDefaultRoot},
        {"OfAnEarlierConfiguration", {"/other/kubepods", 1}, Driver::kCgroupfs, "/other/kubepods"},
        {"NoLongerConfigured", {"/other/kubepods"}, Driver::kCgroupfs, kDefaultRoot},
        {"OtherDriver", {kDefaultRoot, 1}, Driver::kSystemd, kDefaultSlice},
        {"OtherDriverTheOtherWayRound", {kDefaultSlice, 1}, Driver::kCgroupfs, kDefaultRoot},
    }),
    [](const TestParamInfo<Choice>& row) { return row.param.name; });

TEST(ChooseRoot, ARetainedPodKeepsTheRootToo) {
  TiersRecord tiers = tiers_of({.kubepods = "/other/kubepods"});
  tiers.retained.push_back(
      {.uid = "42", .until = BootSeconds{9}, .cgroup = "/other/kubepods/pod42"});
  const auto chosen = choose_root(tiers, "/podqos", Driver::kCgroupfs);
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(*chosen, "/other/kubepods");
}

// A stock Debian 13 has Podman and Docker with systemd, and containerd with cgroupfs.
TEST(ChooseRoot, PodsOfEachDriverHaveATreeOfTheirOwn) {
  TiersRecord tiers;
  tiers.trees = {tree_of({kDefaultRoot, 1}), tree_of({kDefaultSlice, 2})};
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

}  // namespace
}  // namespace podqos::core

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/placement.h"
#include "tests/unit/core/facts.h"

namespace podqos::core {
namespace {

using facts::container_facts;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr const char* kPodPath = "/kubepods/burstable/pod42";

struct Leaf {
  const char* name;
  const char* id;
  std::optional<std::string> cgroups_path;
  const char* want;
};
class ContainerLeaf : public TestWithParam<Leaf> {};

TEST_P(ContainerLeaf, KeepsTheEnginesNameWhereItHoldsTheId) {
  ContainerFacts facts = container_facts(GetParam().id);
  facts.cgroups_path = GetParam().cgroups_path;
  EXPECT_EQ(container_leaf(facts, kPodPath, {}), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerLeaf,
                         ValuesIn<Leaf>({
                             {"NoPath", "c1", std::nullopt, "c1"},
                             {"Podmans", "c1", "/libpod_parent/p/libpod-c1", "libpod-c1"},
                             {"PlainId", "c1", "/kubepods/pod9/c1", "c1"},
                             {"ARelativePath", "c1", "x-c1", "x-c1"},
                             {"AnotherName", "c1", "/user/shell", "c1"},
                             {"TheIdFurtherUp", "c1", "/c1/payload", "c1"},
                             {"ASlashAtTheEnd", "c1", "/c1/", "c1"},
                         }),
                         [](const TestParamInfo<Leaf>& row) {
                           return std::string{row.param.name};
                         });

struct BadId {
  const char* name;
  std::string id;
};
class ContainerLeafBadId : public TestWithParam<BadId> {};

TEST_P(ContainerLeafBadId, IsRefused) {
  const auto leaf = container_leaf(container_facts(GetParam().id), kPodPath, {});
  ASSERT_FALSE(leaf);
  EXPECT_EQ(leaf.error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerLeafBadId,
                         ValuesIn<BadId>({
                             {"Empty", ""},
                             {"Up", ".."},
                             {"ASlash", "a/b"},
                             {"ANewline", "a\nb"},
                             {"ANul", std::string{"a\0b", 3}},
                             {"TooLong", std::string(256, 'a')},
                         }),
                         [](const TestParamInfo<BadId>& row) {
                           return std::string{row.param.name};
                         });

std::vector<ContainerRecord> holding(const char* id, const char* bundle, const char* cgroup) {
  std::vector<ContainerRecord> known(1);
  known[0].id = id;
  known[0].bundle = bundle;
  known[0].cgroup = cgroup;
  return known;
}

TEST(ContainerLeafUnique, TellsOneIdUnderTwoRuntimesApart) {
  const std::vector<ContainerRecord> known = holding("c1", "/a", "/kubepods/burstable/pod42/c1");
  const auto leaf = container_leaf(container_facts("c1", "/b"), kPodPath, known);
  ASSERT_TRUE(leaf);
  EXPECT_NE(*leaf, "c1");
  EXPECT_TRUE(leaf->starts_with("c1-"));
  EXPECT_EQ(leaf->size(), std::string{"c1-"}.size() + 16);
  EXPECT_EQ(container_leaf(container_facts("c1", "/b"), kPodPath, known), leaf);
  EXPECT_NE(container_leaf(container_facts("c1", "/d"), kPodPath, known), leaf);
}

TEST(ContainerLeafUnique, LetsARestartedContainerKeepItsName) {
  EXPECT_EQ(container_leaf(container_facts("c1", "/a"), kPodPath,
                           holding("c1", "/a", "/kubepods/burstable/pod42/c1")),
            "c1");
}

TEST(ContainerLeafUnique, TellsTwoIdsWithOneLeafApart) {
  ContainerFacts facts = container_facts("1", "/b");
  facts.cgroups_path = "/x/c1";
  EXPECT_NE(container_leaf(facts, kPodPath, holding("c1", "/a", "/kubepods/burstable/pod42/c1")),
            "c1");
}

TEST(ContainerLeafUnique, DoesNotMindTheSameNameInAnotherCgroup) {
  EXPECT_EQ(container_leaf(container_facts("c1", "/b"), kPodPath,
                           holding("c1", "/a", "/system.slice/c1")),
            "c1");
}

TEST(ContainerLeafUnique, StaysAFileName) {
  const std::string id(250, 'a');
  const std::vector<ContainerRecord> known =
      holding(id.c_str(), "/a", ("/kubepods/burstable/pod42/" + id).c_str());
  const auto leaf = container_leaf(container_facts(id, "/b"), kPodPath, known);
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->size(), 128U + 1 + 16);
}

TEST(ContainerLeafUnique, TellsLongIdsUnderTwoRuntimesApart) {
  const std::string common(200, 'a');
  ContainerFacts one = container_facts(common + "1");
  ContainerFacts two = container_facts(common + "2");
  one.cgroups_path = two.cgroups_path = "/x/" + common + "12";
  const std::vector<ContainerRecord> known =
      holding("first", "/a", ("/kubepods/burstable/pod42/" + common + "12").c_str());
  const auto leaf = container_leaf(one, kPodPath, known);
  ASSERT_TRUE(leaf);
  EXPECT_TRUE(leaf->starts_with(std::string(128, 'a') + "-"));
  // Only the first path holds its id.
  EXPECT_EQ(container_leaf(two, kPodPath, known), common + "2");
}

TEST(ContainerLeafUnique, RefusesANameThatAnotherContainerHasForeseen) {
  std::vector<ContainerRecord> known = holding("c1", "/a", "/kubepods/burstable/pod42/c1");
  const auto leaf = container_leaf(container_facts("c1", "/b"), kPodPath, known);
  ASSERT_TRUE(leaf);
  ContainerRecord& foreseen = known.emplace_back();
  foreseen.id = *leaf;
  foreseen.bundle = "/evil";
  foreseen.cgroup = "/kubepods/burstable/pod42/" + *leaf;
  const auto refused = container_leaf(container_facts("c1", "/b"), kPodPath, known);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace podqos::core

#include "common/core/pods/placement.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/core/facts.h"

namespace podqos::core {
namespace {

using facts::container_facts;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr const char* kPodPath = "/kubepods/burstable/pod42";

TEST(ContainerLeaf, KeepsTheEnginesNameWhereItHoldsTheId) {
  struct Leaf {
    const char* name;
    const char* id;
    std::optional<std::string> cgroups_path;
    const char* want;
  };
  for (const auto& row : std::vector<Leaf>{
           {"NoPath", "c1", std::nullopt, "c1"},
           {"Podmans", "c1", "/libpod_parent/p/libpod-c1", "libpod-c1"},
           {"PlainId", "c1", "/kubepods/pod9/c1", "c1"},
           {"ARelativePath", "c1", "x-c1", "x-c1"},
           {"AnotherName", "c1", "/user/shell", "c1"},
           {"TheIdFurtherUp", "c1", "/c1/payload", "c1"},
           {"ASlashAtTheEnd", "c1", "/c1/", "c1"},
       }) {
    SCOPED_TRACE(row.name);
    ContainerFacts facts = container_facts(row.id);
    facts.cgroups_path = row.cgroups_path;
    EXPECT_EQ(container_leaf(facts, kPodPath, {}), row.want);
  }
}

TEST(ContainerLeafBadId, IsRefused) {
  struct BadId {
    const char* name;
    std::string id;
  };
  for (const auto& row : std::vector<BadId>{
           {"Empty", ""},
           {"Up", ".."},
           {"ASlash", "a/b"},
           {"ANewline", "a\nb"},
           {"ANul", std::string{"a\0b", 3}},
           {"TooLong", std::string(256, 'a')},
       }) {
    SCOPED_TRACE(row.name);
    const auto leaf = container_leaf(container_facts(row.id), kPodPath, {});
    ASSERT_FALSE(leaf);
    EXPECT_EQ(leaf.error().code, ErrorCode::kInvalidArgument);
  }
}

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

struct Place {
  std::string name;
  std::optional<std::string> cgroups_path;
  Driver driver;
  bool is_crios;  ///< io.container.manager: cri-o
  bool by_default;
  bool where_wanted;
};

/// internal/config/cgmgr/{cgroupfs,systemd}_linux.go of CRI-O 1.36: ContainerCgroupPath and
/// SandboxCgroupPath without a parent, and with one; internal/cri/server of containerd 1.7 and 2.1.
const std::vector<Place>& places() {
  constexpr auto kFiles = Driver::kCgroupfs;
  constexpr auto kSlices = Driver::kSystemd;
  static const std::vector<Place> kAll = {
      {"CrioContainer", "/crio/crio-c1", kFiles, true, true, true},
      {"CrioSandbox", "crio-c1", kFiles, true, true, true},
      {"CrioContainerOfSystemd", "system.slice:crio:c1", kSlices, true, true, true},
      {"CrioSandboxOfSystemd", std::nullopt, kSlices, true, true, true},
      {"CrioSandboxOfSystemdEmpty", "", kSlices, true, true, true},
      {"CrioThroughNri", "/crio/crio-c1", kFiles, false, true, true},
      {"CrioBelowAParent", "/podqos/kubepods/podx/crio-c1", kFiles, true, false, false},
      {"CrioBelowASlice", "kubepods-podx.slice:crio:c1", kSlices, true, false, false},
      {"CrioAnotherContainersPath", "/crio/crio-c2", kFiles, true, false, false},
      {"Containerd", "/k8s.io/c1", kFiles, false, false, true},
      // runc --systemd-cgroup refuses that path.
      {"ContainerdOfSystemd", "/k8s.io/c1", kSlices, false, false, false},
      {"ContainerdBelowAParent", "/kubepods/podx/c1", kFiles, false, false, false},
      {"Podman", "/libpod_parent/libpod-c1", kFiles, false, false, false},
      {"Runc", std::nullopt, kFiles, false, false, false},
  };
  return kAll;
}

class StaysWithoutParent : public testing::TestWithParam<Place> {
 protected:
  static bool stays(std::optional<WithoutParent> setting) {
    const Place& place = GetParam();
    ContainerFacts facts;
    facts.id = "c1";
    facts.cgroups_path = place.cgroups_path;
    if (place.is_crios) facts.annotations.emplace("io.container.manager", "cri-o");
    Settings settings;
    settings.without_parent = setting;
    return stays_without_parent(facts, place.driver, settings);
  }
};

TEST_P(StaysWithoutParent, ByDefaultUnderCrio) {
  EXPECT_EQ(stays(std::nullopt), GetParam().by_default);
}

TEST_P(StaysWithoutParent, WhereThatIsWanted) {
  EXPECT_EQ(stays(WithoutParent::kStay), GetParam().where_wanted);
}

TEST_P(StaysWithoutParent, NowhereWherePlaceIsWanted) {
  EXPECT_FALSE(stays(WithoutParent::kPlace));
}

INSTANTIATE_TEST_SUITE_P(Places, StaysWithoutParent, testing::ValuesIn(places()),
                         [](const auto& row) { return row.param.name; });

TEST(DescribeMissingParent, NamesTheParentThatCrioTakes) {
  // SandboxCgroupPath: with systemd a name that ends in ".slice".
  for (const auto& [pod, parent] :
       {std::pair{"/podqos/kubepods/burstable/pod1", "/podqos/kubepods/burstable/pod1"},
        std::pair{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice",
                  "kubepods-burstable-pod1.slice"}})
    EXPECT_TRUE(describe_missing_parent("c1", "/crio/crio-c1", pod)
                    .contains(std::string{"set the cgroup parent "} + parent + " in the engine"));
}

}  // namespace
}  // namespace podqos::core

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

constexpr const char* kPodPath = "/kubepods/burstable/pod42";

constexpr const char* kPodSlice = "/kubepods.slice/kubepods-pod42.slice";

TEST(ContainerLeaf, KeepsTheEnginesNameWhereItHoldsTheId) {
  struct Leaf {
    const char* name;
    std::optional<std::string> cgroups_path;
    const char* want;
    const char* pod = kPodPath;
  };
  for (const auto& row : std::vector<Leaf>{
           {"NoPath", std::nullopt, "c1"},
           {"Podmans", "/libpod_parent/p/libpod-c1", "libpod-c1"},
           {"PlainId", "/kubepods/pod9/c1", "c1"},
           {"ARelativePath", "x-c1", "x-c1"},
           {"AnotherName", "/user/shell", "c1"},
           {"TheIdFurtherUp", "/c1/payload", "c1"},
           {"ASlashAtTheEnd", "/c1/", "c1"},
           {"PodmansScope", "machine.slice:libpod:c1", "libpod-c1.scope", kPodSlice},
           {"Containerds", "system.slice:cri-containerd:c1", "cri-containerd-c1.scope", kPodSlice},
           {"NoPrefix", "system.slice::c1", "-c1.scope", kPodSlice},
           {"AnotherScope", "system.slice:libpod:web", "podqos-c1-f4ac0ccb5b6f64d0.scope",
            kPodSlice},
           {"Absent", std::nullopt, "podqos-c1-f4ac0ccb5b6f64d0.scope", kPodSlice},
           {"Relative", "a/c1", "podqos-c1-f4ac0ccb5b6f64d0.scope", kPodSlice},
           {"AScope", "/machine.slice/libpod-c1.scope", "libpod-c1.scope", kPodSlice},
           {"ASlice", "machine.slice:x:c1.slice", "podqos-c1-f4ac0ccb5b6f64d0.scope", kPodSlice},
       }) {
    SCOPED_TRACE(row.name);
    ContainerFacts facts = container_facts("c1");
    facts.cgroups_path = row.cgroups_path;
    EXPECT_EQ(container_leaf(facts, row.pod, {}), row.want);
  }
}

/// See CheckCgroupComponent for the others.
TEST(ContainerLeaf, RefusesAnIdThatCannotBeAName) {
  for (const char* id : {"", "..", "a/b"}) {
    const auto leaf = container_leaf(container_facts(id), kPodPath, {});
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

TEST(ContainerLeafUnique, IsSoOnTheMachineAndInThePodForAScope) {
  // runc and crun may both run a c1, in two pods; names of units know no slices.
  EXPECT_NE(container_leaf(container_facts("c1", "/other"), kPodSlice, {}),
            "podqos-c1-f4ac0ccb5b6f64d0.scope");
  ContainerFacts facts = container_facts("c1");
  facts.cgroups_path = "machine.slice:libpod:c1";
  EXPECT_EQ(container_leaf(
                facts, kPodSlice,
                holding("c1", "/other", "/kubepods.slice/kubepods-pod42.slice/libpod-c1.scope")),
            "libpod-c1-f4ac0ccb5b6f64d0.scope");
}

TEST(ContainerLeafUnique, IsNeverTheMonitors) {
  const auto leaf = container_leaf(container_facts("podqos-monitor"), kPodPath, {});
  ASSERT_TRUE(leaf);
  EXPECT_TRUE(leaf->starts_with("podqos-monitor-")) << *leaf;
}

TEST(ContainerLeafUnique, KeepsANameThatNoOtherHasInThePod) {
  const auto leaf = [](const char* bundle, const char* cgroup) {
    return container_leaf(container_facts("c1", bundle), kPodPath, holding("c1", "/a", cgroup));
  };
  EXPECT_EQ(leaf("/a", "/kubepods/burstable/pod42/c1"), "c1") << "it has started again";
  EXPECT_EQ(leaf("/b", "/system.slice/c1"), "c1");
  ContainerFacts facts = container_facts("1", "/b");
  facts.cgroups_path = "/x/c1";
  EXPECT_NE(container_leaf(facts, kPodPath, holding("c1", "/a", "/kubepods/burstable/pod42/c1")),
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

/// internal/config/cgmgr/{cgroupfs,systemd}_linux.go of CRI-O 1.36: ContainerCgroupPath and
/// SandboxCgroupPath without a parent, and with one; internal/cri/server of containerd 1.7 and 2.1.
TEST(StaysWithoutParent, ByDefaultUnderCrioAndWhereThatIsWanted) {
  struct Place {
    const char* name;
    std::optional<std::string> cgroups_path;
    Driver driver;
    bool is_crios;  ///< io.container.manager: cri-o
    bool by_default;
    bool where_wanted;
  };
  constexpr auto kFiles = Driver::kCgroupfs;
  constexpr auto kSlices = Driver::kSystemd;
  for (const auto& place : std::vector<Place>{
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
       }) {
    SCOPED_TRACE(place.name);
    ContainerFacts facts;
    facts.id = "c1";
    facts.cgroups_path = place.cgroups_path;
    if (place.is_crios) facts.annotations.emplace("io.container.manager", "cri-o");
    Settings settings;
    EXPECT_EQ(stays_without_parent(facts, place.driver, settings), place.by_default);
    settings.without_parent = WithoutParent::kStay;
    EXPECT_EQ(stays_without_parent(facts, place.driver, settings), place.where_wanted);
    settings.without_parent = WithoutParent::kPlace;
    EXPECT_FALSE(stays_without_parent(facts, place.driver, settings));
  }
}

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

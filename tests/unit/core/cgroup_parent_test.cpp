#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/placement.h"

namespace podqos::core {
namespace {

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
  constexpr auto kFs = Driver::kCgroupfs;
  constexpr auto kUnits = Driver::kSystemd;
  static const std::vector<Place> kAll = {
      {"CrioContainer", "/crio/crio-c1", kFs, true, true, true},
      {"CrioSandbox", "crio-c1", kFs, true, true, true},
      {"CrioContainerOfSystemd", "system.slice:crio:c1", kUnits, true, true, true},
      {"CrioSandboxOfSystemd", std::nullopt, kUnits, true, true, true},
      {"CrioSandboxOfSystemdEmpty", "", kUnits, true, true, true},
      {"CrioThroughNri", "/crio/crio-c1", kFs, false, true, true},
      {"CrioBelowAParent", "/podqos/kubepods/podx/crio-c1", kFs, true, false, false},
      {"CrioBelowASlice", "kubepods-podx.slice:crio:c1", kUnits, true, false, false},
      {"CrioAnotherContainersPath", "/crio/crio-c2", kFs, true, false, false},
      {"Containerd", "/k8s.io/c1", kFs, false, false, true},
      // runc --systemd-cgroup refuses that path.
      {"ContainerdOfSystemd", "/k8s.io/c1", kUnits, false, false, false},
      {"ContainerdBelowAParent", "/kubepods/podx/c1", kFs, false, false, false},
      {"Podman", "/libpod_parent/libpod-c1", kFs, false, false, false},
      {"Runc", std::nullopt, kFs, false, false, false},
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

TEST(CgroupParentFor, IsWhatCrioTakes) {
  EXPECT_EQ(cgroup_parent_for("/podqos/kubepods/burstable/pod1"),
            "/podqos/kubepods/burstable/pod1");
  // SandboxCgroupPath: with systemd a name that ends in ".slice".
  EXPECT_EQ(cgroup_parent_for("/kubepods.slice/kubepods-burstable.slice/"
                              "kubepods-burstable-pod1.slice"),
            "kubepods-burstable-pod1.slice");
}

}  // namespace
}  // namespace podqos::core

#include "common/codec/oci_schema.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace podqos::codec {
namespace {

struct PathCase {
  ConfigNode node;
  std::string path;
};

TEST(FormatPath, IsThePathOfTheSpecification) {
  using enum ConfigNode;
  const std::vector<PathCase> cases = {
      {kRoot, "config.json"},
      {kOomScoreAdj, "process.oomScoreAdj"},
      {kAnnotation, "annotations[]"},
      {kCreateRuntime, "hooks.createRuntime"},
      {kCgroupsPath, "linux.cgroupsPath"},
      {kCpuShares, "linux.resources.cpu.shares"},
      {kCpuQuota, "linux.resources.cpu.quota"},
      {kCpuPeriod, "linux.resources.cpu.period"},
      {kCpuRealtimeRuntime, "linux.resources.cpu.realtimeRuntime"},
      {kMemoryLimit, "linux.resources.memory.limit"},
      {kMemoryReservation, "linux.resources.memory.reservation"},
      {kPidsLimit, "linux.resources.pids.limit"},
      {kHugepageSize, "linux.resources.hugepageLimits[].pageSize"},
      {kHugepageBytes, "linux.resources.hugepageLimits[].limit"},
      {kUnifiedValue, "linux.resources.unified[]"},
  };
  for (const auto& [node, path] : cases)
    EXPECT_EQ(format_path(node), path);
}

/// process.args is the pod author's, and may be long.
TEST(IsContainerName, GoesByTheParent) {
  EXPECT_TRUE(is_container_name("", "linux"));
  EXPECT_TRUE(is_container_name("linux", "resources"));
  EXPECT_TRUE(is_container_name("Linux", "RESOURCES"));
  EXPECT_TRUE(is_container_name("", "args"));
  EXPECT_FALSE(is_container_name("process", "args"));
  EXPECT_FALSE(is_container_name("linux", "cgroupsPath"));
  EXPECT_FALSE(is_container_name("", "mounts"));
}

struct MemberCase {
  ConfigNode parent;
  std::string name;
  ConfigNode exact;
  ConfigNode folded;
};

TEST(FindMember, GoesByParentAndLetterCase) {
  using enum ConfigNode;
  const std::vector<MemberCase> cases = {
      {kRoot, "linux", kLinux, kLinux},
      {kRoot, "Linux", kOther, kLinux},
      {kRoot, "LINUX", kOther, kLinux},
      {kRoot, "linu", kOther, kOther},
      {kRoot, "linuxx", kOther, kOther},
      {kRoot, "resources", kOther, kOther},
      {kRoot, "", kOther, kOther},
      {kOther, "linux", kOther, kOther},
      {kLinux, "resources", kResources, kResources},
      {kLinux, "cgroupspath", kOther, kCgroupsPath},
      {kMemory, "limit", kMemoryLimit, kMemoryLimit},
      {kPids, "limit", kPidsLimit, kPidsLimit},
      {kHugepageLimit, "limit", kHugepageBytes, kHugepageBytes},
      {kCpu, "limit", kOther, kOther},
      // Unicode's simple folding, as in Go's encoding/json: long s and the Kelvin sign.
      {kRoot, "proce\xc5\xbf\xc5\xbf", kOther, kProcess},
      {kRoot, "HOO\xe2\x84\xaa\xc5\xbf", kOther, kHooks},
      {kCpu, "\xc5\xbfhares", kOther, kCpuShares},
      {kRoot, "l\xc4\xb1nux", kOther, kOther},  // the dotless i folds to itself
      {kRoot, "linux\xc5", kOther, kOther},
  };
  for (const auto& [parent, name, exact, folded] : cases) {
    EXPECT_EQ(find_member(parent, name, MemberNames::kExact), exact) << name;
    EXPECT_EQ(find_member(parent, name, MemberNames::kAnyCase), folded) << name;
  }
}

TEST(ElementOf, KnowsListsAndMaps) {
  using enum ConfigNode;
  for (const ConfigNode list : {kPrestart, kCreateRuntime, kPoststop})
    EXPECT_EQ(element_of(list), kHook);
  EXPECT_EQ(element_of(kHookArgs), kHookArg);
  EXPECT_EQ(element_of(kHugepageLimits), kHugepageLimit);
  EXPECT_EQ(element_of(kAnnotations), kAnnotation);
  EXPECT_EQ(element_of(kUnified), kUnifiedValue);
  EXPECT_EQ(element_of(kCpu), kOther);
}

}  // namespace
}  // namespace podqos::codec

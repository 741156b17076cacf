#include "common/core/carried_limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using layouts::with_2mb_pages;

std::vector<std::string> names_of(const std::vector<LimitFile>& files) {
  std::vector<std::string> names;
  for (const LimitFile& file : files)
    names.push_back(file.name);
  return names;
}

TEST(LimitFiles, HasWhatTheRuntimesWriteOnV2) {
  EXPECT_THAT(
      names_of(limit_files(with_2mb_pages(kV2))),
      testing::ElementsAre("cpu.idle", "cpu.weight", "cpu.max", "cpu.max.burst", "cpu.uclamp.min",
                           "cpu.uclamp.max", "memory.min", "memory.low", "memory.high",
                           "memory.max", "memory.swap.high", "memory.swap.max", "memory.zswap.max",
                           "memory.oom.group", "pids.max", "cpuset.cpus", "cpuset.mems",
                           "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"));
}

TEST(LimitFiles, TakesThoseOfTheControllersThereAre) {
  const CgroupLayout hybrid{.memory = kV2, .pids = kV1};
  EXPECT_THAT(names_of(limit_files(hybrid)),
              testing::ElementsAre("pids.max", "memory.min", "memory.low", "memory.high",
                                   "memory.max", "memory.swap.high", "memory.swap.max",
                                   "memory.zswap.max", "memory.oom.group"));
}

TEST(LimitFiles, OrdersThoseOfV1AsANewCgroupTakesThem) {
  const auto names = names_of(limit_files(with_2mb_pages(kV1)));
  const auto at = [&](const char* name) { return std::ranges::find(names, name); };
  EXPECT_LT(at("memory.limit_in_bytes"), at("memory.memsw.limit_in_bytes"));
  EXPECT_LT(at("cpu.cfs_period_us"), at("cpu.cfs_quota_us"));
  EXPECT_NE(at("hugetlb.2MB.limit_in_bytes"), names.end());
}

struct CarriedCase {
  const char* name;
  CgroupVersion version;
  const char* file;
  const char* held;
  std::optional<std::string> value;
};

class CarriedValue : public testing::TestWithParam<CarriedCase> {};

TEST_P(CarriedValue, IsWhatBounds) {
  const CarriedCase& each = GetParam();
  const auto files = limit_files(with_2mb_pages(each.version));
  const auto file = std::ranges::find(files, each.file, &LimitFile::name);
  ASSERT_NE(file, files.end());
  EXPECT_EQ(carried_value(*file, each.held), each.value);
}

INSTANTIATE_TEST_SUITE_P(
    Files, CarriedValue,
    testing::Values(CarriedCase{"weight", kV2, "cpu.weight", "39", "39"},
                    CarriedCase{"default_weight", kV2, "cpu.weight", "100", std::nullopt},
                    CarriedCase{"weight_of_an_idle_one", kV2, "cpu.weight", "0", std::nullopt},
                    CarriedCase{"idle", kV2, "cpu.idle", "1", "1"},
                    CarriedCase{"quota", kV2, "cpu.max", "50000 100000", "50000 100000"},
                    CarriedCase{"period_alone", kV2, "cpu.max", "max 50000", "max 50000"},
                    CarriedCase{"no_quota", kV2, "cpu.max", "max 100000", std::nullopt},
                    CarriedCase{"memory", kV2, "memory.max", "67108864", "67108864"},
                    CarriedCase{"no_memory_limit", kV2, "memory.max", "max", std::nullopt},
                    CarriedCase{"no_swap", kV2, "memory.swap.max", "0", "0"},
                    CarriedCase{"oom_group", kV2, "memory.oom.group", "1", "1"},
                    CarriedCase{"cpus", kV2, "cpuset.cpus", "0-1", "0-1"},
                    CarriedCase{"no_cpus", kV2, "cpuset.cpus", "", std::nullopt},
                    CarriedCase{"no_pages", kV2, "hugetlb.2MB.max", "0", "0"},
                    CarriedCase{"all_pages", kV2, "hugetlb.2MB.max", "max", std::nullopt},
                    CarriedCase{"shares", kV1, "cpu.shares", "256", "256"},
                    CarriedCase{"v1_quota", kV1, "cpu.cfs_quota_us", "50000", "50000"},
                    CarriedCase{"v1_no_quota", kV1, "cpu.cfs_quota_us", "-1", std::nullopt},
                    CarriedCase{"v1_memory", kV1, "memory.limit_in_bytes", "67108864", "67108864"},
                    // The largest multiple of a page; with huge pages of 2 MiB.
                    CarriedCase{"v1_unlimited", kV1, "memory.limit_in_bytes", "9223372036854771712",
                                std::nullopt},
                    CarriedCase{"v1_all_pages", kV1, "hugetlb.2MB.limit_in_bytes",
                                "9223372036852678656", std::nullopt},
                    CarriedCase{"swappiness", kV1, "memory.swappiness", "60", "60"},
                    CarriedCase{"oom_killer", kV1, "memory.oom_control",
                                "oom_kill_disable 0\nunder_oom 0\noom_kill 0", std::nullopt},
                    CarriedCase{"no_oom_killer", kV1, "memory.oom_control",
                                "oom_kill_disable 1\nunder_oom 0\noom_kill 0", "1"}),
    [](const auto& case_info) { return std::string{case_info.param.name}; });

struct BoundsCase {
  const char* name;
  const char* file;
  const char* held;
  bool bounds;
};

class Bounds : public testing::TestWithParam<BoundsCase> {};

TEST_P(Bounds, IsToldFromADefault) {
  const BoundsCase& each = GetParam();
  const auto files = files_left_behind(with_2mb_pages(kV2));
  const auto file = std::ranges::find(files, each.file, &LimitFile::name);
  ASSERT_NE(file, files.end());
  EXPECT_EQ(bounds(*file, each.held), each.bounds);
}

TEST(FilesLeftBehind, AreThoseOfV2) {
  EXPECT_THAT(files_left_behind(with_2mb_pages(kV1)), testing::IsEmpty());
  const auto files = files_left_behind({.cpu = kV2, .memory = kV1});
  ASSERT_THAT(files, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(files.front().name, "io.max");
  EXPECT_EQ(files.front().controller, Controller::kCpu);
  EXPECT_EQ(files_left_behind(with_2mb_pages(kV2)).front().controller, Controller::kMemory);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Bounds,
    testing::Values(
        BoundsCase{"no_io_limit", "io.max", "", false},
        BoundsCase{"io_limit", "io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max", true},
        BoundsCase{"io_latency", "io.latency", "8:0 target=100", true},
        BoundsCase{"io_weight", "io.weight", "default 50", true},
        BoundsCase{"default_io_weight", "io.weight", "default 100", false},
        BoundsCase{"io_weight_of_a_device", "io.bfq.weight", "default 100\n8:0 50", true},
        BoundsCase{"rdma", "rdma.max", "mlx5_0 hca_handle=2 hca_object=max", true},
        BoundsCase{"no_rdma_limit", "rdma.max", "mlx5_0 hca_handle=max hca_object=max", false},
        BoundsCase{"misc", "misc.max", "sgx_epc 4096", true},
        BoundsCase{"no_misc_limit", "misc.max", "sgx_epc max", false},
        BoundsCase{"partition", "cpuset.cpus.partition", "root", true},
        BoundsCase{"no_partition", "cpuset.cpus.partition", "member", false}),
    [](const auto& case_info) { return std::string{case_info.param.name}; });

struct OwnCase {
  const char* name;
  const char* actual;
  std::optional<std::string> cgroups_path;
  const char* own;
};

class OwnCgroupIn : public testing::TestWithParam<OwnCase> {};

TEST_P(OwnCgroupIn, EndsWithTheContainersName) {
  const OwnCase& each = GetParam();
  EXPECT_EQ(own_cgroup_in(each.actual, each.cgroups_path), each.own);
}

INSTANTIATE_TEST_SUITE_P(
    Paths, OwnCgroupIn,
    testing::Values(OwnCase{"itself", "/k8s.io/c", "/k8s.io/c", "/k8s.io/c"},
                    OwnCase{"relative", "/a/b/c", "b/c", "/a/b/c"},
                    OwnCase{"below", "/k8s.io/c/init", "/k8s.io/c", "/k8s.io/c"},
                    OwnCase{"crun_with_systemd", "/m.slice/crun-c.scope/container",
                            "m.slice:crun:c", "/m.slice/crun-c.scope"},
                    OwnCase{"slash_at_the_end", "/k8s.io/c", "/k8s.io/c/", "/k8s.io/c"},
                    OwnCase{"part_of_a_name", "/k8s.io/c2/x", "/k8s.io/c", "/k8s.io/c2/x"},
                    OwnCase{"unknown", "/k8s.io/c/init", std::nullopt, "/k8s.io/c/init"},
                    OwnCase{"elsewhere", "/user.slice", "/k8s.io/c", "/user.slice"}),
    [](const auto& case_info) { return std::string{case_info.param.name}; });

}  // namespace
}  // namespace podqos::core

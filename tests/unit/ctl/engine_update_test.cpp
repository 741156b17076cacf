#include "ctl/act/engine_update.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

constexpr const char* kMoby = "/run/containerd/io.containerd.runtime.v2.task/moby/0a1b";
constexpr const char* kPodman = "/var/lib/containers/storage/overlay-containers/0a1b/userdata";
constexpr const char* kCrio = "/run/containers/storage/overlay-containers/0a1b/userdata";

/// 400m of CPU and 256Mi.
const core::CgroupValues kNewValues{.cpu_shares = CpuShares{204},
                                    .cpu_quota = Micros{40'000},
                                    .cpu_period = Micros{100'000},
                                    .memory_limit = Bytes{256LL << 20U}};

core::ContainerRecord in_bundle(const std::string& bundle) {
  core::ContainerRecord container;
  container.id = "0a1b";
  container.bundle = bundle;
  return container;
}

core::EngineResources limits_of_engine(std::optional<std::int64_t> quota,
                                       std::optional<std::int64_t> memory) {
  core::EngineResources own;
  own.cpu_quota = quota;
  own.memory_limit = memory;
  return own;
}

struct EngineUpdateCase {
  std::string bundle;
  std::optional<std::int64_t> shares;
  std::optional<std::int64_t> quota;
  std::optional<std::int64_t> period;
  std::optional<std::int64_t> memory;
  std::optional<std::int64_t> swap;
  std::string want;
};

/// The options are those of Docker 26, Podman 5 and crictl 1.31; --cpus and a period of 100 ms go
/// together in Docker, as do --memory 128m and twice as much of both.
TEST(EngineUpdate, TellsWhatTheEngineHasLimitsOf) {
  constexpr std::nullopt_t kNone = std::nullopt;
  constexpr std::int64_t k128 = 128LL << 20U;
  const std::vector<EngineUpdateCase> cases = {
      {kMoby, kNone, kNone, kNone, kNone, kNone, ""},
      {kMoby, kNone, 20'000, 100'000, k128, 2 * k128,
       "docker update --cpus 0.400 --memory 268435456 --memory-swap 402653184 0a1b"},
      {kMoby, kNone, 20'000, kNone, kNone, kNone, "docker update --cpu-quota 40000 0a1b"},
      {kMoby, 102, 5000, 50'000, kNone, kNone,
       "docker update --cpu-period 50000 --cpu-quota 20000 --cpu-shares 204 0a1b"},
      {kMoby, kNone, -1, kNone, -1, -1, ""},
      {kPodman, kNone, kNone, kNone, k128, -1,
       "podman update --memory 268435456 --memory-swap -1 0a1b"},
      {kCrio, 102, 20'000, 100'000, k128, k128,
       "crictl update --cpu-period 100000 --cpu-quota 40000 --cpu-share 204 --memory 268435456 "
       "0a1b"},
      {"/home/me/bundle", kNone, kNone, kNone, k128, kNone, ""},
  };
  for (const auto& [bundle, shares, quota, period, memory, swap, want] : cases) {
    core::EngineResources own = limits_of_engine(quota, memory);
    own.cpu_shares = shares;
    own.cpu_period = period;
    own.memory_swap = swap;
    EXPECT_EQ(engine_update(in_bundle(bundle), own, kNewValues), want);
  }
}

TEST(EngineResources, AreNotWhatPodqosHasFilledIn) {
  const TemporaryDirectory directory;
  const auto read = [&](const std::string& note, bool stated) {
    directory.write(
        "config.json",
        R"({"linux":{"resources":{"cpu":{"quota":20000},"memory":{"limit":4096}}})" + note + "}");
    return engine_resources(in_bundle(directory.path()), stated, kNewValues);
  };
  EXPECT_EQ(read("", false), limits_of_engine(20'000, 4096));
  // As Podman writes it, without what it does not know.
  EXPECT_EQ(read("", true), core::EngineResources{});
  EXPECT_EQ(read(R"(,"podqos.io/edits":[{"at":"/linux/resources/memory/limit","is":4096}])", true),
            limits_of_engine(20'000, std::nullopt));
  EXPECT_EQ(engine_resources(in_bundle(directory.path("no")), false, kNewValues),
            core::EngineResources{});
}

TEST(EngineResources, AreTheValuesWhereNoBundleIsNamed) {
  EXPECT_EQ(engine_resources(in_bundle(""), true, kNewValues), core::EngineResources{});
  core::EngineResources own = limits_of_engine(40'000, 256LL << 20U);
  own.cpu_shares = 204;
  own.cpu_period = 100'000;
  EXPECT_EQ(engine_resources(in_bundle(""), false, kNewValues), own);
}

}  // namespace
}  // namespace podqos::ctl

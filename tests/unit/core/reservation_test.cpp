#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/apply_resize.h"
#include "common/core/pods/counted_requests.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using pod_text::container;
using pod_text::list;
using ::testing::HasSubstr;

constexpr NodeCapacity kNodeOf32Gi{.memory = Bytes{32 * kGi}, .cpu = MilliCpu{16'000}};

Settings reserving() {
  Settings settings;
  settings.reserve_memory_percent = 100;
  return settings;
}

/// A Burstable pod that claims `cpu` and `memory` by annotations.
PodRecord claiming(const char* cpu, const char* memory) {
  PodRecord record;
  record.pod = pod_text::pod({container("a", list({{"cpu", cpu}, {"memory", memory}}))});
  record.complete = true;
  record.qos_class = QosClass::kBurstable;
  return record;
}

void add_container(PodRecord& record, const char* id, std::optional<Bytes> backed) {
  ContainerRecord container;
  container.id = id;
  container.name = id;
  container.backed_memory = backed;
  record.containers.push_back(std::move(container));
}

Bytes counted_memory(PodRecord record, const Settings& settings = reserving()) {
  count_requests(record, settings, kNodeOf32Gi);
  return record.counted_request.memory;
}

ContainerFacts with_limit(std::optional<std::int64_t> limit) {
  ContainerFacts facts;
  facts.resources.memory_limit = limit;
  return facts;
}

TEST(BackingOf, IsTheLimitOfACriEngine) {
  EngineAnnotations engine;
  engine.cri = true;
  EXPECT_EQ(backing_of(with_limit(5 * kGi), engine), Bytes{5 * kGi});
  EXPECT_EQ(backing_of(with_limit(std::nullopt), engine), Bytes{0});
  EXPECT_EQ(backing_of(with_limit(-1), engine), Bytes{0});
}

TEST(BackingOf, IsThePodsOverheadForItsSandbox) {
  EngineAnnotations engine;
  engine.cri = true;
  engine.pod_overhead = with_limit(kGi).resources;
  EXPECT_EQ(backing_of(with_limit(2 * kGi), engine), Bytes{2 * kGi});
  engine.is_sandbox = true;
  EXPECT_EQ(backing_of(with_limit(std::nullopt), engine), Bytes{kGi});
}

TEST(BackingOf, IsNotNeededByWhatTheOperatorMakes) {
  EXPECT_EQ(backing_of(with_limit(5 * kGi), {}), std::nullopt);
}

void by_engine(PodRecord& record, Settings&) {
  record.uid_source = IdentitySource::kEngine;
}

TEST(CountRequestsByBacking, KeepsTheMemoryThatIsBacked) {
  /// A pod that requests 8Gi.
  struct Backing {
    const char* name;
    std::vector<std::optional<Bytes>> containers;  ///< what backs the request, as they tell it
    Bytes want;
    void (*change)(PodRecord& record, Settings& settings) = nullptr;
  };
  for (const auto& row : std::vector<Backing>{
           {"NoLimit", {Bytes{0}, Bytes{0}}, Bytes{0}},
           {"TheLimitsOfAllContainers", {Bytes{2 * kGi}, Bytes{3 * kGi}}, Bytes{5 * kGi}},
           {"NoMoreThanIsRequested", {Bytes{9 * kGi}}, Bytes{8 * kGi}},
           {"AnOperatorsPod", {std::nullopt}, Bytes{8 * kGi}},
           {"AKubeletsPod",
            {Bytes{0}},
            Bytes{8 * kGi},
            [](PodRecord& record, Settings&) { record.kubelets_own = true; }},
           // LimitedSwap goes by it, too.
           {"WhereNothingIsReserved",
            {Bytes{0}},
            Bytes{8 * kGi},
            [](PodRecord&, Settings& settings) { settings = {}; }},
           {"ACriPodWithoutContainers", {}, Bytes{0}, by_engine},
           {"AnOperatorsContainerInACriPod", {std::nullopt, Bytes{kGi}}, Bytes{8 * kGi}, by_engine},
           {"ASandboxThatTellsNothing",
            {std::nullopt, Bytes{kGi}},
            Bytes{kGi},
            [](PodRecord& record, Settings&) { record.containers.front().sandbox = true; }},
       }) {
    SCOPED_TRACE(row.name);
    PodRecord record = claiming("1", "8Gi");
    Settings settings = reserving();
    for (const auto& backed : row.containers)
      add_container(record, "a", backed);
    if (row.change != nullptr) row.change(record, settings);
    EXPECT_EQ(counted_memory(record, settings), row.want);
  }
}

TEST(CountRequests, CountsOnePodUpToMaxPodClaim) {
  Settings settings;
  settings.max_pod_claim_percent = 25;
  PodRecord record = claiming("16", "32Gi");
  count_requests(record, settings, kNodeOf32Gi);
  const TierSum quarter{.pods = 1, .cpu = MilliCpu{4'000}, .memory = Bytes{8 * kGi}};
  EXPECT_EQ(record.capped_request, quarter);
  EXPECT_EQ(record.counted_request, quarter);
}

TEST(CountRequests, LeavesAKubeletsPodsBeyondMaxPodClaim) {
  Settings settings = reserving();
  settings.max_pod_claim_percent = 25;
  PodRecord record = claiming("16", "32Gi");
  record.kubelets_own = true;
  EXPECT_EQ(counted_memory(record, settings), Bytes{32 * kGi});
}

TEST(ApplyResize, ChangesWhatBacksTheClaim) {
  PodRecord record = claiming("1", "8Gi");
  add_container(record, "a", Bytes{2 * kGi});
  const auto backed_after = [&](const facts::EngineValues& now) {
    apply_resize(record, {.container = "a", .now = facts::engine(now)});
    return record.containers.front().backed_memory;
  };
  EXPECT_EQ(backed_after({.memory = 4 * kGi}), Bytes{4 * kGi});
  EXPECT_EQ(backed_after({.shares = 512}), Bytes{4 * kGi});
  EXPECT_EQ(backed_after({.memory = -1}), Bytes{0});
}

/// An engine tells all values, also those that podqos has filled in.
TEST(ApplyResize, TakesNoLimitThatIsKnownForTheEngines) {
  PodRecord record = claiming("1", "8Gi");
  record.pod.containers.front().resources.limits = list({{"memory", "8Gi"}});
  add_container(record, "a", Bytes{0});
  apply_resize(record,
               {.container = "a", .now = facts::engine({.shares = 512, .memory = 8 * kGi})});
  EXPECT_EQ(record.containers.front().backed_memory, Bytes{0});
}

void before_the_first_container(PodRecord& record, Settings& settings) {
  settings = reserving();
  record.pod.containers.clear();
  record.pod.resources.emplace().requests = list({{"memory", "8Gi"}});
  add_container(record, "sandbox", Bytes{0});
  record.containers.back().sandbox = true;
}

void before_the_second_container(PodRecord& record, Settings& settings) {
  settings = reserving();
  record.pod.containers.push_back(container("b", list({{"memory", "2Gi"}})));
  add_container(record, "b", Bytes{2 * kGi});
}

/// What is said of a pod that claims 8Gi, after a change; "" for nothing.
std::string words_after(void (*change)(PodRecord& record, Settings& settings)) {
  PodRecord record = claiming("1", "8Gi");
  Settings settings;
  change(record, settings);
  count_requests(record, settings, kNodeOf32Gi);
  return describe_uncounted(record, settings).value_or("");
}

TEST(DescribeUncounted, NamesWhatLacksAndHowToHelp) {
  EXPECT_EQ(words_after([](PodRecord& record, Settings& settings) {
              settings = reserving();
              add_container(record, "a", Bytes{kGi});
            }),
            "requests memory 8Gi, of which 1Gi is reserved, the sum of the memory "
            "limits that its engine enforces; set memory limits of its containers that add up to "
            "the request");
  EXPECT_THAT(
      words_after([](PodRecord&, Settings& settings) { settings.max_pod_claim_percent = 10; }),
      HasSubstr("of which ~3.1Gi (3435973836) counts: maxPodClaim is 10% of what is "));
  EXPECT_THAT(words_after([](PodRecord& record, Settings&) { record = claiming("32", "1Gi"); }),
              HasSubstr("requests cpu 32, of which 16 counts: the node has no more"));
}

TEST(DescribeUncounted, SaysNothingWhereNothingLacksOrMoreIsToCome) {
  struct Silent {
    const char* name;
    void (*change)(PodRecord& record, Settings& settings);
  };
  for (const auto& row : std::vector<Silent>{
           {"NothingIsReserved",
            [](PodRecord& record, Settings&) { add_container(record, "a", Bytes{kGi}); }},
           {"AnOperatorsPod",
            [](PodRecord& record, Settings& settings) {
              settings = reserving();
              add_container(record, "a", std::nullopt);
            }},
           {"AReleasedPod",
            [](PodRecord& record, Settings&) {
              record = claiming("32", "1Gi");
              record.released_at = BootSeconds{1};
            }},
           {"TheNodeIsTooSmallAndThatIsOff",
            [](PodRecord& record, Settings& settings) {
              record = claiming("32", "1Gi");
              settings.admission.cpu = AdmissionPolicy::kOff;
            }},
           // The wrapper under containerd, and RunPodSandbox of NRI: the sandbox comes first.
           {"TheSandboxAlone", before_the_first_container},
           {"OneOfTwoContainers", before_the_second_container},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(words_after(row.change), "");
  }
  EXPECT_THAT(words_after([](PodRecord& record, Settings& settings) {
                before_the_first_container(record, settings);
                add_container(record, "a", Bytes{kGi});
              }),
              HasSubstr("requests memory 8Gi, of which 1Gi is reserved"));
  EXPECT_THAT(words_after([](PodRecord& record, Settings& settings) {
                before_the_second_container(record, settings);
                add_container(record, "a", Bytes{kGi});
              }),
              HasSubstr("requests memory 10Gi, of which 3Gi is reserved"));
}

}  // namespace
}  // namespace podqos::core

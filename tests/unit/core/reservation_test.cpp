#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/grants.h"
#include "common/core/pods/resize.h"
#include "tests/unit/core/byte_units.h"
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

Bytes granted_memory(PodRecord record, const Settings& settings = reserving()) {
  grant_requests(record, {}, settings, kNodeOf32Gi);
  return record.granted.memory;
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

TEST(GrantRequestsByBacking, KeepsTheMemoryThatIsBacked) {
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
            [](PodRecord& record, Settings&) { record.adopted = true; }},
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
    EXPECT_EQ(granted_memory(record, settings), row.want);
  }
}

TEST(GrantRequests, CountsOnePodUpToMaxPodClaim) {
  Settings settings;
  settings.max_pod_claim_percent = 25;
  PodRecord record = claiming("16", "32Gi");
  grant_requests(record, {}, settings, kNodeOf32Gi);
  const TierSum quarter{.pods = 1, .cpu = MilliCpu{4'000}, .memory = Bytes{8 * kGi}};
  EXPECT_EQ(record.claimed, quarter);
  EXPECT_EQ(record.granted, quarter);
}

TEST(GrantRequests, LeavesAKubeletsPodsBeyondMaxPodClaim) {
  Settings settings = reserving();
  settings.max_pod_claim_percent = 25;
  PodRecord record = claiming("16", "32Gi");
  record.adopted = true;
  EXPECT_EQ(granted_memory(record, settings), Bytes{32 * kGi});
}

TEST(ApplyResize, ChangesWhatBacksTheClaim) {
  PodRecord record = claiming("1", "8Gi");
  add_container(record, "a", Bytes{2 * kGi});
  EngineResources now;
  now.memory_limit = 4 * kGi;
  apply_resize(record, {.whole_pod = false, .container = "a", .now = now});
  EXPECT_EQ(record.containers.front().backed_memory, Bytes{4 * kGi});
  now.memory_limit = -1;
  apply_resize(record, {.whole_pod = false, .container = "a", .now = now});
  EXPECT_EQ(record.containers.front().backed_memory, Bytes{0});
  now.memory_limit.reset();
  now.cpu_shares = 512;
  record.containers.front().backed_memory = Bytes{kGi};
  apply_resize(record, {.whole_pod = false, .container = "a", .now = now});
  EXPECT_EQ(record.containers.front().backed_memory, Bytes{kGi});
}

/// An engine tells all values, also those that podqos has filled in.
TEST(ApplyResize, TakesNoLimitThatIsKnownForTheEngines) {
  PodRecord record = claiming("1", "8Gi");
  record.pod.containers.front().resources.limits = list({{"memory", "8Gi"}});
  add_container(record, "a", Bytes{0});
  EngineResources now;
  now.cpu_shares = 512;
  now.memory_limit = 8 * kGi;
  apply_resize(record, {.whole_pod = false, .container = "a", .now = now});
  EXPECT_EQ(record.containers.front().backed_memory, Bytes{0});
}

class WordsOnUncounted : public ::testing::Test {
 protected:
  std::optional<std::string> words() {
    grant_requests(record_, {}, settings_, kNodeOf32Gi);
    return describe_uncounted(record_, settings_);
  }
  PodRecord record_ = claiming("1", "8Gi");
  Settings settings_;
};

TEST_F(WordsOnUncounted, NamesTheLimitsThatAreMissing) {
  settings_.reserve_memory_percent = 100;
  add_container(record_, "a", Bytes{kGi});
  EXPECT_EQ(words(),
            "requests memory 8Gi, of which 1Gi is reserved, the sum of the memory "
            "limits that its engine enforces; set memory limits of its containers that add up to "
            "the request");
}

/// The wrapper under containerd, and RunPodSandbox of NRI: the sandbox comes first.
TEST_F(WordsOnUncounted, AreNotSaidBeforeTheFirstContainer) {
  settings_.reserve_memory_percent = 100;
  record_.pod.containers.clear();
  record_.pod.resources.emplace().requests = list({{"memory", "8Gi"}});
  add_container(record_, "sandbox", Bytes{0});
  record_.containers.back().sandbox = true;
  EXPECT_EQ(words(), std::nullopt);
  add_container(record_, "a", Bytes{kGi});
  EXPECT_THAT(words().value_or(""), HasSubstr("requests memory 8Gi, of which 1Gi is reserved"));
}

TEST_F(WordsOnUncounted, AreNotSaidBeforeAllContainersOfTheSpecAreThere) {
  settings_.reserve_memory_percent = 100;
  record_.pod.containers.push_back(container("b", list({{"memory", "2Gi"}})));
  add_container(record_, "b", Bytes{2 * kGi});
  EXPECT_EQ(words(), std::nullopt);
  add_container(record_, "a", Bytes{kGi});
  EXPECT_THAT(words().value_or(""), HasSubstr("requests memory 10Gi, of which 3Gi is reserved"));
}

TEST_F(WordsOnUncounted, AreNotSaidWhereNothingIsReserved) {
  add_container(record_, "a", Bytes{kGi});
  EXPECT_EQ(words(), std::nullopt);
}

TEST_F(WordsOnUncounted, AreNotSaidOfAnOperatorsPod) {
  settings_.reserve_memory_percent = 100;
  add_container(record_, "a", std::nullopt);
  EXPECT_EQ(words(), std::nullopt);
}

TEST_F(WordsOnUncounted, NameTheNodeWhereNoBoundIsSet) {
  record_ = claiming("32", "1Gi");
  const auto said = words();
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("requests cpu 32, of which 16 counts: the node has no more"));
}

TEST_F(WordsOnUncounted, AreNotSaidOfAReleasedPod) {
  record_ = claiming("32", "1Gi");
  record_.released_at = BootSeconds{1};
  EXPECT_EQ(words(), std::nullopt);
}

TEST_F(WordsOnUncounted, NameOtherPodsThatHaveTheRest) {
  TierSums others;
  others.guaranteed = {.pods = 1, .cpu = MilliCpu{15'400}, .memory = Bytes{30 * kGi}};
  grant_requests(record_, others, settings_, kNodeOf32Gi);
  const auto cut_cpu = describe_uncounted(record_, settings_);
  ASSERT_TRUE(cut_cpu);
  EXPECT_THAT(*cut_cpu, HasSubstr("requests cpu 1, of which 600m counts: other pods have"));
  others.guaranteed.cpu = MilliCpu{0};
  grant_requests(record_, others, settings_, kNodeOf32Gi);
  const auto cut_memory = describe_uncounted(record_, settings_);
  ASSERT_TRUE(cut_memory);
  EXPECT_THAT(*cut_memory, HasSubstr("requests memory 8Gi, of which 2Gi counts: other pods have"));
}

TEST_F(WordsOnUncounted, NameMaxPodClaim) {
  settings_.max_pod_claim_percent = 10;
  const auto said = words();
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("of which 3435973836 counts: maxPodClaim is 10% of what is "));
}

}  // namespace
}  // namespace podqos::core

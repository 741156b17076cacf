// What an engine says of a pod as a whole, from the sandbox's arrival to the values of its
// containers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/events/decide_departure.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/merge.h"
#include "common/core/pods/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using facts::engine;
using facts::kubelet_pod;
using pod_text::container;
using pod_text::list;

constexpr NodeCapacity kNodeOf8Gi{
    .memory = Bytes{8192 * kMi}, .cpu = MilliCpu{4000}, .swap = Bytes{0}};
/// What a kubelet sends for 50m and 32Mi, and for a pod of which only one container has these
/// limits.
constexpr facts::EngineValues kHelper{
    .shares = 51, .quota = 5'000, .period = 100'000, .memory = 32 * kMi};
constexpr facts::EngineValues kTwoShares{.shares = 2};

/// One pod of an engine that names its uid, as its containers come.
class SumsOfEngine : public ::testing::Test {
 protected:
  void sandbox(const facts::EngineValues& sums) {
    arrive({.name = "", .is_sandbox = true, .sums = engine(sums), .told = {}});
  }
  void app(const std::string& name, const facts::EngineValues& told,
           const std::optional<facts::EngineValues>& sums = std::nullopt) {
    arrive({.name = name,
            .is_sandbox = false,
            .sums = sums ? std::optional{engine(*sums)} : std::nullopt,
            .told = engine(told)});
  }
  CgroupValues values_of(const std::string& name) {
    const auto values = container_values(record_, name, settings_);
    EXPECT_TRUE(values);
    return values.value_or(CgroupValues{});
  }
  CgroupValues pod() {
    const auto values = pod_values(record_, settings_);
    EXPECT_TRUE(values);
    return values.value_or(CgroupValues{});
  }
  void expect_no_limit(const std::string& name) {
    const CgroupValues values = values_of(name);
    EXPECT_LE(values.cpu_quota.value_or(Micros{0}), Micros{0}) << name;
    EXPECT_LE(values.memory_limit.value_or(Bytes{0}), Bytes{0}) << name;
  }

  PodRecord record_;
  Settings settings_;
  PodqosAnnotations podqos_;
  std::optional<PodCgroup> placed_;
  std::optional<EngineResources> overhead_;

 private:
  struct Arriving {
    std::string name;
    bool is_sandbox = false;
    std::optional<EngineResources> sums;
    EngineResources told;
  };
  void arrive(const Arriving& a) {
    Identity identity = facts::identity(IdentitySource::kEngine, a.name);
    identity.sandbox_id = "box";
    identity.is_sandbox = a.is_sandbox;
    identity.placed = placed_;
    ContainerFacts facts = facts::container_facts(a.is_sandbox ? "box" : a.name);
    facts.resources = a.told;
    EngineAnnotations said;
    said.is_sandbox = a.is_sandbox;
    said.pod_sums = a.sums;
    if (a.is_sandbox) said.pod_overhead = overhead_;
    const PodClaim claim = claim_for(identity, {.facts = facts, .podqos = podqos_, .engine = said},
                                     settings_, kNodeOf8Gi.memory);
    const auto known = record_.containers.empty() ? std::nullopt : std::optional{record_};
    auto joined = merge_claim(known, identity, claim, settings_);
    ASSERT_TRUE(joined) << joined.error().message;
    record_ = std::move(joined->record);
    record_.kubelets_own = placed_.has_value();
    ContainerRecord arrived;
    arrived.id = facts.id;
    arrived.name = joined->container;
    arrived.state = ContainerState::kLive;
    arrived.sandbox = a.is_sandbox;
    record_.containers.push_back(std::move(arrived));
    count_requests(record_, settings_, kNodeOf8Gi);
  }
};

TEST_F(SumsOfEngine, LimitNoContainer) {
  sandbox(kHelper);
  app("helper", kHelper);
  app("main", kTwoShares);
  expect_no_limit("main");
}

/// As CRI-O runs it without an infra container: each container brings them.
TEST_F(SumsOfEngine, LimitNoContainerOfAPodWithoutASandbox) {
  podqos_.qos_class = QosClass::kBurstable;
  app("helper", kHelper, kHelper);
  app("main", kTwoShares, kHelper);
  expect_no_limit("main");
}

TEST_F(SumsOfEngine, BoundThePodWhileEachContainerHasALimit) {
  sandbox({.shares = 102, .quota = 10'000, .period = 100'000, .memory = 64 * kMi});
  EXPECT_EQ(pod().memory_limit, Bytes{64 * kMi});
  app("helper", kHelper);
  EXPECT_EQ(pod().memory_limit, Bytes{64 * kMi});
  EXPECT_EQ(pod().cpu_quota, Micros{10'000});
  EXPECT_EQ(record_.counted_request.cpu, MilliCpu{100});
}

/// A sum is over those that have one: what bounds a container without a limit is no sum.
TEST_F(SumsOfEngine, DoNotBoundAPodOfWhichAContainerHasNoLimit) {
  sandbox(kHelper);
  EXPECT_EQ(pod().memory_limit, Bytes{32 * kMi});
  app("main", kTwoShares);
  EXPECT_EQ(pod().memory_limit, Bytes{-1});
  EXPECT_EQ(pod().cpu_quota, Micros{-1});
  app("helper", kHelper);
  EXPECT_EQ(pod().memory_limit, Bytes{-1});
  EXPECT_EQ(record_.counted_request.cpu, MilliCpu{50});
}

TEST_F(SumsOfEngine, GiveTheClass) {
  sandbox(kHelper);
  EXPECT_EQ(record_.qos_class, QosClass::kBurstable);
  EXPECT_EQ(record_.class_source, ClassSource::kCriSums);
}

/// podqos.io/pod of a kubelet's pod, and settings that say more.
class KubeletsPod : public SumsOfEngine {
 protected:
  void SetUp() override {
    placed_ = kubelet_pod(QosClass::kBurstable);
    settings_.pod_pids_limit = 77;
  }
  void end(const std::string& name) {
    const auto ended = std::ranges::find(record_.containers, name, &ContainerRecord::name);
    ASSERT_NE(ended, record_.containers.end());
    remove_container(record_, static_cast<std::size_t>(ended - record_.containers.begin()));
  }
  [[nodiscard]] MilliCpu requested() const { return record_.capped_request.cpu; }
};

TEST_F(KubeletsPod, GetsNoValuesFromSumsOrAnnotations) {
  sandbox(kHelper);
  app("helper", kHelper);
  app("main", kTwoShares);
  EXPECT_EQ(values_of("main"), CgroupValues{});
  EXPECT_EQ(values_of("helper"), CgroupValues{});
  const ResourceList limits = list({{"cpu", "1"}, {"memory", "64Mi"}, {"hugepages-2Mi", "2Mi"}});
  podqos_.pod = std::make_shared<const Pod>(pod_text::pod({container("second", limits, limits)}));
  app("second", kTwoShares);
  EXPECT_EQ(values_of("second"), CgroupValues{});
  podqos_ = {};
  podqos_.containers["third"] = {.requests = list({{"cpu", "1"}}), .limits = list({{"cpu", "2"}})};
  podqos_.pod_level = Resources{.requests = {}, .limits = list({{"memory", "64Mi"}})};
  app("third", kTwoShares);
  EXPECT_EQ(values_of("third"), CgroupValues{});
}

TEST_F(KubeletsPod, RequestsItsOverheadToo) {
  overhead_ = engine({.shares = 20, .quota = 2'000, .period = 100'000});
  sandbox({.shares = 337});
  EXPECT_EQ(requested(), MilliCpu{350});
  app("main", {.shares = 337});
  EXPECT_EQ(requested(), MilliCpu{350});
  podqos_.pod =
      std::make_shared<const Pod>(pod_text::pod({container("main", list({{"cpu", "330m"}}))}));
  app("main", {.shares = 337});
  EXPECT_EQ(requested(), MilliCpu{350}) << "its author's spec does not count";
}

// Kubernetes: max(init containers one by one, all others together), a sidecar beside both.
TEST_F(KubeletsPod, RequestsWhatRunsAtOnce) {
  app("sidecar", {.shares = 102});
  app("init", {.shares = 307});
  EXPECT_EQ(requested(), MilliCpu{400});
  end("init");
  app("main", {.shares = 153});
  EXPECT_EQ(requested(), MilliCpu{400});
  app("second", {.shares = 256});
  EXPECT_EQ(requested(), MilliCpu{500});
}

TEST_F(KubeletsPod, CountsARestartedContainerOnce) {
  app("main", {.shares = 102});
  end("main");
  app("main", {.shares = 102});
  EXPECT_EQ(requested(), MilliCpu{100});
}

}  // namespace
}  // namespace podqos::core

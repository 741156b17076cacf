#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/claim.h"
#include "tests/unit/core/arrivals.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using arrivals::Arriving;
using arrivals::claim_of;
using arrivals::pod_named_app;
using arrivals::with_spec;
using facts::engine;
using pod_text::container;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClaimForSandbox, KnowsNothingOfItsResources) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.facts.resources.memory_limit = 4096;
  const PodClaim claim = claim_of(a);
  EXPECT_FALSE(claim.known);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.pod.uid, "42");
}

TEST(ClaimForSandbox, TakesTheEnginesPodSums) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 1024, .memory = 4096});
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_FALSE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kCriSums);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                        .limits = list({{"memory", "4096"}})}}));
  EXPECT_EQ(claim.pod.resources, std::nullopt);
}

/// Not each container must have a limit.
TEST(ClaimForSandbox, LetsAPodRequestMoreThanItsSumOfLimits) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 1024, .quota = 5'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                              .limits = list({{"cpu", "50m"}})}}));
}

// calculateLinuxResources of 330m, and of 5m, whose quota is raised to the least.
TEST(ClaimForSandbox, TakesTheOverheadThatTheEngineTells) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_overhead =
      engine({.shares = 337, .quota = 33'000, .period = 100'000, .memory = 4096});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "330m"}, {"memory", "4096"}}));
  a.engine.pod_overhead = engine({.shares = 5, .quota = 1'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "5m"}}));
}

TEST(ClaimForSandbox, TakesTheOverheadOfTheSpecBeforeTheEngines) {
  Pod pod = pod_named_app(list({{"cpu", "1"}}));
  Arriving a = with_spec(pod);
  a.identity.is_sandbox = true;
  a.engine.pod_overhead = engine({.shares = 1024});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "1"}}));
  pod.overhead = list({{"cpu", "2"}});
  a.podqos.pod = std::make_shared<const Pod>(pod);
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "2"}}));
}

TEST(ClaimForSandbox, LearnsNothingFromSumsOfABestEffortPod) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 2});
  EXPECT_FALSE(claim_of(a).known);
}

TEST(ClaimForSandbox, IsNoContainerOfTheShortForms) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.identity.container_name = "";
  a.podqos.containers["app"] = {.requests = {}, .limits = list({{"cpu", "1"}})};
  EXPECT_THAT(claim_of(a).pod.containers,
              ElementsAre(container("app", list({{"cpu", "1"}}), list({{"cpu", "1"}}))));
}

TEST(ClaimForSandbox, TakesTheSpecBeforeTheSums) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "1"}})));
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 512});
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

}  // namespace
}  // namespace podqos::core

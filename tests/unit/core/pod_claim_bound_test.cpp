#include <utility>

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
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What podman pod create --cpus 0.5 --memory 100m sets.
Arriving in_bounded_pod(Arriving a) {
  a.identity = facts::identity(IdentitySource::kSandbox);
  a.engine.pod_bound = engine({.quota = 50'000, .period = 100'000, .memory = 100 << 20});
  return a;
}

/// They bound the pod, whatever its containers have.
core::EngineSums bound_by(ResourceList limits) {
  return {.resources = {.requests = {}, .limits = std::move(limits)}, .enforced = true};
}

TEST(ClaimForBoundedPod, KeepsTheEnginesLimitsOfTheWholePod) {
  Arriving a = in_bounded_pod({});
  a.facts.resources = engine({.memory = 64 << 20});
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.sums, bound_by(list({{"cpu", "500m"}, {"memory", "100Mi"}})));
  EXPECT_FALSE(claim.complete);
  EXPECT_THAT(claim.warnings, IsEmpty());
}

TEST(ClaimForBoundedPod, LetsAnAnnotationOnlyLowerThem) {
  const Arriving a =
      in_bounded_pod(with_spec(pod_named_app({}, list({{"cpu", "400m"}, {"memory", "200Mi"}}))));
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kPodAnnotation);
  EXPECT_EQ(claim.sums, bound_by(list({{"memory", "100Mi"}})));
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("more memory than the engine's pod")));
}

TEST(ClaimForBoundedPod, BoundsAnAnnotationWithoutLimits) {
  const PodClaim claim = claim_of(in_bounded_pod(with_spec(pod_named_app({}))));
  EXPECT_EQ(claim.sums, bound_by(list({{"cpu", "500m"}, {"memory", "100Mi"}})));
}

}  // namespace
}  // namespace podqos::core

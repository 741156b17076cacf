#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "common/core/claim.h"
#include "tests/unit/core/arrivals.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using arrivals::pod_named_app;
using byte_units::kMi;
using pod_text::container;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct Naming {
  const char* name;
  const char* named;
  Pod pod;
  bool complete;
  const char* want;
};
class ContainerNameFor : public TestWithParam<Naming> {};

TEST_P(ContainerNameFor, IsTheBestThatIsKnown) {
  PodClaim claim;
  claim.pod = GetParam().pod;
  claim.complete = GetParam().complete;
  EXPECT_EQ(container_name_for(facts::identity(IdentitySource::kLone, GetParam().named), claim,
                               facts::container_facts("c1")),
            GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ContainerNameFor,
    ValuesIn<Naming>({
        {"AsNamed", "web", pod_named_app({}), true, "web"},
        {"TheOnlyOne", "", pod_named_app({}), true, "app"},
        {"TheOnlyOneSoFar", "", pod_named_app({}), false, "c1"},
        {"OneOfTwo", "", pod_text::pod({container("a", {}), container("b", {})}), true, "c1"},
        {"BesideAnInitContainer", "",
         pod_text::pod({container("a", {})}, {pod_text::init("i", {})}), true, "c1"},
        {"NothingKnown", "", {}, true, "c1"},
    }),
    [](const TestParamInfo<Naming>& row) { return std::string{row.param.name}; });

TEST(ContainerNameForSandbox, IsNotThePodsOnlyContainer) {
  PodClaim claim;
  claim.pod = pod_named_app({});
  claim.complete = true;
  Identity identity = facts::identity(IdentitySource::kEngine, "");
  identity.is_sandbox = true;
  EXPECT_EQ(container_name_for(identity, claim, facts::container_facts("pause")), "pause");
}

/// What Podman says of a container of `kube play`: its resources, and no name.
struct Unnamed {
  const char* name;
  EngineResources engine;
  const char* want;
  const char* sandbox = "infra";
};
class ContainerNameForResources : public TestWithParam<Unnamed> {};

TEST_P(ContainerNameForResources, IsTheOnlyOneThatTheyFit) {
  PodClaim claim;
  claim.complete = true;
  claim.pod = pod_text::pod(
      {container("half", list({{"cpu", "100m"}, {"memory", "32Mi"}}),
                 list({{"cpu", "500m"}, {"memory", "64Mi"}})),
       container("small", list({{"memory", "32Mi"}}), list({{"memory", "32Mi"}})),
       container("twin-1", list({{"cpu", "1"}, {"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
       container("twin-2", list({{"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
       container("free", {})},
      {pod_text::init("third", {}, list({{"cpu", "333m"}}))});
  Identity identity = facts::identity(IdentitySource::kSandbox, "");
  identity.sandbox_id = GetParam().sandbox;
  ContainerFacts facts = facts::container_facts("c1");
  facts.resources = GetParam().engine;
  EXPECT_EQ(container_name_for(identity, claim, facts), GetParam().want);
}

EngineResources with_reservation(EngineResources engine, std::int64_t reservation) {
  engine.memory_reservation = reservation;
  return engine;
}

INSTANTIATE_TEST_SUITE_P(
    Table, ContainerNameForResources,
    ValuesIn<Unnamed>({
        {"AllThatPodmanPassesOn",
         with_reservation(facts::engine({.quota = 50000, .period = 100000, .memory = 64 * kMi}),
                          32 * kMi),
         "half"},
        {"ARequestThatTheDefaultsAdded", facts::engine({.memory = 32 * kMi}), "small"},
        {"AnInitContainer", facts::engine({.quota = 33300, .period = 100000}), "third"},
        {"AnotherPeriod", facts::engine({.quota = 16650, .period = 50000}), "third"},
        {"OneOfTwo", facts::engine({.memory = 16 * kMi}), "c1"},
        {"AnotherLimit", facts::engine({.quota = 50000, .period = 100000, .memory = 63 * kMi}),
         "c1"},
        {"AnotherQuota", facts::engine({.quota = 40000, .period = 100000, .memory = 64 * kMi}),
         "c1"},
        {"AnotherRequest", with_reservation(facts::engine({.memory = 32 * kMi}), 31 * kMi), "c1"},
        {"ALimitTooFew", facts::engine({.memory = 64 * kMi}), "c1"},
        {"NoneAtAll", {}, "c1"},
        // There podqos sets the limits: their absence says nothing.
        {"NoEngineThatKnowsPods", facts::engine({.memory = 32 * kMi}), "c1", ""},
    }),
    [](const TestParamInfo<Unnamed>& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace podqos::core

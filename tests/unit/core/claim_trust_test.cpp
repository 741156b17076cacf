#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/claim.h"
#include "tests/unit/core/arrivals.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using arrivals::Arriving;
using arrivals::claim_of;
using arrivals::pod_named_app;
using arrivals::with_spec;
using byte_units::kMi;
using facts::engine;
using facts::kNodeMemory;
using pod_text::container;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct Trust {
  const char* name;
  ResourceList limits;
  EngineResources engine;
  bool checked;  ///< believed under engine-checked
};
class ClaimForTrust : public TestWithParam<Trust> {
 protected:
  static PodClaim claim(Arriving a, TrustAnnotations trust) {
    a.facts.resources = GetParam().engine;
    a.settings.trust_annotations = trust;
    return claim_of(a);
  }
  static Arriving short_form() {
    Arriving a;
    a.podqos.containers["app"] = {.requests = {}, .limits = GetParam().limits};
    return a;
  }
};

TEST_P(ClaimForTrust, ChecksTheSpecAgainstTheEngine) {
  const PodClaim got = claim(with_spec(pod_named_app(GetParam().limits, GetParam().limits)),
                             TrustAnnotations::kEngineChecked);
  EXPECT_EQ(got.source, GetParam().checked ? ClassSource::kPodAnnotation : ClassSource::kInference);
  EXPECT_EQ(got.complete, GetParam().checked);
  EXPECT_EQ(got.warnings.size(), GetParam().checked ? 0U : 1U);
}

TEST_P(ClaimForTrust, ChecksTheShortFormsAgainstTheEngine) {
  const PodClaim got = claim(short_form(), TrustAnnotations::kEngineChecked);
  EXPECT_EQ(got.source, GetParam().checked ? ClassSource::kShortForms : ClassSource::kInference);
  EXPECT_EQ(got.warnings.size(), GetParam().checked ? 0U : 1U);
}

TEST_P(ClaimForTrust, BelievesAllWhereTheOperatorSaysSo) {
  EXPECT_EQ(claim(short_form(), TrustAnnotations::kAll).source, ClassSource::kShortForms);
}

TEST_P(ClaimForTrust, BelievesNothingWhereTheOperatorSaysSo) {
  Arriving a = with_spec(pod_named_app(GetParam().limits, GetParam().limits));
  a.podqos.qos_class = QosClass::kBestEffort;
  const PodClaim got = claim(a, TrustAnnotations::kNone);
  EXPECT_EQ(got.source, ClassSource::kInference);
  EXPECT_EQ(got.declared_class, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ClaimForTrust,
    ValuesIn<Trust>({
        {"NoEngineLimit", list({{"memory", "1Ei"}}), {}, true},
        {"TheEnginesMemory", list({{"memory", "4096"}}), engine({.memory = 4096}), true},
        {"MoreMemory", list({{"memory", "4097"}}), engine({.memory = 4096}), false},
        {"AFractionMoreMemory", list({{"memory", "4096.5"}}), engine({.memory = 4096}), false},
        {"LessMemory", list({{"memory", "1"}}), engine({.memory = 4096}), true},
        {"UnlimitedMemory", list({{"memory", "1Ei"}}), engine({.memory = -1}), true},
        {"TheEnginesQuota", list({{"cpu", "500m"}}), engine({.quota = 50'000, .period = 100'000}),
         true},
        {"AQuotaThatTheEngineRoundedDown", list({{"cpu", "333m"}}),
         engine({.quota = 3'329, .period = 10'000}), true},
        {"MoreCpu", list({{"cpu", "501m"}}), engine({.quota = 50'000, .period = 100'000}), false},
        {"MoreCpuOfTheDefaultPeriod", list({{"cpu", "2"}}), engine({.quota = 100'000}), false},
        {"AsMuchInAnotherPeriod", list({{"cpu", "2"}}),
         engine({.quota = 100'000, .period = 50'000}), true},
        {"UnlimitedCpu", list({{"cpu", "2"}}), engine({.quota = -1}), true},
        {"AnEnormousCpu", list({{"cpu", "1E"}}), engine({.quota = 100'000}), false},
    }),
    [](const TestParamInfo<Trust>& row) { return std::string{row.param.name}; });

TEST(ClaimForTrust, ChecksRequestsAlone) {
  Arriving a;
  a.podqos.containers["app"] = {.requests = list({{"memory", "100Gi"}}), .limits = {}};
  a.facts.resources.memory_limit = 4096;
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kInference);
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("memory request 107374182400 exceeds")));
}

TEST(ClaimForTrust, ChecksCpuRequestsAlone) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "2"}})));
  a.facts.resources = engine({.quota = 100'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  a.podqos.pod = with_spec(pod_named_app(list({{"cpu", "1"}}))).podqos.pod;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksTheOnlyContainerOfAPodWithoutAName) {
  Arriving a = with_spec(pod_named_app({}, list({{"memory", "100Gi"}})));
  a.identity.container_name = "";
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  a.facts.resources.memory_limit = 107'374'182'400;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksWhatIsClaimedForTheWholePodOfOneContainer) {
  Pod pod = pod_named_app({});
  pod.resources = Resources{.requests = list({{"memory", "100Gi"}}), .limits = {}};
  Arriving a = with_spec(pod);
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  pod.containers.push_back(container("other", {}));
  a.podqos.pod = with_spec(pod).podqos.pod;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksPodLevelShortFormsOfALoneContainer) {
  Arriving a;
  a.podqos.pod_level = Resources{.requests = list({{"memory", "100Gi"}}), .limits = {}};
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kShortForms);
  a.identity.source = IdentitySource::kLone;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
}

TEST(ClaimForTrust, RefusesASpecWithoutTheEnginesContainer) {
  Arriving a = with_spec(pod_named_app({}));
  a.identity = facts::identity(IdentitySource::kEngine, "web");
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kInference);
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("has no container \"web\"")));
  a.settings.trust_annotations = TrustAnnotations::kAll;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, TakesASpecForTheEnginesSandbox) {
  Arriving a = with_spec(pod_named_app({}));
  a.identity = facts::identity(IdentitySource::kEngine, "");
  a.identity.is_sandbox = true;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, KeepsADeclaredClassOfARefusedSpec) {
  Arriving a = with_spec(pod_named_app({}, list({{"memory", "2Gi"}})));
  a.podqos.qos_class = QosClass::kBestEffort;
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).declared_class, QosClass::kBestEffort);
}

TEST(ClaimForTrust, ChecksAnUnnamedContainerAgainstItsOwnPart) {
  Arriving a = with_spec(pod_text::pod({container("a", {}, list({{"memory", "32Mi"}})),
                                        container("b", {}, list({{"memory", "64Mi"}}))}));
  a.identity = facts::identity(IdentitySource::kSandbox, "");
  a.identity.sandbox_id = "infra";
  a.facts.resources.memory_limit = 32 * kMi;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

/// Else it would count under a name that no container of the pod's record has, and never end.
TEST(ClaimForUntrusted, ARefusedSpecNamesNoContainer) {
  Arriving a = with_spec(pod_named_app(list({}), list({{"memory", "8Gi"}})));
  a.identity.container_name.clear();
  a.facts.resources = engine({.memory = 64 * kMi});
  PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.container, "c1");
  EXPECT_THAT(claim.pod.containers, ElementsAre(Field(&Container::name, "c1")));
  a.settings.trust_annotations = TrustAnnotations::kNone;
  claim = claim_of(a);
  EXPECT_EQ(claim.container, "c1");
  EXPECT_THAT(claim.pod.containers, ElementsAre(Field(&Container::name, "c1")));
  a.facts.resources = {};
  a.settings.trust_annotations = TrustAnnotations::kAll;
  EXPECT_EQ(claim_of(a).container, "app");
}

struct Inferred {
  const char* name;
  EngineResources engine;
  std::optional<std::int64_t> score;  ///< nullopt too where no kubelet has set it
  Resources want;
};
class InferResources : public TestWithParam<Inferred> {};

TEST_P(InferResources, ReadsBackWhatTheEngineWrote) {
  const Inferred& row = GetParam();
  EXPECT_EQ(infer_resources(row.engine, row.score, kNodeMemory), row.want);
}

EngineResources engine(std::int64_t shares, std::int64_t quota = 0, std::int64_t period = 0,
                       std::int64_t memory = 0, std::int64_t reservation = 0) {
  const auto set = [](std::int64_t value) {
    return value == 0 ? std::nullopt : std::optional{value};
  };
  EngineResources out;
  out.cpu_shares = set(shares);
  out.cpu_quota = set(quota);
  out.cpu_period = set(period);
  out.memory_limit = set(memory);
  out.memory_reservation = set(reservation);
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, InferResources,
    ValuesIn<Inferred>({
        {"Nothing", {}, {}, {}},
        {"TwoSharesAreNoRequest", engine(2), {}, {}},
        {"OneCpu", engine(1024), {}, {list({{"cpu", "1"}}), {}}},
        {"SharesRoundUp", engine(102), {}, {list({{"cpu", "100m"}}), {}}},
        {"ThreeShares", engine(3), {}, {list({{"cpu", "3m"}}), {}}},
        {"Quota", engine(0, 150'000, 100'000), {}, {{}, list({{"cpu", "1500m"}})}},
        {"QuotaOfTheDefaultPeriod", engine(0, 50'000), {}, {{}, list({{"cpu", "500m"}})}},
        {"QuotaOfAnotherPeriod", engine(0, 5'000, 10'000), {}, {{}, list({{"cpu", "500m"}})}},
        {"NoQuota", engine(0, -1, 100'000), {}, {}},
        {"AQuotaBelowOneMilli", engine(0, 1, 1'000'000), {}, {{}, list({{"cpu", "1m"}})}},
        {"SharesAboveTheLimit",
         engine(2048, 100'000),
         {},
         {list({{"cpu", "1"}}), list({{"cpu", "1"}})}},
        {"SharesAtTheLimit",
         engine(1024, 100'000),
         {},
         {list({{"cpu", "1"}}), list({{"cpu", "1"}})}},
        {"SharesBelowAnUnlimitedQuota", engine(2048, -1), {}, {list({{"cpu", "2"}}), {}}},
        {"APeriodThatCannotBe", engine(0, 1'000, -1), {}, {}},
    }),
    [](const TestParamInfo<Inferred>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Memory, InferResources,
    ValuesIn<Inferred>({
        {"Limit", engine(0, 0, 0, 4096), {}, {{}, list({{"memory", "4096"}})}},
        {"NoLimit", engine(0, 0, 0, -1), {}, {}},
        {"PodmansReservation",
         engine(0, 0, 0, 8192, 4096),
         {},
         {list({{"memory", "4096"}}), list({{"memory", "8192"}})}},
        {"ReservationOverScore", engine(0, 0, 0, 0, 4096), 500, {list({{"memory", "4096"}}), {}}},
        {"ReservationAboveTheLimit",
         engine(0, 0, 0, 4096, 8192),
         {},
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"AKubeletsScore", {}, 500, {list({{"memory", "500000000"}}), {}}},
        {"TheLargestScoreThatTells", {}, 998, {list({{"memory", "2000000"}}), {}}},
        {"ALittleRequestOrNone", {}, 999, {}},
        {"BestEffort", {}, 1000, {}},
        {"TheSmallestScoreThatTells", {}, 4, {list({{"memory", "996000000"}}), {}}},
        {"HeldAtThree", {}, 3, {}},
        {"Zero", {}, 0, {}},
        {"Sandbox", {}, -998, {}},
        {"GuaranteedRequestsItsLimit",
         engine(0, 0, 0, 4096),
         -997,
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"GuaranteedWithoutALimit", {}, -997, {}},
        {"AScoreAboveTheLimit",
         engine(0, 0, 0, 4096),
         500,
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"AScoreBeyondTheRange", {}, 5'000'000'000, {}},
    }),
    [](const TestParamInfo<Inferred>& row) { return std::string{row.param.name}; });

TEST(InferResourcesScore, GivesTheSmallestRequestOfIt) {
  struct Score {
    const char* name;
    std::int64_t score;
    std::int64_t node;
    std::int64_t request;
  };
  for (const auto& row : std::vector<Score>{
           {"ANodeOf32Gi", 900, 34'359'738'368, 3'435'973'837},
           {"ANodeOf8Gi", 500, 8'589'934'592, 4'294'967'296},
           {"AnOddNode", 998, 1'000'003, 2'001},
           {"TheSmallestScore", 4, 1'000'003, 996'003},
       }) {
    SCOPED_TRACE(row.name);
    const auto inferred = infer_resources({}, row.score, Bytes{row.node});
    const auto memory = find(inferred.requests, "memory");
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->value(), row.request);
    EXPECT_EQ(1000 - 1000 * row.request / row.node, row.score);
    EXPECT_EQ(1000 - 1000 * (row.request - 1) / row.node, row.score + 1);
  }
}

TEST(InferResources, SurvivesTheEndsOfTheRange) {
  const auto inferred =
      infer_resources(engine(kInt64Max, kInt64Max, 1, kInt64Max, kInt64Max), 500, Bytes{kInt64Max});
  EXPECT_EQ(find(inferred.limits, "memory")->value(), kInt64Max);
  EXPECT_EQ(find(inferred.requests, "memory")->value(), kInt64Max);
}

}  // namespace
}  // namespace podqos::core

#include "common/core/pods/apply_resize.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using facts::engine;
using pod_text::container;
using pod_text::list;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What an engine makes of 250m, a limit of 500m and 128Mi, and of twice as much.
constexpr facts::EngineValues kUsual{
    .shares = 256, .quota = 50'000, .period = 100'000, .memory = 128 * kMi};
constexpr facts::EngineValues kTwice{
    .shares = 512, .quota = 100'000, .period = 100'000, .memory = 256 * kMi};

Pod web_and_log() {
  return pod_text::pod({container("web", list({{"cpu", "250m"}, {"memory", "64Mi"}}),
                                  list({{"cpu", "500m"}, {"memory", "128Mi"}})),
                        container("log", list({{"cpu", "10m"}}))});
}

PodRecord plain_record_of(Pod pod) {
  PodRecord record;
  record.pod = std::move(pod);
  return record;
}

Resize of(const char* container, const facts::EngineValues& now) {
  return {.container = container, .now = engine(now)};
}

Resize of_pod(const facts::EngineValues& now) {
  return {.container = "", .now = engine(now)};
}

/// A pod of which the engine says nothing as a whole, after this.
Pod resized(Pod pod, const Resize& change) {
  PodRecord record = plain_record_of(std::move(pod));
  apply_resize(record, change);
  EXPECT_FALSE(record.sums);
  return std::move(record.pod);
}

TEST(ApplyResize, FollowsOneContainer) {
  struct Resized {
    const char* name;
    facts::EngineValues now;
    ResourceList requests;
    ResourceList limits;
  };
  for (const auto& row : std::vector<Resized>{
           {"AsTheEngineWouldMakeIt", kUsual, list({{"cpu", "250m"}, {"memory", "64Mi"}}),
            list({{"cpu", "500m"}, {"memory", "128Mi"}})},
           {"NothingSaid",
            {},
            list({{"cpu", "250m"}, {"memory", "64Mi"}}),
            list({{"cpu", "500m"}, {"memory", "128Mi"}})},
           {"Twice", kTwice, list({{"cpu", "500m"}, {"memory", "64Mi"}}),
            list({{"cpu", "1"}, {"memory", "256Mi"}})},
           {"NoRequestAboveItsLimit",
            {.memory = 32 * kMi},
            list({{"cpu", "250m"}, {"memory", "32Mi"}}),
            list({{"cpu", "500m"}, {"memory", "32Mi"}})},
           {"LimitsAndRequestsMayGo",
            {.shares = 2, .quota = -1, .memory = -1},
            list({{"memory", "64Mi"}}),
            {}},
       }) {
    SCOPED_TRACE(row.name);
    const Pod pod = resized(web_and_log(), of("web", row.now));
    EXPECT_EQ(pod.containers[0].resources, (Resources{row.requests, row.limits}));
    EXPECT_EQ(pod.containers[1], web_and_log().containers[1]);
    EXPECT_FALSE(pod.resources);
  }
  // 10 shares are those of 10m, and would be read as 9.77m.
  EXPECT_EQ(resized(web_and_log(), of("log", {.shares = 10})), web_and_log());
}

TEST(ApplyResize, AContainerThatThePodLacksIsAdded) {
  const Pod pod = resized(web_and_log(), of("new", kUsual));
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_EQ(pod.containers[2].name, "new");
  EXPECT_EQ(pod.containers[2].resources.requests, list({{"cpu", "250m"}}));
}

/// What an engine says of the pod as a whole is no spec.resources.
TEST(ApplyResize, ThePodItself) {
  PodRecord record = plain_record_of(web_and_log());
  apply_resize(record, of_pod(kUsual));
  ASSERT_TRUE(record.sums);
  EXPECT_EQ(record.sums->resources,
            (Resources{.requests = list({{"cpu", "250m"}}),
                       .limits = list({{"cpu", "500m"}, {"memory", "128Mi"}})}));
  EXPECT_EQ(record.pod, web_and_log());
  apply_resize(record, of_pod({}));
  EXPECT_EQ(record.sums->resources.limits, list({{"cpu", "500m"}, {"memory", "128Mi"}}));
  EXPECT_EQ(resized(web_and_log(), of_pod({})), web_and_log());
}

TEST(ApplyResize, APodWithValuesOfItsOwn) {
  Pod pod = web_and_log();
  pod.resources = Resources{.requests = {}, .limits = list({{"cpu", "1"}})};
  EXPECT_EQ(resized(pod, of_pod(kUsual)).resources,
            (Resources{.requests = list({{"cpu", "250m"}}),
                       .limits = list({{"cpu", "500m"}, {"memory", "128Mi"}})}));
}

/// The pod's own, or the engine's sums.
TEST(ApplyResize, ValuesOfThePodAreRaisedToItsContainers) {
  const Resources whole{.requests = list({{"cpu", "300m"}}),
                        .limits = list({{"cpu", "600m"}, {"memory", "512Mi"}})};
  const Resources raised{.requests = list({{"cpu", "510m"}}),
                         .limits = list({{"cpu", "1"}, {"memory", "512Mi"}})};
  Pod pod = web_and_log();
  pod.resources = whole;
  EXPECT_EQ(resized(pod, of("web", kTwice)).resources, raised);
  PodRecord record = plain_record_of(web_and_log());
  record.sums = core::EngineSums{.resources = whole};
  apply_resize(record, of("web", kTwice));
  EXPECT_EQ(record.sums->resources, raised);
}

/// A kubelet's pod of 150m with limits of 260m: each of its containers, which have no values of
/// their own, gets the shares of the pod's limit.
TEST(ApplyResize, SumsThatArePodLevelResourcesStay) {
  PodRecord record = plain_record_of(
      pod_text::pod({container("web", list({{"cpu", "260m"}}), list({{"cpu", "260m"}})),
                     container("log", list({{"cpu", "260m"}}), list({{"cpu", "260m"}}))}));
  record.sums = core::EngineSums{.resources = {.requests = list({{"cpu", "150m"}}), .limits = {}}};
  apply_resize(record, of("web", {.memory = 128 * kMi}));
  EXPECT_EQ(record.sums->resources.requests, list({{"cpu", "150m"}}));
}

/// A resize keeps the class, and so a request of 250m and 128Mi its limit.
TEST(ApplyResize, AKubeletsGuaranteedPodRequestsItsLimits) {
  const ResourceList usual = list({{"cpu", "250m"}, {"memory", "128Mi"}});
  PodRecord record = plain_record_of(pod_text::pod({container("app", usual, usual)}));
  record.kubelets_own = true;
  record.qos_class = QosClass::kGuaranteed;
  apply_resize(record,
               of("app", {.shares = 307, .quota = 30'000, .period = 100'000, .memory = 192 * kMi}));
  const ResourceList resized = list({{"cpu", "300m"}, {"memory", "192Mi"}});
  EXPECT_EQ(record.pod.containers.front().resources,
            (Resources{.requests = resized, .limits = resized}));
}

constexpr const char* kPod = "/podqos/kubepods/burstable/pod42";

ContainerRecord live(const std::string& name, const std::string& pod_cgroup = kPod) {
  return {.id = name,
          .bundle = "/run/" + name,
          .name = name,
          .state = ContainerState::kLive,
          .pid = Pid{10},
          .start_time = StartTime{100},
          .cgroup = pod_cgroup + "/" + name};
}

/// A pod whose containers came without annotations: web with 500m and 64Mi, log with 250m and 32Mi.
/// What is not requested has the limit as its request, as the API has it.
PodRecord inferred() {
  PodRecord record =
      pod_text::record_of({container("web", list({{"cpu", "500m"}, {"memory", "64Mi"}}),
                                     list({{"cpu", "500m"}, {"memory", "64Mi"}})),
                           container("log", list({{"cpu", "250m"}, {"memory", "32Mi"}}),
                                     list({{"cpu", "250m"}, {"memory", "32Mi"}}))});
  record.class_source = ClassSource::kInference;
  record.cgroup = kPod;
  record.containers = {live("web"), live("log")};
  return record;
}

/// What a runtime makes of 500m and 64Mi on cgroup v1.
HeldResources held(std::int64_t memory = 64 * kMi, std::int64_t quota = 50'000,
                   std::int64_t shares = 512) {
  return {.values =
              engine({.shares = shares, .quota = quota, .period = 100'000, .memory = memory})};
}

HeldResources held_v2(std::int64_t memory, std::int64_t quota, std::int64_t weight) {
  HeldResources out = held(memory, quota);
  out.values.cpu_shares.reset();
  out.cpu_weight = CpuWeight{weight};
  return out;
}

const Settings kSettings;
constexpr Bytes kPage{4096};

NodeRules node(WeightFormula formula = WeightFormula::kLinear) {
  return {.formula = formula,
          .capacity = {.memory = Bytes{kInt64Max}, .cpu = MilliCpu{kInt64Max}, .page_size = kPage},
          .settings = kSettings};
}

std::vector<std::string> follow(PodRecord& record, const HeldResources& web,
                                WeightFormula formula = WeightFormula::kLinear) {
  return follow_updates(record, std::vector{web, HeldResources{}}, node(formula));
}

const Resources& web_of(const PodRecord& record) {
  return record.pod.containers.at(0).resources;
}

TEST(FollowUpdates, TakesHigherLimits) {
  PodRecord record = inferred();
  EXPECT_THAT(follow(record, held(256 * kMi, 200'000)),
              ElementsAre("follows container web, updated to memory limit 256Mi, CPU limit 2"));
  EXPECT_EQ(web_of(record).limits, list({{"cpu", "2"}, {"memory", "256Mi"}}));
  EXPECT_EQ(web_of(record).requests, list({{"cpu", "500m"}, {"memory", "64Mi"}}));
  const auto values = pod_values(record, kSettings);
  ASSERT_TRUE(values);
  // 256Mi and 32Mi; 2 CPUs and 250m.
  EXPECT_EQ(values->memory_limit, Bytes{288 * kMi});
  EXPECT_EQ(values->cpu_quota, Micros{225'000});
  const PodRecord followed = record;
  EXPECT_THAT(follow(record, held(256 * kMi, 200'000)), IsEmpty());
  EXPECT_EQ(record, followed);
}

TEST(FollowUpdates, TakesLowerLimits) {
  PodRecord record = inferred();
  EXPECT_THAT(follow(record, held(32 * kMi, 20'000)),
              ElementsAre("follows container web, updated to memory limit 32Mi, CPU limit 200m"));
  EXPECT_EQ(web_of(record).limits, list({{"cpu", "200m"}, {"memory", "32Mi"}}));
  EXPECT_EQ(web_of(record).requests, list({{"cpu", "200m"}, {"memory", "32Mi"}}));
}

TEST(FollowUpdates, TakesSharesAndLimitsThatWereLifted) {
  PodRecord record = inferred();
  EXPECT_THAT(
      follow(record, held(-1, 50'000, 256)),
      ElementsAre("follows container web, updated to memory limit unlimited, CPU shares 256"));
  EXPECT_EQ(web_of(record).limits, list({{"cpu", "500m"}}));
  EXPECT_EQ(web_of(record).requests, list({{"cpu", "250m"}, {"memory", "64Mi"}}));
}

/// Which are the only value of its pod that they change.
TEST(FollowUpdates, TakesHigherShares) {
  PodRecord record = pod_text::record_of(
      {container("web", list({{"cpu", "500m"}, {"memory", "64Mi"}}), list({{"memory", "64Mi"}}))});
  record.class_source = ClassSource::kInference;
  record.cgroup = kPod;
  record.containers = {live("web")};
  EXPECT_THAT(follow_updates(record, std::vector{held(64 * kMi, -1, 2048)}, node()),
              ElementsAre("follows container web, updated to CPU shares 2048"));
  EXPECT_EQ(pod_values(record, kSettings)->cpu_shares, CpuShares{2048});
}

Resources limits(const char* cpu, const char* memory) {
  Resources out;
  if (*cpu != '\0') out.limits.insert(*list({{"cpu", cpu}}).begin());
  if (*memory != '\0') out.limits.insert(*list({{"memory", memory}}).begin());
  out.requests = out.limits;
  return out;
}

constexpr const char* kSlice =
    "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
    "podqos-kubepods-burstable-pod42.slice";

// Weights are those of runc: 512 shares are 20 by its linear formula and 59 by the other one.
TEST(WhatARuntimeWasGiven, IsNoUpdate) {
  struct UnchangedCase {
    const char* name;
    Resources known;
    HeldResources held;
    const char* cgroup = kPod;
  };
  for (const auto& [name, known, held, cgroup] : std::vector<UnchangedCase>{
           {"TheSame", limits("500m", "64Mi"), held()},
           {"NoLimitsAtAll", {}, held(-1, -1, 1024)},
           {"NoLimitsOnV2", {}, held_v2(-1, -1, 100)},
           {"SharesOfAKubeletsContainerWithoutRequest", {}, held(-1, -1, 2)},
           {"AllOfAPage", limits("", "100000000"), held(99'999'744, -1, 1024)},
           // 333.3m are 33330 us of 100 ms, which are read as 334m.
           {"QuotaBetweenMilliCpus", limits("334m", ""), held(-1, 33'330, 342)},
           {"QuotaThatSystemdRounds", limits("333m", ""), held(-1, 34'000, 340), kSlice},
           // Docker's --cpus 2 sets no shares; the API's default request is 2 CPUs.
           {"SharesThatAreNotSet", limits("2", "64Mi"), held(64 * kMi, 200'000, 1024)},
           {"WeightThatIsNotSet", limits("2", "64Mi"), held_v2(64 * kMi, 200'000, 100)},
           // 85 shares are read as 84m, which are 86 shares.
           {"SharesBetweenMilliCpus", limits("84m", "64Mi"), held(64 * kMi, 8'400, 85)},
           {"LinearWeight", limits("500m", "64Mi"), held_v2(64 * kMi, 50'000, 20)},
           {"OtherWeight", limits("500m", "64Mi"), held_v2(64 * kMi, 50'000, 59)},
           {"IdleWeight", limits("500m", "64Mi"), held_v2(64 * kMi, 50'000, 0)},
           {"NothingKnownOfTheCgroup", limits("500m", "64Mi"), {}},
           // A cgroup that was made again: its container had limits.
           {"NewCgroup", limits("500m", "64Mi"), held(-1, -1, 1024)},
           {"NewCgroupOnV2", limits("500m", "64Mi"), held_v2(-1, -1, 100)},
       }) {
    SCOPED_TRACE(name);
    PodRecord record = inferred();
    record.cgroup = cgroup;
    record.containers = {live("web", cgroup)};
    if (std::string_view{cgroup}.ends_with(".slice")) record.containers[0].cgroup += ".scope";
    record.pod.containers = {{.name = "web", .kind = ContainerKind::kApp, .resources = known}};
    const PodRecord before = record;
    EXPECT_THAT(follow_updates(record, std::vector{held}, node()), IsEmpty());
    EXPECT_EQ(record, before);
  }
}

TEST(FollowUpdates, ReadsWeights) {
  struct Case {
    WeightFormula formula;
    std::int64_t weight;
    const char* request;
  };
  // KEP-2254: weight 10 begins at 238 shares, 233m. runc 1.3.2: weight 40 begins at 306 shares.
  for (const auto& [formula, weight, request] :
       std::vector<Case>{{WeightFormula::kLinear, 10, "233m"}, {WeightFormula::kLog, 40, "299m"}}) {
    PodRecord record = inferred();
    EXPECT_THAT(
        follow(record, held_v2(64 * kMi, 50'000, weight), formula),
        ElementsAre("follows container web, updated to CPU weight " + std::to_string(weight)));
    EXPECT_EQ(web_of(record).requests, list({{"cpu", request}, {"memory", "64Mi"}}));
    const PodRecord once = record;
    EXPECT_THAT(follow(record, held_v2(64 * kMi, 50'000, weight), formula), IsEmpty());
    EXPECT_EQ(record, once);
  }
}

TEST(FollowUpdates, StatedResourcesStay) {
  for (const auto change : std::vector<void (*)(PodRecord&)>{
           [](PodRecord& record) { record.complete = true; },
           [](PodRecord& record) { record.class_source = ClassSource::kShortForms; },
           [](PodRecord& record) { record.kubelets_own = true; }}) {
    PodRecord record = inferred();
    change(record);
    const PodRecord before = record;
    EXPECT_THAT(follow(record, held(256 * kMi, 200'000)), IsEmpty());
    EXPECT_EQ(record, before);
  }
}

/// podman pod create --memory 128m: the containers may have more, and together do not.
TEST(FollowUpdates, ALimitOfTheEnginesPodStays) {
  PodRecord record = inferred();
  record.sums = EngineSums{.resources = {.requests = {}, .limits = list({{"memory", "128Mi"}})},
                           .enforced = true};
  EXPECT_THAT(follow(record, held(256 * kMi)),
              ElementsAre("keeps its values beside container web, updated to memory limit 256Mi"));
  const auto values = pod_values(record, kSettings);
  ASSERT_TRUE(values);
  EXPECT_EQ(values->memory_limit, Bytes{128 * kMi});
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(256 * kMi)}, node()),
              ElementsAre("container web: its memory limit 256Mi is above its pod's 128Mi, so it "
                          "has no effect: the pod's limit is its engine's: recreate the pod with a "
                          "higher one"));
}

TEST(DescribeUnfollowed, SaysWhatReconcileWillDo) {
  const PodRecord record = inferred();
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(), held(-1, -1)}, node()), IsEmpty());
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(80 * kMi)}, node()), IsEmpty());
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(256 * kMi)}, node()),
              ElementsAre("container web: its memory limit 256Mi is above its pod's 96Mi, so it "
                          "has no effect: run podqosctl reconcile, which lets the pod follow"));
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(64 * kMi, 200'000)}, node()),
              ElementsAre(HasSubstr("container web: its CPU limit 2 is above its pod's 750m")));
}

TEST(DescribeUnfollowed, SaysWhyStatedResourcesStay) {
  PodRecord record = inferred();
  record.complete = true;
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(256 * kMi)}, node()),
              ElementsAre(AllOf(HasSubstr("256Mi is above its pod's 96Mi"),
                                EndsWith("the pod's annotations state its resources: change them "
                                         "and recreate the pod"))));
  record.kubelets_own = true;
  EXPECT_THAT(describe_unfollowed(record, std::vector{held(256 * kMi)}, node()), IsEmpty());
}

TEST(DescribeUnfollowed, TellsOfLimitsThatAreGone) {
  const PodRecord record = inferred();
  EXPECT_THAT(
      describe_unfollowed(record, std::vector{held(-1, -1, 1024)}, node()),
      ElementsAre(AllOf(HasSubstr("container web has no limits any more in " + std::string{kPod}),
                        EndsWith("recreate the container"))));
}

TEST(TellsOfUpdates, OnlyWhereARuntimeSetsTheLimits) {
  PodRecord record = inferred();
  EXPECT_TRUE(tells_of_updates(record, record.containers[0]));
  ContainerRecord each = live("web");
  each.state = ContainerState::kPending;
  EXPECT_FALSE(tells_of_updates(record, each));
  each = live("web");
  each.sandbox = true;
  EXPECT_FALSE(tells_of_updates(record, each));
  each = live("web", "/docker");
  EXPECT_FALSE(tells_of_updates(record, each));
  // It is being replaced.
  record.containers.push_back(live("web"));
  EXPECT_FALSE(tells_of_updates(record, record.containers[0]));
}

}  // namespace
}  // namespace podqos::core

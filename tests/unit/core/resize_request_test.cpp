#include "common/core/pods/resize_request.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
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
using pod_text::memory;
using pod_text::record_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kNoLimitAnyMore = -1;

/// Burstable, of web and log.
PodRecord web_beside_log() {
  return record_of({container("web", list({{"cpu", "250m"}, {"memory", "64Mi"}}),
                              list({{"cpu", "500m"}, {"memory", "128Mi"}})),
                    container("log", list({{"cpu", "10m"}}))},
                   true);
}

RequestedResize decided_resize(const PodRecord& record, const ResizeRequest& request) {
  const auto resize = decide_resize(record, request);
  EXPECT_TRUE(resize) << resize.error().message;
  return resize ? *resize : RequestedResize{};
}

const Resources& named_resources(const PodRecord& record, const char* name) {
  return find_container(record.pod, name)->resources;
}

TEST(DescribeResize, SaysWhatHasChangedOfThePodOrOfItsContainers) {
  const PodRecord before =
      record_of({container("web", list({{"cpu", "250m"}}), list({{"memory", "128Mi"}})),
                 container("log", list({{"cpu", "10m"}}), memory("64Mi"))},
                true);
  const auto with = [&](Resources web) {
    PodRecord after = before;
    after.pod.containers.front().resources = std::move(web);
    return describe_resize(before, after);
  };
  EXPECT_EQ(with({.requests = list({{"cpu", "500m"}}), .limits = memory("100Mi")}),
            "cpu request 260m → 510m, memory limit 192Mi → 164Mi");
  EXPECT_EQ(with({.requests = list({{"cpu", "250m"}}), .limits = {}}), "memory limit 192Mi → none");
  // The pod has no CPU limit, since one of its containers has none.
  EXPECT_EQ(with({.requests = list({{"cpu", "250m"}}),
                  .limits = list({{"cpu", "1"}, {"memory", "128Mi"}})}),
            "container web: cpu limit none → 1");
}

TEST(DecideResize, ChangesWhatIsNamedAndNothingElse) {
  const PodRecord before = web_beside_log();
  const RequestedResize resize = decided_resize(
      before, {.container = "web",
               .wanted = {.requests = list({{"cpu", "400m"}}), .limits = memory("100Mi")}});
  EXPECT_EQ(named_resources(resize.after, "web"),
            (Resources{list({{"cpu", "400m"}, {"memory", "64Mi"}}),
                       list({{"cpu", "500m"}, {"memory", "100Mi"}})}));
  EXPECT_EQ(named_resources(resize.after, "log"), named_resources(before, "log"));
  EXPECT_EQ(resize.before, before);
}

TEST(DecideResize, HasTheHigherOfBothMeanwhile) {
  const RequestedResize resize = decided_resize(
      web_beside_log(), {.container = "web",
                         .wanted = {.requests = list({{"cpu", "400m"}, {"memory", "32Mi"}}),
                                    .limits = list({{"cpu", "1"}, {"memory", "96Mi"}})}});
  EXPECT_EQ(named_resources(resize.raised, "web"),
            (Resources{list({{"cpu", "400m"}, {"memory", "64Mi"}}),
                       list({{"cpu", "1"}, {"memory", "128Mi"}})}));
}

/// A container has the limit before its pod does.
TEST(DecideResize, HasALimitThatIsNewOnlyAfterwards) {
  const RequestedResize resize = decided_resize(
      web_beside_log(),
      {.container = "log", .wanted = {.requests = {}, .limits = list({{"cpu", "1"}})}});
  EXPECT_EQ(named_resources(resize.raised, "log"), (Resources{list({{"cpu", "10m"}}), {}}));
  EXPECT_EQ(named_resources(resize.after, "log").limits, list({{"cpu", "1"}}));
}

TEST(DecideResize, MeansThePodOrItsOnlyContainerWithoutAName) {
  const ResizeRequest request{.container = "",
                              .wanted = {.requests = {}, .limits = memory("256Mi")}};
  const PodRecord one = record_of({pod_text::limited("web", "1", "128Mi")}, true);
  EXPECT_EQ(
      decided_resize(one, {.container = "", .wanted = {.requests = memory("1Mi"), .limits = {}}})
          .container,
      "web");
  PodRecord pod_level = web_beside_log();
  pod_level.pod.resources = {list({{"cpu", "300m"}, {"memory", "64Mi"}}), memory("512Mi")};
  const RequestedResize resize = decided_resize(pod_level, request);
  EXPECT_EQ(resize.container, "");
  EXPECT_EQ(resize.after.pod.resources->limits, memory("256Mi"));
  EXPECT_EQ(resize.raised.pod.resources->limits, memory("512Mi"));
  const auto refused = decide_resize(web_beside_log(), request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("with --container: web, log"));
}

/// pkg/apis/core/validation/validation.go: the rules of a new pod, and ValidatePodResize's own.
TEST(DecideResize, RefusesWhatKubernetesRefuses) {
  struct Refused {
    const char* name;
    ResizeRequest request;
    ErrorCode code;
    const char* words;
  };
  PodRecord record = web_beside_log();
  record.pod.init_containers.push_back(pod_text::init("setup", list({{"cpu", "1"}})));
  record.pod.ephemeral_containers.push_back(container("debug", {}, {}, ContainerKind::kEphemeral));
  for (const auto& row : std::vector<Refused>{
           {"RequestAboveLimit",
            {"web", {list({{"cpu", "501m"}}), {}}},
            ErrorCode::kInvalidArgument,
            "cpu request 501m exceeds the limit 500m"},
           {"LimitBelowRequest",
            {"web", {{}, memory("63Mi")}},
            ErrorCode::kInvalidArgument,
            "exceeds the limit"},
           {"OtherResource",
            {"web", {{}, list({{"ephemeral-storage", "1Gi"}})}},
            ErrorCode::kInvalidArgument,
            "only cpu and memory can change"},
           {"Unknown",
            {"db", {memory("1Mi"), {}}},
            ErrorCode::kNotFound,
            "no container db can be resized: name one of these with --container: web, log"},
           {"Init", {"setup", {memory("1Mi"), {}}}, ErrorCode::kNotFound, "setup"},
           {"Ephemeral", {"debug", {memory("1Mi"), {}}}, ErrorCode::kNotFound, "debug"},
       }) {
    SCOPED_TRACE(row.name);
    const auto refused = decide_resize(record, row.request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, row.code);
    EXPECT_THAT(refused.error().message, HasSubstr(row.words));
  }
}

TEST(DecideResize, KeepsTheClass) {
  PodRecord guaranteed = record_of({pod_text::limited("web", "1", "64Mi")}, true);
  guaranteed.pod.containers.front().resources.requests =
      guaranteed.pod.containers.front().resources.limits;
  guaranteed.qos_class = QosClass::kGuaranteed;
  const auto refused = decide_resize(guaranteed, {"web", {{}, memory("128Mi")}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("from Guaranteed to Burstable"));
  EXPECT_TRUE(decide_resize(guaranteed, {"web", {memory("128Mi"), memory("128Mi")}}));
  const PodRecord besteffort = record_of({container("web", {})}, true);
  EXPECT_FALSE(decide_resize(besteffort, {"web", {list({{"cpu", "1m"}}), {}}}));
}

/// A container that is known so far may look Guaranteed, but its pod never is.
TEST(DecideResize, KnowsThatAnIncompletePodIsBurstable) {
  PodRecord record = record_of({pod_text::limited("web", "1", "64Mi")});
  record.pod.containers.front().resources.requests = record.pod.containers.front().resources.limits;
  EXPECT_TRUE(decide_resize(record, {"web", {{}, memory("128Mi")}}));
}

TEST(DecideResize, LeavesAKubeletsPodToIt) {
  PodRecord record = web_beside_log();
  record.kubelets_own = true;
  const auto refused = decide_resize(record, {"web", {memory("64Mi"), {}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("kubectl patch pod --subresource resize"));
}

/// Pod-level resources bound the containers: a container does not raise them.
TEST(DecideResize, BoundsContainersByThePod) {
  PodRecord record = web_beside_log();
  record.pod.resources = {list({{"cpu", "300m"}, {"memory", "64Mi"}}), memory("128Mi")};
  const auto refused = decide_resize(record, {"web", {{}, memory("256Mi")}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("exceeds the pod's limit"));
}

/// What a CRI engine says of the whole pod is the sum of its containers.
TEST(DecideResize, LetsTheEnginesSumsFollow) {
  PodRecord record = web_beside_log();
  record.sums = {.resources = {list({{"cpu", "260m"}}), {}}, .enforced = false};
  for (const auto& [cpu, sum] : {std::pair{"500m", "510m"}, std::pair{"100m", "110m"}}) {
    const RequestedResize resize = decided_resize(record, {"web", {list({{"cpu", cpu}}), {}}});
    EXPECT_EQ(resize.after.sums->resources.requests, list({{"cpu", sum}})) << cpu;
  }
}

TEST(DecideResize, ChangesWhatBacksTheRequest) {
  PodRecord record = web_beside_log();
  record.containers.emplace_back().name = "web";
  record.containers.front().backed_memory = Bytes{128 * kMi};
  const RequestedResize resize = decided_resize(record, {"web", {{}, memory("64Mi")}});
  EXPECT_EQ(resize.after.containers.front().backed_memory, Bytes{64 * kMi});
  EXPECT_EQ(resize.raised.containers.front().backed_memory, Bytes{128 * kMi});
}

TEST(WithAmounts, KeepsContainersThatHaveComeSince) {
  const PodRecord before = web_beside_log();
  PodRecord now = before;
  now.pod.containers.push_back(container("late", memory("1Mi")));
  const RequestedResize resize = decided_resize(before, {"web", {memory("100Mi"), {}}});
  const PodRecord next = with_amounts(now, amounts_of(resize.after, "web"), "web");
  EXPECT_EQ(next.pod.containers.size(), 3U);
  EXPECT_EQ(named_resources(next, "web"), named_resources(resize.after, "web"));
  EXPECT_EQ(with_amounts(next, amounts_of(before, "web"), "web"), now);
}

/// Values of 250m, a limit of 500m and 128Mi, and of doubled_values as much, as the
/// kubelet's formulas have them.
CgroupValues rule_values() {
  return {.cpu_shares = CpuShares{256},
          .cpu_quota = Micros{50'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{128 * kMi}};
}
CgroupValues doubled_values() {
  return {.cpu_shares = CpuShares{512},
          .cpu_quota = Micros{100'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{256 * kMi}};
}
EngineResources runtime_values(std::int64_t shares, std::int64_t quota, std::int64_t mebibytes) {
  return engine({.shares = shares, .quota = quota, .period = 100'000, .memory = mebibytes * kMi});
}

TEST(RuntimeUpdate, ChangesMemoryFirstAndThenCpu) {
  const RuntimeUpdate update =
      runtime_update(rule_values(), doubled_values(), {.values = runtime_values(256, 50'000, 128)},
                     WeightFormula::kLinear);
  EXPECT_THAT(update.steps, ::testing::ElementsAre(runtime_values(256, 50'000, 256),
                                                   runtime_values(512, 100'000, 256)));
  EXPECT_EQ(update.undo, runtime_values(256, 50'000, 128));
}

TEST(RuntimeUpdate, TellsNothingWhereNothingChanges) {
  EXPECT_THAT(runtime_update(rule_values(), rule_values(), {.values = runtime_values(1, 1, 1)},
                             WeightFormula::kLog)
                  .steps,
              IsEmpty());
}

/// runc writes what it is runtime_values, and its weight is made of shares: those of the rule,
/// unless its engine has set others. 256 shares are weight 10 by the older formula, 35 by the newer
/// one.
TEST(RuntimeUpdate, KeepsTheWeightThatTheCgroupHas) {
  CgroupValues more = rule_values();
  more.memory_limit = Bytes{256 * kMi};
  struct Row {
    WeightFormula formula;
    std::int64_t weight;
    std::int64_t shares;
  };
  for (const auto& row : {Row{WeightFormula::kLinear, 10, 256}, Row{WeightFormula::kLog, 35, 256},
                          Row{WeightFormula::kLinear, 20, 501}}) {
    HeldResources held{.values = runtime_values(0, 50'000, 128),
                       .cpu_weight = CpuWeight{row.weight}};
    const RuntimeUpdate update = runtime_update(rule_values(), more, held, row.formula);
    EXPECT_THAT(update.steps, ::testing::ElementsAre(runtime_values(row.shares, 50'000, 256)))
        << row.weight;
  }
  // Of a new cgroup: the engine has set none.
  HeldResources held{.values = runtime_values(0, 50'000, 128), .cpu_weight = CpuWeight{100}};
  EXPECT_THAT(runtime_update(rule_values(), more, held, WeightFormula::kLinear).steps,
              ::testing::ElementsAre(runtime_values(0, 50'000, 256)));
}

/// With -1 runc would lift the limit of swap too (opencontainers/cgroups utils.go,
/// ConvertMemorySwapToCgroupV2Value).
TEST(RuntimeUpdate, TakesBackALimitThatIsNew) {
  const CgroupValues unlimited{.cpu_shares = CpuShares{256}};
  HeldResources held{.values = runtime_values(256, kNoLimitAnyMore, 0)};
  held.values.memory_limit = kNoLimitAnyMore;
  CgroupValues limited = rule_values();
  const RuntimeUpdate update = runtime_update(unlimited, limited, held, WeightFormula::kLinear);
  EXPECT_EQ(update.steps.back(), runtime_values(256, 50'000, 128));
  EXPECT_EQ(update.undo.memory_limit, 9'223'372'036'854'771'712);
  EXPECT_EQ(update.undo.cpu_quota, kNoLimitAnyMore);
}

/// Documentation/admin-guide/cgroup-v1/memory.rst: memory.memsw.limit_in_bytes is at least
/// memory.limit_in_bytes.
TEST(RuntimeUpdate, KeepsTheSwapOfCgroupV1) {
  HeldResources held{.values = runtime_values(256, 50'000, 128)};
  held.values.memory_swap = 192 * kMi;
  const RuntimeUpdate update =
      runtime_update(rule_values(), doubled_values(), held, WeightFormula::kLinear);
  EXPECT_EQ(update.steps.front().memory_swap, 320 * kMi);
  EXPECT_EQ(update.undo.memory_swap, 192 * kMi);
  held.values.memory_swap = kInt64Max - 1;
  EXPECT_EQ(runtime_update(rule_values(), doubled_values(), held, WeightFormula::kLinear)
                .steps.front()
                .memory_swap,
            kInt64Max);
}

TEST(RuntimeUpdate, ConvertsTheQuotaToTheContainersPeriod) {
  HeldResources held{.values = runtime_values(256, 25'000, 128)};
  held.values.cpu_period = 50'000;
  const RuntimeUpdate update =
      runtime_update(rule_values(), doubled_values(), held, WeightFormula::kLinear);
  EXPECT_EQ(update.steps.back().cpu_quota, 50'000);
  EXPECT_EQ(update.steps.back().cpu_period, 50'000);
}

TEST(CheckUsage, LeavesAMargin) {
  const auto check = [](std::int64_t before, std::int64_t after, std::int64_t usage) {
    return check_usage({.memory_limit = Bytes{before * kMi}}, {.memory_limit = Bytes{after * kMi}},
                       Bytes{usage * kMi});
  };
  EXPECT_TRUE(check(128, 64, 48));  // 48 MiB and the margin of 16
  const auto refused = check(128, 64, 49);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("64Mi is too low: 49Mi is in use"), HasSubstr("ask for 65Mi")));
  EXPECT_TRUE(check(64, 64, 64));
  EXPECT_TRUE(check(64, 65, 64));
  EXPECT_FALSE(check(0, 64, 64));  // without a limit before
  EXPECT_TRUE(check_usage({}, {.memory_limit = Bytes{kMi}}, std::nullopt));
}

/// CPU and memory are told one after the other: each is where its container has it.
TEST(SettleResize, GoesByWhatTheContainerHas) {
  const Settings settings;
  const NodeRules node{.formula = WeightFormula::kLinear, .capacity = {}, .settings = settings};
  PodRecord record = web_beside_log();
  record.cgroup = "/podqos/kubepods/burstable/poda";
  ContainerRecord& web = record.containers.emplace_back();
  web.name = "web";
  web.state = ContainerState::kLive;
  web.cgroup = cat(record.cgroup, "/web");
  const RequestedResize resize =
      decided_resize(record, {.container = "web",
                              .wanted = {.requests = list({{"cpu", "500m"}, {"memory", "96Mi"}}),
                                         .limits = list({{"cpu", "1"}, {"memory", "256Mi"}})}});
  PodRecord raised = resize.raised;
  raised.resizing = Resizing{.container = "web",
                             .before = amounts_of(resize.before, "web"),
                             .raised = amounts_of(raised, "web"),
                             .after = amounts_of(resize.after, "web")};
  const auto settled = [&](std::int64_t shares, std::int64_t quota, std::int64_t mebibytes) {
    const std::vector held{HeldResources{.values = runtime_values(shares, quota, mebibytes)}};
    return settle_resize(raised, held, node);
  };
  EXPECT_EQ(settled(256, 50'000, 128), record);
  EXPECT_EQ(settled(512, 100'000, 256), resize.after);
  EXPECT_EQ(named_resources(settled(256, 50'000, 256), "web"),
            (Resources{list({{"cpu", "250m"}, {"memory", "96Mi"}}),
                       list({{"cpu", "500m"}, {"memory", "256Mi"}})}));
  // Another program has changed it: nothing of the resize has come.
  EXPECT_EQ(settled(128, 10'000, 32), record);
  // Its cgroup cannot be read.
  EXPECT_EQ(settle_resize(raised, std::vector{HeldResources{}}, node), record);
  // An event has changed the pod since.
  PodRecord changed = raised;
  find_container(changed.pod, "web")->resources.limits = memory("1Gi");
  PodRecord kept = changed;
  kept.resizing.reset();
  EXPECT_EQ(settle_resize(changed, std::vector{HeldResources{}}, node), kept);
}

}  // namespace
}  // namespace podqos::core

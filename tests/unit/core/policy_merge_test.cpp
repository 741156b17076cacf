#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/merge.h"
#include "tests/unit/core/merging.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using merging::full;
using merging::identity_in;
using merging::join;
using merging::living;
using merging::none;
using merging::partial;
using merging::some;
using merging::whole;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum QosClass;

TEST(JoinPod, PassesOnWhatTheClaimWarnsOf) {
  PodClaim claim = whole(some("a"));
  claim.warnings = {"refused"};
  EXPECT_THAT(join(std::nullopt, claim).warnings, ElementsAre("refused"));
}

TEST(JoinPod, RemembersTheSandbox) {
  const auto joined = merge_claim(std::nullopt, identity_in("s1"), whole(some("a")), {});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->record.sandbox_id, "s1");
}

TEST(JoinPod, CollectsTheContainersOfAPartialPod) {
  const PodRecord record = join(living(partial(some("a"))), partial(some("b"))).record;
  EXPECT_THAT(record.pod.containers, ElementsAre(some("a"), some("b")));
  EXPECT_FALSE(record.complete);
}

TEST(JoinPod, LetsARestartedContainerReplaceItself) {
  const MergedPod joined = join(living(partial(some("a"))), partial(none("a")));
  EXPECT_THAT(joined.record.pod.containers, ElementsAre(none("a")));
  EXPECT_THAT(joined.warnings, IsEmpty());
}

/// A pod of containers that have started, each with this name in the pod.
PodRecord running(const PodClaim& claim, std::vector<std::string> names) {
  PodRecord record = living(claim);
  record.containers.clear();
  for (std::string& name : names) {
    ContainerRecord& container = record.containers.emplace_back();
    container.id = container.name = std::move(name);
    container.state = ContainerState::kLive;
  }
  return record;
}

TEST(JoinPod, LetsNoContainerReplaceAnotherOfItsName) {
  const MergedPod second = join(running(partial(some("a")), {"a"}), partial(none("a")));
  EXPECT_EQ(second.container, "a-2");
  EXPECT_THAT(second.record.pod.containers, ElementsAre(some("a"), none("a-2")));
  const MergedPod third = join(running(partial(some("a")), {"a", "a-2"}), partial(some("a")));
  EXPECT_EQ(third.container, "a-3");
}

TEST(JoinPod, LeavesContainersOfASpecTheirNames) {
  EXPECT_EQ(join(running(whole(some("a")), {"a"}), whole(some("a"))).container, "a");
  EXPECT_EQ(join(running(partial(some("a")), {"a"}), whole(some("a"))).container, "a");
}

/// podqos.io/limits.a of the container b, or of the whole sandbox.
TEST(JoinPod, LetsNoContainerDescribeAnotherAnew) {
  PodClaim claim = partial(some("b"));
  claim.pod.containers.push_back(none("a"));
  claim.pod.containers.push_back(none("c"));
  const MergedPod joined = join(running(partial(some("a")), {"a"}), claim);
  EXPECT_THAT(joined.record.pod.containers, ElementsAre(some("a"), some("b"), none("c")));
}

TEST(JoinPod, LetsASpecCompleteAPartialPod) {
  const MergedPod joined = join(living(partial(none("a"))), whole(full("a")));
  EXPECT_TRUE(joined.record.complete);
  EXPECT_EQ(joined.record.pod, whole(full("a")).pod);
  EXPECT_EQ(joined.record.qos_class, kBestEffort);
  EXPECT_EQ(joined.warnings.size(), 1U);
}

TEST(JoinPod, KeepsTheFirstOfTwoSpecs) {
  const MergedPod joined = join(living(whole(some("a"))), whole(none("a")));
  EXPECT_EQ(joined.record.pod, whole(some("a")).pod);
  EXPECT_THAT(joined.warnings, ElementsAre(HasSubstr("which applies until the pod has ended")));
}

TEST(JoinPod, IsSilentWhereTheSpecsAgree) {
  EXPECT_THAT(join(living(whole(some("a"))), whole(some("a"))).warnings, IsEmpty());
}

TEST(JoinPod, AddsNothingToAWholePod) {
  const PodRecord record = join(living(whole(some("a"))), partial(some("b"))).record;
  EXPECT_THAT(record.pod.containers, ElementsAre(some("a")));
}

/// podqos.io/limits of the pod, as the container `name` tells it.
PodClaim sums(const char* name, const char* limit) {
  PodClaim claim = whole(none(name));
  claim.source = ClassSource::kShortForms;
  claim.pod.resources = Resources{.requests = {}, .limits = list({{"cpu", limit}})};
  return claim;
}

TEST(JoinPod, SaysWhenAContainerDescribesAWholePodOtherwise) {
  const PodRecord known = living(whole(some("a")));
  EXPECT_THAT(join(known, whole(some("a"))).warnings, IsEmpty());
  EXPECT_THAT(join(known, whole(some("b"))).warnings,
              ElementsAre(HasSubstr("pod spec differs from the first container's")));
}

/// A pod of a CRI engine, of which every container has the annotations of its sandbox.
TEST(JoinPod, GivesAReplacedContainerItsSpecAgainAfterAResize) {
  PodClaim claim = whole(full("a"));
  claim.pod.containers.push_back(full("b"));
  claim.runs_as_specified = true;
  PodRecord resized = living(claim);
  for (Container& container : resized.pod.containers)
    container.resources.limits = list({{"cpu", "500m"}, {"memory", "512Mi"}});
  Identity engines = identity_in("", "", IdentitySource::kEngine);
  engines.container_name = "a";
  resized.founded_by = IdentitySource::kEngine;
  const auto joined = merge_claim(resized, engines, claim, {});
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_THAT(joined->warnings, IsEmpty());
  EXPECT_EQ(joined->record.pod.containers[0], full("a"));
  // This one still runs as it was resized.
  EXPECT_EQ(joined->record.pod.containers[1], resized.pod.containers[1]);
}

TEST(JoinPod, ExpectsTheSameSumsOfAllContainersAndNotTheSameContainers) {
  const PodRecord known = living(sums("a", "1"));
  EXPECT_THAT(join(known, sums("b", "1")).warnings, IsEmpty());
  EXPECT_THAT(join(known, sums("b", "2")).warnings,
              ElementsAre(HasSubstr("pod spec differs from the first container's")));
}

TEST(JoinPod, LearnsNothingFromASandbox) {
  PodClaim sandbox;
  sandbox.declared_class = kBestEffort;
  const PodRecord before = living(partial(some("a")));
  const MergedPod joined = join(before, sandbox);
  EXPECT_EQ(joined.record, before);
  EXPECT_THAT(joined.warnings, IsEmpty());
}

TEST(JoinPod, StartsAnewUnderTheUidOfAPodThatHasEnded) {
  PodRecord ended = living(whole(full("a")));
  ended.containers.clear();
  ended.released_at = UnixSeconds{1};
  ended.granted.cpu = MilliCpu{1000};
  const PodRecord record = join(ended, partial(none("b"))).record;
  EXPECT_EQ(record.qos_class, kBestEffort);
  EXPECT_FALSE(record.complete);
  EXPECT_EQ(record.released_at, std::nullopt);
  EXPECT_EQ(record.cgroup, "");
  EXPECT_THAT(record.pod.containers, ElementsAre(none("b")));
}

TEST(JoinPod, WakesAnEndedPodForASandboxThatKnowsNothing) {
  PodRecord ended = living(whole(full("a")));
  ended.containers.clear();
  ended.released_at = UnixSeconds{1};
  const PodRecord record = join(ended, PodClaim{}).record;
  EXPECT_EQ(record.released_at, std::nullopt);
  EXPECT_EQ(record.pod, ended.pod);
}

TEST(JoinPod, KeepsTheNamespaceOfAPodThatIsCompleted) {
  PodRecord before = living(partial(none("a")));
  before.pod.pod_namespace = "shop";
  EXPECT_EQ(join(before, whole(full("a"))).record.pod.pod_namespace, "shop");
}

}  // namespace
}  // namespace podqos::core

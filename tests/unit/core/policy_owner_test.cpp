#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/merge.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/merging.h"

namespace podqos::core {
namespace {

using merging::identity_in;
using merging::living;
using merging::partial;
using merging::some;
using merging::whole;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;
using enum QosClass;

Identity of_engine(std::string sandbox, std::string pod_namespace = "") {
  return identity_in(std::move(sandbox), std::move(pod_namespace), IdentitySource::kEngine);
}
Identity of_cgroup(std::string sandbox) {
  return identity_in(std::move(sandbox), "", IdentitySource::kCgroup);
}
Identity of_sandbox(std::string sandbox) {
  return identity_in(std::move(sandbox), "", IdentitySource::kSandbox);
}
Identity lone() {
  return identity_in("", "", IdentitySource::kLone);
}

struct Owner {
  const char* name;
  Identity first;
  Identity second;
  bool joins;
};
class JoinPodOwner : public TestWithParam<Owner> {};

TEST_P(JoinPodOwner, IsRespected) {
  auto record = merge_claim(std::nullopt, GetParam().first, whole(some("a")), {});
  ASSERT_TRUE(record);
  record->record.pod.pod_namespace = GetParam().first.pod_namespace;
  record->record.containers.emplace_back().id = "first";
  const auto joined = merge_claim(record->record, GetParam().second, whole(some("a")), {});
  ASSERT_EQ(joined.has_value(), GetParam().joins);
  if (!joined) {
    EXPECT_EQ(joined.error().code, ErrorCode::kConflict);
    EXPECT_THAT(joined.error().message, HasSubstr("\"42\""));
  }
}

TEST_P(JoinPodOwner, MeansNothingOnceThePodHasEnded) {
  auto record = merge_claim(std::nullopt, GetParam().first, whole(some("a")), {});
  ASSERT_TRUE(record);
  EXPECT_TRUE(merge_claim(record->record, GetParam().second, whole(some("a")), {}));
}

INSTANTIATE_TEST_SUITE_P(
    Table, JoinPodOwner,
    ValuesIn<Owner>({
        {"NoSandboxAtAll", identity_in(""), identity_in(""), true},
        {"TheSameSandbox", identity_in("s1"), identity_in("s1"), true},
        {"AnotherSandbox", identity_in("s1"), identity_in("s2"), false},
        {"AStrangerToTheSandbox", identity_in("s1"), identity_in(""), false},
        {"ASandboxToAStranger", identity_in(""), identity_in("s2"), false},
        {"AnotherNamespace", identity_in("", "shop"), identity_in("", "evil"), false},
        {"TheSameNamespace", identity_in("", "shop"), identity_in("", "shop"), true},
        {"AnotherNamespaceOfTheSameSandbox", identity_in("s1", "a"), identity_in("s1", "b"), false},
        {"NoNamespace", identity_in("", "shop"), identity_in(""), true},
        {"ANewerSandboxByTheEnginesWord", identity_in("s1", "", IdentitySource::kEngine),
         identity_in("s2", "", IdentitySource::kEngine), true},
        {"AnAnnotationToAnEnginesPod", identity_in("s1", "", IdentitySource::kEngine),
         identity_in(""), false},
        {"ALoneContainerToASandbox", identity_in("s1"), lone(), false},
        {"ALoneContainerToWhoClaimedItsUid", identity_in(""), lone(), false},
        {"ALoneContainerToAnother", lone(), lone(), false},
        {"AnAnnotationToALoneContainer", lone(), identity_in(""), false},
        {"TheEngineToALoneContainer", lone(), of_engine("s1"), false},
        {"AnAnnotationToAnEnginesPodWithoutSandbox", of_engine(""), identity_in(""), false},
        {"AnAnnotationToAnEnginesSandbox", of_engine("s1"), identity_in("s2"), false},
        {"AnAnnotationInAnEnginesOwnSandbox", of_engine("s1"), identity_in("s1"), true},
        {"AnAnnotationToAKubeletsPod", of_cgroup(""), identity_in(""), false},
        {"AnAnnotationToASandboxsPod", of_sandbox("s1"), identity_in("s2"), false},
        {"AnAnnotationInItsOwnSandbox", of_sandbox("s1"), identity_in("s1"), true},
        {"TheEngineToWhoClaimedItsUid", identity_in(""), of_engine("s1"), false},
        {"TheEngineToAnothersSandbox", identity_in("s2"), of_engine("s1"), false},
        {"TheEngineInOneSandbox", identity_in("s1"), of_engine("s1"), true},
        {"AKubeletsToWhoClaimedItsUid", identity_in(""), of_cgroup(""), false},
        {"ASandboxToWhoClaimedItsId", identity_in("s2"), of_sandbox("s1"), false},
        {"ASandboxsSecondContainer", of_sandbox("s1"), of_sandbox("s1"), true},
        {"TheEngineAndACgroupKnowOnePod", of_engine("s1"), of_cgroup(""), true},
        {"AnotherNamespaceByTheEnginesWord", of_engine("s1", "a"), of_engine("s2", "b"), false},
        {"TheSameNamespaceByTheEnginesWord", of_engine("s1", "a"), of_engine("s2", "a"), true},
    }),
    [](const TestParamInfo<Owner>& row) { return std::string{row.param.name}; });

TEST(JoinPod, SaysWhoHoldsTheUidOfAnEnginesPod) {
  PodRecord squatted = merge_claim(std::nullopt, identity_in("s2"), whole(some("a")), {})->record;
  squatted.containers.emplace_back().id = "first";
  const auto joined = merge_claim(squatted, of_engine("s1"), whole(some("a")), {});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message,
              AllOf(HasSubstr("\"42\""), HasSubstr("sandbox \"s2\""), HasSubstr("sandbox \"s1\""),
                    HasSubstr("podqos.io/pod-uid claims this uid")));
}

/// A record of an earlier release does not say who founded it.
TEST(JoinPod, HoldsOldRecordsToTheSandbox) {
  PodRecord old = living(whole(some("a")));
  old.founded_by.reset();
  old.sandbox_id = "s1";
  EXPECT_TRUE(merge_claim(old, of_engine("s2"), whole(some("a")), {}));
  EXPECT_TRUE(merge_claim(old, identity_in("s1"), whole(some("a")), {}));
  EXPECT_FALSE(merge_claim(old, identity_in(""), whole(some("a")), {}));
  EXPECT_FALSE(merge_claim(old, lone(), whole(some("a")), {}));
}

TEST(JoinPod, JoinsTheCgroupThatTheContainerLiesIn) {
  PodRecord record = living(whole(some("a")));
  Identity there = of_cgroup("");
  there.placed = facts::kubelet_pod(kBurstable);
  there.placed->pod_path = record.cgroup;
  EXPECT_TRUE(merge_claim(record, there, whole(some("a")), {}));
}

/// One of the two has the uid by mistake or by intent: the kubelet's container stays where it is.
TEST(JoinPod, RefusesAKubeletsContainerInAPodOfPodqosItself) {
  PodRecord record = living(whole(some("a")));
  record.founded_by = IdentitySource::kEngine;
  Identity kubelets = of_engine("s1");
  kubelets.placed = facts::kubelet_pod(kBurstable);
  const auto joined = merge_claim(record, kubelets, whole(some("a")), {});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kConflict);
  EXPECT_THAT(joined.error().message, HasSubstr("is in the kubelet's pod cgroup"));
  record.adopted = true;
  EXPECT_TRUE(merge_claim(record, kubelets, whole(some("a")), {}));
}

/// Its cgroup lingers, and a kubelet brings a pod of the same uid, whose sandbox says nothing.
TEST(JoinPod, BeginsAnewWhereAKubeletBringsThePodOfAnEndedOne) {
  PodRecord ended = living(whole(some("a")));
  ended.containers.clear();
  Identity kubelets = of_engine("s1");
  kubelets.placed = facts::kubelet_pod(kBurstable);
  const auto joined = merge_claim(ended, kubelets, PodClaim{}, {});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->record.cgroup, "");
  EXPECT_THAT(joined->record.pod.containers, IsEmpty());
}

TEST(JoinPod, NamesTheFounderAnewOnceThePodHasEnded) {
  PodRecord ended = living(whole(some("a")));
  ended.containers.clear();
  EXPECT_EQ(merge_claim(ended, of_engine("s1"), PodClaim{}, {})->record.founded_by,
            IdentitySource::kEngine);
  EXPECT_EQ(merge_claim(ended, of_engine("s1"), partial(some("a")), {})->record.founded_by,
            IdentitySource::kEngine);
}

TEST(JoinPod, TakesOverTheNewerSandbox) {
  PodRecord before = living(whole(some("a")));
  before.founded_by = IdentitySource::kEngine;
  before.sandbox_id = "s1";
  const auto joined =
      merge_claim(before, identity_in("s2", "", IdentitySource::kEngine), whole(some("a")), {});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->record.sandbox_id, "s2");
}

}  // namespace
}  // namespace podqos::core

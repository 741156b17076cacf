#include "common/core/events/decide_reconciliation.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

constexpr const char* kCgroup = "/podqos/kubepods/burstable/pod42";
constexpr Process kInit{.pid = Pid{20}, .start_time = StartTime{200}};
constexpr Pid kListener{1};
constexpr StartTime kListenerStart{10};

/// A container whose process is the one that creates it, or its init.
ContainerRecord in_state(ContainerState state, std::string id = "c1") {
  ContainerRecord out;
  out.name = id;
  out.id = std::move(id);
  out.bundle = "/b";
  out.state = state;
  out.pid = Pid{7};
  out.start_time = StartTime{70};
  return out;
}

/// A Burstable pod with one container, which requests this much CPU.
PodRecord requesting_pod(std::string uid, const char* cpu) {
  PodRecord record;
  record.pod = pod_text::pod({pod_text::container("c1", list({{"cpu", cpu}}))});
  record.pod.uid = std::move(uid);
  record.qos_class = QosClass::kBurstable;
  record.cgroup = kCgroup;
  record.containers = {in_state(ContainerState::kLive)};
  return record;
}

EngineList engine_list(Ids ids) {
  return {.ids = std::move(ids), .listener = {kListener, kListenerStart}};
}

FoundPodCgroup found_cgroup() {
  return {.path = kCgroup,
          .uid = "42",
          .known = false,
          .populated = true,
          .has_copy = true,
          .copy = requesting_pod("42", "100m")};
}

TEST(DecideRestoration, ARunningPodIsRestoredFromItsCopy) {
  FoundPodCgroup found = found_cgroup();
  found.copy->released_at = BootSeconds{9};
  const auto decided = decide_restoration(std::move(found));
  EXPECT_FALSE(decided.removed);
  EXPECT_EQ(decided.record, requesting_pod("42", "100m"));
  EXPECT_EQ(decided.change, "pod 42 restored from the copy of its record in its cgroup");
  EXPECT_EQ(decided.warning, std::nullopt);
}

TEST(DecideRestoration, AnEndedPodsCgroupIsRemovedIfPodqosMadeIt) {
  FoundPodCgroup found = found_cgroup();
  found.populated = false;
  auto decided = decide_restoration(found);
  EXPECT_TRUE(decided.removed);
  EXPECT_EQ(decided.change,
            "removed cgroup /podqos/kubepods/burstable/pod42 of a pod that has ended");
  found.has_copy = false;
  found.copy.reset();
  found.left_over = true;
  EXPECT_TRUE(decide_restoration(found).removed);
  // An engine has made it for a container.
  found.left_over = false;
  decided = decide_restoration(found);
  EXPECT_FALSE(decided.removed);
  EXPECT_EQ(decided.record, std::nullopt);
  EXPECT_EQ(decided.change, std::nullopt);
  EXPECT_EQ(decided.warning, std::nullopt);
}

TEST(DecideRestorationWarns, OfProcessesOfNoKnownPod) {
  struct UnknownProcesses {
    const char* name;
    void (*change)(FoundPodCgroup& found);
  };
  for (const auto& row : std::vector<UnknownProcesses>{
           {"CopyCannotBeRead", [](FoundPodCgroup& found) { found.copy.reset(); }},
           {"CopyIsOfAnotherPod", [](FoundPodCgroup& found) { found.copy->pod.uid = "43"; }},
           {"CopyIsOfAnotherCgroup", [](FoundPodCgroup& found) { found.copy->cgroup = "/other"; }},
           {"PodHasACgroupElsewhere", [](FoundPodCgroup& found) { found.known = true; }},
       }) {
    SCOPED_TRACE(row.name);
    FoundPodCgroup found = found_cgroup();
    row.change(found);
    const auto decided = decide_restoration(std::move(found));
    EXPECT_FALSE(decided.removed);
    EXPECT_EQ(decided.record, std::nullopt);
    EXPECT_EQ(decided.change, std::nullopt);
    ASSERT_TRUE(decided.warning);
    EXPECT_THAT(*decided.warning, HasSubstr("contains processes that podqos did not place"));
  }
}

/// The containers left in a pod of one, of which this was observed.
std::vector<ContainerRecord> left_of(const ContainerRecord& container,
                                     const ContainerObservation& observation,
                                     const EngineList* list = nullptr) {
  PodRecord record = requesting_pod("42", "100m");
  record.containers = {container};
  return remove_ended(std::move(record), {{observation}}, list).record.containers;
}

TEST(RemoveEnded, AContainerEndsWithItsProcess) {
  const auto live = in_state(ContainerState::kLive);
  EXPECT_FALSE(needs_init(live, true, nullptr));
  EXPECT_TRUE(needs_init(live, false, nullptr));
  EXPECT_THAT(left_of(live, {.lives = true}), ElementsAre(live));
  EXPECT_THAT(left_of(live, {.lives = false}), IsEmpty());
}

TEST(RemoveEnded, AContainerWhoseCreatorIsGoneIsConfirmedIfItRuns) {
  const auto left = left_of(in_state(ContainerState::kPending), {.lives = false, .init = kInit});
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left.front().state, ContainerState::kLive);
  EXPECT_EQ(left.front().pid, kInit.pid);
  EXPECT_EQ(left.front().start_time, kInit.start_time);
}

TEST(RemoveEnded, AListedContainerWaitsForItsEngine) {
  const EngineList list = engine_list({"c1"});
  const auto pending = in_state(ContainerState::kPending);
  EXPECT_TRUE(needs_init(pending, true, &list));
  const auto left = left_of(pending, {.lives = false}, &list);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left.front().state, ContainerState::kPending);
  EXPECT_EQ(left.front().pid, kListener);
  EXPECT_EQ(left.front().start_time, kListenerStart);
}

TEST(RemoveEnded, AContainerThatTheListenerPlacedEndsWhenItIsNotListed) {
  const EngineList list = engine_list({"other"});
  auto pending = in_state(ContainerState::kPending);
  pending.pid = kListener;
  pending.start_time = kListenerStart;
  EXPECT_TRUE(needs_init(pending, true, &list));
  EXPECT_THAT(left_of(pending, {.lives = true}, &list), IsEmpty());
}

TEST(RemoveEnded, AContainerOfAnotherCreatorNeedNotBeListed) {
  const EngineList list = engine_list({"other"});
  const auto pending = in_state(ContainerState::kPending);
  EXPECT_FALSE(needs_init(pending, true, &list));
  EXPECT_THAT(left_of(pending, {.lives = true}, &list), ElementsAre(pending));
  EXPECT_THAT(left_of(pending, {.lives = false}, &list), IsEmpty());
}

TEST(EngineListRuns, OnlyTheRecordedProcess) {
  EngineList list = engine_list({"c1"});
  const auto container = in_state(ContainerState::kLive);
  EXPECT_FALSE(list.runs(container)) << "not looked up";
  list.running = {{"c1", {container.pid, container.start_time}}};
  EXPECT_TRUE(list.runs(container));
  list.running = {{"c1", {container.pid, StartTime{container.start_time.value() + 1}}}};
  EXPECT_FALSE(list.runs(container)) << "another process has got its pid";
  list.running = {{"c2", {container.pid, container.start_time}}};
  EXPECT_FALSE(list.runs(container));
}

/// Pods of podqos's own and a kubelet's keep what ran at once of what has ended, whatever the
/// order.
TEST(RemoveEnded, ThePodKeepsWhatHasStartedAtMost) {
  for (const bool kubelets_own : {false, true}) {
    PodRecord record = requesting_pod("42", "100m");
    record.kubelets_own = kubelets_own;
    for (const char* name : {"c2", "c3"})
      record.pod.containers.push_back(pod_text::container(name, list({{"cpu", "200m"}})));
    record.containers.push_back(in_state(ContainerState::kLive, "c2"));
    record.containers.push_back(in_state(ContainerState::kPending, "c3"));
    const std::vector<ContainerObservation> gone(3);
    const auto left = remove_ended(record, gone, nullptr);
    EXPECT_THAT(left.ended, ElementsAreArray(record.containers));
    EXPECT_THAT(left.record.containers, IsEmpty());
    EXPECT_THAT(left.record.pod.containers, IsEmpty());
    EXPECT_EQ(pod_requests(left.record.pod), list({{"cpu", "300m"}}));
  }
}

/// Pods after a reconciliation.
struct Reconciliation {
  PodRecords living;
  std::vector<PodRecord> ended;
};

class ReconcilePods : public ::testing::Test {
 protected:
  Reconciliation reconcile(std::vector<ReconciledPod> pods) {
    Reconciliation out;
    for (ReconciledPod& pod : pods) {
      if (decide_reconciliation(pod, report_, BootSeconds{1000}, {}))
        out.living.emplace(pod.record.pod.uid, pod.record);
      else
        out.ended.push_back(pod.record);
    }
    return out;
  }
  [[nodiscard]] static ReconciledPod living(PodRecord record) {
    return {.record = std::move(record), .ended = {}, .populated = false, .misplaced = {}};
  }

  ReconcileReport report_;
};

TEST_F(ReconcilePods, KeepsWhatLives) {
  const auto decided =
      reconcile({living(requesting_pod("42", "100m")), living(requesting_pod("43", "200m"))});
  EXPECT_THAT(decided.living, ElementsAre(Key("42"), Key("43")));
  EXPECT_THAT(decided.ended, IsEmpty());
  EXPECT_EQ(report_.pods, 2);
  EXPECT_EQ(report_.containers, 2);
  EXPECT_THAT(report_.changes, IsEmpty());
}

TEST_F(ReconcilePods, ReleasesAPodWithoutContainers) {
  PodRecord record = requesting_pod("42", "100m");
  record.containers.clear();
  ReconciledPod pod = living(record);
  pod.ended = {in_state(ContainerState::kLive)};
  const auto decided = reconcile({pod});
  EXPECT_THAT(decided.living, IsEmpty());
  ASSERT_THAT(decided.ended, SizeIs(1));
  EXPECT_EQ(decided.ended.front().released_at, BootSeconds{1000});
  EXPECT_EQ(report_.released, 1);
  EXPECT_THAT(report_.changes, ElementsAre("pod 42: container c1 has ended", "pod 42 released"));
}

TEST_F(ReconcilePods, APodThatWasReleasedBeforeIsNotReportedAgain) {
  PodRecord record = requesting_pod("42", "100m");
  record.containers.clear();
  record.released_at = BootSeconds{900};
  const auto decided = reconcile({living(record)});
  ASSERT_THAT(decided.ended, ElementsAre(record));
  EXPECT_EQ(report_.released, 0);
  EXPECT_THAT(report_.changes, IsEmpty());
}

TEST_F(ReconcilePods, AProcessInThePodsCgroupKeepsItsRequests) {
  PodRecord record = requesting_pod("42", "100m");
  record.containers.clear();
  ReconciledPod pod = living(record);
  pod.populated = true;
  const auto decided = reconcile({pod});
  EXPECT_THAT(decided.living, ElementsAre(Key("42")));
  EXPECT_EQ(decided.living.at("42").released_at, std::nullopt);
  EXPECT_THAT(report_.warnings, ElementsAre(HasSubstr("its containers have ended")));
  EXPECT_EQ(decided.living.at("42").due, BootSeconds{1030});
}

TEST_F(ReconcilePods, AKubeletsPodEndsWithItsContainers) {
  PodRecord record = requesting_pod("42", "100m");
  record.containers.clear();
  record.kubelets_own = true;
  ReconciledPod pod = living(record);
  pod.populated = true;
  EXPECT_THAT(reconcile({pod}).ended, SizeIs(1));
}

/// Its values are written with the reconciliation.
TEST_F(ReconcilePods, APodWithAContainerIsNoLongerDue) {
  PodRecord record = requesting_pod("42", "100m");
  record.due = BootSeconds{2};
  EXPECT_EQ(reconcile({living(record)}).living.at("42").due, std::nullopt);
}

TEST_F(ReconcilePods, TellsOfContainersThatAnotherProgramHasMoved) {
  ReconciledPod pod = living(requesting_pod("42", "100m"));
  pod.misplaced = {"container c1 runs elsewhere"};
  reconcile({pod});
  EXPECT_THAT(report_.warnings, ElementsAre("pod 42: container c1 runs elsewhere"));
}

}  // namespace
}  // namespace podqos::core

#include "common/core/events/decide_admission.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/pod_name.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::list;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kKubepods = "/podqos/kubepods";
constexpr const char* kPodCgroup = "/podqos/kubepods/burstable/pod42";

/// A pod whose only container requests 100m and is limited to 200m.
Pod web_pod() {
  Pod pod =
      pod_text::pod({pod_text::container("web", list({{"cpu", "100m"}}), list({{"cpu", "200m"}}))});
  pod.uid = "42";
  return pod;
}

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    request_.facts = facts::container_facts("c1");
    identity_.container_name = "web";
    claim_.pod = web_pod();
    claim_.container = "web";
    claim_.complete = true;
    claim_.known = true;
    claim_.source = ClassSource::kPodAnnotation;
  }

  /// As an engine that has chosen this cgroup, which the container runs in.
  void runs_in(const std::string& cgroup) {
    request_.placed_at = cgroup;
    request_.state = ContainerState::kLive;
  }

  [[nodiscard]] Result<Admission> admission() {
    const AdmissionSnapshot snapshot{.identity = identity_,
                                     .root = root_,
                                     .claim = claim_,
                                     .before = before_,
                                     .existing = before_,
                                     .running = running_,
                                     .capacity = capacity_,
                                     .layout = layout_};
    auto pod = decide_pod(request_, snapshot, settings_);
    if (!pod) return fail(pod.error());
    is_left_ = !pod->has_value();
    if (is_left_) return Admission{};
    return decide_admission(request_, snapshot, std::move(**pod), settings_);
  }

  /// The same of a container that is admitted.
  [[nodiscard]] Admission admitted() {
    auto decided = admission();
    if (decided) return *std::move(decided);
    ADD_FAILURE() << decided.error().message;
    return {};
  }
  /// And of one that is refused.
  [[nodiscard]] Error refusal() {
    const auto decided = admission();
    if (!decided) return decided.error();
    ADD_FAILURE() << "admitted";
    return {};
  }

  AdmissionRequest request_;
  Identity identity_ = facts::identity(IdentitySource::kAnnotation);
  PodClaim claim_;
  std::optional<PodRecord> before_;
  NodeCapacity capacity_{.memory = Bytes{std::int64_t{8} << 30U}, .cpu = MilliCpu{4000}};
  CgroupLayout layout_{.cpu = CgroupVersion::kV1, .memory = CgroupVersion::kV1};
  Result<std::string> root_{kKubepods};
  std::optional<ContainerRecord> running_;
  Settings settings_;
  bool is_left_ = false;  ///< the last container stays where its engine puts it
};

TEST_F(AdmissionTest, ARunningContainerIsNotCreatedAgain) {
  running_ = {
      .id = "c1", .bundle = "", .name = "web", .pid = Pid{7}, .start_time = {}, .cgroup = ""};
  const Error refused = refusal();
  EXPECT_EQ(refused.code, ErrorCode::kConflict);
  EXPECT_THAT(refused.message, HasSubstr("container c1 runs already, as process 7"));
}

/// Podman's infra container tells nothing of its pod.
TEST_F(AdmissionTest, TheSandboxOfAnUnknownPodIsLeft) {
  identity_.is_sandbox = true;
  claim_.known = false;
  const Admission decided = admitted();
  EXPECT_TRUE(is_left_);
}

TEST_F(AdmissionTest, AContainerGetsItsPlaceAndItsValues) {
  const Admission decided = admitted();
  EXPECT_EQ(decided.record.cgroup, kPodCgroup);
  EXPECT_FALSE(decided.record.kubelets_own);
  EXPECT_EQ(decided.container.cgroup, std::string{kPodCgroup} + "/c1");
  EXPECT_EQ(decided.container.name, "web");
  EXPECT_THAT(decided.record.containers, ElementsAre(decided.container));
  EXPECT_EQ(decided.record.counted_request.cpu, MilliCpu{100});
  EXPECT_EQ(decided.wanted.cpu_shares, CpuShares{102});
  EXPECT_EQ(decided.wanted.cpu_quota, Micros{20000});
  EXPECT_EQ(decided.oom_score_adj, 999);
  EXPECT_THAT(decided.warnings, IsEmpty());
}

TEST_F(AdmissionTest, ValuesOfTheEngineAreNotMissing) {
  request_.facts.resources = facts::engine({.shares = 512});
  Admission decided = admitted();
  const CgroupLayout v2{.cpu = CgroupVersion::kV2, .memory = CgroupVersion::kV2};
  fill_in_missing(decided, request_, claim_, {}, v2);
  EXPECT_EQ(decided.missing.cpu_shares, std::nullopt);
  EXPECT_EQ(decided.missing.cpu_quota, Micros{20000});
}

/// On cgroup v1 a runtime cannot write a quota above that of the pod's cgroup.
TEST_F(AdmissionTest, AQuotaOfTheEngineIsLoweredToThePods) {
  for (const char* name : {"web", "unknown"}) {
    claim_.container = name;
    request_.facts.resources = facts::engine({.quota = 50'000, .period = 50'000});
    Admission decided = admitted();
    fill_in_missing(decided, request_, claim_, {}, layout_);
    EXPECT_EQ(decided.missing.cpu_quota, Micros{10'000}) << name;
    EXPECT_EQ(decided.missing.cpu_period, std::nullopt) << name;
  }
}

TEST_F(AdmissionTest, AQuotaBelowThePodsStays) {
  claim_.pod.containers.push_back(
      pod_text::container("log", list({{"cpu", "100m"}}), list({{"cpu", "100m"}})));
  request_.facts.resources = facts::engine({.quota = 20'000, .period = 100'000});
  EXPECT_EQ(admitted().wanted.cpu_quota, Micros{20'000});
}

TEST(ReconcileBundle, SetsItInBothIfOneContainerHasTheId) {
  struct BundleCase {
    const char* name;
    std::vector<std::string> recorded;
    std::string told;
    std::vector<std::string> recorded_then;
    std::string told_then;
  };
  for (const auto& row : std::vector<BundleCase>{
           {"OnlyRecorded", {"/b"}, "", {"/b"}, "/b"},
           {"OnlyTold", {""}, "/b", {"/b"}, "/b"},
           {"Same", {"/b"}, "/b", {"/b"}, "/b"},
           {"Other", {"/a"}, "/b", {"/a"}, "/b"},
           {"OfTwo", {"", "/a"}, "/b", {"", "/a"}, "/b"},
           {"OfNone", {}, "/b", {}, "/b"},
       }) {
    SCOPED_TRACE(row.name);
    PodRecord record;
    for (const std::string& bundle : row.recorded) {
      record.containers.emplace_back().id = "c1";
      record.containers.back().bundle = bundle;
    }
    ContainerFacts told = facts::container_facts("c1", row.told);
    reconcile_bundle(record, told);
    std::vector<std::string> bundles;
    for (const ContainerRecord& container : record.containers)
      bundles.push_back(container.bundle);
    EXPECT_EQ(bundles, row.recorded_then);
    EXPECT_EQ(told.bundle, row.told_then);
  }
}

TEST_F(AdmissionTest, APodThatAKubeletHasPlacedIsItsOwn) {
  identity_.placed = find_pod_cgroup("/kubepods/burstable/pod42/c1");
  request_.placed_at = "/kubepods/burstable/pod42/c1";
  root_ = fail(ErrorCode::kConflict, "the root is the kubelet's");
  const Admission decided = admitted();
  EXPECT_TRUE(decided.record.kubelets_own);
  EXPECT_EQ(decided.record.cgroup, "/kubepods/burstable/pod42");
  EXPECT_EQ(decided.container.cgroup, "/kubepods/burstable/pod42/c1");
  EXPECT_EQ(decided.oom_score_adj, std::nullopt);
}

TEST_F(AdmissionTest, APodOfPodqosNeedsARoot) {
  root_ = fail(ErrorCode::kConflict, "the root is another's");
  const Error refused = refusal();
  EXPECT_EQ(refused.message, "the root is another's");
}

TEST_F(AdmissionTest, WarnsOfAContainerThatTheSpecLacks) {
  claim_.container = "wed";
  const Admission decided = admitted();
  EXPECT_THAT(decided.warnings, ElementsAre(HasSubstr("no container \"wed\"")));
}

TEST_F(AdmissionTest, WarnsOfNoneThatGetsNoValuesOfASpec) {
  claim_.container = "wed";
  claim_.source = ClassSource::kShortForms;
  EXPECT_THAT(admitted().warnings, IsEmpty()) << "podqos.io/requests is no spec";
  claim_.source = ClassSource::kPodAnnotation;
  claim_.complete = false;
  EXPECT_THAT(admitted().warnings, IsEmpty()) << "of a container, not of the pod";
  claim_.complete = true;
  identity_.is_sandbox = true;
  EXPECT_THAT(admitted().warnings, IsEmpty()) << "a sandbox";
  EXPECT_FALSE(is_left_) << "its pod is known";
  identity_.is_sandbox = false;
  identity_.placed = find_pod_cgroup("/kubepods/burstable/pod42/c1");
  request_.placed_at = "/kubepods/burstable/pod42/c1";
  EXPECT_THAT(admitted().warnings, IsEmpty()) << "a kubelet's pod";
}

TEST_F(AdmissionTest, AWarningNamesPodAndContainer) {
  claim_.warnings.emplace_back("refused");
  const Admission decided = admitted();
  EXPECT_THAT(decided.warnings, ElementsAre("pod 42, container c1: refused"));
}

/// A sandbox backs nothing of what the pod's containers request, and the engine may still set their
/// limits. When a container has come without one, that is said once.
TEST_F(AdmissionTest, WarnsOfMemoryThatIsNotReservedWithTheContainerThatLacksALimit) {
  settings_.reserve_memory_percent = 100;
  claim_.pod.containers.front().resources.requests.insert_or_assign(
      "memory", list({{"memory", "64Mi"}}).at("memory"));
  request_.engine.cri = true;
  request_.facts = facts::container_facts("box");
  identity_.is_sandbox = true;
  Admission decided = admitted();
  EXPECT_THAT(decided.warnings, IsEmpty());
  before_ = decided.record;
  identity_.is_sandbox = false;
  request_.facts = facts::container_facts("c1");
  decided = admitted();
  EXPECT_THAT(decided.warnings,
              ElementsAre(HasSubstr("requests memory 64Mi, of which 0 is reserved")));
  before_ = decided.record;
  request_.facts = facts::container_facts("c2");
  decided = admitted();
  EXPECT_THAT(decided.warnings, IsEmpty());
}

TEST_F(AdmissionTest, AContainerThatRunsInItsPodStays) {
  runs_in(std::string{kPodCgroup} + "/own");
  request_.on_misplaced = OnMisplaced::kFail;
  const Admission decided = admitted();
  EXPECT_EQ(decided.container.cgroup, std::string{kPodCgroup} + "/own");
  EXPECT_EQ(decided.belongs_to, std::nullopt);
}

TEST_F(AdmissionTest, OneThatRunsElsewhereStaysThereAndIsToldWhereItBelongs) {
  runs_in("/elsewhere/c1");
  request_.on_misplaced = OnMisplaced::kRewrite;
  const Admission decided = admitted();
  EXPECT_EQ(decided.container.cgroup, "/elsewhere/c1");
  EXPECT_EQ(decided.belongs_to, std::string{kPodCgroup} + "/c1");
}

TEST_F(AdmissionTest, OneThatRunsElsewhereIsRefused) {
  runs_in("/elsewhere/c1");
  request_.on_misplaced = OnMisplaced::kFail;
  const Error refused = refusal();
  EXPECT_EQ(refused.code, ErrorCode::kRefused);
  EXPECT_THAT(refused.message,
              HasSubstr(std::string{"runs in cgroup /elsewhere/c1, not in "} + kPodCgroup + "/c1"));
}

/// The kernel gives it none in a pod's cgroup of v1, and the runtime would fail.
class RealtimeTest : public AdmissionTest {
 protected:
  RealtimeTest() { request_.facts.resources.cpu_realtime_runtime = 10'000; }
};

TEST_F(RealtimeTest, IsNotPlaced) {
  const Error refused = refusal();
  EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      refused.message,
      HasSubstr(std::string{"realtimeRuntime 10000: on cgroup v1 the kernel refuses it in "} +
                kPodCgroup));
}

TEST_F(RealtimeTest, IsPlacedOnV2) {
  layout_.cpu = CgroupVersion::kV2;
  const Admission decided = admitted();
  EXPECT_EQ(decided.container.cgroup, std::string{kPodCgroup} + "/c1");
}

/// Whatever onMisplaced is: it is where it can run.
TEST_F(RealtimeTest, IsNotRegisteredElsewhere) {
  runs_in("/elsewhere/c1");
  for (const auto misplaced : {OnMisplaced::kRewrite, OnMisplaced::kFail, OnMisplaced::kIgnore}) {
    request_.on_misplaced = misplaced;
    const Error refused = refusal();
    EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument);
  }
}

/// As in a pod's cgroup to which the operator has given realtime time.
TEST_F(RealtimeTest, CountsWhereItRunsInItsPod) {
  runs_in(std::string{kPodCgroup} + "/c1");
  EXPECT_TRUE(admission());
}

TEST_F(RealtimeTest, CountsInAKubeletsPod) {
  identity_.placed = find_pod_cgroup("/kubepods/burstable/pod42/c1");
  request_.placed_at = "/kubepods/burstable/pod42/c1";
  EXPECT_TRUE(admission());
}

TEST_F(AdmissionTest, AContainerOfCrioWithoutCgroupParentStaysWithItsEngine) {
  request_.facts.cgroups_path = "/crio/crio-c1";
  request_.placed_at = request_.facts.cgroups_path;
  const Admission decided = admitted();
  EXPECT_TRUE(decided.left_with_engine);
  EXPECT_EQ(decided.container.cgroup, "/crio/crio-c1");
  EXPECT_THAT(decided.warnings, ElementsAre(HasSubstr("cgroup parent")));
}

/// Once per pod.
TEST_F(AdmissionTest, IsNotWarnedOfForTheNextContainer) {
  request_.facts.cgroups_path = "/crio/crio-c1";
  request_.placed_at = request_.facts.cgroups_path;
  before_ = admission()->record;
  request_.facts = facts::container_facts("c2");
  request_.facts.cgroups_path = "/crio/crio-c2";
  request_.placed_at = request_.facts.cgroups_path;
  const Admission decided = admitted();
  EXPECT_THAT(decided.warnings, IsEmpty());
}

TEST_F(AdmissionTest, TheBackingOfAKnownContainerIsThatOfItsCreation) {
  before_ = admission()->record;
  before_->containers.front().backed_memory = Bytes{4096};
  request_.engine.sandbox_id = "box";
  request_.facts.resources = facts::engine({.memory = 1 << 20});
  const Admission decided = admitted();
  EXPECT_EQ(decided.container.backed_memory, Bytes{4096});
}

/// Container "c1" is admitted to pod 42, where it is alone.
Admission admission_of_c1() {
  Admission admission;
  admission.container.id = "c1";
  admission.container.name = "web";
  admission.container.cgroup = std::string{kPodCgroup} + "/c1";
  admission.record.pod.uid = "42";
  admission.record.qos_class = QosClass::kBurstable;
  const ResourceList requests = pod_text::list({{"cpu", "100m"}, {"memory", "64Mi"}});
  admission.record.pod.containers = {pod_text::container("web", requests)};
  admission.record.counted_request = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{67'108'864}};
  return admission;
}

TEST(DescribeAdmission, TellsClassPlaceAndWhatCounts) {
  EXPECT_EQ(describe_admission(admission_of_c1()),
            "Burstable, cpu 100m, memory 64Mi requested, at "
            "/podqos/kubepods/burstable/pod42/c1");
}

TEST(NameOf, IsThatOfThePodAndEscapesWhatItsAuthorWrites) {
  Admission admission = admission_of_c1();
  admission.record.pod.name = "front";
  admission.record.pod.pod_namespace = "shop";
  admission.container.name = "a\nb";
  admission.container.id = "c\"1";
  EXPECT_EQ(name_of(admission.record, admission.container),
            "pod 42 (shop/front), container a\\x0ab (c\\\"1)");
}

}  // namespace
}  // namespace podqos::core

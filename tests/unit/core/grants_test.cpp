#include "common/core/pods/grants.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum QosClass;
using pod_text::container;
using pod_text::list;

PodRecord with_class(QosClass qos_class) {
  PodRecord record;
  record.qos_class = qos_class;
  return record;
}

PodRecord requesting(const char* cpu, const char* memory, QosClass qos_class = kBurstable) {
  PodRecord record = with_class(qos_class);
  record.pod = pod_text::pod({container("a", list({{"cpu", cpu}, {"memory", memory}}))});
  return record;
}

PodRecord of_kubelet(PodRecord record) {
  record.kubelets_own = true;
  return record;
}

constexpr NodeCapacity kNodeOf8000Bytes{.memory = Bytes{8'000}, .cpu = MilliCpu{4'000}};

TierSum sum(std::int64_t cpu, std::int64_t memory) {
  return {.pods = 1, .cpu = MilliCpu{cpu}, .memory = Bytes{memory}};
}
/// What Guaranteed, Burstable and a kubelet's pods have.
TierSums held(const TierSum& guaranteed, const TierSum& burstable = {},
              const TierSum& kubelets = {}) {
  return {.guaranteed = guaranteed, .burstable = burstable, .besteffort = {}, .kubelets = kubelets};
}
constexpr std::int64_t kEnd = kInt64Max;

const PodRecord kSmall = requesting("1", "1k");
const PodRecord kWhole = requesting("4", "8k");
constexpr TierSum kOfSmall{.pods = 1, .cpu = MilliCpu{1000}, .memory = Bytes{1000}};
constexpr TierSum kOfWhole{.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{8000}};
constexpr TierSum kNoAmounts{.pods = 1, .cpu = {}, .memory = {}};

TEST(GrantRequests, CountsWhatIsFree) {
  struct Granting {
    const char* name;
    PodRecord record;
    TierSum capped;
    TierSum counted;
    TierSums others = {};
    Reserved reserved = {};
  };
  for (const auto& row : std::vector<Granting>{
           {"AllOfIt", kSmall, kOfSmall, kOfSmall},
           {"AnExbibyte", requesting("1", "1Ei"), sum(1000, 8000), sum(1000, 8000)},
           {"AnExaCpu", requesting("1E", "1k"), sum(4000, 1000), sum(4000, 1000)},
           {"WhatOthersLeave", kWhole, kOfWhole, sum(2500, 5000),
            held(sum(500, 1000), sum(1000, 2000))},
           {"WhatTheReserveLeaves",
            kWhole,
            sum(3000, 5000),
            sum(3000, 5000),
            {},
            {MilliCpu{1000}, Bytes{3000}}},
           {"NothingWhereAllIsGiven", kSmall, kOfSmall, kNoAmounts, held(kOfWhole)},
           {"NothingWhereMoreIsGiven", kSmall, kOfSmall, kNoAmounts, held(kOfWhole, kOfWhole)},
           {"NothingWhereAllIsReserved",
            kSmall,
            kNoAmounts,
            kNoAmounts,
            {},
            {MilliCpu{9000}, Bytes{9000}}},
           {"WhatAKubeletsPodsLeave", kWhole, kOfWhole, sum(2500, 5000),
            held(sum(500, 1000), {}, sum(1000, 2000))},
           {"NothingWhereAKubeletsPodsHaveMore", kSmall, kOfSmall, kNoAmounts,
            held({}, {}, sum(kEnd, kEnd))},
           {"AllThatAKubeletsPodClaims", of_kubelet(kSmall), kOfSmall, kOfSmall, held(kOfWhole)},
           {"NothingToAKubeletsBestEffortPod", of_kubelet(requesting("1", "1k", kBestEffort)),
            kOfSmall, kNoAmounts},
           {"NothingToBestEffort", requesting("1", "1k", kBestEffort), kOfSmall, kNoAmounts},
           {"AsMuchToGuaranteed", requesting("1", "1k", kGuaranteed), kOfSmall, kOfSmall},
           {"SumsAtTheEndOfTheRange", kSmall, kOfSmall, kNoAmounts,
            held(sum(kEnd, kEnd), sum(kEnd, kEnd))},
           {"NoRequest", with_class(kBurstable), kNoAmounts, kNoAmounts},
       }) {
    SCOPED_TRACE(row.name);
    Settings settings;
    settings.kube_reserved = row.reserved;
    PodRecord record = row.record;
    grant_requests(record, row.others, settings, kNodeOf8000Bytes);
    EXPECT_EQ(record.capped_request, row.capped);
    EXPECT_EQ(record.counted_request, row.counted);
  }
}

TEST(Allocatable, IsCapacityWithoutReserves) {
  Settings settings;
  settings.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{1000}};
  settings.kube_reserved = {.cpu = MilliCpu{250}, .memory = Bytes{2000}};
  EXPECT_EQ(allocatable_memory(settings, kNodeOf8000Bytes), Bytes{5000});
  NodeCapacity with_hugepages = kNodeOf8000Bytes;
  with_hugepages.hugepages = Bytes{4000};
  EXPECT_EQ(allocatable_memory(settings, with_hugepages), Bytes{1000});
  with_hugepages.hugepages = Bytes{6000};
  EXPECT_EQ(allocatable_memory(settings, with_hugepages), Bytes{0});
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{4000}}), MilliCpu{3250});
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{700}}), MilliCpu{0});
}

constexpr Bytes kMemoryOf10Gi{10 * kGi};

Container full(const char* name, const char* cpu, const char* memory) {
  const ResourceList both = list({{"cpu", cpu}, {"memory", memory}});
  return container(name, both, both);
}

/// The record of a pod of one container "a" on a node with 4 cpus, where others hold `held`.
PodRecord recorded(Container only, QosClass qos_class, const TierSum& held = {}) {
  PodRecord record;
  record.pod = pod_text::pod({std::move(only)});
  record.complete = true;
  record.qos_class = qos_class;
  record.class_source = ClassSource::kPodAnnotation;
  TierSums others;
  others.burstable = held;
  grant_requests(record, others, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
  return record;
}

int score_of(const PodRecord& record, const char* name = "a") {
  ContainerRecord container;
  container.name = name;
  return container_oom_score_adj(record, container, kMemoryOf10Gi);
}

constexpr TierSum kNothingHeld{};
constexpr TierSum kAllHeld{.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{10 * kGi}};

TEST(NodeBound, HoldsOnlyWhatNoNodeCouldGive) {
  struct Claim {
    const char* name;
    const char* cpu;
    const char* memory;
    QosClass qos_class;
    TierSum held;
    std::int64_t shares;
    int score;
  };
  for (const auto& row : std::vector<Claim>{
           {"WholeNodeGuaranteed", "4", "10Gi", QosClass::kGuaranteed, kNothingHeld, 4096, -997},
           {"HalfOfIt", "1", "5Gi", QosClass::kBurstable, kNothingHeld, 1024, 500},
           // A kubelet would have refused it; beside others that took all before it keeps its
           // values.
           {"NothingLeftForGuaranteed", "1", "5Gi", QosClass::kGuaranteed, kAllHeld, 1024, -997},
           {"NothingLeftForBurstable", "1", "5Gi", QosClass::kBurstable, kAllHeld, 1024, 500},
           {"BestEffort", "8", "20Gi", QosClass::kBestEffort, kNothingHeld, 2, 1000},
           {"TwiceTheNode", "8", "20Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 3},
           {"TwiceItsCpu", "8", "5Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 500},
           {"TwiceItsMemory", "1", "20Gi", QosClass::kGuaranteed, kNothingHeld, 1024, 3},
           {"OneByteMore", "1", "10737418241", QosClass::kGuaranteed, kNothingHeld, 1024, 3},
           {"OneMilliCpuMore", "4001m", "5Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 500},
           {"APebibyte", "1", "1Pi", QosClass::kBurstable, kNothingHeld, 1024, 3},
           // The most for which the kernel takes a quota.
           {"MostCpusOfAQuota", "175921860", "1Gi", QosClass::kBurstable, kNothingHeld, 4096, 900},
       }) {
    SCOPED_TRACE(row.name);
    PodRecord record = recorded(full("a", row.cpu, row.memory), row.qos_class, row.held);
    const auto values = pod_values(record, {});
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_EQ(values->cpu_shares, CpuShares{row.shares});
    EXPECT_EQ(score_of(record), row.score);
  }
}

TEST(ContainerOomScoreAdj, ScoresEachContainerOfAPodBeyondTheNode) {
  PodRecord record = recorded(full("a", "1", "2Gi"), QosClass::kGuaranteed);
  record.pod.containers.push_back(full("b", "1", "15Gi"));
  grant_requests(record, {}, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
  EXPECT_EQ(score_of(record, "a"), 800);
  EXPECT_EQ(score_of(record, "b"), 3);
}

TEST(ContainerOomScoreAdj, ProtectsACriticalPodOnlyWithinTheNode) {
  for (const auto& [memory, score] : {std::pair{"5Gi", -997}, std::pair{"11Gi", 3}}) {
    PodRecord record = recorded(full("a", "1", memory), QosClass::kBurstable);
    record.pod.priority = 2'000'001'000;
    record.pod.priority_class_name = "system-node-critical";
    EXPECT_EQ(score_of(record), score) << memory;
    record.pod.priority.reset();
    record.pod.is_static = true;
    EXPECT_EQ(score_of(record), score) << memory;
  }
}

TEST(NodeBound, LeavesAKubeletsPodsAlone) {
  PodRecord record = recorded(full("a", "8", "20Gi"), QosClass::kGuaranteed);
  record.kubelets_own = true;
  EXPECT_EQ(score_of(record), -997);
  EXPECT_EQ(pod_values(record, {})->cpu_shares, CpuShares{8192});
}

PodRecord claiming(const std::string& uid, const TierSum& capped, const TierSum& counted) {
  PodRecord record;
  record.pod.uid = uid;
  record.qos_class = QosClass::kBurstable;
  record.capped_request = capped;
  record.counted_request = counted;
  return record;
}

CutEntry entry(const std::string& uid, std::int64_t milli_cpu, std::int64_t memory) {
  return {.uid = uid, .cpu = MilliCpu{milli_cpu}, .memory = Bytes{memory}};
}

TEST(NoteCut, ListsWhatIsStillToBeGranted) {
  TiersRecord tiers;
  note_cut(tiers, claiming("a", sum(500, kGi), sum(100, kGi)), {});
  note_cut(tiers, claiming("b", sum(500, 2 * kGi), sum(500, kGi)), {});
  note_cut(tiers, claiming("c", sum(500, kGi), sum(500, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("a", 400, 0), entry("b", 0, kGi)));
  // A pod keeps its place until all is granted, or it is released.
  note_cut(tiers, claiming("a", sum(500, kGi), sum(200, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("a", 300, 0), entry("b", 0, kGi)));
  note_cut(tiers, claiming("a", sum(500, kGi), sum(500, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("b", 0, kGi)));
  PodRecord released = claiming("b", sum(500, 2 * kGi), sum(500, kGi));
  released.released_at = BootSeconds{1};
  note_cut(tiers, released, {});
  EXPECT_THAT(tiers.cut, IsEmpty());
}

/// Only overhead can give a BestEffort pod requests.
TEST(NoteCut, LeavesOutWhatDoesNotCount) {
  TiersRecord tiers;
  PodRecord record = claiming("a", sum(500, kGi), sum(0, 0));
  record.qos_class = QosClass::kBestEffort;
  note_cut(tiers, record, {});
  record = claiming("b", sum(500, kGi), sum(500, 0));
  record.containers.emplace_back().backed_memory = Bytes{0};
  Settings reserving;
  reserving.reserve_memory_percent = 100;
  note_cut(tiers, record, reserving);
  EXPECT_THAT(tiers.cut, IsEmpty());
  reserving = {};
  reserving.memory_reservation_policy = MemoryReservationPolicy::kTieredReservation;
  note_cut(tiers, record, reserving);
  EXPECT_THAT(tiers.cut, IsEmpty());
  note_cut(tiers, record, {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("b", 0, kGi)));
}

/// It is written with each event.
TEST(NoteCut, KeepsTheListShort) {
  TiersRecord tiers;
  for (int n = 0; n < 100; ++n)
    note_cut(tiers, claiming(std::to_string(n), sum(500, 0), sum(100, 0)), {});
  EXPECT_THAT(tiers.cut, SizeIs(64));
}

/// A node of 4 CPUs and 8 GiB, of which pods have 3 CPUs and 8 GiB.
class Grantable : public ::testing::Test {
 protected:
  Grantable() { tiers_.sums.guaranteed = sum(3000, 8 * kGi); }
  [[nodiscard]] std::vector<std::string> uids() const {
    return grantable(tiers_, {}, {.memory = Bytes{8 * kGi}, .cpu = MilliCpu{4000}});
  }
  TiersRecord tiers_;
};

TEST_F(Grantable, AreThoseThatLackWhatIsFree) {
  tiers_.cut = {entry("a", 0, kGi), entry("b", 600, kGi), entry("c", 0, kGi), entry("d", 600, 0),
                entry("e", 100, 0)};
  EXPECT_THAT(uids(), ElementsAre("b", "d"));
  tiers_.sums.kubelets = sum(1000, 0);
  EXPECT_THAT(uids(), IsEmpty());
}

TEST_F(Grantable, AreFourAtMost) {
  for (const char* uid : {"f", "e", "d", "c", "b"})
    tiers_.cut.push_back(entry(uid, 100, 0));
  EXPECT_THAT(uids(), ElementsAre("f", "e", "d", "c"));
}

/// A node of 4 CPUs and 8 GiB, of which 1 CPU and 2 GiB are reserved: 3 CPUs and 6 GiB are
/// allocatable. Other pods have 2 CPUs and 4 GiB.
class NodeFitTest : public ::testing::Test {
 protected:
  NodeFitTest() {
    settings_.admission = {.memory = AdmissionPolicy::kEnforce,
                           .cpu = AdmissionPolicy::kEnforce,
                           .pids = AdmissionPolicy::kEnforce};
    settings_.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{kGi}};
    settings_.kube_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{kGi}};
    others_.guaranteed = {.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{kGi}};
    others_.burstable = {.pods = 2, .cpu = MilliCpu{500}, .memory = Bytes{2 * kGi}};
    others_.requested = {.pods = 3, .cpu = MilliCpu{1000}, .memory = Bytes{3 * kGi}};
    others_.kubelets = {.pods = 1, .cpu = MilliCpu{1000}, .memory = Bytes{kGi}};
  }
  [[nodiscard]] Status check(const PodRecord& record) const {
    return check_node_fit({.pod = record,
                           .before = before_,
                           .others = others_,
                           .capacity = capacity_,
                           .holders = holders_},
                          settings_);
  }
  /// The message of the refusal; "" if the pod fits.
  [[nodiscard]] std::string refusal(const PodRecord& record) const {
    const auto fits = check(record);
    if (fits) return "";
    EXPECT_EQ(fits.error().code, ErrorCode::kRefused);
    return fits.error().message;
  }

  Settings settings_;
  NodeCapacity capacity_{.memory = Bytes{8 * kGi}, .cpu = MilliCpu{4000}};
  TierSums others_;
  std::optional<PodRecord> before_;
  std::vector<PodShare> holders_;
};

TEST_F(NodeFitTest, TakesAPodUpToTheLastByte) {
  EXPECT_EQ(refusal(requesting("1", "2Gi")), "");
  EXPECT_EQ(refusal(requesting("1", "2147483649")),
            "requests memory 2147483649, of which 2Gi is free: 6Gi is allocatable, and other pods "
            "have 4Gi; end pods, lower requests, or set admission.memory to \"warn\"");
  EXPECT_EQ(refusal(requesting("1001m", "2Gi")),
            "requests cpu 1001m, of which 1 is free: 3 is allocatable, and other pods have 2; end "
            "pods, lower requests, or set admission.cpu to \"warn\"");
}

TEST_F(NodeFitTest, NamesEachResourceThatLacks) {
  EXPECT_THAT(refusal(requesting("5", "20Gi")),
              AllOf(HasSubstr("requests cpu 5, of which 1 is free"),
                    HasSubstr("; requests memory 20Gi, of which 2Gi is free"),
                    HasSubstr("set admission.cpu and admission.memory to")));
}

TEST_F(NodeFitTest, NamesThePodsThatHaveMost) {
  const auto share = [](const char* name, int cpu) {
    return PodShare{.name = name, .requested = {.pods = 1, .cpu = MilliCpu{cpu}, .memory = {}}};
  };
  holders_ = {share("pod 1", 100), share("pod 2 (team/db)", 1500), share("pod 3", 0),
              share("pod 4", 300), share("pod 5", 50)};
  EXPECT_THAT(
      refusal(requesting("2", "1Gi")),
      HasSubstr("other pods have 2, most of it pod 2 (team/db) with 1500m, pod 4 with 300m, "
                "pod 1 with 100m; end pods"));
}

/// maxPodClaim bounds what counts of a pod, but a pod that the node has no room for does not fit.
TEST_F(NodeFitTest, GoesByWhatIsRequestedAndNotByWhatCounts) {
  others_ = {};
  EXPECT_THAT(refusal(requesting("100", "1Gi")), HasSubstr("requests cpu 100, of which 3 is free"));
}

/// What others request is not free although no more than a part of it was granted.
TEST_F(NodeFitTest, LeavesToOthersWhatTheyRequest) {
  others_.requested.memory = Bytes{5 * kGi};
  EXPECT_THAT(
      refusal(requesting("1", "1Gi")),
      HasSubstr("requests memory 1Gi, of which 0 is free: 6Gi is allocatable, and other pods "
                "have 6Gi; "));
}

TEST_F(NodeFitTest, OnlyEnforcesWhatIsToBeEnforced) {
  settings_.admission.cpu = AdmissionPolicy::kWarn;
  EXPECT_THAT(refusal(requesting("5", "20Gi")), Not(HasSubstr("cpu")));
  settings_.admission.memory = AdmissionPolicy::kOff;
  EXPECT_EQ(refusal(requesting("5", "20Gi")), "");
}

TEST_F(NodeFitTest, TakesAPodThatRequestsNothingOrThatAKubeletHasAdmitted) {
  others_.requested = {.pods = 1, .cpu = MilliCpu{8000}, .memory = Bytes{16 * kGi}};
  EXPECT_EQ(refusal(requesting("0", "0")), "");
  EXPECT_EQ(refusal(requesting("5", "20Gi", kBestEffort)), "");  // by its overhead
  EXPECT_EQ(refusal(of_kubelet(requesting("5", "20Gi"))), "");
}

TEST_F(NodeFitTest, TakesWhatWasRequestedBefore) {
  before_ = requesting("5", "20Gi");
  EXPECT_EQ(refusal(requesting("5", "20Gi")), "");
  EXPECT_EQ(refusal(requesting("4", "10Gi")), "");
  EXPECT_THAT(refusal(requesting("6", "20Gi")), AllOf(HasSubstr("cpu 6"), Not(HasSubstr("20Gi"))));
}

/// Its requests have left the sums, and others may have taken them.
TEST_F(NodeFitTest, TakesAReleasedPodAsANewOne) {
  before_ = requesting("5", "20Gi");
  before_->released_at = BootSeconds{1};
  EXPECT_NE(refusal(requesting("5", "20Gi")), "");
}

/// Three of podqos's own pods are there.
TEST_F(NodeFitTest, CountsTheLimitsOfProcesses) {
  capacity_.pids = 4000;
  EXPECT_EQ(refusal(requesting("1", "1Gi")), "") << "without a limit";
  settings_.pod_pids_limit = 1000;
  EXPECT_EQ(refusal(requesting("1", "1Gi")), "");
  settings_.pod_pids_limit = 1001;
  EXPECT_EQ(refusal(requesting("1", "1Gi")),
            "podPidsLimit 1001 for each of 4 pods is more than the node's 4000 processes: lower "
            "podPidsLimit, or raise kernel.pid_max; end pods, lower requests, or set "
            "admission.pids to \"warn\"");
  PodRecord record = requesting("1", "1Gi");
  record.qos_class = QosClass::kBestEffort;
  EXPECT_NE(refusal(record), "");
  before_ = record;
  EXPECT_EQ(refusal(record), "");
  capacity_.pids = 0;  // not known
  before_.reset();
  EXPECT_EQ(refusal(record), "");
}

TEST_F(NodeFitTest, SaysNothingOfProcessesWhereThatIsOff) {
  settings_.pod_pids_limit = 1;
  capacity_.pids = 2;
  EXPECT_TRUE(describe_pids(others_, settings_, capacity_));
  settings_.admission.pids = AdmissionPolicy::kWarn;
  EXPECT_TRUE(describe_pids(others_, settings_, capacity_));
  settings_.admission.pids = AdmissionPolicy::kOff;
  EXPECT_EQ(describe_pids(others_, settings_, capacity_), std::nullopt);
}

/// The words of log and status.
TEST_F(NodeFitTest, WhatIsOffIsNotSaid) {
  PodRecord record = requesting("2", "3Gi");
  grant_requests(record, others_, settings_, capacity_);
  EXPECT_THAT(describe_uncounted(record, settings_).value_or(""),
              HasSubstr("requests cpu 2, of which 1 counts: other pods"));
  settings_.admission.cpu = AdmissionPolicy::kOff;
  EXPECT_THAT(describe_uncounted(record, settings_).value_or(""),
              HasSubstr("requests memory 3Gi, of which 2Gi counts: other pods"));
  settings_.admission.memory = AdmissionPolicy::kOff;
  EXPECT_EQ(describe_uncounted(record, settings_), std::nullopt);
  record = requesting("100", "3Gi");
  grant_requests(record, others_, settings_, capacity_);
  EXPECT_EQ(describe_uncounted(record, settings_), std::nullopt);
  // A bound that the operator has set is another thing.
  settings_.max_pod_claim_percent = 50;
  grant_requests(record, others_, settings_, capacity_);
  EXPECT_THAT(describe_uncounted(record, settings_).value_or(""), HasSubstr("maxPodClaim is 50%"));
}

TEST(DescribeRequests, TellsWhatOfThemCounts) {
  PodRecord record = requesting("1", "64Mi");
  record.counted_request = sum(1000, 64LL << 20);
  EXPECT_EQ(describe_requests(record), "cpu 1, memory 64Mi requested");
  record.counted_request = sum(800, 64LL << 20);
  EXPECT_EQ(describe_requests(record),
            "cpu 1, memory 64Mi requested, of which cpu 800m, memory 64Mi count");
}

TEST(DescribeLateRequests, TellsOfThoseThatCameAfterTheClass) {
  PodRecord record = requesting("50m", "0", QosClass::kBestEffort);
  EXPECT_EQ(describe_late_requests(record).value_or(""),
            "cpu 50m, memory 0 requested, of which cpu 0, memory 0 count: its first container "
            "requested nothing, so it is BestEffort; annotate the pod with podqos.io/pod "
            "(podqosctl annotate), then recreate it");
  for (const auto source : {ClassSource::kEngine, ClassSource::kQosAnnotation}) {
    record.class_source = source;
    EXPECT_EQ(describe_late_requests(record), std::nullopt);
  }
  EXPECT_EQ(describe_late_requests(of_kubelet(requesting("1", "0", QosClass::kBestEffort))),
            std::nullopt);
  EXPECT_EQ(describe_late_requests(requesting("1", "0")), std::nullopt);
  record = with_class(QosClass::kBestEffort);
  EXPECT_EQ(describe_late_requests(record), std::nullopt);
  record.pod.overhead = list({{"cpu", "10m"}});
  EXPECT_EQ(describe_late_requests(record), std::nullopt);
}

}  // namespace
}  // namespace podqos::core

#include "common/core/pods/node_fit.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using pod_text::container;
using pod_text::list;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PodRecord requesting(const char* cpu, const char* memory,
                     QosClass qos_class = QosClass::kBurstable) {
  PodRecord record;
  record.qos_class = qos_class;
  record.pod = pod_text::pod({container("a", list({{"cpu", cpu}, {"memory", memory}}))});
  return record;
}

PodRecord of_kubelet(PodRecord record) {
  record.kubelets_own = true;
  return record;
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
  EXPECT_EQ(
      refusal(requesting("1", "2147483649")),
      "requests memory ~2Gi (2147483649), of which 2Gi is free: 6Gi is allocatable, and other "
      "pods have 4Gi; end pods, lower requests, or set admission.memory to \"warn\"");
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

/// What others request is not free although no more than a part of it counts.
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
  EXPECT_EQ(refusal(requesting("5", "20Gi", QosClass::kBestEffort)), "");  // by its overhead
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

/// The words of the log: it starts nevertheless.
TEST_F(NodeFitTest, WarnsOfWhatIsNotRefused) {
  const auto words = [&](const PodRecord& record, bool is_enforced = true) {
    return describe_overcommitment(
               {.pod = record, .before = before_, .others = others_, .capacity = capacity_},
               settings_, is_enforced)
        .value_or("");
  };
  EXPECT_EQ(words(requesting("2", "3Gi")), "");
  EXPECT_THAT(words(requesting("2", "3Gi"), false),
              AllOf(HasSubstr("requests cpu 2, of which 1 is free: 3 is allocatable, and other "
                              "pods have 2; requests memory 3Gi, of which 2Gi is free"),
                    HasSubstr("; it starts nevertheless: end pods, or lower requests")));
  settings_.admission.cpu = AdmissionPolicy::kWarn;
  EXPECT_THAT(words(requesting("2", "3Gi")), AllOf(HasSubstr("cpu 2"), Not(HasSubstr("memory"))));
  settings_.admission.cpu = AdmissionPolicy::kOff;
  EXPECT_EQ(words(requesting("2", "3Gi")), "");
  EXPECT_THAT(words(requesting("2", "3Gi"), false), Not(HasSubstr("cpu")));
}

/// The words of status.
TEST_F(NodeFitTest, TellsThatPodsRequestMoreThanThereIs) {
  const auto words = [&] {
    return describe_overcommitment(others_, settings_, capacity_).value_or("");
  };
  EXPECT_EQ(words(), "");
  others_.requested.cpu = MilliCpu{2000};  // and a kubelet's pods 1
  EXPECT_EQ(words(), "");
  others_.requested.cpu = MilliCpu{2001};
  EXPECT_EQ(words(),
            "pods request more than is allocatable, cpu 3001m of 3: busy ones share it in "
            "proportion to their requests; end pods, or lower requests");
  others_.requested.memory = Bytes{6 * kGi};
  EXPECT_THAT(words(), HasSubstr("cpu 3001m of 3; memory 7Gi of 6Gi: busy ones"));
  settings_.admission = {.memory = AdmissionPolicy::kOff, .cpu = AdmissionPolicy::kOff};
  EXPECT_EQ(words(), "");
}

/// Where requested memory is kept from others, more than there is cannot be promised.
TEST_F(NodeFitTest, RefusesMemoryByDefaultWhereItIsKept) {
  settings_.admission = {};
  const PodRecord record = requesting("5", "3Gi");
  EXPECT_EQ(refusal(record), "");
  settings_.reserve_memory_percent = 0;
  EXPECT_EQ(refusal(record), "");
  settings_.reserve_memory_percent = 50;
  EXPECT_THAT(refusal(record),
              AllOf(HasSubstr("requests memory 3Gi, of which 2Gi is free"), Not(HasSubstr("cpu"))));
  settings_.reserve_memory_percent.reset();
  settings_.reserve_memory = true;
  EXPECT_THAT(refusal(record), HasSubstr("requests memory 3Gi, of which 2Gi is free"));
  settings_.admission.memory = AdmissionPolicy::kWarn;
  EXPECT_EQ(refusal(record), "");
}

}  // namespace
}  // namespace podqos::core

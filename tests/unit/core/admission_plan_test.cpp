#include "common/core/admission_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::ElementsAre;
using ::testing::TestParamInfo;
using ::testing::ValuesIn;
using ::testing::WithParamInterface;

constexpr const char* kAdmittedTo = "/podqos/kubepods/burstable/pod42";

ContainerRecord container_at(const std::string& id) {
  ContainerRecord out;
  out.id = id;
  out.bundle = "/run/" + id;
  out.name = "web";
  out.cgroup = std::string{kAdmittedTo} + "/" + id;
  return out;
}

/// Container "c1" is admitted to pod 42, where it is alone.
Admission admission_of_c1() {
  Admission admission;
  admission.container = container_at("c1");
  admission.record.pod.uid = "42";
  admission.record.qos_class = QosClass::kBurstable;
  admission.record.cgroup = kAdmittedTo;
  admission.record.granted = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{67'108'864}};
  admission.record.containers = {admission.container};
  return admission;
}

TEST(IsFirst, IsTheOnlyContainerOfItsPod) {
  Admission admission = admission_of_c1();
  EXPECT_TRUE(is_first(admission));
  admission.record.containers.push_back(container_at("c2"));
  EXPECT_FALSE(is_first(admission));
}

class PlanAdmission : public ::testing::Test {
 protected:
  /// All that an admission changes, in order.
  [[nodiscard]] EventPlan plan() const {
    EventPlan all = plan_registration(admission_, before_, root_);
    std::ranges::move(plan_clearing(admission_, before_), std::back_inserter(all));
    std::ranges::move(plan_completion(values_, outdated_), std::back_inserter(all));
    return all;
  }

  /// The pod's record before, without living containers.
  static PodRecord record_at(std::string cgroup, bool adopted) {
    PodRecord record;
    record.pod.uid = "42";
    record.cgroup = std::move(cgroup);
    record.adopted = adopted;
    return record;
  }

  Admission admission_ = admission_of_c1();
  std::optional<PodRecord> before_;
  EventPlan root_;
  std::optional<WritePod> values_ = WritePod{.uid = "42",
                                             .cgroup = kAdmittedTo,
                                             .plan = {EnsureCgroup{kAdmittedTo}},
                                             .if_refused = IfRefused::kWriteAgainIfBusy,
                                             .retry_at = UnixSeconds{1030}};
  std::optional<IndexEntry> outdated_;
  const EventStep saves_entry_ = SaveIndexEntry{{.id = "c1", .bundle = "/run/c1", .uid = "42"}};
  const EventStep saves_record_ = SaveRecord{admission_.record};
  const EventStep removes_children_ =
      RemoveChildren{.cgroup = kAdmittedTo, .until = RemoveChildren::Until::kEmpty};
};

TEST_F(PlanAdmission, MakesTheRootBeforeThePodOfWhichAnEntryComesFirst) {
  const EventStep saves_tiers = SaveTiers{};
  const EventStep makes_tree = MakeTree{
      "/podqos/kubepods",
      {EnsureCgroup{"/podqos/kubepods/burstable"}, EnsureCgroup{"/podqos/kubepods/besteffort"}}};
  root_ = {saves_tiers, makes_tree};
  EXPECT_THAT(plan(), ElementsAre(EventStep{SetMark{}}, saves_tiers, makes_tree, saves_entry_,
                                  saves_record_, EventStep{*values_}));
}

TEST_F(PlanAdmission, WritesNothingToAKubeletsPod) {
  admission_.record.adopted = true;
  before_ = record_at(kAdmittedTo, true);
  values_.reset();
  EXPECT_THAT(plan(), ElementsAre(EventStep{SetMark{}}, saves_entry_,
                                  EventStep{SaveRecord{admission_.record}}));
}

TEST_F(PlanAdmission, RemovesWhatAnEarlierPodHasLeftBeforeItWritesValues) {
  before_ = record_at(kAdmittedTo, false);
  EXPECT_THAT(plan(), ElementsAre(EventStep{SetMark{}}, saves_entry_, saves_record_,
                                  removes_children_, EventStep{*values_}));
}

TEST_F(PlanAdmission, RemovesNothingBesideALivingContainer) {
  admission_.record.containers.insert(admission_.record.containers.begin(), container_at("c0"));
  before_ = record_at(kAdmittedTo, false);
  EXPECT_THAT(plan(), ElementsAre(EventStep{SetMark{}}, saves_entry_,
                                  EventStep{SaveRecord{admission_.record}}, EventStep{*values_}));
}

TEST_F(PlanAdmission, KeepsTheOutdatedEntryUntilTheContainerIsAdmitted) {
  outdated_ = {.id = "c1", .bundle = "", .uid = "42"};
  EXPECT_THAT(plan(),
              ElementsAre(EventStep{SetMark{}}, saves_entry_, saves_record_, EventStep{*values_},
                          EventStep{EraseIndexEntry{{.id = "c1", .bundle = "", .uid = "42"}}}));
}

TEST_F(PlanAdmission, ErasesTheEntriesOfContainersThatHaveEnded) {
  before_ = record_at(kAdmittedTo, false);
  before_->containers = {container_at("c0"), container_at("c1")};
  EXPECT_THAT(
      plan_registration(admission_, before_, {}),
      ElementsAre(EventStep{SetMark{}}, saves_entry_, saves_record_,
                  EventStep{EraseIndexEntry{{.id = "c0", .bundle = "/run/c0", .uid = "42"}}}));
}

struct FormerCgroupCase {
  const char* name;
  const char* cgroup;
  bool adopted;
  std::vector<EventStep> removed;
};

class PlanAdmissionRemoves : public PlanAdmission, public WithParamInterface<FormerCgroupCase> {};

/// Also of a pod that is a kubelet's now, and has no values of podqos's.
TEST_P(PlanAdmissionRemoves, TheCgroupThatPodqosMadeElsewhere) {
  admission_.record.adopted = true;
  before_ = record_at(GetParam().cgroup, GetParam().adopted);
  values_.reset();
  outdated_ = {.id = "c1", .bundle = "", .uid = "42"};
  EventPlan want{SetMark{}, saves_entry_, SaveRecord{admission_.record}};
  want.insert(want.end(), GetParam().removed.begin(), GetParam().removed.end());
  want.emplace_back(EraseIndexEntry{*outdated_});
  EXPECT_EQ(plan(), want);
}

INSTANTIATE_TEST_SUITE_P(All, PlanAdmissionRemoves,
                         ValuesIn(std::vector<FormerCgroupCase>{
                             {"Same", kAdmittedTo, false, {}},
                             {"InAnotherTier",
                              "/podqos/kubepods/pod42",
                              false,
                              {Execute{{RemoveCgroup{"/podqos/kubepods/pod42"}}}}},
                             {"ASlice",
                              "/kubepods.slice/kubepods-pod42.slice",
                              false,
                              {Execute{{RemoveCgroup{"/kubepods.slice/kubepods-pod42.slice"},
                                        StopUnit{"/kubepods.slice/kubepods-pod42.slice"}}}}},
                             {"AKubelets", "/kubepods/burstable/pod42", true, {}},
                         }),
                         [](const TestParamInfo<FormerCgroupCase>& row) { return row.param.name; });

TEST_F(PlanAdmission, RemovesTheFormerCgroupBeforeItPreparesTheNewOne) {
  before_ = record_at("/podqos/kubepods/pod42", false);
  EXPECT_THAT(plan(), ElementsAre(EventStep{SetMark{}}, saves_entry_, saves_record_,
                                  EventStep{Execute{{RemoveCgroup{"/podqos/kubepods/pod42"}}}},
                                  removes_children_, EventStep{*values_}));
}

TEST(DescribeAdmission, TellsClassPlaceAndWhatCounts) {
  EXPECT_EQ(describe_admission(admission_of_c1()),
            "pod 42: Burstable, container web (c1) at /podqos/kubepods/burstable/pod42/c1, cpu "
            "100m, memory 64Mi requested");
}

TEST(DescribeAdmission, NamesThePodAndEscapesWhatItsAuthorWrites) {
  Admission admission = admission_of_c1();
  admission.record.pod.name = "front";
  admission.record.pod.pod_namespace = "shop";
  admission.record.qos_class = QosClass::kGuaranteed;
  admission.container.name = "a\nb";
  admission.container.id = "c\"1";
  EXPECT_EQ(describe_admission(admission),
            "pod 42 (shop/front): Guaranteed, container a\\x0ab (c\\\"1) at "
            "/podqos/kubepods/burstable/pod42/c1, cpu 100m, memory 64Mi requested");
}

}  // namespace
}  // namespace podqos::core

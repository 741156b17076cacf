#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::container;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

HeldResources with_shares(std::int64_t shares) {
  HeldResources held;
  held.values.cpu_shares = shares;
  return held;
}

HeldResources with_weight(std::int64_t weight) {
  return {.values = {}, .cpu_weight = CpuWeight{weight}};
}

/// A kubelet's pod of which its engine says this as a whole, with one container.
PodRecord kubelets(const char* whole, const char* of_container) {
  PodRecord record;
  record.pod = pod_text::pod({container("app", list({{"cpu", of_container}}))});
  record.sums = EngineSums{.resources = {.requests = list({{"cpu", whole}}), .limits = {}}};
  record.qos_class = QosClass::kBurstable;
  record.kubelets_own = true;
  return record;
}

std::int64_t requested(const PodRecord& record) {
  return amounts_requested(record).cpu.value();
}

struct Seen {
  PodRecord record;
  HeldResources held;
};

/// What the first of these pods requests then.
std::int64_t followed(const std::vector<Seen>& pods, WeightFormula formula) {
  PodRecords records;
  std::map<std::string, HeldResources> held;
  for (std::size_t at = 0; at < pods.size(); ++at) {
    records.emplace(std::to_string(at), pods[at].record);
    held.emplace(std::to_string(at), pods[at].held);
  }
  const auto changed = follow_kubelet(records, held, formula);
  EXPECT_EQ(!changed.empty(), records.at("0") != pods.front().record);
  PodRecords again = records;
  EXPECT_THAT(follow_kubelet(again, held, formula), IsEmpty()) << "nothing is left to do";
  return requested(records.at("0"));
}

/// MilliCPUToShares (pkg/kubelet/cm/helpers_linux.go): 250m are 256 shares, 100m are 102.
TEST(FollowKubelet, TakesSharesOfVersionOne) {
  for (const auto formula : kWeightFormulas) {
    EXPECT_EQ(followed({{kubelets("250m", "100m"), with_shares(102)}}, formula), 100);
    EXPECT_EQ(followed({{kubelets("100m", "250m"), with_shares(256)}}, formula), 250);
    EXPECT_EQ(followed({{kubelets("250m", "100m"), with_shares(256)}}, formula), 250);
  }
  // Pod-level resources: the containers say nothing of them.
  EXPECT_EQ(followed({{kubelets("150m", "40m"), with_shares(256)}}, WeightFormula::kLog), 250);
}

/// KEP-2254: 1 + (shares - 2) * 9999 / 262142, by which 102 shares are 4, and 256 shares 10.
TEST(FollowKubelet, TakesWeightsOfEitherFormula) {
  for (const auto formula : kWeightFormulas)
    EXPECT_EQ(followed({{kubelets("250m", "100m"), with_weight(4)}}, formula), 100);
  // opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value: 102 shares are 17.
  for (const auto formula : kWeightFormulas)
    EXPECT_EQ(followed({{kubelets("250m", "100m"), with_weight(17)}}, formula), 100);
}

/// Weight 10 begins at 238 shares, 233m, by the one; weight 40 at 306 shares, 299m, by the other.
TEST(FollowKubelet, TakesTheFormulaThatOtherPodsHave) {
  const Seen linear{kubelets("100m", "100m"), with_weight(4)};
  const Seen log{kubelets("100m", "100m"), with_weight(17)};
  EXPECT_EQ(followed({{kubelets("150m", "40m"), with_weight(10)}, linear}, WeightFormula::kLog),
            233);
  EXPECT_EQ(followed({{kubelets("150m", "40m"), with_weight(40)}, log}, WeightFormula::kLinear),
            299);
  EXPECT_EQ(followed({{kubelets("150m", "40m"), with_weight(10)}}, WeightFormula::kLinear), 233);
  EXPECT_EQ(followed({{kubelets("150m", "40m"), with_weight(40)}}, WeightFormula::kLog), 299);
  // 35 is also the weight of 256 shares by the other formula; by this one it begins at 894, 874m.
  EXPECT_EQ(
      followed({{kubelets("250m", "40m"), with_weight(35)}, linear, linear}, WeightFormula::kLog),
      874);
}

/// The cgroup has overhead as well, which is added to what the engine says.
TEST(FollowKubelet, LeavesOverheadToThePod) {
  PodRecord record = kubelets("250m", "100m");
  record.pod.overhead = list({{"cpu", "50m"}});
  EXPECT_EQ(followed({{record, with_shares(153)}}, WeightFormula::kLog), 150);
  record.sums.reset();
  EXPECT_EQ(followed({{record, with_shares(256)}}, WeightFormula::kLog), 250);
}

TEST(FollowKubelet, TakesNothingFromWhatTellsNothing) {
  for (const HeldResources& held : {HeldResources{}, with_weight(0), with_weight(100)})
    EXPECT_EQ(followed({{kubelets("250m", "100m"), held}}, WeightFormula::kLinear), 250);
  // The share of a new cgroup, unless it is what the containers request.
  EXPECT_EQ(followed({{kubelets("250m", "100m"), with_shares(1024)}}, WeightFormula::kLog), 250);
  EXPECT_EQ(followed({{kubelets("250m", "1"), with_shares(1024)}}, WeightFormula::kLog), 1000);
  PodRecord idle = kubelets("250m", "100m");
  idle.qos_class = QosClass::kBestEffort;
  EXPECT_EQ(followed({{idle, with_shares(2)}}, WeightFormula::kLog), 250);
}

TEST(FollowKubelet, SaysWhichPodsHaveChanged) {
  PodRecords records{{"a", kubelets("250m", "100m")}, {"b", kubelets("250m", "100m")}};
  EXPECT_THAT(follow_kubelet(records, {{"a", with_shares(256)}, {"b", with_shares(102)}},
                             WeightFormula::kLog),
              ElementsAre("b"));
}

}  // namespace
}  // namespace podqos::core

// Crash safety: each event is cut off after each of its changes; the next event has to find the way
// back to what the machine's living containers need.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "common/core/attributes.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::UnorderedElementsAreArray;

/// A container, and what Kubernetes makes of its pod.
struct Known {
  FakeContainer container;
  Pid init;
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::int64_t milli_cpu = 0;
  std::int64_t memory = 0;
};

constexpr std::int64_t kMi = std::int64_t{1} << 20U;
const core::Annotations kWebPod{{"podqos.io/requests", "cpu=750m,memory=96Mi"}};
const Known kWeb{.container = {.id = "web", .uid = "a", .annotations = kWebPod},
                 .init = Pid{10},
                 .qos_class = core::QosClass::kBurstable,
                 .milli_cpu = 750,
                 .memory = 96 * kMi};
const Known kLog{.container = {.id = "log", .uid = "a", .annotations = kWebPod},
                 .init = Pid{11},
                 .qos_class = core::QosClass::kBurstable,
                 .milli_cpu = 750,
                 .memory = 96 * kMi};
const Known kBatch{.container = {.id = "batch", .uid = "b"},
                   .init = Pid{12},
                   .qos_class = core::QosClass::kBestEffort,
                   .milli_cpu = 0,
                   .memory = 0};
const Known kDatabase{.container = {.id = "db",
                                    .uid = "c",
                                    .annotations = {{"podqos.io/limits", "cpu=1,memory=1Gi"}}},
                      .init = Pid{13},
                      .qos_class = core::QosClass::kGuaranteed,
                      .milli_cpu = 1000,
                      .memory = 1024 * kMi};
/// The one that comes after the cut.
const Known kNext{.container = {.id = "next",
                                .uid = "d",
                                .annotations = {{"podqos.io/requests", "cpu=100m,memory=16Mi"}}},
                  .init = Pid{14},
                  .qos_class = core::QosClass::kBurstable,
                  .milli_cpu = 100,
                  .memory = 16 * kMi};

/// Shares of a cgroup with this sum of requests: kubelet cm/helpers_linux.go MilliCPUToShares.
std::int64_t shares_of_requests(std::int64_t milli_cpu) {
  return std::max<std::int64_t>(milli_cpu * 1024 / 1000, 2);
}

/// The file that holds the shares: cpu.weight by the linear formula of KEP-2254, or cpu.shares.
std::string shares_in(const FakeNode& node, const std::string& cgroup) {
  return node.file(cgroup, node.tree.is_v2() ? "cpu.weight" : "cpu.shares");
}
std::string shares_as_written(const FakeNode& node, std::int64_t shares) {
  return std::to_string(node.tree.is_v2() ? 1 + ((shares - 2) * 9999 / 262142) : shares);
}

/// The cgroups of a node's tree by name, as DESIGN and the kubelet's drivers lay them out: nested
/// directories, or slices that carry the names of those above.
struct Paths {
  std::string top;
  std::string root;
  std::string burstable;
  std::string besteffort;
};
const Paths kDirectories{.top = "/podqos",
                         .root = "/podqos/kubepods",
                         .burstable = "/podqos/kubepods/burstable",
                         .besteffort = "/podqos/kubepods/besteffort"};
const Paths kSlices{
    .top = "/podqos.slice",
    .root = "/podqos.slice/podqos-kubepods.slice",
    .burstable = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice",
    .besteffort = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice"};

const Paths& paths_of(const FakeNode& node) {
  return node.driver == core::Driver::kSystemd ? kSlices : kDirectories;
}

std::string pod_cgroup_of(const FakeNode& node, const Known& known) {
  const Paths& paths = paths_of(node);
  const std::string& tier = known.qos_class == core::QosClass::kBurstable    ? paths.burstable
                            : known.qos_class == core::QosClass::kBestEffort ? paths.besteffort
                                                                             : paths.root;
  if (node.driver == core::Driver::kCgroupfs) return cat(tier, "/pod", known.container.uid);
  const std::string stem = tier.substr(tier.rfind('/') + 1, tier.size() - tier.rfind('/') - 7);
  return cat(tier, "/", stem, "-pod", known.container.uid, ".slice");
}

/// What the containers that run need.
struct Truth {
  std::map<std::string, std::vector<std::string>> containers;  ///< ids by uid
  std::map<std::string, std::int64_t> milli_cpu;               ///< of a pod by its cgroup
  std::map<core::QosClass, core::TierSum> sums;
  std::vector<std::string> cgroups{"/"};
  std::vector<std::string> ids;
};

Truth truth_of(const FakeNode& node, const std::vector<Known>& living) {
  Truth truth;
  for (const Known& each : living) {
    const std::string pod = pod_cgroup_of(node, each);
    if (!truth.containers.contains(each.container.uid)) {
      core::TierSum& sum = truth.sums[each.qos_class];
      ++sum.pods;
      sum.cpu = MilliCpu{sum.cpu.value() + each.milli_cpu};
      sum.memory = Bytes{sum.memory.value() + each.memory};
      truth.milli_cpu[pod] = each.milli_cpu;
      truth.cgroups.push_back(pod);
    }
    truth.containers[each.container.uid].push_back(each.container.id);
    truth.ids.push_back(each.container.id);
    const std::string& own = node.tree.processes.at(each.init).cgroup;
    EXPECT_TRUE(own.starts_with(cat(pod, "/"))) << own;
    truth.cgroups.push_back(own);
  }
  const Paths& paths = paths_of(node);
  if (!living.empty()) {
    truth.cgroups.insert(truth.cgroups.end(),
                         {paths.top, paths.root, paths.burstable, paths.besteffort});
  }
  return truth;
}

void expect_records(const FakeNode& node, const Truth& truth) {
  EXPECT_FALSE(node.records.dirty);
  std::map<std::string, std::vector<std::string>> recorded;
  for (const auto& [uid, text] : node.records.pods) {
    const auto record = codec::parse_pod_record(text);
    ASSERT_TRUE(record) << record.error().message;
    for (const core::ContainerRecord& container : record->containers) {
      recorded[uid].push_back(container.id);
      EXPECT_EQ(container.state, core::ContainerState::kLive) << container.id;
    }
  }
  EXPECT_EQ(recorded, truth.containers);
  std::vector<std::string> indexed;
  for (const core::IndexEntry& entry : node.records.containers)
    indexed.push_back(entry.id);
  EXPECT_THAT(indexed, UnorderedElementsAreArray(truth.ids));
  for (const auto qos_class :
       {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
    const auto sum = truth.sums.find(qos_class);
    EXPECT_EQ(node.records.tiers.sums.of(qos_class),
              sum == truth.sums.end() ? core::TierSum{} : sum->second);
  }
  EXPECT_TRUE(node.records.tiers.pending.empty());
  EXPECT_TRUE(node.records.tiers.retained.empty());
}

/// Whatever has happened before: records, tiers, cgroups, units and values are those of the
/// containers that run.
void expect_truth(const FakeNode& node, const std::vector<Known>& living) {
  const Truth truth = truth_of(node, living);
  expect_records(node, truth);
  std::vector<std::string> existing;
  std::vector<std::string> slices;
  for (const auto& [path, cgroup] : node.tree.cgroups) {
    existing.push_back(path);
    if (path.ends_with(".slice")) slices.push_back(path.substr(path.rfind('/') + 1));
  }
  EXPECT_THAT(existing, UnorderedElementsAreArray(truth.cgroups));
  EXPECT_THAT(node.tree.units, UnorderedElementsAreArray(slices));
  for (const auto& [path, milli_cpu] : truth.milli_cpu)
    EXPECT_EQ(shares_in(node, path), shares_as_written(node, shares_of_requests(milli_cpu)))
        << path;
  if (living.empty()) return;
  const auto burstable = truth.sums.find(core::QosClass::kBurstable);
  const std::int64_t requested = burstable == truth.sums.end() ? 0 : burstable->second.cpu.value();
  EXPECT_EQ(shares_in(node, paths_of(node).burstable),
            shares_as_written(node, shares_of_requests(requested)));
  EXPECT_EQ(shares_in(node, paths_of(node).besteffort), shares_as_written(node, 2));
}

/// An event that is cut off, and the containers that run afterwards.
struct Scenario {
  const char* name;
  std::vector<Known> before;               ///< containers that run when the event comes
  std::function<void(FakeNode&)> prepare;  ///< what else has happened before
  std::function<void(FakeNode&)> event;    ///< fails where it is cut off
  std::function<void(FakeNode&)> after;    ///< what becomes of the machine then
  std::vector<Known> living;               ///< containers that run in the end
};

constexpr Pid kCreator{2000};

/// The hook, or the wrapper, that admits the container was killed: its runtime fails.
void creator_ends(FakeNode& node) {
  node.tree.end(kCreator);
}
void nothing(FakeNode& /*node*/) {}

std::function<void(FakeNode&)> admission_of(const Known& known) {
  return [known](FakeNode& node) {
    node.tree.start(kCreator, "/");
    static_cast<void>(node.admit(known.container, kCreator).has_value());
  };
}

std::function<void(FakeNode&)> end_of(const Known& known) {
  return [known](FakeNode& node) {
    node.tree.end(known.init);
    static_cast<void>(node.end(known.container).has_value());
  };
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> kAll = {
      {"AdmissionOfTheFirstPod", {}, nothing, admission_of(kWeb), creator_ends, {}},
      {"AdmissionOfASecondContainer", {kWeb}, nothing, admission_of(kLog), creator_ends, {kWeb}},
      {"AdmissionOfASecondPod", {kWeb}, nothing, admission_of(kDatabase), creator_ends, {kWeb}},
      {"AdmissionOfABestEffortPod",
       {kDatabase},
       nothing,
       admission_of(kBatch),
       creator_ends,
       {kDatabase}},
      {"Confirmation",
       {kWeb},
       [](FakeNode& node) {
         node.tree.start(kCreator, "/");
         const auto admission = node.admit(kLog.container, kCreator);
         ASSERT_TRUE(admission) << admission.error().message;
         node.tree.start(kLog.init, (*admission)->container.cgroup);
         node.tree.end(kCreator);
       },
       [](FakeNode& node) { static_cast<void>(node.confirm(kLog.container, kLog.init)); },
       nothing,
       {kWeb, kLog}},
      {"EndOfOneContainerOfTwo", {kWeb, kLog}, nothing, end_of(kLog), nothing, {kWeb}},
      {"EndOfOnePodOfTwo", {kWeb, kDatabase}, nothing, end_of(kWeb), nothing, {kDatabase}},
      {"EndOfTheLastPod", {kWeb}, nothing, end_of(kWeb), nothing, {}},
      {"ReconcileAfterAnEnd",
       {kWeb, kBatch},
       nothing,
       [](FakeNode& node) {
         node.tree.end(kWeb.init);
         static_cast<void>(node.reconcile().has_value());
       },
       nothing,
       {kBatch}},
      {"ReconcileAfterTheLossOfTheState",
       {kWeb, kLog, kBatch},
       nothing,
       [](FakeNode& node) {
         node.records = {};
         static_cast<void>(node.reconcile().has_value());
       },
       nothing,
       {kWeb, kLog, kBatch}},
  };
  return kAll;
}

class Crash : public TestWithParam<std::tuple<core::CgroupVersion, core::Driver, std::size_t>> {
 protected:
  /// The node on which the event comes.
  static std::unique_ptr<FakeNode> prepared() {
    auto node = std::make_unique<FakeNode>(std::get<0>(GetParam()), std::get<1>(GetParam()));
    for (const Known& each : scenario().before)
      node->run(each.container, each.init);
    scenario().prepare(*node);
    return node;
  }
  static const Scenario& scenario() { return scenarios()[std::get<2>(GetParam())]; }

  /// The node after an event that was cut off.
  static std::unique_ptr<FakeNode> cut_off_after(int changes) {
    auto node = prepared();
    node->allow(changes);
    scenario().event(*node);
    node->allow_all();
    scenario().after(*node);
    return node;
  }

  /// Cuts the event off after each number of changes from `first`, runs `next`, and compares.
  static void cut_off_everywhere(int first, const std::function<void(FakeNode&)>& next,
                                 const std::vector<Known>& living) {
    const auto whole = prepared();
    const std::size_t before = whole->changes.size();
    scenario().event(*whole);
    const auto changes = static_cast<int>(whole->changes.size() - before);
    ASSERT_GT(changes, 1);
    for (int allowed = first; allowed <= changes; ++allowed) {
      SCOPED_TRACE(cat("cut off after ", allowed, " of ", changes, " changes"));
      const auto node = cut_off_after(allowed);
      next(*node);
      expect_truth(*node, living);
      if (HasFailure()) return;
    }
  }
};

TEST_P(Crash, TheNextContainerFindsTheTruth) {
  std::vector<Known> living = scenario().living;
  living.push_back(kNext);
  // An event that has changed nothing is as good as lost, which only a reconciliation notices.
  cut_off_everywhere(1, [](FakeNode& node) { node.run(kNext.container, kNext.init); }, living);
}

TEST_P(Crash, ReconcileFindsTheTruth) {
  cut_off_everywhere(
      0,
      [](FakeNode& node) {
        const auto report = node.reconcile();
        EXPECT_TRUE(report) << report.error().message;
      },
      scenario().living);
}

/// A change that is refused ends neither the program nor what comes after it.
TEST_P(Crash, OneRefusedChangeIsMadeGood) {
  const auto whole = prepared();
  const std::size_t before = whole->changes.size();
  scenario().event(*whole);
  const auto changes = static_cast<int>(whole->changes.size() - before);
  for (int allowed = 0; allowed < changes; ++allowed) {
    const std::string& change = whole->changes[before + static_cast<std::size_t>(allowed)];
    // Above its root podqos leaves what it cannot remove: another program uses it.
    if (change == cat("rmdir  ", paths_of(*whole).top)) continue;
    SCOPED_TRACE(cat("refused after ", allowed, " of ", changes, " changes: ", change));
    const auto node = prepared();
    node->fail_once_after(allowed);
    scenario().event(*node);
    node->allow_all();
    scenario().after(*node);
    const auto report = node->reconcile();
    EXPECT_TRUE(report) << report.error().message;
    expect_truth(*node, scenario().living);
    if (HasFailure()) return;
  }
}

/// The preview is what a reconciliation then does to the machine, in this order, and it changes
/// nothing.
TEST_P(Crash, ThePreviewIsWhatReconcileDoes) {
  const auto whole = prepared();
  const std::size_t before = whole->changes.size();
  scenario().event(*whole);
  const auto changes = static_cast<int>(whole->changes.size() - before);
  for (int allowed = 0; allowed <= changes; ++allowed) {
    SCOPED_TRACE(cat("cut off after ", allowed, " of ", changes, " changes"));
    const auto node = cut_off_after(allowed);
    const auto preview = node->preview();
    ASSERT_TRUE(preview) << preview.error().message;
    node->changes.clear();
    ASSERT_TRUE(node->reconcile());
    std::erase_if(node->changes, [](const std::string& line) {
      return line == "record" || line.ends_with(core::kRecordAttribute);
    });
    std::vector<std::string> planned = preview->plan;
    std::erase_if(planned, [](const std::string& line) {
      return line.starts_with("save ") || line.starts_with("erase ");
    });
    EXPECT_EQ(planned, node->changes);
    const auto again = node->preview();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_THAT(again->plan, IsEmpty());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Events, Crash,
    ::testing::Combine(::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                       ::testing::Values(core::Driver::kCgroupfs, core::Driver::kSystemd),
                       ::testing::Range(std::size_t{0}, scenarios().size())),
    [](const TestParamInfo<Crash::ParamType>& row) {
      const bool v1 = std::get<0>(row.param) == core::CgroupVersion::kV1;
      const bool systemd = std::get<1>(row.param) == core::Driver::kSystemd;
      return cat(scenarios()[std::get<2>(row.param)].name, v1 ? "OnV1" : "OnV2",
                 systemd ? "WithSystemd" : "");
    });

}  // namespace
}  // namespace podqos::app

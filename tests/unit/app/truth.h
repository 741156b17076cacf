// What records, tiers, cgroups and values must be on a node in memory, whatever has happened
// before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app::truth {

/// A container, and what Kubernetes makes of its pod.
struct Known {
  FakeContainer container;
  Pid init;
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::int64_t milli_cpu = 0;
  std::int64_t memory = 0;
};

inline constexpr std::int64_t kMi = std::int64_t{1} << 20U;
inline const core::Annotations kWebPod{{"podqos.io/requests", "cpu=750m,memory=96Mi"}};
inline const Known kWeb{.container = {.id = "web", .uid = "a", .annotations = kWebPod},
                        .init = Pid{10},
                        .qos_class = core::QosClass::kBurstable,
                        .milli_cpu = 750,
                        .memory = 96 * kMi};
inline const Known kLog{.container = {.id = "log", .uid = "a", .annotations = kWebPod},
                        .init = Pid{11},
                        .qos_class = core::QosClass::kBurstable,
                        .milli_cpu = 750,
                        .memory = 96 * kMi};
inline const Known kBatch{.container = {.id = "batch", .uid = "b"},
                          .init = Pid{12},
                          .qos_class = core::QosClass::kBestEffort,
                          .milli_cpu = 0,
                          .memory = 0};
inline const Known kDatabase{
    .container = {.id = "db",
                  .uid = "c",
                  .annotations = {{"podqos.io/limits", "cpu=1,memory=1Gi"}}},
    .init = Pid{13},
    .qos_class = core::QosClass::kGuaranteed,
    .milli_cpu = 1000,
    .memory = 1024 * kMi};
/// The one that comes after a failure.
inline const Known kNext{
    .container = {.id = "next",
                  .uid = "d",
                  .annotations = {{"podqos.io/requests", "cpu=100m,memory=16Mi"}}},
    .init = Pid{14},
    .qos_class = core::QosClass::kBurstable,
    .milli_cpu = 100,
    .memory = 16 * kMi};

/// Shares of a cgroup with this sum of requests: kubelet cm/helpers_linux.go MilliCPUToShares.
inline std::int64_t shares_of_requests(std::int64_t milli_cpu) {
  return std::max<std::int64_t>(milli_cpu * 1024 / 1000, 2);
}

/// The file that holds the shares: cpu.weight by the linear formula of KEP-2254, or cpu.shares.
inline std::string shares_in(const FakeNode& node, const std::string& cgroup) {
  return node.file(cgroup, node.tree.is_v2() ? "cpu.weight" : "cpu.shares");
}
inline std::string shares_as_written(const FakeNode& node, std::int64_t shares) {
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
inline const Paths kDirectories{.top = "/podqos",
                                .root = "/podqos/kubepods",
                                .burstable = "/podqos/kubepods/burstable",
                                .besteffort = "/podqos/kubepods/besteffort"};
inline const Paths kSlices{
    .top = "/podqos.slice",
    .root = "/podqos.slice/podqos-kubepods.slice",
    .burstable = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice",
    .besteffort = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice"};

inline const Paths& paths_of(const FakeNode& node) {
  return node.driver == core::Driver::kSystemd ? kSlices : kDirectories;
}

inline std::string pod_cgroup_of(const FakeNode& node, const Known& known) {
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

inline Truth truth_of(const FakeNode& node, const std::vector<Known>& living) {
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

inline void expect_records(const FakeNode& node, const Truth& truth) {
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
  for (const store::IndexEntry& entry : node.records.index)
    indexed.push_back(entry.name);
  std::vector<std::string> names;
  for (const std::string& id : truth.ids)
    names.push_back(store::index_name(id));
  EXPECT_THAT(indexed, ::testing::UnorderedElementsAreArray(names));
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
inline void expect_truth(const FakeNode& node, const std::vector<Known>& living) {
  const Truth truth = truth_of(node, living);
  expect_records(node, truth);
  std::vector<std::string> existing;
  std::vector<std::string> slices;
  for (const auto& [path, cgroup] : node.tree.cgroups) {
    existing.push_back(path);
    if (path.ends_with(".slice")) slices.push_back(path.substr(path.rfind('/') + 1));
  }
  EXPECT_THAT(existing, ::testing::UnorderedElementsAreArray(truth.cgroups));
  EXPECT_THAT(node.tree.units, ::testing::UnorderedElementsAreArray(slices));
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

}  // namespace podqos::app::truth

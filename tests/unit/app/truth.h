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

/// A container of a Burstable pod that requests this.
inline Known burstable(FakeContainer container, Pid init, std::int64_t milli_cpu,
                       std::int64_t mebibytes) {
  container.annotations = {
      {"podqos.io/requests", cat("cpu=", milli_cpu, "m,memory=", mebibytes, "Mi")}};
  return {std::move(container), init, core::QosClass::kBurstable, milli_cpu, mebibytes * kMi};
}
/// The container of a Guaranteed pod with these limits.
inline Known guaranteed(FakeContainer container, Pid init, std::int64_t milli_cpu,
                        std::int64_t mebibytes) {
  container.annotations = {
      {"podqos.io/limits", cat("cpu=", milli_cpu, "m,memory=", mebibytes, "Mi")}};
  return {std::move(container), init, core::QosClass::kGuaranteed, milli_cpu, mebibytes * kMi};
}

inline const Known kWeb = burstable({.id = "web", .uid = "a"}, Pid{10}, 750, 96);
inline const Known kLog = burstable({.id = "log", .uid = "a"}, Pid{11}, 750, 96);
inline const Known kBatch{.container = {.id = "batch", .uid = "b"}, .init = Pid{12}};
inline const Known kDatabase = guaranteed({.id = "db", .uid = "c"}, Pid{13}, 1000, 1024);
/// The one that comes after a failure.
inline const Known kNext = burstable({.id = "next", .uid = "d"}, Pid{14}, 100, 16);

/// Checks the CPU shares of a cgroup with this sum of requests: kubelet cm/helpers_linux.go
/// MilliCPUToShares.
inline void expect_shares(const FakeNode& node, const std::string& cgroup, std::int64_t milli_cpu) {
  const auto shares = std::max<std::int64_t>(milli_cpu * 1024 / 1000, 2);
  EXPECT_EQ(node.shares(cgroup), node.written(shares)) << cgroup;
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
  core::TierSums sums;
  std::vector<std::string> cgroups{"/"};
  std::vector<store::IndexEntry> index;
};

inline Truth truth_of(const FakeNode& node, const std::vector<Known>& living) {
  Truth truth;
  for (const Known& each : living) {
    const std::string pod = pod_cgroup_of(node, each);
    if (!truth.containers.contains(each.container.uid)) {
      truth.sums.of(each.qos_class) +=
          {.pods = 1, .cpu = MilliCpu{each.milli_cpu}, .memory = Bytes{each.memory}};
      truth.milli_cpu[pod] = each.milli_cpu;
      truth.cgroups.push_back(pod);
    }
    truth.containers[each.container.uid].push_back(each.container.id);
    truth.index.push_back(
        {.name = store::index_name(each.container.id), .uid = each.container.uid});
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
  EXPECT_THAT(node.records.index, ::testing::UnorderedElementsAreArray(truth.index));
  for (const auto qos_class :
       {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort})
    EXPECT_EQ(node.records.node.sums.of(qos_class), truth.sums.of(qos_class));
  EXPECT_TRUE(node.records.pending().empty());
  EXPECT_TRUE(node.records.due().empty());
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
    expect_shares(node, path, milli_cpu);
  if (living.empty()) return;
  expect_shares(node, paths_of(node).burstable,
                truth.sums.of(core::QosClass::kBurstable).cpu.value());
  expect_shares(node, paths_of(node).besteffort, 0);
}

}  // namespace podqos::app::truth

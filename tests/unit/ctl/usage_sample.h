#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/core/kubernetes/quantity.h"
#include "common/core/record.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {

/// A container of a pod's spec.
inline core::Container spec_of(std::string name, std::int64_t cpu_milli, std::int64_t memory) {
  core::Container container;
  container.name = std::move(name);
  if (cpu_milli > 0) container.resources.requests["cpu"] = core::Quantity::from_milli(cpu_milli);
  if (memory > 0) container.resources.requests["memory"] = core::Quantity::from_units(memory);
  return container;
}

/// A pod below /podqos/kubepods with these containers, of which each has the id "c-NAME".
inline core::PodRecord record_of(core::QosClass qos_class, std::string uid, std::string cgroup,
                                 std::vector<core::Container> containers) {
  core::PodRecord record;
  record.pod.uid = std::move(uid);
  record.qos_class = qos_class;
  record.cgroup = std::move(cgroup);
  for (const core::Container& container : containers) {
    core::ContainerRecord& made = record.containers.emplace_back();
    made.id = "c-" + container.name;
    made.name = container.name;
    made.cgroup = record.cgroup + "/c-" + container.name;
  }
  record.pod.containers = std::move(containers);
  return record;
}

/// A pod of each class; that of the last has neither names nor containers in its spec.
inline NodeRecords three_pods() {
  NodeRecords records;
  core::PodRecord web =
      record_of(core::QosClass::kBurstable, "u-web", "/podqos/kubepods/burstable/podu-web",
                {spec_of("app", 200, 64), spec_of("log", 100, 0)});
  web.pod.name = "web";
  web.pod.pod_namespace = "shop";
  web.engine = core::Engine::kPodman;
  web.pod.containers.front().resources.limits["cpu"] = core::Quantity::from_milli(500);
  core::PodRecord best =
      record_of(core::QosClass::kBestEffort, "u-be", "/podqos/kubepods/besteffort/podu-be", {});
  best.containers.emplace_back().id = "0123456789abcdef";
  best.containers.back().cgroup = best.cgroup + "/0123";
  core::PodRecord database = record_of(core::QosClass::kGuaranteed, "u-db",
                                       "/podqos/kubepods/podu-db", {spec_of("app", 200, 4096)});
  database.pod.name = "db";
  database.pod.pod_namespace = "default";
  records.pods = {web, best, database};
  core::TreeRecord tree{.kubepods = "/podqos/kubepods"};
  tree.sums.guaranteed = {.pods = 1, .cpu = MilliCpu{200}, .memory = Bytes{4096}};
  tree.sums.burstable = {.pods = 1, .cpu = MilliCpu{300}, .memory = Bytes{64}};
  records.node.trees = {tree};
  return records;
}

/// Their usage. Entries: 0 the tree; 1 Guaranteed, 2 default/db, 3 its app; 4 Burstable, 5
/// shop/web, 6 its app, 7 its log; 8 BestEffort, 9 u-be, 10 its container.
inline UsageSample sample() {
  constexpr std::int64_t kMi = 1 << 20;
  UsageSample made{.interval_ms = 2000, .entries = entries_of(three_pods())};
  auto& all = made.entries;
  all[0].usage = {.cpu = MilliCpu{300}};
  all[5].limits = {.cpu = MilliCpu{500}, .memory = {}};
  all[2].usage = {.cpu = MilliCpu{40},
                  .memory = Bytes{30 * kMi},
                  .working_set = Bytes{20 * kMi},
                  .pids = 2,
                  .oom_kills = 0};
  all[3].usage = {.cpu = MilliCpu{40}, .memory = Bytes{30 * kMi}, .working_set = Bytes{20 * kMi}};
  all[4].usage = {.cpu = MilliCpu{250}, .oom_kills = 1};
  all[5].usage = {.cpu = MilliCpu{250},
                  .throttled = Permille{125},
                  .memory = Bytes{100 * kMi},
                  .working_set = Bytes{90 * kMi},
                  .swap = Bytes{0},
                  .pids = 12,
                  .oom_kills = 1,
                  .cpu_waiting = Permille{30},
                  .cpu_stalled = Permille{10},
                  .memory_waiting = Permille{5},
                  .memory_stalled = Permille{0}};
  all[6].usage = {.cpu = MilliCpu{200},
                  .throttled = Permille{950},
                  .memory = Bytes{99 * kMi},
                  .working_set = Bytes{89 * kMi}};
  all[7].usage = {.cpu = MilliCpu{50}, .memory = Bytes{kMi}, .working_set = Bytes{kMi}};
  all[10].usage = {.memory = Bytes{1}};
  return made;
}

}  // namespace podqos::ctl

// Cgroups, processes and units of a machine in memory; see fake_machine.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/machine.h"

namespace podqos::cgroup {

/// A process of the fake machine.
struct FakeProcess {
  StartTime start_time;
  std::string cgroup;
  int oom_score_adj = 0;
};

/// The state of a fake machine: one tree that stands for all hierarchies, processes and units.
struct FakeTree {
  struct Cgroup {
    std::map<std::string, std::string, std::less<>> files;
    std::map<std::string, std::string, std::less<>> attributes;
    bool enables_controllers = false;  ///< cgroup.subtree_control is not empty (v2)
    bool enables_io = false;           ///< it has io
    std::int64_t usage = 0;            ///< memory charged to it and to the cgroups below, in bytes
    std::int64_t reclaimable = 0;      ///< what of it the kernel can reclaim
    std::int64_t shmem = 0;            ///< what of it is tmpfs memory
    std::int64_t reclaim(std::int64_t most) {
      const std::int64_t bytes = std::min(most, reclaimable);
      reclaimable -= bytes;
      usage -= bytes;
      return bytes;
    }
  };

  explicit FakeTree(core::CgroupVersion version)
      : layout{.cpu = version,
               .memory = version,
               .hugetlb = std::nullopt,
               .pids = version,
               .cpuset = version} {
    cgroups["/"].enables_controllers = true;
  }

  std::int64_t oom_kills = 0;                            ///< on the whole machine
  std::optional<std::string> kernel_log = std::nullopt;  ///< nullopt: not to be read

  /// On v2, whether the kernel enables cpu for children: not with CONFIG_RT_GROUP_SCHED while a
  /// realtime process runs outside the root cgroup (kernel/sched/rt.c sched_rt_can_attach).
  bool refuses_cpu = false;

  [[nodiscard]] bool is_v2() const { return layout.memory == core::CgroupVersion::kV2; }

  /// mkdir(2) of a cgroup and its missing parents, with the values of a new one.
  void make(const std::string& path) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string part = path.substr(0, end);
      if (!cgroups.contains(part)) {
        cgroups[part].files = is_v2() ? kNewV2 : kNewV1;
        if (refuses_cpu) std::erase_if(cgroups[part].files, is_of_cpu);
        for (const std::string& file : lacking)
          cgroups[part].files.erase(file);
        if (cgroups.find(parent_of(part))->second.enables_io)
          cgroups[part].files["io.weight"] = "default 100";
      }
      if (end == std::string::npos) return;
      if (is_v2()) cgroups[part].enables_controllers = true;
    }
  }
  static constexpr auto is_of_cpu = [](const auto& file) { return file.first.starts_with("cpu."); };
  /// Enables cpu for all cgroups.
  void enable_cpu() {
    refuses_cpu = false;
    for (auto& [path, cgroup] : cgroups) {
      for (const auto& file : kNewV2) {
        if (path != "/" && is_of_cpu(file)) cgroup.files.insert(file);
      }
    }
  }
  /// Enables io for the children of a cgroup, and above. They get io.weight, as with iocost.
  void enable_io(std::string path) {
    while (true) {
      cgroups.at(path).enables_io = true;
      for (auto& [each, cgroup] : cgroups) {
        if (each != "/" && parent_of(each) == path)
          cgroup.files.try_emplace("io.weight", "default 100");
      }
      if (path == "/") return;
      path = std::string{parent_of(path)};
    }
  }
  /// A cgroup that is made idle has the weight 3 (kernel/sched/sched.h WEIGHT_IDLEPRIO), which
  /// kernels before 6.12 show as 0 (core.c cpu_weight_read_u64()); another one the default.
  void show_idle(const std::string& path) {
    auto& files = cgroups.at(path).files;
    const bool idle = files.at("cpu.idle") == "1";
    if (is_v2())
      files.at("cpu.weight") = idle ? "0" : "100";
    else
      files.at("cpu.shares") = idle ? "3" : "1024";
  }
  /// Another program makes it idle, as koordlet does.
  void make_idle(const std::string& path) {
    cgroups.at(path).files.at("cpu.idle") = "1";
    show_idle(path);
  }
  /// fork(2) and a write to cgroup.procs, which makes the cgroup if it is missing, as a runtime
  /// does.
  void start(Pid pid, const std::string& cgroup) {
    make(cgroup);
    processes[pid] = {.start_time = StartTime{pid.value() * 10}, .cgroup = cgroup};
  }
  /// The process ends, and its runtime removes its cgroup.
  void end(Pid pid) {
    const std::string cgroup = processes.at(pid).cgroup;
    processes.erase(pid);
    if (cgroup != "/") cgroups.erase(cgroup);
  }

  core::CgroupLayout layout;
  std::map<std::string, Cgroup, std::less<>> cgroups;
  std::map<Pid, FakeProcess> processes;
  std::set<std::string, std::less<>> units;
  std::set<std::string, std::less<>> lacking;  ///< files that the kernel does not have
  /// Empty cgroups whose removal is refused: systemd has them open, or uses them in a job.
  std::set<std::string, std::less<>> held_by_systemd;
  /// Nested cgroups that one step removes; the real machine's bound is cgroup::kNestedSteps.
  int most_nested = 512;
  /// What happens while the program waits; returns whether it may wait, by default never.
  std::function<bool()> on_wait = [] { return false; };
  /// Called before each question that can fail, like "children /PATH"; an error is its answer.
  std::function<Status(const std::string& what)> on_read = {};

  // Values of a new cgroup: Documentation/admin-guide/cgroup-v2.rst; for v1 kernel/sched/core.c,
  // mm/memcontrol.c (PAGE_COUNTER_MAX pages of 4 KiB) and kernel/cgroup/pids.c.
  static inline const std::map<std::string, std::string, std::less<>> kNewV2{
      {"cpu.weight", "100"},      {"cpu.max", "max 100000"}, {"memory.min", "0"},
      {"memory.low", "0"},        {"memory.high", "max"},    {"memory.max", "max"},
      {"memory.swap.max", "max"}, {"memory.oom.group", "0"}, {"pids.max", "max"},
      {"cpu.idle", "0"},          {"cpu.max.burst", "0"}};
  static inline const std::map<std::string, std::string, std::less<>> kNewV1{
      {"cpu.shares", "1024"},     {"cpu.cfs_period_us", "100000"},
      {"cpu.cfs_quota_us", "-1"}, {"cpu.cfs_burst_us", "0"},
      {"cpu.idle", "0"},          {"memory.limit_in_bytes", "9223372036854771712"},
      {"pids.max", "max"}};
};

}  // namespace podqos::cgroup

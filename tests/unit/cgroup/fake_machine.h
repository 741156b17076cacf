// A machine in memory with the kernel's rules for cgroups, for tests of events.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/value.h"
#include "common/core/cgroups/naming.h"
#include "tests/unit/cgroup/fake_tree.h"

namespace podqos::cgroup {

/// Access to a FakeTree. The calls that change it can be made to fail, as if the program had been
/// killed: see `on_change`.
class FakeMachine final : public Machine {
 public:
  /// Called before each change of the tree with a line like those of DryRun. If it returns
  /// an error, nothing is changed.
  using OnChange = std::function<Status(const std::string& change)>;

  FakeMachine(FakeTree& tree, OnChange on_change)
      : tree_(&tree), on_change_(std::move(on_change)), layout_(tree.layout) {}

  const core::CgroupLayout& layout() override { return layout_; }
  const core::CgroupLayout& layout_without_hugepages() const override { return layout_; }

  Result<Report> execute(const core::Plan& plan) override {
    Report report;
    PODQOS_TRY(carry_out(plan, report, [&](const core::Step& step) {
      return std::visit([&](const auto& concrete) { return run(concrete, report); }, step);
    }));
    for (const core::Step& step : plan) {
      const auto* set = std::get_if<core::SetUnit>(&step);
      if (set != nullptr && has_changed(report, set->path)) PODQOS_TRY(on_change_(line_of(step)));
    }
    return report;
  }
  bool wait(std::chrono::milliseconds /*time*/) override { return tree_->on_wait(); }

  bool exists(std::string_view path) override { return tree_->cgroups.contains(path); }
  Result<bool> is_complete(std::string_view path) override { return exists(path); }
  Result<std::string> read(std::string_view path, core::Controller /*controller*/,
                           const std::string& file) override {
    PODQOS_TRY(ask(cat("read ", path, "/", file)));
    const auto cgroup = tree_->cgroups.find(path);
    if (cgroup == tree_->cgroups.end()) return gone(path);
    if (file == "cgroup.subtree_control" && tree_->is_v2())
      return std::string{cgroup->second.enables_io ? "cpu io memory pids" : "cpu memory pids"};
    if (file == "cgroup.procs") return holds_processes(cgroup->first) ? "pids" : std::string{};
    const auto found = cgroup->second.files.find(file);
    if (found == cgroup->second.files.end())
      return fail(ErrorCode::kNotFound, cat(path, "/", file, ": no such file"));
    return found->second;
  }
  Result<std::vector<std::string>> children(std::string_view path) override {
    PODQOS_TRY(ask(cat("children ", path)));
    return children_of(path);
  }
  Result<bool> populated(std::string_view path) override {
    PODQOS_TRY(ask(cat("populated ", path)));
    return !processes_in(path).empty();
  }
  Result<std::vector<Pid>> processes(std::string_view path) override {
    PODQOS_TRY(ask(cat("processes ", path)));
    return processes_in(path);
  }
  std::optional<std::int64_t> node_oom_kills() override { return tree_->oom_kills; }
  std::optional<std::string> kernel_log() override { return tree_->kernel_log; }
  core::MemoryFiles memory_files(std::string_view path) override {
    if (!tree_->is_v2() || !exists(path) || path == "/") return {};
    return {.swap_max = true, .oom_group = true};
  }
  Result<Bytes> memory_usage(std::string_view path) override {
    PODQOS_TRY(ask(cat("usage ", path)));
    const auto cgroup = tree_->cgroups.find(path);
    if (cgroup == tree_->cgroups.end()) return gone(path);
    return Bytes{cgroup->second.usage};
  }
  Result<core::MemoryCharge> memory_charge(std::string_view path) override {
    PODQOS_ASSIGN(const auto usage, memory_usage(path));
    const Bytes shmem{tree_->cgroups.find(path)->second.shmem};
    return core::MemoryCharge{.usage = usage, .counted = usage, .shmem = shmem};
  }

  Result<std::optional<std::string>> attribute(std::string_view path, const char* name) override {
    PODQOS_TRY(ask(cat("attribute ", path, " ", name)));
    const auto cgroup = tree_->cgroups.find(path);
    if (cgroup == tree_->cgroups.end()) return gone(path);
    const auto found = cgroup->second.attributes.find(name);
    if (found == cgroup->second.attributes.end()) return std::nullopt;
    return std::optional{found->second};
  }

  Result<std::vector<ListedUnit>> list_units(const std::string& /*pattern*/) override {
    PODQOS_TRY(ask("units"));
    std::vector<ListedUnit> units;
    for (const std::string& name : tree_->units)
      units.push_back({.name = name, .active_state = "active"});
    return units;
  }

  Result<std::vector<sys::ProcCgroup>> cgroups_of(Pid pid) override {
    PODQOS_TRY(ask(cat("cgroup of ", pid.value())));
    const auto found = tree_->processes.find(pid);
    if (found == tree_->processes.end()) return fail(ErrorCode::kNotFound, "no such process");
    std::vector<std::string> controllers;
    if (!tree_->is_v2()) controllers = {"cpu", "memory"};
    return std::vector{sys::ProcCgroup{.controllers = controllers, .path = found->second.cgroup}};
  }
  Result<std::optional<StartTime>> start_time_of(Pid pid) override {
    PODQOS_TRY(ask(cat("start time of ", pid.value())));
    const auto found = tree_->processes.find(pid);
    if (found == tree_->processes.end()) return std::nullopt;
    return std::optional{found->second.start_time};
  }
  Result<std::optional<sys::ProcStat>> stat_of(Pid /*pid*/) override { return std::nullopt; }
  Result<std::optional<Pid>> living_thread_of(Pid pid) override {
    if (!tree_->processes.contains(pid)) return std::nullopt;
    return std::optional{pid};
  }

 private:
  static std::unexpected<Error> gone(std::string_view path) {
    return fail(ErrorCode::kNotFound, cat(path, ": no such cgroup"));
  }
  static std::string line_of(const core::Step& step) {
    std::string line = core::render({step});
    line.pop_back();
    return line;
  }
  [[nodiscard]] Status ask(const std::string& what) const {
    return tree_->on_read ? tree_->on_read(what) : Status{};
  }
  [[nodiscard]] std::vector<std::string> children_of(std::string_view path) const {
    std::vector<std::string> names;
    for (const auto& [each, cgroup] : tree_->cgroups) {
      if (each != "/" && parent_of(each) == path) names.emplace_back(leaf_of(each));
    }
    return names;
  }
  [[nodiscard]] std::vector<Pid> processes_in(std::string_view path) const {
    std::vector<Pid> pids;
    for (const auto& [pid, process] : tree_->processes) {
      if (is_at_or_below(process.cgroup, path)) pids.push_back(pid);
    }
    return pids;
  }
  [[nodiscard]] bool holds_processes(std::string_view path) const {
    return std::ranges::any_of(tree_->processes,
                               [&](const auto& entry) { return entry.second.cgroup == path; });
  }

  /// cgroup-v2.rst, "No Internal Process Constraint": EBUSY from cgroup.subtree_control.
  Status run(const core::EnsureCgroup& step, Report& report) {
    if (tree_->refuses_cpu && layout_.cpu) {
      layout_.cpu = std::nullopt;
      report.refused.emplace_back("pods have no cpu controller");
    }
    const bool enable = step.also == core::Controller::kIo && tree_->is_v2();
    if (exists(step.path)) {
      if (!enable || tree_->cgroups.at(step.path).enables_io) return {};
      PODQOS_TRY(on_change_(line_of(step)));
      tree_->enable_io(step.path);
      return {};
    }
    for (auto above = parent_of(step.path); above != "/"; above = parent_of(above)) {
      if (tree_->is_v2() && holds_processes(above))
        return fail(ErrorCode::kConflict, cat(above, ": a process runs in it"));
    }
    PODQOS_TRY(on_change_(line_of(step)));
    tree_->make(step.path);
    return {};
  }

  Status run(const core::WriteFile& step, Report& report) {
    if (tree_->refuses_cpu && step.controller == core::Controller::kCpu && exists(step.path)) {
      report.ignored.push_back(line_of(step));
      return {};
    }
    const auto held = read(step.path, step.controller, step.file);
    if (!held) return fail(held.error());
    if (step.file == "memory.reclaim") return reclaim(step, report);
    if (holds_value(step.file, *held, step.value)) return {};
    PODQOS_TRY(check_value(step));
    PODQOS_TRY(on_change_(line_of(step)));
    auto& files = tree_->cgroups.at(step.path).files;
    files.at(step.file) = step.value;
    report.written.push_back(describe_change(step, *held));
    if (step.file == "cpu.idle") tree_->show_idle(step.path);
    return {};
  }

  /// EAGAIN if less could be reclaimed (cgroup-v2.rst, memory.reclaim).
  Status reclaim(const core::WriteFile& step, Report& report) {
    PODQOS_TRY(on_change_(line_of(step)));
    const auto bytes = parse_int(step.value).value_or(0);
    if (tree_->cgroups.at(step.path).reclaim(bytes) < bytes)
      report.ignored.push_back(line_of(step));
    return {};
  }

  /// A burst above the quota, or a quota below the burst: kernel/sched/core.c
  /// tg_set_cfs_bandwidth(). A weight of an idle cgroup: fair.c sched_group_set_shares().
  Status check_burst(const core::WriteFile& step) {
    const auto& files = tree_->cgroups.at(step.path).files;
    if (!tree_->lacking.empty()) return {};
    const bool v2 = tree_->is_v2();
    const std::string quota_file = v2 ? "cpu.max" : "cpu.cfs_quota_us";
    const std::string burst_file = v2 ? "cpu.max.burst" : "cpu.cfs_burst_us";
    const auto number = [&](const std::string& file) {
      const std::string& text = file == step.file ? step.value : files.at(file);
      return parse_int(std::string_view{text}.substr(0, text.find(' ')));
    };
    const bool changes = step.file == quota_file || step.file == burst_file;
    const auto quota = changes ? number(quota_file) : std::nullopt;
    if (quota && *quota >= 0 && number(burst_file) > quota)
      return fail(ErrorCode::kInvalidArgument, cat(step.path, ": burst exceeds the quota"));
    const bool is_share = step.file == "cpu.weight" || step.file == "cpu.shares";
    if (is_share && files.at("cpu.idle") == "1")
      return fail(ErrorCode::kInvalidArgument, cat(step.path, ": is idle"));
    return {};
  }

  /// What the kernel refuses: on v1 a memory limit below usage for which it cannot reclaim enough
  /// (mm/memcontrol-v1.c mem_cgroup_resize_max, EBUSY), and a quota per period above a parent's
  /// (kernel/sched/core.c tg_cfs_schedulable_down, EINVAL).
  Status check_value(const core::WriteFile& step) {
    PODQOS_TRY(check_burst(step));
    if (tree_->is_v2()) return {};
    if (step.file == "memory.limit_in_bytes") {
      const auto limit = parse_int(step.value).value_or(-1);
      FakeTree::Cgroup& cgroup = tree_->cgroups.at(step.path);
      if (limit >= 0 && limit < cgroup.usage) cgroup.reclaim(cgroup.usage - limit);
      if (limit >= 0 && limit < cgroup.usage)
        return fail(ErrorCode::kBusy, cat(step.path, ": memory in use exceeds ", step.value));
    }
    if (step.file != "cpu.cfs_quota_us" && step.file != "cpu.cfs_period_us") return {};
    const auto ratio = [&](const std::string& path) -> std::optional<double> {
      const auto& files = tree_->cgroups.at(path).files;
      if (!files.contains("cpu.cfs_quota_us")) return std::nullopt;
      const auto number = [&](const char* file) {
        const bool changes = path == step.path && step.file == file;
        return parse_int(changes ? step.value : files.at(file)).value_or(-1);
      };
      if (number("cpu.cfs_quota_us") < 0) return std::nullopt;
      return static_cast<double>(number("cpu.cfs_quota_us")) /
             static_cast<double>(number("cpu.cfs_period_us"));
    };
    for (const auto& [path, cgroup] : tree_->cgroups) {
      const auto own = ratio(path);
      for (std::string above = path; own && above != "/";) {
        above = std::string{parent_of(above)};
        const auto bound = ratio(above);
        if (bound && *own > *bound)
          return fail(ErrorCode::kInvalidArgument, cat(path, ": quota exceeds that of ", above));
      }
    }
    return {};
  }

  Status run(const core::MoveProcess& step, Report& /*report*/) {
    const auto process = tree_->processes.find(step.pid);
    if (process == tree_->processes.end()) return fail(ErrorCode::kNotFound, "no such process");
    const auto cgroup = tree_->cgroups.find(step.path);
    if (cgroup == tree_->cgroups.end()) return gone(step.path);
    if (tree_->is_v2() && step.path != "/" && cgroup->second.enables_controllers)
      return fail(ErrorCode::kBusy, cat(step.path, ": enables controllers for its children"));
    PODQOS_TRY(on_change_(line_of(step)));
    process->second.cgroup = step.path;
    return {};
  }

  Status run(const core::KillProcesses& step, Report& /*report*/) {
    PODQOS_TRY(on_change_(line_of(step)));
    std::erase_if(tree_->processes, [&](const auto& process) {
      return is_at_or_below(process.second.cgroup, step.path);
    });
    return {};
  }

  Status run(const core::RemoveCgroup& step, Report& report) {
    if (!exists(step.path)) return {};
    PODQOS_TRY(remove_nested(step, report));
    if (!children_of(step.path).empty() || !processes_in(step.path).empty() ||
        tree_->held_by_systemd.contains(step.path))
      return fail(ErrorCode::kBusy, cat(step.path, ": in use"));
    return erase(step.path);
  }

  /// As many as tree_->most_nested; of each the kernel refuses what has children or processes.
  Status remove_nested(const core::RemoveCgroup& step, Report& report) {
    if (!step.nested) return {};
    std::vector<std::string> below;
    for (const auto& [path, cgroup] : tree_->cgroups) {
      if (is_below(path, step.path)) below.push_back(path);
    }
    int left = tree_->most_nested;
    // In reverse order what is nested comes before what holds it.
    for (const std::string& path : below | std::views::reverse) {
      if (!children_of(path).empty() || !processes_in(path).empty()) continue;
      report.partly = left-- == 0;
      if (report.partly) return {};
      PODQOS_TRY(erase(path));
    }
    return {};
  }

  Status erase(const std::string& path) {
    PODQOS_TRY(on_change_(cat("rmdir  ", path)));
    tree_->cgroups.erase(path);
    return {};
  }

  Status run(const core::SetAttribute& step, Report& /*report*/) {
    const auto cgroup = tree_->cgroups.find(step.path);
    if (cgroup == tree_->cgroups.end()) return gone(step.path);
    const auto held = cgroup->second.attributes.find(step.name);
    if (held != cgroup->second.attributes.end() && held->second == step.value) return {};
    PODQOS_TRY(on_change_(line_of(step)));
    cgroup->second.attributes.insert_or_assign(step.name, step.value);
    return {};
  }

  Status run(const core::SetOomScore& step, Report& /*report*/) {
    const auto process = tree_->processes.find(step.pid);
    if (process == tree_->processes.end()) return fail(ErrorCode::kNotFound, "no such process");
    if (step.start_time && step.start_time != process->second.start_time)
      return fail(ErrorCode::kNotFound, "no such process");
    PODQOS_TRY(on_change_(line_of(step)));
    process->second.oom_score_adj = step.score;
    return {};
  }

  Status run(const core::StartUnit& step, Report& /*report*/) {
    if (tree_->units.contains(core::unit_of(step.path))) return {};
    PODQOS_TRY(on_change_(line_of(step)));
    tree_->units.emplace(core::unit_of(step.path));
    return {};
  }
  Status run(const core::SetUnit& /*step*/, Report& /*report*/) { return {}; }
  Status run(const core::StopUnit& step, Report& /*report*/) {
    if (exists(step.path)) return {};
    PODQOS_TRY(on_change_(line_of(step)));
    tree_->units.erase(std::string{core::unit_of(step.path)});
    return {};
  }

  FakeTree* tree_;
  OnChange on_change_;
  core::CgroupLayout layout_;
};

}  // namespace podqos::cgroup

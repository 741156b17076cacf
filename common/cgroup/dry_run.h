#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/machine.h"

namespace podqos::cgroup {

/// A machine that is read but not changed: a change is recorded, and what is read later shows it.
/// A write that would change nothing is not recorded. Of systemd it is assumed that a unit is
/// loaded if its cgroup exists, and that it keeps the values that the files hold.
class DryRun final : public Machine {
 public:
  /// @param machine  the machine to read
  /// @param changes  receives one line per change, as core::render() prints a step; it has to
  ///                 outlive this object
  DryRun(std::unique_ptr<Machine> machine, std::vector<std::string>& changes)
      : machine_(std::move(machine)), changes_(&changes) {}

  [[nodiscard]] const core::CgroupLayout& layout() override { return machine_->layout(); }
  [[nodiscard]] const core::CgroupLayout& layout_without_hugepages() const override {
    return machine_->layout_without_hugepages();
  }

  using Machine::execute;
  /// Records the steps. Only the removal of a cgroup in use is refused. Nothing is written, so that
  /// Report::written is empty.
  [[nodiscard]] Result<Report> execute(const core::Plan& plan, UnitChanges when) override;
  /// Nothing changes by waiting.
  [[nodiscard]] bool wait(std::chrono::milliseconds) override { return false; }

  [[nodiscard]] bool exists(std::string_view path) override;
  [[nodiscard]] Result<std::string> read(std::string_view path, core::Controller controller,
                                         const std::string& file) override;
  [[nodiscard]] Result<std::vector<std::string>> children(std::string_view path) override;
  [[nodiscard]] Result<bool> populated(std::string_view path) override;
  [[nodiscard]] Result<std::vector<Pid>> processes(std::string_view path) override;
  [[nodiscard]] core::MemoryFiles memory_files(std::string_view path) override {
    return machine_->memory_files(path);
  }
  [[nodiscard]] Result<Bytes> memory_usage(std::string_view path) override {
    return machine_->memory_usage(path);
  }
  [[nodiscard]] Result<core::MemoryCharge> memory_charge(std::string_view path) override {
    return machine_->memory_charge(path);
  }

  [[nodiscard]] Result<std::optional<std::string>> attribute(std::string_view path,
                                                             const char* name) override;

  [[nodiscard]] Result<std::vector<ListedUnit>> learn_units(const std::string& pattern) override {
    return machine_->learn_units(pattern);
  }

  [[nodiscard]] Result<std::string> cgroup_of(Pid pid) override;
  [[nodiscard]] Result<std::vector<sys::ProcCgroup>> cgroups_of(Pid pid) override {
    return machine_->cgroups_of(pid);
  }
  [[nodiscard]] Result<std::optional<StartTime>> start_time_of(Pid pid) override {
    return machine_->start_time_of(pid);
  }
  [[nodiscard]] Result<std::optional<sys::ProcStat>> stat_of(Pid pid) override {
    return machine_->stat_of(pid);
  }
  [[nodiscard]] Result<std::optional<Pid>> living_thread_of(Pid pid) override {
    return machine_->living_thread_of(pid);
  }

 private:
  using Key = std::pair<std::string, std::string>;  ///< cgroup, and file or attribute

  void run(const core::EnsureCgroup& step, Report& report);
  void run(const core::WriteFile& step, Report& report);
  void run(const core::MoveProcess& step, Report& report);
  void run(const core::RemoveCgroup& step, Report& report);
  void run(const core::SetAttribute& step, Report& report);
  void run(const core::SetOomScore& step, Report& report);
  void run(const core::StartUnit& step, Report& report);
  void run(const core::SetUnit& /*step*/, Report& /*report*/) {}  ///< see execute()
  void run(const core::StopUnit& step, Report& report);
  void record(const core::Step& step);
  /// Whether the cgroup enables a controller for its children.
  [[nodiscard]] bool enables(const std::string& path, core::Controller controller);
  /// Whether the kernel may have no such file, and the plan does without it then.
  [[nodiscard]] bool may_lack(const core::WriteFile& step);
  /// Whether the recorded changes have made the cgroup.
  [[nodiscard]] bool is_made(std::string_view path) const { return made_.contains(path); }

  std::unique_ptr<Machine> machine_;
  std::vector<std::string>* changes_;
  std::set<std::string, std::less<>> made_;
  std::set<std::string, std::less<>> removed_;
  std::set<std::pair<std::string, core::Controller>> enabled_;  ///< for the children of a cgroup
  std::map<Key, std::string> files_;
  std::map<Key, std::string> attributes_;
  std::map<Pid, std::string> moved_;            ///< where a process has been moved to
  std::set<std::string, std::less<>> changed_;  ///< cgroups of which this plan changes a file
};

}  // namespace podqos::cgroup

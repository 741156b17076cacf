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

  /// Records the steps. Only the removal of a cgroup in use is refused. Report::written has the
  /// values that would change.
  Result<Report> execute(const core::Plan& plan) override;
  /// Nothing changes by waiting.
  bool wait(std::chrono::milliseconds /*time*/) override { return false; }

  bool exists(std::string_view path) override;
  Result<bool> is_complete(std::string_view path) override {
    if (changed(path).completed) return true;
    return machine_->is_complete(path);
  }
  Result<std::string> read(std::string_view path, core::Controller controller,
                           const std::string& file) override;
  Result<std::vector<std::string>> children(std::string_view path) override;
  Result<bool> populated(std::string_view path) override;
  Result<std::vector<Pid>> processes(std::string_view path) override;
  Result<std::optional<std::string>> attribute(std::string_view path, const char* name) override;
  core::MemoryFiles memory_files(std::string_view path) override;

  // What no plan of a reconciliation changes, or where the change does not matter.
  const core::CgroupLayout& layout() override { return machine_->layout(); }
  [[nodiscard]] const core::CgroupLayout& layout_without_hugepages() const override {
    return machine_->layout_without_hugepages();
  }
  Result<Bytes> memory_usage(std::string_view path) override {
    return machine_->memory_usage(path);
  }
  Result<core::MemoryCharge> memory_charge(std::string_view path) override {
    return machine_->memory_charge(path);
  }
  Result<std::vector<ListedUnit>> list_units(const std::string& pattern) override {
    return machine_->list_units(pattern);
  }
  Result<std::vector<sys::ProcCgroup>> cgroups_of(Pid pid) override {
    return machine_->cgroups_of(pid);
  }
  Result<std::optional<StartTime>> start_time_of(Pid pid) override {
    return machine_->start_time_of(pid);
  }
  Result<std::optional<sys::ProcStat>> stat_of(Pid pid) override { return machine_->stat_of(pid); }
  Result<std::optional<Pid>> living_thread_of(Pid pid) override {
    return machine_->living_thread_of(pid);
  }

 private:
  /// What the recorded changes have made of a cgroup.
  struct Changed {
    enum class State : std::uint8_t { kThere, kMade, kRemoved } state = State::kThere;
    bool completed = false;      ///< made in the hierarchies that lacked it
    bool has_new_value = false;  ///< by the plan that is executed
    std::map<std::string, std::string> files = {};
    std::map<std::string, std::string> attributes = {};
    std::set<core::Controller> enabled = {};  ///< for its children
  };

  void run(const core::EnsureCgroup& step);
  void run(const core::WriteFile& step, Report& report);
  void run(const core::RemoveCgroup& step, Report& report);
  void run(const core::SetAttribute& step);
  void record(const core::Step& step);
  [[nodiscard]] const Changed& changed(std::string_view path) const;
  /// What the file of a new cgroup holds, as far as podqos knows it.
  [[nodiscard]] Result<std::string> read_new(core::Controller controller, const std::string& file);
  /// Whether the cgroup enables a controller for its children.
  [[nodiscard]] bool enables(const std::string& path, core::Controller controller);
  /// Whether the cgroup is new in a hierarchy.
  [[nodiscard]] bool is_made(std::string_view path) const;
  /// Whether the kernel may have no such file, and the plan does without it then.
  [[nodiscard]] bool may_lack(const core::WriteFile& step);

  std::unique_ptr<Machine> machine_;
  std::vector<std::string>* changes_;
  std::map<std::string, Changed, std::less<>> cgroups_;
  std::map<Pid, std::string> moved_;  ///< where a process has been moved to
  std::set<std::string> stopped_;     ///< cgroups of units that systemd has been told to stop
};

}  // namespace podqos::cgroup

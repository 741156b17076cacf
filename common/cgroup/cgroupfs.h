#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/discovery.h"
#include "common/cgroup/ensure.h"
#include "common/cgroup/kept_files.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/cgroup/systemd.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/plan.h"
#include "common/core/events/decide_departure.h"

namespace podqos::cgroup {

/// The real machine: the only access to cgroups, including systemd's units (systemd is contacted at
/// the first step that concerns one). Supports v1 (separate or co-mounted controllers), hybrid and
/// v2.
///
/// Every component of a path is validated, and directories are opened beneath the mount without
/// following symlinks. Directories stay open, so that a transaction opens each of them once; use
/// one object per transaction, and one at a time with CgroupfsOptions::keep. A hierarchy mounted
/// read-only can be read; steps that change all hierarchies skip it.
class Cgroupfs final : public Machine {
 public:
  /// Detects the hierarchies of this machine.
  /// @return kUnsupported if neither cpu nor memory has a usable hierarchy; kPermission if they are
  /// not writable, unless `options.access` is kRead.
  static Result<Cgroupfs> open(const CgroupfsOptions& options = {});

  [[nodiscard]] const core::CgroupLayout& layout() override;
  [[nodiscard]] const core::CgroupLayout& layout_without_hugepages() const override {
    return layout_;
  }

  [[nodiscard]] Result<Report> execute(const core::Plan& plan) override;
  [[nodiscard]] bool wait(std::chrono::milliseconds time) override;

  [[nodiscard]] bool exists(std::string_view path) override;
  [[nodiscard]] Result<bool> is_complete(std::string_view path) override;
  [[nodiscard]] Result<std::string> read(std::string_view path, core::Controller controller,
                                         const std::string& file) override;
  [[nodiscard]] Result<std::vector<std::string>> children(std::string_view path) override;
  [[nodiscard]] Result<bool> populated(std::string_view path) override;
  [[nodiscard]] Result<std::vector<Pid>> processes(std::string_view path) override;
  [[nodiscard]] core::MemoryFiles memory_files(std::string_view path) override;
  [[nodiscard]] Result<Bytes> memory_usage(std::string_view path) override;
  [[nodiscard]] Result<core::MemoryCharge> memory_charge(std::string_view path) override;

  [[nodiscard]] Result<std::optional<std::string>> attribute(std::string_view path,
                                                             const char* name) override;

  /// Closes control files that were not read since the last call, see CgroupfsOptions::most_files.
  void close_unread() { kept_files_.close_unread(); }

  [[nodiscard]] Result<std::vector<ListedUnit>> list_units(const std::string& pattern) override {
    return systemd_.list(pattern);
  }

 private:
  [[nodiscard]] OpenHierarchy* hierarchy_of(core::Controller controller);
  /// Whether pids.current of v1, which covers all descendants, counts a process; true without it.
  [[nodiscard]] bool counts_processes(std::string_view path);
  [[nodiscard]] Result<Bytes> memory_amount(std::string_view path, const std::string& file);
  [[nodiscard]] OpenHierarchy& primary() { return (*hierarchies_)[primary_]; }
  [[nodiscard]] Status check_writable();
  [[nodiscard]] Status run(const core::Step& step, const core::Plan& plan, Report& report);
  [[nodiscard]] Status ensure(const core::EnsureCgroup& step, CgroupUse use, Report& report);
  [[nodiscard]] Status write(const core::WriteFile& step, Report& report);
  /// Takes controllers that the kernel does not enable out of the layout.
  void drop_refused(OpenHierarchy& hierarchy, Report& report);
  /// Whether the kernel refuses to enable the controller of a file that a cgroup lacks. Tries to.
  [[nodiscard]] bool is_refused(OpenHierarchy& hierarchy, const core::WriteFile& step,
                                Report& report);
  [[nodiscard]] Status move(const core::MoveProcess& step);
  [[nodiscard]] Status kill(const core::KillProcesses& step);
  [[nodiscard]] Status remove(const core::RemoveCgroup& step, Report& report);
  /// Removes a cgroup in one hierarchy.
  [[nodiscard]] Status remove_from(OpenHierarchy& hierarchy, const core::RemoveCgroup& step,
                                   Report& report);
  [[nodiscard]] Status set_attribute(const core::SetAttribute& step);
  [[nodiscard]] Status start(const core::StartUnit& step, Report& report);
  /// Whether a unit is active; notes what systemd has of it.
  [[nodiscard]] bool is_active(const std::string& unit);
  /// Sets properties of a unit, unless systemd is known to have them.
  [[nodiscard]] Status tell(const std::string& unit,
                            const std::vector<core::UnitProperty>& properties);
  /// Queues the SetUnit steps of an executed plan whose cgroup has changed.
  /// @param at  before the properties of the plan's StartUnit steps: systemd applies some, as
  ///            ManagedOOMPreference=, only with others that come later
  void note_units(const core::Plan& plan, const Report& report, std::ptrdiff_t at);
  /// Sends all queued changes.
  [[nodiscard]] Status apply_unit_changes(Report& report);
  /// Sends one change. Sets memory.oom.group again, which systemd changes for a scope.
  [[nodiscard]] Status set_unit(const core::SetUnit& step, Report& report);
  [[nodiscard]] Status stop(const core::StopUnit& step);
  /// kConflict if a scope of this name exists for another cgroup.
  [[nodiscard]] Status check_scope(const std::string& path, const std::string& unit);

  core::CgroupLayout layout_;  ///< without huge pages
  std::optional<core::CgroupVersion> hugetlb_;
  std::string hugepages_;                           ///< directory that lists the huge page sizes
  std::optional<core::CgroupLayout> whole_layout_;  ///< with hugetlb; set by layout()
  KeptFiles kept_files_{0};
  Hierarchies hierarchies_;  ///< null only until open() has found them
  Systemd systemd_;
  /// What is left of the time that one transaction may wait for the kernel or systemd to release a
  /// cgroup or unit. The state lock is held meanwhile, and all container starts on the node wait.
  std::chrono::milliseconds wait_left_{50};
  int nested_steps_ = 0;  ///< left to the plan that is executed, see remove_nested()
  std::vector<core::SetUnit> deferred_changes_;
  /// Units that are known to be active, and what systemd is known to have of them.
  std::map<std::string, UnitProperties, std::less<>> active_units_;
  std::set<std::string, std::less<>> weighted_units_;  ///< removed ones, with kIoWeightAttribute
  std::size_t primary_ = 0;  ///< hierarchy of the memory controller, or of cpu
};

}  // namespace podqos::cgroup

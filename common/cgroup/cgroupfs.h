#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/discovery.h"
#include "common/cgroup/ensure.h"
#include "common/cgroup/mountinfo.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/cgroup/systemd.h"
#include "common/cgroup/wait_budget.h"
#include "common/core/driver.h"
#include "common/core/layout.h"
#include "common/core/memory_charge.h"
#include "common/core/plan.h"

namespace podqos::cgroup {

/// The result of execute().
struct Report {
  std::vector<std::string> written;  ///< "path/file = value" for each value that changed
  std::vector<std::string> ignored;  ///< refusals that the plan allows, one sentence each
  std::int64_t made = 0;  ///< cgroups created, parents included; counted once for all hierarchies
  /// Cgroups removed; counted once for all hierarchies.
  std::int64_t removed = 0;
};

/// When execute() sends a plan's unit property changes to systemd.
enum class UnitChanges : std::uint8_t {
  kNow,       ///< at the end of the plan, together with earlier deferred changes
  kDeferred,  ///< with the next kNow plan; saves two round trips per deferred plan
};

/// The only access to cgroups, including systemd's units (systemd is contacted at the first step
/// that concerns one). Supports v1 (separate or co-mounted controllers), hybrid and v2.
///
/// Paths are absolute below the mount ("/kubepods/burstable/pod42"). Every component is validated,
/// and directories are opened beneath the mount without following symlinks. Directories stay open,
/// so that a transaction opens each of them once; use one object per transaction. A hierarchy
/// mounted read-only can be read; steps that change all hierarchies skip it.
class Cgroupfs {
 public:
  /// Detects the hierarchies of this machine.
  /// @return kUnsupported if neither cpu nor memory has a usable hierarchy; kPermission if they are
  /// not writable, unless `options.access` is kRead.
  static Result<Cgroupfs> open(const CgroupfsOptions& options = {});

  /// Which cgroup version carries each controller, and the host's huge page sizes (read at the
  /// first call, and only if the hugetlb controller is available).
  [[nodiscard]] const core::CgroupLayout& layout();
  /// The layout without the hugetlb controller, for plans that set no huge page limits.
  [[nodiscard]] const core::CgroupLayout& layout_without_hugepages() const { return layout_; }

  /// Executes a plan in order. The first refusal that the plan does not allow ends it with an error
  /// that names path, file, value, cause and, where podqos knows it, the remedy (missing
  /// controller, process in an inner cgroup, read-only mount).
  ///
  /// Steps that may depend on later ones (kRetryAfterPlan) are retried once at the end, in order.
  /// Then, also after a failure, all unit changes are sent to systemd together. A cgroup that the
  /// plan moves a process into is created as a leaf: on v2 its children get no controllers.
  [[nodiscard]] Result<Report> execute(const core::Plan& plan,
                                       UnitChanges when = UnitChanges::kNow);

  /// The time that this transaction may still spend on waiting for the kernel or systemd.
  [[nodiscard]] WaitBudget& waits() { return waits_; }

  /// Whether the cgroup exists in any hierarchy.
  [[nodiscard]] bool exists(std::string_view path);
  /// Reads a control file of at most 1 MiB, trailing newlines removed; not for cgroup.procs.
  /// @return kNotFound if the cgroup or the file does not exist, kUnsupported if the machine lacks
  /// the controller, kTooLarge beyond 1 MiB.
  [[nodiscard]] Result<std::string> read(std::string_view path, core::Controller controller,
                                         const std::string& file);
  /// Names of the child cgroups, merged over all hierarchies, sorted and unique; empty if the
  /// cgroup does not exist.
  [[nodiscard]] Result<std::vector<std::string>> children(std::string_view path);
  /// Whether any hierarchy has a process in `path` or below it. False if the cgroup does not exist;
  /// on v1, true if more than 16 levels are nested below it.
  [[nodiscard]] Result<bool> populated(std::string_view path);
  /// Pids in `path` and below it, from all hierarchies, sorted and unique; processes outside the
  /// own pid namespace are omitted. Empty if the cgroup does not exist.
  /// @return kTooLarge with more than 16 levels below it.
  [[nodiscard]] Result<std::vector<Pid>> processes(std::string_view path);
  /// Which of the optional v2 memory files the cgroup has. None on v1 and hybrid hosts, where
  /// runtimes do not use them. A file that cannot be checked counts as absent.
  [[nodiscard]] core::MemoryFiles memory_files(std::string_view path);
  /// memory.current (v2) or memory.usage_in_bytes (v1).
  [[nodiscard]] Result<Bytes> memory_usage(std::string_view path);
  /// Computed from memory.stat, where lines missing from older kernels count as 0, and
  /// memory_usage().
  [[nodiscard]] Result<core::MemoryCharge> memory_charge(std::string_view path);

  /// A "trusted.podqos*" extended attribute of a cgroup, in the hierarchy of the memory controller
  /// (or of cpu if there is none). podqos keeps its mark of ownership and a copy of the pod record
  /// there, so that both survive the loss of the state directory.
  /// @return kNotFound if the cgroup does not exist; nullopt if the attribute is not set.
  [[nodiscard]] Result<std::optional<std::string>> attribute(std::string_view path,
                                                             const char* name);
  /// Sets such an attribute; kNotFound if the cgroup does not exist.
  [[nodiscard]] Status set_attribute(std::string_view path, const char* name,
                                     std::string_view value);

  /// The device rules that apply to a process in `path` on v2, as ids of BPF programs; empty on v1,
  /// where MoveProcess does not change them. kPermission if they cannot be queried.
  [[nodiscard]] Result<std::vector<std::uint32_t>> device_rules(std::string_view path);
  /// Whether moving a process on v1 also changes its cgroup in the devices hierarchy: the devices
  /// controller may be co-mounted with one that podqos uses, and systemd moves the processes of a
  /// new scope in all hierarchies.
  [[nodiscard]] bool moves_devices(core::Driver driver) const;

  /// Lists systemd's units that match a pattern ("kubepods-*.slice"). From then on, units listed as
  /// active are not started again; only their properties are set: one call instead of three.
  [[nodiscard]] Result<std::vector<ListedUnit>> learn_units(const std::string& pattern);

  /// The cgroup path of a process in the hierarchy of the memory controller (or of cpu if there is
  /// none). kNotFound if the process does not exist or is not in that hierarchy.
  [[nodiscard]] Result<std::string> cgroup_of(Pid pid);

 private:
  static constexpr std::size_t kControllers = 5;

  [[nodiscard]] OpenHierarchy* hierarchy_of(core::Controller controller);
  [[nodiscard]] Result<Bytes> memory_amount(std::string_view path, const std::string& file);
  [[nodiscard]] OpenHierarchy& primary() { return hierarchies_[primary_]; }
  [[nodiscard]] Status check_writable();
  [[nodiscard]] Status carry_out(const core::Plan& plan, Report& report);
  [[nodiscard]] Status run(const core::Step& step, const core::Plan& plan, Report& report);
  [[nodiscard]] Status ensure(const core::EnsureCgroup& step, CgroupUse use, Report& report);
  [[nodiscard]] Status write(const core::WriteFile& step, Report& report);
  [[nodiscard]] Status copy_device_rules(const core::CopyDeviceRules& step, Report& report);
  [[nodiscard]] Status move(const core::MoveProcess& step);
  [[nodiscard]] Status remove(const core::RemoveCgroup& step, Report& report);
  [[nodiscard]] Status start(const core::StartUnit& step, Report& report);
  /// Queues the SetUnit steps of an executed plan whose cgroup has changed.
  void note_units(const core::Plan& plan, const Report& report);
  /// Sends all queued changes: one round trip, plus one if there are scopes among them.
  [[nodiscard]] Status apply_unit_changes(Report& report);
  /// The cgroups of those scopes that have memory.oom.group = 1.
  [[nodiscard]] std::vector<std::string> ending_together(const std::vector<core::SetUnit>& scopes);
  /// Sets memory.oom.group again after systemd has changed properties of these scopes.
  [[nodiscard]] Status keep_together(const std::vector<std::string>& scopes, Report& report);
  [[nodiscard]] Status stop(const core::StopUnit& step);
  /// kConflict if a scope of this name exists for another cgroup.
  [[nodiscard]] Status check_scope(const std::string& path, const std::string& unit);
  /// Whether the unit named like this cgroup is this cgroup: always for a slice, whereas a scope of
  /// that name may have another cgroup.
  [[nodiscard]] Result<bool> is_own_unit(const std::string& path);

  core::CgroupLayout layout_;  ///< without huge pages
  std::optional<core::CgroupVersion> hugetlb_;
  std::string hugepages_;                           ///< directory that lists the huge page sizes
  std::optional<core::CgroupLayout> whole_layout_;  ///< with hugetlb; set by layout()
  std::vector<OpenHierarchy> hierarchies_;
  std::array<std::optional<std::size_t>, kControllers> by_controller_;
  Systemd systemd_;
  WaitBudget waits_;
  std::vector<core::SetUnit> deferred_changes_;
  std::set<std::string, std::less<>> active_units_;  ///< filled by learn_units()
  std::size_t primary_ = 0;  ///< hierarchy of the memory controller, or of cpu
};

}  // namespace podqos::cgroup

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/plan.h"
#include "common/core/events/decide_departure.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

/// The result of execute().
struct Report {
  std::vector<std::string> written;  ///< describe_change() of each value that changed
  std::vector<std::string> ignored;  ///< refusals that the plan allows, one sentence each
  std::vector<std::string> refused;  ///< why controllers are not enabled, one sentence each
  /// Of what is nested in a cgroup that was to be removed, a part is: the next plan goes on.
  bool partly = false;
};

/// Whether a plan goes on after the refusal of a step.
[[nodiscard]] bool is_allowed(const core::Step& step, const Error& error);
/// Carries out the steps of a plan in order, and those that may depend on later ones
/// (kRetryAfterPlan) once more at the end. The first refusal that is not allowed ends it.
[[nodiscard]] Status carry_out(const core::Plan& plan, Report& report,
                               const std::function<Status(const core::Step&)>& run);
/// Whether a file of this cgroup has changed.
[[nodiscard]] bool has_changed(const Report& report, const std::string& cgroup);

/// A unit as ListUnitsByPatterns returns it.
/// @note org.freedesktop.systemd1(5).
struct ListedUnit {
  std::string name;
  std::string active_state;  ///< "active", "deactivating", "inactive" …
};
/// Properties of a unit by name: booleans, numbers and strings.
using UnitProperties = std::map<std::string, core::UnitValue, std::less<>>;

/// What an event reads and changes outside podqos's own records: cgroups with the systemd units
/// that they are, and processes.
///
/// Implementations: Cgroupfs, the real machine; DryRun, which records changes in place of making
/// them; a fake with the kernel's rules in the unit tests. Cgroup paths are absolute below the
/// mount ("/kubepods/burstable/pod42").
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Machine(Machine&&) = default;
  Machine& operator=(Machine&&) = default;
  virtual ~Machine() = default;

  /// Which cgroup version carries each controller, and the host's huge page sizes (read at the
  /// first call, and only if the hugetlb controller is available).
  [[nodiscard]] virtual const core::CgroupLayout& layout() = 0;
  /// The layout without the hugetlb controller, for plans that set no huge page limits.
  [[nodiscard]] virtual const core::CgroupLayout& layout_without_hugepages() const = 0;

  /// Executes a plan in order. The first refusal that the plan does not allow ends it with an error
  /// that names path, file, value, cause and, where podqos knows it, the remedy (missing
  /// controller, process in an inner cgroup, read-only mount).
  ///
  /// Steps that may depend on later ones (kRetryAfterPlan) are retried once at the end, in order.
  /// Then, also after a failure, all unit changes are sent to systemd. A cgroup that the
  /// plan moves a process into is created as a leaf: on v2 its children get no controllers.
  [[nodiscard]] virtual Result<Report> execute(const core::Plan& plan) = 0;
  /// Whether execute() leaves unit changes to the first plan that comes when they are not deferred
  /// any more.
  void defer_unit_changes(bool deferred) { defers_unit_changes_ = deferred; }
  [[nodiscard]] bool defers_unit_changes() const { return defers_unit_changes_; }

  /// Waits for the kernel or systemd, within what one transaction may wait (50 ms).
  /// @return false, without waiting, if less than `time` is left of it
  [[nodiscard]] virtual bool wait(std::chrono::milliseconds time) = 0;
  /// Repeats an attempt with a pause of 10 ms in between, as long as wait() allows it. All waiting
  /// for the kernel or systemd under the lock is done here.
  /// @param attempt  returns true if no further attempt is needed
  /// @return false if the last attempt wanted another one; an error ends it at once.
  [[nodiscard]] Result<bool> retry_until_done(const std::function<Result<bool>()>& attempt);
  /// Executes a plan, and again while a quota is refused: cgroup v1 counts that of a removed child
  /// until its last reference is gone, a few milliseconds, on a busy machine some hundred.
  /// @return the errors of execute(); kBusy for a quota that is still refused.
  /// @note kernel/sched/core.c, tg_cfs_schedulable_down.
  [[nodiscard]] Result<Report> execute_with_quota(const core::Plan& plan);

  /// Whether the cgroup exists in any hierarchy. Also true if that cannot be found out.
  [[nodiscard]] virtual bool exists(std::string_view path) = 0;
  /// Whether the cgroup exists in each hierarchy that podqos may write to: as it makes them.
  [[nodiscard]] virtual Result<bool> is_complete(std::string_view path) = 0;
  /// Reads a control file of at most 1 MiB, trailing newlines removed. Of cgroup.procs only whether
  /// it is empty can be told.
  /// @return kNotFound if the cgroup or the file does not exist, kUnsupported if the machine lacks
  /// the controller, kTooLarge beyond 1 MiB.
  [[nodiscard]] virtual Result<std::string> read(std::string_view path, core::Controller controller,
                                                 const std::string& file) = 0;
  /// Names of the child cgroups, merged over all hierarchies, sorted and unique; empty if the
  /// cgroup does not exist.
  [[nodiscard]] virtual Result<std::vector<std::string>> children(std::string_view path) = 0;
  /// Whether any hierarchy has a process in `path` or below it. False if the cgroup does not exist.
  /// Of more than 256 cgroups, or 16 levels, the kernel's own count decides: cgroup.events of v2,
  /// pids.current of v1; true where there is none.
  [[nodiscard]] virtual Result<bool> populated(std::string_view path) = 0;
  /// Pids in `path` and below it, from all hierarchies, sorted and unique; processes outside the
  /// own pid namespace are omitted. Empty if the cgroup does not exist.
  /// @return kTooLarge if it is populated and more than 256 cgroups, or 16 levels, are below it.
  [[nodiscard]] virtual Result<std::vector<Pid>> processes(std::string_view path) = 0;
  /// Which of the optional v2 memory files the cgroup has. None on v1 and hybrid hosts, where
  /// runtimes do not use them. A file that cannot be checked counts as absent.
  [[nodiscard]] virtual core::MemoryFiles memory_files(std::string_view path) = 0;
  /// memory.current (v2) or memory.usage_in_bytes (v1).
  [[nodiscard]] virtual Result<Bytes> memory_usage(std::string_view path) = 0;
  /// Computed from memory.stat, where lines missing from older kernels count as 0, and
  /// memory_usage().
  [[nodiscard]] virtual Result<core::MemoryCharge> memory_charge(std::string_view path) = 0;

  /// A "trusted.podqos*" extended attribute of a cgroup, in the hierarchy of the memory controller
  /// (or of cpu if there is none). podqos keeps its mark of ownership and a copy of the pod record
  /// there, so that both survive the loss of the state directory.
  /// core::SetAttribute sets it.
  /// @return kNotFound if the cgroup does not exist; nullopt if the attribute is not set.
  [[nodiscard]] virtual Result<std::optional<std::string>> attribute(std::string_view path,
                                                                     const char* name) = 0;

  /// Lists systemd's units that match a pattern ("kubepods-*.slice").
  [[nodiscard]] virtual Result<std::vector<ListedUnit>> list_units(const std::string& pattern) = 0;

  // What the functions of that name in node.h tell of the machine.

  [[nodiscard]] virtual std::optional<std::int64_t> node_oom_kills();
  [[nodiscard]] virtual std::optional<std::string> kernel_log();

  // What the functions of that name in sys tell of a process.

  [[nodiscard]] virtual Result<std::vector<sys::ProcCgroup>> cgroups_of(Pid pid) {
    return sys::cgroups_of(pid);
  }
  [[nodiscard]] virtual Result<std::optional<StartTime>> start_time_of(Pid pid) {
    return sys::start_time_of(pid);
  }
  [[nodiscard]] virtual Result<std::optional<sys::ProcStat>> stat_of(Pid pid) {
    return sys::stat_of(pid);
  }
  [[nodiscard]] virtual Result<std::optional<Pid>> living_thread_of(Pid pid) {
    return sys::living_thread_of(pid);
  }

  /// bounding_cgroup() of a process.
  [[nodiscard]] Result<std::string> cgroup_of(Pid pid);
  /// Whether the process with this pid and start time is still running, that is, the pid was not
  /// reused. Also true if that cannot be found out.
  [[nodiscard]] bool is_alive(Pid pid, StartTime start_time) {
    const auto started = start_time_of(pid);
    return !started || *started == start_time;
  }

 private:
  bool defers_unit_changes_ = false;
};

/// The cgroup that bounds what a process has, of those in its /proc/PID/cgroup: in the v1 hierarchy
/// of the memory controller, else of cpu, else that of cgroup v2, beside which others may be
/// mounted (net_cls, name=systemd).
/// @return kNotFound if the process has ended or is in no such hierarchy
/// @note cgroups(7)
[[nodiscard]] Result<std::string> bounding_cgroup(Pid pid, std::vector<sys::ProcCgroup> cgroups);
/// That of a process of this machine.
[[nodiscard]] Result<std::string> bounding_cgroup(Pid pid);

}  // namespace podqos::cgroup

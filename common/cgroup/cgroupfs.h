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

/// What execute() did.
struct Report {
  std::vector<std::string> written;  ///< "path/file = value" of what changed
  std::vector<std::string> ignored;  ///< refusals that the plan allowed, each a sentence
  std::int64_t made = 0;  ///< cgroups made, parents included; one in ten hierarchies counts once
  std::int64_t removed = 0;
};

/// When execute() tells systemd what a plan has changed.
enum class UnitChanges : std::uint8_t {
  kNow,       ///< at the end of the plan, and what has waited with it
  kDeferred,  ///< with the next plan that tells: two round trips are saved for each that waits
};

/// The only door to cgroups, systemd's units included (it is spoken to at the first step that
/// concerns one): v1 (separate or co-mounted controllers), hybrid and v2. Paths are
/// absolute below the mount ("/kubepods/burstable/pod42"); every component is checked, opened
/// beneath the mount without symlinks. Directories stay open, so that an event opens each once:
/// each event has a door of its own. A hierarchy mounted read-only is read, and skipped where all
/// hierarchies would be changed.
class Cgroupfs {
 public:
  /// Looks at the machine. kUnsupported where neither cpu nor memory has a usable hierarchy,
  /// kPermission where these cannot be written, unless they are opened for reading only.
  static Result<Cgroupfs> open(const CgroupfsOptions& options = {});

  /// Where the controllers live, and the host's huge page sizes (looked up at the first call, and
  /// only where something limits them).
  [[nodiscard]] const core::CgroupLayout& layout();
  /// The same as if nothing limited huge pages: for plans that leave them alone.
  [[nodiscard]] const core::CgroupLayout& layout_without_hugepages() const { return layout_; }

  /// Carries out a plan in order. The first refusal that the plan does not allow ends it, with an
  /// error that names path, file, value, cause and, where podqos knows it, the remedy (missing
  /// controller, process in an inner cgroup, read-only mount). Steps that may depend on later ones
  /// (kRetryAfterPlan) are tried once more at the end, in order; then, also after a failure,
  /// systemd is told about units together. A cgroup that the plan moves a process into is made as a
  /// leaf: on v2 its children get no controllers.
  [[nodiscard]] Result<Report> execute(const core::Plan& plan,
                                       UnitChanges when = UnitChanges::kNow);

  /// What all that waits has of this event's time.
  [[nodiscard]] WaitBudget& waits() { return waits_; }

  /// In any hierarchy.
  [[nodiscard]] bool exists(std::string_view path);
  /// A file of a cgroup (no list of processes), up to 1 MiB, trailing newline cut; kNotFound when
  /// the cgroup or the file is gone, kUnsupported when the machine lacks the controller.
  [[nodiscard]] Result<std::string> read(std::string_view path, core::Controller controller,
                                         const std::string& file);
  /// Subdirectories of `path`, the union over all hierarchies, sorted; empty if the cgroup is not
  /// there.
  [[nodiscard]] Result<std::vector<std::string>> children(std::string_view path);
  /// Does any process live in `path` or below, in any hierarchy? A cgroup that is not there has
  /// none; one with more than 16 levels below it on v1 counts as populated.
  [[nodiscard]] Result<bool> populated(std::string_view path);
  /// Every pid in `path` itself and below (from all hierarchies; sorted, unique). Empty if the
  /// cgroup is not there; kTooLarge with more than 16 levels below it.
  [[nodiscard]] Result<std::vector<Pid>> processes(std::string_view path);
  /// Which of these files a cgroup has, and so those in it; none where runtimes use v1, on hybrid
  /// hosts too. A file that cannot be looked for counts as absent.
  [[nodiscard]] core::MemoryFiles memory_files(std::string_view path);
  /// memory.current / memory.usage_in_bytes.
  [[nodiscard]] Result<Bytes> memory_usage(std::string_view path);
  /// From memory.stat, of which a kernel may lack lines (0), and memory_usage().
  [[nodiscard]] Result<core::MemoryCharge> memory_charge(std::string_view path);

  /// The "trusted.podqos*" attribute of a cgroup, in the hierarchy that carries memory (else cpu):
  /// the mark of ownership and the copy of a pod's record, that survive the loss of the state
  /// directory. kNotFound when the cgroup is not there.
  [[nodiscard]] Result<std::optional<std::string>> attribute(std::string_view path,
                                                             const char* name);
  [[nodiscard]] Status set_attribute(std::string_view path, const char* name,
                                     std::string_view value);

  /// The device rules that a process in `path` is held to on cgroup v2, as ids of programs that the
  /// kernel has; empty on v1, where MoveProcess takes nothing from them. kPermission where they
  /// cannot be seen.
  [[nodiscard]] Result<std::vector<std::uint32_t>> device_rules(std::string_view path);
  /// Does moving a process on v1 take it out of the hierarchy of devices? The controllers may be
  /// mounted together, and systemd moves what it makes a scope of in all hierarchies.
  [[nodiscard]] bool moves_devices(core::Driver driver) const;

  /// The units of systemd that match a pattern ("kubepods-*.slice"). From then on an active one is
  /// not started again, only told its properties: one call instead of three.
  [[nodiscard]] Result<std::vector<ListedUnit>> learn_units(const std::string& pattern);

  /// The cgroup path of a process in the hierarchy that carries `memory` (else cpu).
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
  /// Keeps the SetUnit steps of a plan that was carried out, as far as they say something new.
  void note_units(const core::Plan& plan, const Report& report);
  /// Tells all that were kept: one round trip, and one more for the scopes among them.
  [[nodiscard]] Status apply_unit_changes(Report& report);
  /// Those of the scopes in which memory.oom.group is set.
  [[nodiscard]] std::vector<std::string> ending_together(const std::vector<core::SetUnit>& scopes);
  /// Sets it again in scopes that systemd was told of.
  [[nodiscard]] Status keep_together(const std::vector<std::string>& scopes, Report& report);
  [[nodiscard]] Status stop(const core::StopUnit& step);
  [[nodiscard]] Status check_scope(const std::string& path, const std::string& unit);
  /// Is the unit of this name this cgroup? A slice always; a scope of the name may lie elsewhere.
  [[nodiscard]] Result<bool> is_own_unit(const std::string& path);

  core::CgroupLayout layout_;  ///< without huge pages
  std::optional<core::CgroupVersion> hugetlb_;
  std::string hugepages_;                           ///< the directory that shows the sizes
  std::optional<core::CgroupLayout> whole_layout_;  ///< with them, once they were asked for
  std::vector<OpenHierarchy> hierarchies_;
  std::array<std::optional<std::size_t>, kControllers> by_controller_;
  Systemd systemd_;
  WaitBudget waits_;
  std::vector<core::SetUnit> deferred_changes_;
  std::set<std::string, std::less<>> active_units_;  ///< learnt
  std::size_t primary_ = 0;  ///< the hierarchy that carries memory, else cpu
};

}  // namespace podqos::cgroup

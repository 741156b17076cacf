#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/units.h"

namespace podqos::core {

/// Value of a systemd unit property, of the D-Bus type b, u, t, s, as or au.
using UnitValue = std::variant<bool, std::uint32_t, std::uint64_t, std::string,
                               std::vector<std::string>, std::vector<std::uint32_t>>;

/// systemd's "infinity": no limit.
constexpr std::uint64_t kUnitInfinity = ~std::uint64_t{0};

/// A property of a systemd unit.
/// @note org.freedesktop.systemd1(5).
struct UnitProperty {
  std::string name;  ///< "CPUWeight"
  UnitValue value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};

/// The controllers podqos writes to. A layout says in which hierarchy each lives.
enum class Controller : std::uint8_t { kCpu, kMemory, kHugetlb, kPids, kCpuset, kIo };

/// What to do when the kernel refuses a step.
enum class OnRefusal : std::uint8_t {
  kFail,                 ///< the plan stops with the error
  kIgnoreIfUnsupported,  ///< a kernel without the feature is a normal answer
  kIgnore,               ///< optional: counted in the report, never an error
  kRetryAfterPlan,       ///< depends on a later write: tried once more at the end
};

/// Make the cgroup `path` (absolute below the hierarchy's mount, "/kubepods/pod42") in every
/// hierarchy, parents included; on v2 with controllers enabled on the way down.
struct EnsureCgroup {
  std::string path;
  /// Enabled on v2 like those that every cgroup gets (ControllerRow::on_demand is false).
  std::optional<Controller> also = std::nullopt;
  friend bool operator==(const EnsureCgroup&, const EnsureCgroup&) = default;
};
/// Write `value` to `file` of cgroup `path` in the hierarchy of `controller`; skipped when it holds
/// it already.
struct WriteFile {
  std::string path;
  Controller controller = Controller::kCpu;
  std::string file;
  std::string value;
  std::string reason = {};
  OnRefusal on_refusal = OnRefusal::kFail;
  friend bool operator==(const WriteFile&, const WriteFile&) = default;
};
/// Move a process into cgroup `path` in every hierarchy that has a controller of all cgroups
/// (not ControllerRow::on_demand). In v1's others (devices, blkio, freezer, net_cls …) it stays, so
/// that what the engine has written there, or writes later, still counts.
struct MoveProcess {
  std::string path;
  Pid pid;
  friend bool operator==(const MoveProcess&, const MoveProcess&) = default;
};
/// Kill all processes in cgroup `path` and below it; absent is fine.
struct KillProcesses {
  std::string path;
  friend bool operator==(const KillProcesses&, const KillProcesses&) = default;
};
/// rmdir `path` in every hierarchy; absent is fine; a populated one is kBusy.
struct RemoveCgroup {
  std::string path;
  OnRefusal on_refusal = OnRefusal::kIgnore;
  /// With the cgroups below it, from the bottom, as many as fit into the steps of one plan: see
  /// Report::partly. Otherwise they keep it.
  bool nested = false;
  friend bool operator==(const RemoveCgroup&, const RemoveCgroup&) = default;
};
/// Set an extended attribute ("trusted.podqos…", xattr(7)) of cgroup `path` in the hierarchy of the
/// memory controller (or of cpu if there is none).
struct SetAttribute {
  std::string path;
  std::string name;
  std::string value;
  OnRefusal on_refusal = OnRefusal::kIgnore;
  /// Set in place of a refused value, which may be too large, so that an outdated one does not
  /// stay.
  std::optional<std::string> otherwise = std::nullopt;
  friend bool operator==(const SetAttribute&, const SetAttribute&) = default;
};
/// Write /proc/PID/oom_score_adj.
struct SetOomScore {
  Pid pid;
  /// The process must still be the one that started then; absent where the caller holds it, as a
  /// runtime does that waits for its hook.
  std::optional<StartTime> start_time = std::nullopt;
  int score = 0;
  friend bool operator==(const SetOomScore&, const SetOomScore&) = default;
};

/// Let systemd know the unit that cgroup `path` is (its last component names it), with these
/// properties: a transient unit, or, where one of the name is loaded, its properties set and a stop
/// that is under way taken back. Of systemd only the answer is awaited, not the job.
struct StartUnit {
  std::string path;
  std::vector<UnitProperty> properties;
  /// What only a new unit is told: description, parent, the processes of a scope.
  std::vector<UnitProperty> once = {};
  friend bool operator==(const StartUnit&, const StartUnit&) = default;
};
/// Tell systemd the properties of a loaded unit, so that it keeps what was written: after all other
/// steps, together with the plan's other SetUnit; skipped where the plan has changed no file of
/// `path`.
struct SetUnit {
  std::string path;
  std::vector<UnitProperty> properties;
  OnRefusal on_refusal = OnRefusal::kFail;
  bool always = false;  ///< whether or not a file has changed
  friend bool operator==(const SetUnit&, const SetUnit&) = default;
};
/// Let systemd forget the unit that cgroup `path` is, and what it kept of its properties. Skipped
/// while anything is in the cgroup: systemd would stop what lives there.
struct StopUnit {
  std::string path;
  friend bool operator==(const StopUnit&, const StopUnit&) = default;
};

using Step = std::variant<EnsureCgroup, WriteFile, MoveProcess, KillProcesses, RemoveCgroup,
                          SetAttribute, SetOomScore, StartUnit, SetUnit, StopUnit>;

/// An ordered list of effects: the same value is dry run, assertion and work list.
using Plan = std::vector<Step>;

/// One line a step: "mkdir  /kubepods/pod42", "mkdir  /kubepods +io", "write
/// /kubepods/pod42/cpu.weight = 39  # sum of requests".
[[nodiscard]] std::string render(const Plan& plan);

}  // namespace podqos::core

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/record.h"

namespace podqos::cgroup {

/// Pressure stall information: the time for which tasks have waited for a resource since the cgroup
/// was created.
/// @note Documentation/accounting/psi.rst
struct Pressure {
  Micros waiting;  ///< "some": at least one task waited
  std::optional<Micros>
      stalled;  ///< "full": all tasks waited at once; absent for CPU before Linux 5.13
  friend bool operator==(const Pressure&, const Pressure&) = default;
};

/// Parses a file like cpu.pressure; nullopt if it is malformed.
[[nodiscard]] std::optional<Pressure> parse_pressure(std::string_view text);

/// The values of one cgroup as the kernel has them. Each file is read when the first of its values
/// is asked for, and only once, so that all who ask see the same. nullopt: unlimited, or
/// unavailable (the machine lacks controller or file, or the cgroup does not exist).
/// @note Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/memory.rst, cgroup-v1/pids.rst.
class CgroupView {
 public:
  /// @param machine  has to outlive the view
  /// @param path  absolute below the hierarchies' mounts; "" for a cgroup that does not exist
  CgroupView(Machine& machine, std::string path) : machine_(&machine), path_(std::move(path)) {}

  [[nodiscard]] Machine& machine() const { return *machine_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool exists() const { return machine_->exists(path_); }

  [[nodiscard]] std::optional<CpuShares> cpu_shares() const;  ///< cgroup v1
  [[nodiscard]] std::optional<CpuWeight> cpu_weight() const;  ///< cgroup v2
  [[nodiscard]] std::optional<Micros> cpu_quota() const;
  [[nodiscard]] std::optional<Micros> cpu_period() const;
  [[nodiscard]] std::optional<Micros> cpu_burst() const;
  [[nodiscard]] std::optional<bool> cpu_idle() const;  ///< cgroup v2
  [[nodiscard]] std::optional<std::int64_t> cpu_usage_ns() const;
  /// Periods of the cgroup's own CPU quota in which it had work; 0 without a quota.
  [[nodiscard]] std::optional<std::int64_t> cpu_periods() const {
    return number(core::Controller::kCpu, "cpu.stat", "nr_periods");
  }
  /// Those of them in which it had to wait.
  [[nodiscard]] std::optional<std::int64_t> cpu_throttled_periods() const {
    return number(core::Controller::kCpu, "cpu.stat", "nr_throttled");
  }
  [[nodiscard]] std::optional<Bytes> memory_limit() const;
  [[nodiscard]] std::optional<Bytes> memory_usage() const;
  /// memory.min or memory.low of cgroup v2; kInt64Max for "max".
  [[nodiscard]] std::optional<Bytes> protection(const std::string& file) const;
  /// memory.min, memory.low and memory.high of cgroup v2.
  [[nodiscard]] core::MemoryQos memory_qos() const;
  /// How often the cgroup and those below were throttled at a memory.high; cgroup v2.
  [[nodiscard]] std::optional<std::int64_t> throttled_events() const;
  /// Without those below, which a container may have made and given a memory.high, except by
  /// kernels before 5.2.
  [[nodiscard]] std::optional<std::int64_t> own_throttled_events() const;
  /// Processes in the cgroup and below that the OOM killer has ended; cgroup v2.
  [[nodiscard]] std::optional<std::int64_t> oom_kills() const;
  /// The same on cgroup v1, which does not count those below.
  [[nodiscard]] std::optional<std::int64_t> oom_kills_of_container() const;
  /// The most memory that it has used; before Linux 5.19 only on cgroup v1.
  [[nodiscard]] std::optional<Bytes> memory_peak() const;
  [[nodiscard]] std::optional<std::int64_t> pids_limit() const;
  /// Processes and threads, those below included.
  [[nodiscard]] std::optional<std::int64_t> pids() const;
  /// For "cpu", "memory" or "io", of cgroup v2; a kernel may lack PSI, or have it switched off
  /// (psi=0). Also nullopt if the file is malformed.
  [[nodiscard]] std::optional<Pressure> pressure(std::string_view resource) const;

  /// For how much of the last 10 s tasks waited for memory, in whole percent (PSI avg10): all at
  /// once ("full"), as systemd-oomd measures pressure, or at least one ("some"); nullopt as for
  /// pressure().
  [[nodiscard]] std::optional<std::int64_t> memory_pressure(std::string_view kind) const;
  /// Page cache that was not used lately.
  [[nodiscard]] std::optional<Bytes> inactive_file() const;
  [[nodiscard]] std::optional<Bytes> swap() const;
  /// The memory in use less inactive page cache, at least 0, by which the kubelet evicts.
  /// @note google/cadvisor container/libcontainer/handler.go setMemoryStats
  [[nodiscard]] std::optional<Bytes> working_set() const;

  /// The CPU shares: cpu.shares on v1. On v2 `rule` if its weight equals the cgroup's, otherwise
  /// the inverse of the linear formula, which is lossy.
  [[nodiscard]] std::optional<CpuShares> shares(const std::optional<CpuShares>& rule,
                                                core::WeightFormula formula) const;

  /// CPU share and limits, "no limit" told from "not known".
  [[nodiscard]] core::HeldResources held() const;

 private:
  /// The text of a file; nullopt if it cannot be read.
  [[nodiscard]] const std::optional<std::string>& text(core::Controller controller,
                                                       const std::string& file) const;
  [[nodiscard]] std::optional<std::int64_t> number(core::Controller controller,
                                                   const std::string& file) const;
  /// The number behind a key of a file.
  [[nodiscard]] std::optional<std::int64_t> number(core::Controller controller,
                                                   const std::string& file,
                                                   std::string_view key) const;
  /// Whether the file of one of the values that podqos writes can be read.
  [[nodiscard]] bool knows(core::Value value) const;
  /// The number in the file of one of the values that podqos writes.
  [[nodiscard]] std::optional<std::int64_t> number(core::Value value,
                                                   core::CgroupVersion version) const;
  /// Whether the machine has the controller in this version.
  [[nodiscard]] bool has(core::Controller controller, core::CgroupVersion version) const;

  Machine* machine_;
  std::string path_;
  mutable std::map<std::string, std::optional<std::string>> texts_;  ///< by file
  mutable std::optional<std::optional<Bytes>> memory_usage_;
};

/// Where a running container's runtime has set its limits: the container's cgroup or, where that is
/// a scope, crun's own cgroup below it. crun 1.8 sets them only there, later releases in both
/// (libcrun/cgroup-systemd.c, run.oci.systemd.subgroup).
/// @return kNotFound for a container that has left its scope, and the errors of
///         Machine::cgroup_of()
[[nodiscard]] Result<std::string> limited_cgroup(Machine& machine,
                                                 const core::ContainerRecord& container);

/// What a running container's runtime has set: in its cgroup, or where that is the scope that crun
/// makes, in crun's own cgroup below it what the scope does not limit.
/// @param own  of the container's cgroup
[[nodiscard]] core::HeldResources held_by(Machine& machine, const core::ContainerRecord& container,
                                          const CgroupView& own);

/// Compares a cgroup with the values that the rules require and returns one clause per difference
/// ("memory limit is 1Gi, the rule says 2Gi"). Memory limits are compared in whole
/// pages, as the kernel stores them. Values absent from `rule` are skipped, except quota and memory
/// limit, whose absence means "unlimited", and an I/O weight that podqos has written although the
/// setting has gone, which is to be the default.
/// @param page_size  the kernel's page size in bytes
[[nodiscard]] std::vector<std::string> differences(const CgroupView& cgroup,
                                                   const core::CgroupValues& rule,
                                                   core::WeightFormula formula, Bytes page_size);

/// The same of memory.min, memory.low and memory.high alone.
[[nodiscard]] std::vector<std::string> memory_qos_differences(const CgroupView& cgroup,
                                                              const core::UnifiedValues& rule,
                                                              Bytes page_size);

/// Whether podqos has written the weight of `cgroup`. If the setting is gone, the cgroup must get
/// the kernel's default once more.
[[nodiscard]] bool has_io_weight(Machine& machine, const std::string& cgroup);

/// Whether podqos has told systemd-oomd of `cgroup`, and it is to be told if that changes.
[[nodiscard]] bool has_eviction(Machine& machine, const std::string& cgroup);

/// Whether the kernel has a file for the weight of `cgroup`, whose parent enables the io
/// controller.
[[nodiscard]] bool takes_io_weight(Machine& machine, const std::string& cgroup);

}  // namespace podqos::cgroup

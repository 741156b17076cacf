#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "ctl/cli/table.h"
#include "ctl/doctor/doctor_checks.h"

namespace podqos::ctl {
namespace {

using enum Outcome;

/// Which of the controllers in use the kernel has in which version: "cpu, memory (v1)".
std::string controllers_of(const core::CgroupLayout& layout, core::CgroupVersion version) {
  std::vector<std::string> names;
  for (const core::ControllerRow& row : core::kControllers)
    if (layout.*row.version == version)
      names.emplace_back(version == core::CgroupVersion::kV2 ? row.v2_name : row.v1_name);
  return join(names, ", ");
}

Finding check_controllers(const core::CgroupLayout& layout) {
  const std::string v1 = controllers_of(layout, core::CgroupVersion::kV1);
  const std::string v2 = controllers_of(layout, core::CgroupVersion::kV2);
  std::vector<std::string> found;
  if (!v2.empty()) found.push_back(cat("cgroup v2: ", v2));
  if (!v1.empty()) found.push_back(cat("cgroup v1: ", v1));
  Finding check{"kernel", "controllers", kOk, join(found, "; ")};
  std::vector<std::string> lacking;
  for (const auto controller :
       {core::Controller::kCpu, core::Controller::kMemory, core::Controller::kPids})
    if (!layout.version_of(controller)) lacking.emplace_back(core::row_of(controller).v2_name);
  if (lacking.empty()) return check;
  check.outcome = kProblem;
  check.text = cat("the kernel lacks ", join(lacking, ", "), ": pods get no values of it");
  check.remedy = layout.memory
                     ? "mount it, or remove cgroup_disable= from the kernel's command line"
                     : "boot without cgroup_disable=memory, or with cgroup_enable=memory";
  return check;
}

constexpr const char* kNoMemory = "the kernel has no memory controller";

Finding check_hugepages(const KernelFacts& facts) {
  if (facts.hugepages == Bytes{0})
    return {"kernel", "hugepages", kSkipped, "no memory is preallocated as huge pages"};
  return {"kernel", "hugepages", kOk,
          cat(rounded_amount(facts.hugepages),
              " are preallocated as huge pages, and so not allocatable as memory")};
}

Finding check_swap(const KernelFacts& facts, const core::Settings& settings) {
  Finding check{"kernel", "swap", kOk, facts.has_swap ? "can be limited" : "the machine has none"};
  if (!facts.has_swap || facts.limits_swap || !settings.swap_behavior) return check;
  if (!facts.layout.memory) return {"kernel", "swap", kSkipped, kNoMemory};
  check.outcome = kWarning;
  check.text = "the kernel does not account for swap: containers may swap without limit";
  check.remedy = "boot with swapaccount=1";
  return check;
}

Finding check_pressure(const KernelFacts& facts, const core::Settings& settings) {
  if (facts.has_pressure) return {"kernel", "pressure", kOk, "PSI is on"};
  if (!settings.eviction.burstable && !settings.eviction.besteffort)
    return {"kernel", "pressure", kSkipped, "PSI is off; eviction would need it"};
  return {"kernel", "pressure", kWarning,
          "PSI is off: podqos-nri evicts by the working set, and systemd-oomd does not run",
          "boot with psi=1"};
}

Finding check_reclaim(const KernelFacts& facts) {
  Finding check{"kernel", "reclaim", kOk, "memory.reclaim is there"};
  if (facts.reclaims) return check;
  if (facts.layout.memory == core::CgroupVersion::kV1) {
    check.text = "limits of cgroup v1 reclaim by themselves";
    return check;
  }
  check.outcome = kSkipped;
  check.text = facts.layout.memory
                   ? "no memory.reclaim before Linux 5.19: limits follow usage more slowly"
                   : kNoMemory;
  return check;
}

/// @note Documentation/admin-guide/cgroup-v2.rst, cpu.idle
Finding check_wakeup(const KernelFacts& facts, const core::Settings& settings) {
  if (facts.layout.cpu != core::CgroupVersion::kV2)
    return {"kernel", "wakeup", kSkipped,
            "on cgroup v1 the BestEffort tier has the least shares already"};
  if (settings.cpu_idle_besteffort)
    return {"kernel", "wakeup", kOk,
            "the BestEffort tier is idle, where the kernel has cpu.idle (Linux 5.15)"};
  return {
      "kernel", "wakeup", kSkipped,
      "beside busy BestEffort pods a process that wakes up may wait for milliseconds, unless the "
      "tier is idle (Linux 5.15)",
      "set cpuIdle.bestEffort to true where BestEffort pods compute for long"};
}

}  // namespace

Findings check_kernel(const KernelFacts& facts, const core::Settings& settings) {
  return {check_controllers(facts.layout), check_pressure(facts, settings),
          check_swap(facts, settings),     check_reclaim(facts),
          check_hugepages(facts),          check_wakeup(facts, settings)};
}

}  // namespace podqos::ctl

#include "common/cgroup/cgroup_usage.h"

namespace podqos::cgroup {

std::optional<CgroupUsage> usage_of(const CgroupView& cgroup) {
  const auto at = std::chrono::steady_clock::now();
  CgroupUsage usage{.cpu = cgroup.cpu_usage_ns().transform(
                        [](std::int64_t nanos) { return Micros{nanos / kNanosPerMicro}; }),
                    .periods = cgroup.cpu_periods(),
                    .throttled_periods = cgroup.cpu_throttled_periods(),
                    .memory = cgroup.memory_usage(),
                    .inactive_file = cgroup.inactive_file(),
                    .swap = cgroup.swap(),
                    .oom_kills = cgroup.oom_kills_of_container(),
                    .pids = cgroup.pids(),
                    .cpu_pressure = cgroup.pressure("cpu"),
                    .memory_pressure = cgroup.pressure("memory")};
  if (usage == CgroupUsage{}) return std::nullopt;
  usage.at = at;
  return usage;
}

}  // namespace podqos::cgroup

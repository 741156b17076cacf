#include "common/cgroup/machine.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

Result<bool> Machine::retry_until_done(const std::function<Result<bool>()>& attempt) {
  constexpr std::chrono::milliseconds kPause{10};
  while (true) {
    auto done = attempt();
    if (!done || *done || !wait(kPause)) return done;
  }
}

Result<Report> Machine::execute_with_quota(const core::Plan& plan) {
  Result<Report> report;
  const auto settled = retry_until_done([&]() -> Result<bool> {
    report = execute(plan);
    return report || report.error().code != ErrorCode::kInvalidArgument;
  });
  if (report || *settled) return report;
  return fail(ErrorCode::kBusy, std::move(report).error().message);
}

Result<std::string> Machine::cgroup_of(Pid pid) {
  const core::CgroupLayout& layout = layout_without_hugepages();
  const bool is_v2 = (layout.memory ? layout.memory : layout.cpu) == core::CgroupVersion::kV2;
  const std::string_view wanted = layout.memory ? "memory" : "cpu";
  PODQOS_ASSIGN(auto cgroups, cgroups_of(pid));
  for (sys::ProcCgroup& cgroup : cgroups) {
    const bool carries =
        is_v2 ? cgroup.controllers.empty()
              : std::ranges::find(cgroup.controllers, wanted) != cgroup.controllers.end();
    if (carries) return std::move(cgroup.path);
  }
  return fail(ErrorCode::kNotFound,
              cat("process ", pid.value(), " is in no cgroup of the ", wanted, " controller"));
}

}  // namespace podqos::cgroup

#include "common/cgroup/retry.h"

#include <chrono>
#include <utility>

namespace podqos::cgroup {

Result<bool> retry_until_done(Machine& machine, const std::function<Result<bool>()>& attempt) {
  constexpr std::chrono::milliseconds kPause{10};
  while (true) {
    auto done = attempt();
    if (!done || *done || !machine.wait(kPause)) return done;
  }
}

Result<Report> execute_with_quota(Machine& machine, const core::Plan& plan) {
  Result<Report> report;
  const auto settled = retry_until_done(machine, [&]() -> Result<bool> {
    report = machine.execute(plan);
    return report || report.error().code != ErrorCode::kInvalidArgument;
  });
  if (report || *settled) return report;
  return fail(ErrorCode::kBusy, std::move(report).error().message);
}

}  // namespace podqos::cgroup

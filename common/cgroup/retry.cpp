#include "common/cgroup/retry.h"

#include <chrono>
#include <utility>

namespace podqos::cgroup {

namespace {

constexpr std::chrono::milliseconds kPause{10};

bool may_pass(const Error& error, core::RetryOn transient) {
  switch (transient) {
    case core::RetryOn::kNone: return false;
    case core::RetryOn::kQuota: return error.code == ErrorCode::kInvalidArgument;
  }
  return false;
}

}  // namespace

Result<bool> retry_until_done(Machine& machine, const std::function<Result<bool>()>& attempt) {
  while (true) {
    auto done = attempt();
    if (!done || *done || !machine.wait(kPause)) return done;
  }
}

Result<Report> execute(Machine& machine, const core::Plan& plan, UnitChanges when,
                       core::RetryOn transient) {
  Result<Report> report;
  const auto settled = retry_until_done(machine, [&]() -> Result<bool> {
    report = machine.execute(plan, when);
    return report || !may_pass(report.error(), transient);
  });
  if (!report && !*settled && transient == core::RetryOn::kQuota)
    return fail(ErrorCode::kBusy, std::move(report).error().message);
  return report;
}

}  // namespace podqos::cgroup

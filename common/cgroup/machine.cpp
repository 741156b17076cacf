#include "common/cgroup/machine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/text.h"
#include "common/cgroup/node.h"

namespace podqos::cgroup {

namespace {

core::OnRefusal on_refusal_of(const core::Step& step) {
  return std::visit(
      [](const auto& each) {
        if constexpr (requires { each.on_refusal; }) return each.on_refusal;
        return core::OnRefusal::kFail;  // the other steps cannot be optional
      },
      step);
}

}  // namespace

std::optional<std::int64_t> Machine::node_oom_kills() {
  return cgroup::node_oom_kills();
}

std::optional<std::string> Machine::kernel_log() {
  return cgroup::kernel_log();
}

bool is_allowed(const core::Step& step, const Error& error) {
  const core::OnRefusal on_refusal = on_refusal_of(step);
  return on_refusal == core::OnRefusal::kIgnore ||
         (on_refusal == core::OnRefusal::kIgnoreIfUnsupported &&
          error.code == ErrorCode::kUnsupported);
}

Status carry_out(const core::Plan& plan, Report& report,
                 const std::function<Status(const core::Step&)>& run) {
  std::vector<const core::Step*> again;
  for (const core::Step& step : plan) {
    Status done = run(step);
    if (done) continue;
    if (on_refusal_of(step) == core::OnRefusal::kRetryAfterPlan) {
      again.push_back(&step);
    } else if (is_allowed(step, done.error())) {
      report.ignored.push_back(std::move(done).error().message);
    } else {
      return done;
    }
  }
  for (const core::Step* step : again)
    PODQOS_TRY(run(*step));
  return {};
}

bool has_changed(const Report& report, const std::string& cgroup) {
  return std::ranges::any_of(report.written, [files = cat(cgroup, "/")](const std::string& line) {
    // "PATH/FILE = VALUE", not a file of a cgroup below.
    return line.starts_with(files) && line.find('/', files.size()) >= line.find(" = ");
  });
}

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
  PODQOS_ASSIGN(auto cgroups, cgroups_of(pid));
  return bounding_cgroup(pid, std::move(cgroups));
}

Result<std::string> bounding_cgroup(Pid pid, std::vector<sys::ProcCgroup> cgroups) {
  for (const std::string_view wanted : {"memory", "cpu", ""}) {
    for (sys::ProcCgroup& cgroup : cgroups) {
      const bool is_it = wanted.empty() ? cgroup.controllers.empty()
                                        : std::ranges::count(cgroup.controllers, wanted) != 0;
      if (is_it) return std::move(cgroup.path);
    }
  }
  return fail(ErrorCode::kNotFound,
              cat("process ", pid.value(), " is in no cgroup of the memory or cpu controller"));
}

Result<std::string> bounding_cgroup(Pid pid) {
  PODQOS_ASSIGN(auto cgroups, sys::cgroups_of(pid));
  return bounding_cgroup(pid, std::move(cgroups));
}

}  // namespace podqos::cgroup

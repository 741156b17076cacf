#include "common/cgroup/origin.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/core/carried_limits.h"

namespace podqos::cgroup {

namespace {

/// The cgroups from `actual` up to `own`, innermost first: runtimes may put the process below the
/// cgroup that has the limits.
std::vector<std::string> from_to(const std::string& actual, const std::string& own) {
  std::vector<std::string> paths{actual};
  while (paths.back().size() > own.size())
    paths.push_back(paths.back().substr(0, paths.back().rfind('/')));
  return paths;
}

/// Refuses a move that would leave other processes of the container behind.
Status check_alone(Machine& machine, const std::string& cgroup, Pid init) {
  PODQOS_ASSIGN(const auto pids, machine.processes(cgroup));
  const auto other = std::ranges::find_if(pids, [&](Pid pid) { return pid != init; });
  if (other == pids.end()) return {};
  return fail(ErrorCode::kBusy, cat("process ", other->value(),
                                    " is in its cgroup too and would not be moved with it"));
}

/// nullopt if this kernel or this cgroup has no such file.
Result<std::optional<std::string>> read_limit(Machine& machine, const std::string& cgroup,
                                              const core::LimitFile& file) {
  auto text = machine.read(cgroup, file.controller, file.name);
  if (text) return std::move(*text);
  const ErrorCode code = text.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported) return std::nullopt;
  return fail(std::move(text).error());
}

/// Refuses a move that would lose a limit which cannot be carried over.
Status check_left_behind(Machine& machine, const std::vector<std::string>& paths,
                         const core::LimitFile& file) {
  for (const std::string& path : paths) {
    PODQOS_ASSIGN(auto held, read_limit(machine, path, file));
    if (!held || !core::bounds(file, *held)) continue;
    return fail(ErrorCode::kUnsupported,
                cat("it would lose ", file.name, " = ", printable(*held), " of ", path));
  }
  return {};
}

/// The limits to carry over; for each file that of the innermost cgroup that sets it.
Result<std::vector<core::CarriedLimit>> limits_in(Machine& machine,
                                                  const std::vector<std::string>& paths) {
  std::vector<core::CarriedLimit> limits;
  for (const core::LimitFile& file : core::limit_files(machine.layout())) {
    std::optional<std::string> value;
    for (auto path = paths.begin(); path != paths.end() && !value; ++path) {
      PODQOS_ASSIGN(auto held, read_limit(machine, *path, file));
      if (held) value = core::carried_value(file, *held);
    }
    if (value) {
      limits.push_back(
          {.controller = file.controller, .file = file.name, .value = std::move(*value)});
    }
  }
  return limits;
}

}  // namespace

Result<core::Origin> origin_of(Machine& machine, const core::AdmissionRequest& request) {
  const std::string actual = request.placed_at.value_or("/");
  if (machine.moves_devices(request.driver)) {
    return fail(ErrorCode::kUnsupported,
                "on this machine's cgroup v1 it would lose its device rules, which cannot be "
                "copied");
  }
  core::Origin origin{.cgroup = actual, .limits = {}};
  if (auto rules = machine.device_rules(actual); !rules)
    return fail(std::move(rules).error().with_context("it might lose device rules"));
  PODQOS_ASSIGN(auto shared, holds_this_process(actual));
  if (shared) return origin;
  const std::string own = core::own_cgroup_in(actual, request.facts.cgroups_path);
  PODQOS_TRY(check_alone(machine, own, request.pid));
  const std::vector<std::string> paths = from_to(actual, own);
  for (const core::LimitFile& file : core::files_left_behind(machine.layout_without_hugepages())) {
    PODQOS_TRY(check_left_behind(machine, paths, file));
  }
  PODQOS_ASSIGN(auto limits, limits_in(machine, paths));
  origin.limits = std::move(limits);
  return origin;
}

}  // namespace podqos::cgroup

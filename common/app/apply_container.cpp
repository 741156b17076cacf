#include "common/app/apply_container.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/app/known_container.h"
#include "common/base/text.h"
#include "common/core/carried_limits.h"
#include "common/core/driver.h"

namespace podqos::app {

namespace {

/// True if the cgroup holds this process too: a runtime that was told to create no cgroup leaves
/// the container, like this hook, in its caller's.
Result<bool> holds_this_process(const std::string& cgroup) {
  auto own = real_cgroup(Pid{::getpid()});
  if (!own) return fail(std::move(own).error());
  return cgroup == "/" || *own == cgroup || own->starts_with(cat(cgroup, "/"));
}

/// The cgroups from `actual` up to `own`, innermost first: runtimes may put the process below the
/// cgroup that has the limits.
std::vector<std::string> from_to(const std::string& actual, const std::string& own) {
  std::vector<std::string> paths{actual};
  while (paths.back().size() > own.size())
    paths.push_back(paths.back().substr(0, paths.back().rfind('/')));
  return paths;
}

/// Refuses a move that would leave other processes of the container behind.
Status check_alone(cgroup::Machine& machine, const std::string& cgroup, Pid init) {
  const auto pids = machine.processes(cgroup);
  if (!pids) return fail(pids.error());
  const auto other = std::ranges::find_if(*pids, [&](Pid pid) { return pid != init; });
  if (other == pids->end()) return {};
  return fail(ErrorCode::kBusy, cat("process ", other->value(),
                                    " is in its cgroup too and would not be moved with it"));
}

/// nullopt if this kernel or this cgroup has no such file.
Result<std::optional<std::string>> read_limit(cgroup::Machine& machine, const std::string& cgroup,
                                              const core::LimitFile& file) {
  auto text = machine.read(cgroup, file.controller, file.name);
  if (text) return std::move(*text);
  const ErrorCode code = text.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported) return std::nullopt;
  return fail(std::move(text).error());
}

/// Refuses a move that would lose a limit which cannot be carried over.
Status check_left_behind(cgroup::Machine& machine, const std::vector<std::string>& paths,
                         const core::LimitFile& file) {
  for (const std::string& path : paths) {
    auto held = read_limit(machine, path, file);
    if (!held) return fail(std::move(held).error());
    if (!*held || !core::bounds(file, **held)) continue;
    return fail(ErrorCode::kUnsupported,
                cat("it would lose ", file.name, " = ", printable(**held), " of ", path));
  }
  return {};
}

/// The limits to carry over; for each file that of the innermost cgroup that sets it.
Result<std::vector<core::CarriedLimit>> limits_in(cgroup::Machine& machine,
                                                  const std::vector<std::string>& paths) {
  std::vector<core::CarriedLimit> limits;
  for (const core::LimitFile& file : core::limit_files(machine.layout())) {
    std::optional<std::string> value;
    for (auto path = paths.begin(); path != paths.end() && !value; ++path) {
      auto held = read_limit(machine, *path, file);
      if (!held) return fail(std::move(held).error());
      if (*held) value = core::carried_value(file, **held);
    }
    if (value) {
      limits.push_back(
          {.controller = file.controller, .file = file.name, .value = std::move(*value)});
    }
  }
  return limits;
}

/// After a failed move, sets the record back to the container's current cgroup.
Status undo_move(Transaction& transaction, core::PodRecord record,
                 const core::ContainerRecord& container, const std::string& actual) {
  const auto now = transaction.machine().cgroup_of(container.pid);
  if (!now || *now == container.cgroup) return {};
  for (core::ContainerRecord& each : record.containers) {
    if (each.id != container.id || each.bundle != container.bundle) continue;
    each.cgroup = actual;
    each.moved = false;
  }
  if (auto done = transaction.run(core::plan_removal(container.cgroup)); !done) return done;
  return transaction.save(record);
}

/// Executes a plan that may create a scope.
Status run_for(Transaction& transaction, const core::ContainerRecord& container,
               const core::Plan& plan) {
  const bool scope = core::driver_of(container.cgroup) == core::Driver::kSystemd;
  return transaction.run(plan, scope ? cgroup::Transient::kControllers : cgroup::Transient::kNone);
}

/// Moves the container to its pod with its limits; undone on failure.
Status move(Transaction& transaction, const Admission& admission, const std::string& actual) {
  const core::ContainerRecord& container = admission.container;
  const core::CgroupLayout& layout = transaction.layout_for(admission.missing);
  auto done = run_for(transaction, container,
                      core::plan_move(container, *admission.relocation.origin, admission.missing,
                                      layout, transaction.formula()));
  if (done) return done;
  if (auto taken = undo_move(transaction, admission.record, container, actual); !taken)
    transaction.log().error(taken.error().message);
  return fail(std::move(done).error().with_context(
      cat("pod ", admission.record.pod.uid, ": container not moved from ", actual)));
}

/// The limits of a container must not be written to a cgroup that its runtime shares.
Status check_own(const Admission& admission, const std::string& actual) {
  auto shared = holds_this_process(actual);
  if (!shared) return fail(std::move(shared).error());
  if (!*shared) return {};
  return fail(
      ErrorCode::kConflict,
      cat("pod ", admission.record.pod.uid, ": cgroup ", actual,
          " is the runtime's own, so the container's limits are not written there: configure "
          "the runtime to create a cgroup for the container"));
}

/// Warns of a container that ran outside its pod, and how to avoid it.
void report_place(Transaction& transaction, const Admission& admission, const std::string& actual) {
  const std::string stays =
      admission.relocation.stays.empty()
          ? ""
          : cat(" (onMisplaced \"move\" leaves it there: ", admission.relocation.stays, ")");
  const std::string where =
      admission.container.moved
          ? cat(" and was moved to ", *admission.belongs_to,
                ", which its runtime does not know: a later update of its resources changes the "
                "old cgroup and reports success, but has no effect on the container")
          : cat(", not in ", *admission.belongs_to);
  transaction.log().warning(
      cat("pod ", admission.record.pod.uid, ", container ", printable(admission.container.id),
          " runs in cgroup ", actual, where, stays,
          ": register podqos-runtime, or Podman's precreate hook, so that it is "
          "placed before it starts"));
}

}  // namespace

Result<core::Origin> origin_of(cgroup::Machine& machine, const AdmissionRequest& request) {
  const std::string actual = request.placed_at.value_or("/");
  if (machine.moves_devices(request.driver)) {
    return fail(ErrorCode::kUnsupported,
                "on this machine's cgroup v1 it would lose its device rules, which cannot be "
                "copied");
  }
  core::Origin origin{.cgroup = actual, .limits = {}};
  if (auto rules = machine.device_rules(actual); !rules)
    return fail(std::move(rules).error().with_context("it might lose device rules"));
  auto shared = holds_this_process(actual);
  if (!shared) return fail(std::move(shared).error());
  if (*shared) return origin;
  const std::string own = core::own_cgroup_in(actual, request.facts.cgroups_path);
  if (auto alone = check_alone(machine, own, request.pid); !alone)
    return fail(std::move(alone).error());
  const std::vector<std::string> paths = from_to(actual, own);
  for (const core::LimitFile& file : core::files_left_behind(machine.layout_without_hugepages())) {
    if (auto unset = check_left_behind(machine, paths, file); !unset)
      return fail(std::move(unset).error());
  }
  auto limits = limits_in(machine, paths);
  if (!limits) return fail(std::move(limits).error());
  origin.limits = std::move(*limits);
  return origin;
}

Status apply_container(Transaction& transaction, const Admission& admission,
                       const std::string& actual) {
  const core::ContainerRecord& container = admission.container;
  const bool untouched = admission.on_misplaced == core::OnMisplaced::kIgnore;
  if (admission.left_with_engine && untouched) return {};
  if (admission.belongs_to && untouched) {
    transaction.log().info(cat("pod ", admission.record.pod.uid, ", container ",
                               printable(container.id), " runs in cgroup ", actual, ", not in ",
                               *admission.belongs_to, ": counted but not moved"));
    return {};
  }
  if ((admission.belongs_to || admission.left_with_engine) && !container.moved) {
    if (auto own = check_own(admission, actual); !own) return own;
  }
  if (container.moved) {
    if (auto done = move(transaction, admission, actual); !done) return done;
  }
  const core::CgroupLayout& layout = transaction.layout_for(admission.missing);
  core::Plan plan =
      container.moved
          ? core::plan_moved_scope(container, *admission.relocation.origin, admission.missing,
                                   layout, transaction.formula())
          : core::plan_container(container, admission.missing, layout, transaction.formula());
  if (admission.oom_score_adj) {
    plan.emplace_back(core::SetOomScore{.pid = container.pid, .score = *admission.oom_score_adj});
  }
  if (auto done = container.moved ? run_for(transaction, container, plan) : transaction.run(plan);
      !done)
    return done;
  if (admission.belongs_to) report_place(transaction, admission, actual);
  return {};
}

}  // namespace podqos::app

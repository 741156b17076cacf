#include "common/app/apply_container.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/core/driver.h"

namespace podqos::app {

namespace {

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
  const auto done = transaction.execute(
      {core::Execute{core::plan_removal(container.cgroup)}, core::SaveRecord{record}});
  return done ? Status{} : fail(done.error());
}

/// Executes a plan that may create a scope.
Status run_for(Transaction& transaction, const core::ContainerRecord& container,
               const core::Plan& plan) {
  const bool scope = core::driver_of(container.cgroup) == core::Driver::kSystemd;
  return transaction.execute(core::Execute{
      .plan = plan, .transient = scope ? core::Transient::kControllers : core::Transient::kNone});
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
  auto shared = cgroup::holds_this_process(actual);
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
  if (auto done = container.moved ? run_for(transaction, container, plan)
                                  : transaction.execute(core::Execute{std::move(plan)});
      !done)
    return done;
  if (admission.belongs_to) report_place(transaction, admission, actual);
  return {};
}

}  // namespace podqos::app

#include "common/app/admission.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "common/app/apply_container.h"
#include "common/app/departure.h"
#include "common/app/known_container.h"
#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/cgroup/origin.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/cgroup/removal.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/counting.h"
#include "common/core/ownership.h"
#include "common/core/reservation.h"
#include "common/core/whole_pod.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// The existing record for merge_claim(): without this container, and without all others if none of
/// them runs.
core::PodRecord without_dead(cgroup::Machine& machine, core::PodRecord record,
                             const core::ContainerFacts& facts) {
  std::erase_if(record.containers, [&](const core::ContainerRecord& container) {
    return core::is_same_container(container, facts);
  });
  // Only adopted pods drop ended containers here, so that each one is looked up once.
  if (record.adopted) {
    for (const core::ContainerRecord& container : record.containers) {
      if (!cgroup::lives(machine, container) && !cgroup::is_replaced(machine, record, container))
        core::forget_container(record, container.name);
    }
  }
  if (!cgroup::has_living_container(machine, record)) record.containers.clear();
  return record;
}

/// Refuses to create a container that runs: its runtime will refuse it too, and the record of the
/// running one must not be lost to it.
Status check_not_running(Transaction& transaction, const AdmissionRequest& request,
                         const std::optional<core::PodRecord>& before) {
  if (!before || request.state != core::ContainerState::kPending) return {};
  for (const core::ContainerRecord& container : before->containers) {
    if (!core::is_same_container(container, request.facts) ||
        container.state != core::ContainerState::kLive ||
        !cgroup::lives(transaction.machine(), container) || sys::is_ending(container.pid))
      continue;
    return fail(ErrorCode::kConflict,
                cat("container ", printable(container.id), " runs already, as process ",
                    container.pid.value(),
                    ": its record stays as it is; delete it before it is created again"));
  }
  return {};
}

/// What one admission works with.
struct AdmissionContext {
  Transaction* transaction;
  AdmissionRequest* request;
  core::Identity identity;
  core::PodClaim claim;
  Result<std::string> root;  ///< root of podqos's own pods, or why there is none
};

void log_warnings(const Transaction& transaction, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    transaction.log().warning(warning);
}

/// Reads the limits of a container that is to be moved, or why it cannot be moved.
core::Relocation relocation_of(Transaction& transaction, const AdmissionRequest& request,
                               const core::PodRecord& pod) {
  if (!core::is_to_be_moved(request, pod, transaction.settings())) return {};
  auto origin = cgroup::origin_of(transaction.machine(), request);
  if (origin) return {.origin = std::move(*origin), .stays = {}};
  return {.origin = std::nullopt, .stays = std::move(origin).error().message};
}

/// Restricts the OOM score to what the privileges suffice for, with a warning.
void bound_oom_score(const Transaction& transaction, const AdmissionRequest& request,
                     Admission& admission) {
  if (!admission.oom_score_adj || request.engine_writes) return;
  const int wanted = *admission.oom_score_adj;
  const int reachable = cgroup::reachable_oom_score(wanted);
  if (reachable == wanted) return;
  admission.oom_score_adj = reachable;
  transaction.log().warning(
      cat(core::name_of(admission.record.pod), ", container ", printable(admission.container.id),
          ": oom_score_adj ", wanted,
          " requires CAP_SYS_RESOURCE, which the engine does not pass on: using ", reachable,
          " instead"));
}

/// Writes sums, root, index entry and record.
Status write_state(AdmissionContext& context, const std::optional<core::PodRecord>& before,
                   core::PodRecord& record, const core::ContainerRecord& container) {
  Transaction& transaction = *context.transaction;
  if (auto done = transaction.store().begin(); !done) return done;
  if (record.adopted) {
    transaction.note_adopted(record.cgroup);
  } else if (auto done = transaction.use_root(*context.root); !done) {
    return done;
  }
  core::count_pod(transaction.tiers(), record, before);
  core::note_pending(transaction.tiers(), record, container);
  return transaction.apply(core::plan_arrival(record, container));
}

/// Creates or updates the pod's cgroup, after removing what an earlier pod of this uid left.
Status make_cgroups(Transaction& transaction, const std::optional<core::PodRecord>& before,
                    core::PodRecord& record) {
  // The container itself is in the record.
  const bool first = record.containers.size() == 1;
  if (before && before->cgroup != record.cgroup && !before->adopted) {
    if (auto done = transaction.run(core::plan_removal(before->cgroup)); !done) return done;
  }
  if (record.adopted) return {};
  if (first && before) {
    // Left-over child cgroups have old limits, which the kernel checks the pod's new ones against.
    auto done = transaction.note(cgroup::clear_children(transaction.machine(), record.cgroup));
    if (!done) return done;
  }
  auto done =
      first || !before ? transaction.make_pod(record) : transaction.update_pod(record, *before);
  if (done || done.error().code != ErrorCode::kBusy) return done;
  transaction.log().info(
      cat(core::name_of(record.pod), ": values not written yet, retrying: ", done.error().message));
  leave_unwritten(transaction, record, done.error());
  return {};
}

/// Writes records and cgroups of a decided admission, and what the container still needs.
Status write_admission(AdmissionContext& context, const std::optional<core::PodRecord>& before,
                       Admission& admission) {
  Transaction& transaction = *context.transaction;
  core::PodRecord& record = admission.record;
  const core::ContainerRecord& container = admission.container;
  if (auto done = write_state(context, before, record, container); !done) return done;
  if (auto done = make_cgroups(transaction, before, record); !done) {
    withdraw(transaction, record, container, done.error());
    return done;
  }
  transaction.log().info(cat(
      core::name_of(record.pod), ": ", core::format_qos_class(record.qos_class), ", container ",
      printable(container.name), " (", printable(container.id), ") at ", container.cgroup, ", cpu ",
      record.granted.cpu.value(), "m, memory ", record.granted.memory.value(), " requested"));
  // The pod's cgroup exists from here on.
  core::fill_in_missing(
      admission, *context.request, context.claim,
      core::container_memory_params(transaction.settings(), transaction.capacity(),
                                    transaction.machine().memory_files(record.cgroup)),
      transaction.layout_for(admission.wanted));
  return {};
}

/// The root below which podqos created the pod cgroup that the engine names; "" if podqos did not
/// create it, and adopts it instead.
/// @param root  the root of podqos's own pods, or why there is none
Result<std::string> own_root_for(Transaction& transaction, const AdmissionRequest& request,
                                 const Result<std::string>& root) {
  const std::string& in_use = transaction.tiers().kubepods;
  std::string own_root = in_use.empty() ? root.value_or("") : in_use;
  const auto placed = core::placed_in(request.placed_at);
  if (own_root.empty() || !placed || !placed->pod_path.starts_with(cat(own_root, "/")))
    return own_root;
  const auto snapshot = cgroup::observe_pod_cgroup(transaction.machine(), placed->pod_path);
  if (snapshot.has_copy) return own_root;
  const auto record = transaction.store().pod(placed->uid);
  if (!record) return fail(record.error());
  const bool foreign =
      core::is_foreign_cgroup(placed->pod_path, snapshot, *record, request, own_root);
  return foreign ? std::string{} : own_root;
}

Result<AdmissionContext> begin_admission(Transaction& transaction, AdmissionRequest& request) {
  auto root =
      transaction.choose_root(request.driver, request.running ? request.placed_at : std::nullopt);
  const auto own_root = own_root_for(transaction, request, root);
  if (!own_root) return fail(own_root.error());
  auto identity = core::identify(request.facts, request.annotations, transaction.settings(),
                                 request.placed_at, *own_root);
  if (!identity) return fail(std::move(identity).error());
  if (identity->source == core::IdentitySource::kSandbox) {
    auto uid = uid_by_sandbox(transaction, *identity, request.facts.id);
    if (!uid) return fail(std::move(uid).error());
    identity->uid = std::move(*uid);
  }
  AdmissionContext context{.transaction = &transaction,
                           .request = &request,
                           .identity = std::move(*identity),
                           .claim = {},
                           .root = std::move(root)};
  context.claim = core::claim_for(context.identity, request.facts, request.annotations,
                                  transaction.settings(), transaction.capacity().memory);
  return context;
}

/// Restores lost records from the cgroups, then admits the container.
Result<std::optional<Admission>> admit_after_loss(Transaction& transaction,
                                                  AdmissionRequest request) {
  transaction.log().error("the state directory lacks records of existing cgroups: restoring them");
  transaction.begin_recovery();
  if (auto done = recompute(transaction); !done) return fail(std::move(done).error());
  return admit(transaction, std::move(request));
}

Result<std::optional<Admission>> admit_to_pod(AdmissionContext& context) {
  Transaction& transaction = *context.transaction;
  auto before = transaction.store().pod(context.identity.uid);
  if (!before) return fail(std::move(before).error());
  std::optional<core::IndexEntry> outdated;
  if (*before) outdated = recognise(transaction, **before, context.request->facts);
  const AdmissionRequest& request = *context.request;
  if (auto free = check_not_running(transaction, request, *before); !free)
    return fail(std::move(free).error());
  if (context.identity.is_sandbox && !context.claim.known && !*before && !context.identity.placed)
    return std::nullopt;
  const auto existing =
      *before ? std::optional{without_dead(transaction.machine(), **before, request.facts)}
              : std::nullopt;
  const core::AdmissionSnapshot snapshot{
      .identity = context.identity,
      .claim = context.claim,
      .before = *before,
      .existing = existing,
      .others = core::sums_beside(transaction.tiers().sums, *before),
      .capacity = transaction.capacity(),
      .root = context.root};
  const core::Settings& settings = transaction.settings();
  auto pod = core::decide_pod(request, snapshot, settings);
  if (!pod) return fail(std::move(pod).error());
  log_warnings(transaction, pod->warnings);
  if (!*before && transaction.has_lost_record(pod->record))
    return admit_after_loss(transaction, request);
  if (core::must_own_cgroup(*before, pod->record)) {
    const auto cgroup = cgroup::observe_pod_cgroup(transaction.machine(), pod->record.cgroup);
    if (auto own = core::check_pod_cgroup(pod->record, cgroup, request); !own)
      return fail(std::move(own).error());
  }
  auto relocation = relocation_of(transaction, request, pod->record);
  auto admission = core::admit_container(request, snapshot, std::move(pod->record),
                                         std::move(relocation), settings);
  if (!admission) return fail(std::move(admission).error());
  log_warnings(transaction, admission->warnings);
  bound_oom_score(transaction, request, *admission);
  if (auto done = write_admission(context, *before, *admission); !done)
    return fail(std::move(done).error());
  if (outdated) {
    if (auto done = transaction.apply({core::EraseIndexEntry{*outdated}}); !done)
      return fail(std::move(done).error());
  }
  return std::optional{std::move(*admission)};
}

}  // namespace

Result<std::optional<Admission>> admit(Transaction& transaction, AdmissionRequest request) {
  if (auto done = recover(transaction); !done) return fail(std::move(done).error());
  expire_pending(transaction, {.id = request.facts.id, .bundle = request.facts.bundle});
  release_retained(transaction);
  auto context = begin_admission(transaction, request);
  if (!context) return fail(std::move(context).error());
  if (context->root && transaction.has_lost_state(*context->root))
    return admit_after_loss(transaction, request);
  auto admission = admit_to_pod(*context);
  if (!admission)
    return fail(std::move(admission).error().with_context(cat("pod ", context->identity.uid)));
  return admission;
}

}  // namespace podqos::app

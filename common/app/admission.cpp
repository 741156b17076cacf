#include "common/app/admission.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "common/app/apply_container.h"
#include "common/app/counting.h"
#include "common/app/known_container.h"
#include "common/app/node.h"
#include "common/app/own_cgroup.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/base/text.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/reservation.h"

namespace podqos::app {

namespace {

/// A container is identified by id and bundle.
bool is_same(const core::ContainerRecord& container, const core::ContainerFacts& facts) {
  return container.id == facts.id && container.bundle == facts.bundle;
}

/// The existing record for merge_claim(): without this container, and without all others if none of
/// them runs.
core::PodRecord without_dead(cgroup::Machine& machine, core::PodRecord record,
                             const core::ContainerFacts& facts) {
  std::erase_if(record.containers,
                [&](const core::ContainerRecord& container) { return is_same(container, facts); });
  // Only adopted pods drop ended containers here, so that each one is looked up once.
  if (record.adopted) {
    for (const core::ContainerRecord& container : record.containers) {
      if (!lives(machine, container)) forget_ended(machine, record, container);
    }
  }
  if (!has_living_container(machine, record)) record.containers.clear();
  return record;
}

/// A pod's name in messages: "pod 42 (web/front)".
std::string name_of(const core::Pod& pod) {
  if (pod.name.empty()) return cat("pod ", pod.uid);
  return cat("pod ", pod.uid, " (", printable(pod.pod_namespace), "/", printable(pod.name), ")");
}

/// The names of the pod's containers: "web, log".
std::string names_of(const core::Pod& pod) {
  std::string names;
  for (const core::Container& container : pod.containers)
    names += cat(names.empty() ? "" : ", ", printable(container.name));
  return names;
}

/// What one admission works with.
struct AdmissionContext {
  Transaction* transaction;
  AdmissionRequest* request;
  core::Identity identity;
  core::PodClaim claim;
  Result<std::string> root;  ///< root of podqos's own pods, or why there is none
};

Result<core::PodRecord> decide_record(AdmissionContext& context,
                                      const std::optional<core::PodRecord>& existing) {
  Transaction& transaction = *context.transaction;
  const AdmissionRequest& request = *context.request;
  auto joined =
      core::merge_claim(existing, context.identity, context.claim, transaction.settings());
  if (!joined) return fail(std::move(joined).error());
  core::PodRecord& record = joined->record;
  for (const std::string& warning : joined->warnings) {
    transaction.log().warning(
        cat(name_of(record.pod), ", container ", printable(request.facts.id), ": ", warning));
  }
  const auto& placed = context.identity.placed;
  const bool fresh = record.cgroup.empty();
  if (fresh) record.adopted = placed.has_value();
  if (!record.adopted && !context.root) return fail(context.root.error());
  if (fresh) {
    record.cgroup =
        placed ? placed->pod_path : core::pod_path(*context.root, record.qos_class, record.pod.uid);
  }
  return std::move(record);
}

/// The container's record and, if it runs outside its pod, where it belongs; see Admission.
struct Described {
  core::ContainerRecord container;
  std::optional<std::string> belongs_to = std::nullopt;
  std::optional<core::Origin> origin = std::nullopt;
  std::string stays = {};
  bool left_with_engine = false;
};

/// Reads the limits of a container that is to be moved, or why it cannot be moved.
void read_origin(Transaction& transaction, const AdmissionRequest& request, Described& described) {
  if (request.on_misplaced != core::OnMisplaced::kMove) return;
  auto origin = origin_of(transaction.machine(), request);
  if (origin) {
    described.origin = std::move(*origin);
  } else {
    described.stays = std::move(origin).error().message;
  }
}

/// Leaves a container of a pod without a cgroup parent where its engine puts it.
void leave_with_engine(Transaction& transaction, const core::PodRecord& record,
                       Described& described) {
  described.left_with_engine = true;
  core::ContainerRecord& container = described.container;
  // Provisional until it runs: its runtime decides where a relative or missing path leads.
  if (!container.cgroup.starts_with('/')) container.cgroup = cat("/crio-", container.id);
  const bool told = std::ranges::any_of(record.containers, [&](const core::ContainerRecord& known) {
    return !known.sandbox && core::lies_outside(known.cgroup, record.cgroup);
  });
  if (container.sandbox || told) return;
  transaction.log().warning(
      cat(name_of(record.pod), ": ",
          core::describe_missing_parent(container.id, container.cgroup, record.cgroup)));
}

/// The memory backing reported when the container was created; later reports may contain a limit
/// that podqos filled in.
std::optional<Bytes> recorded_backing(const std::optional<core::PodRecord>& before,
                                      const core::ContainerFacts& facts) {
  if (!before) return std::nullopt;
  for (const core::ContainerRecord& container : before->containers) {
    if (is_same(container, facts)) return container.backed_memory;
  }
  return std::nullopt;
}

Result<Described> describe_container(const AdmissionContext& context,
                                     const std::optional<core::PodRecord>& before,
                                     const core::PodRecord& record) {
  const AdmissionRequest& request = *context.request;
  core::ContainerRecord container{
      .id = request.facts.id,
      .bundle = request.facts.bundle,
      .name = core::container_name_for(context.identity, context.claim, request.facts),
      .state = request.state,
      .pid = request.pid,
      .start_time = request.start_time,
      .cgroup = request.placed_at.value_or(""),
      .sandbox = context.identity.is_sandbox,
      .moved = false,
      .backed_memory = core::backing_of(request.facts, request.annotations.engine)};
  if (const auto told = recorded_backing(before, request.facts)) container.backed_memory = told;
  const bool in_place = request.running && request.placed_at &&
                        request.placed_at->starts_with(cat(record.cgroup, "/"));
  Described described{.container = std::move(container)};
  if (record.adopted || in_place) return described;
  if (core::stays_without_parent(request.facts, request.driver, context.transaction->settings())) {
    leave_with_engine(*context.transaction, record, described);
    return described;
  }
  if (request.running) read_origin(*context.transaction, request, described);
  core::ContainerFacts facts = request.facts;
  // The engine's scope exists elsewhere and keeps its name, so choose another one.
  if (described.origin && core::driver_of(record.cgroup) == core::Driver::kSystemd)
    facts.cgroups_path.reset();
  std::span<const core::ContainerRecord> known;
  if (before) known = before->containers;
  auto leaf = core::container_leaf(facts, record.cgroup, known);
  if (!leaf) return fail(std::move(leaf).error());
  const std::string target = cat(record.cgroup, "/", *leaf);
  if (!request.running) {
    described.container.cgroup = target;
    return described;
  }
  if (request.on_misplaced == core::OnMisplaced::kFail) {
    return fail(ErrorCode::kRefused,
                cat("container ", printable(request.facts.id), " runs in cgroup ",
                    *request.placed_at, ", not in ", target,
                    ": refused by placement.onMisplaced \"fail\"; register podqos-runtime, or "
                    "Podman's precreate hook, so that it is placed before it starts"));
  }
  if (described.origin) {
    described.container.cgroup = target;
    described.container.moved = true;
  }
  described.belongs_to = target;
  return described;
}

/// The oom_score_adj to set; warns if the privileges do not suffice for the one wanted.
int oom_score_for(Transaction& transaction, const AdmissionRequest& request,
                  const core::PodRecord& record, const core::ContainerRecord& container) {
  const int wanted =
      core::container_oom_score_adj(record, container, transaction.capacity().memory);
  if (request.engine_writes) return wanted;
  const int reachable = reachable_oom_score(wanted);
  if (reachable != wanted) {
    transaction.log().warning(
        cat(name_of(record.pod), ", container ", printable(container.id), ": oom_score_adj ",
            wanted, " requires CAP_SYS_RESOURCE, which the engine does not pass on: using ",
            reachable, " instead"));
  }
  return reachable;
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
  count_pod(transaction, record, before);
  note_pending(transaction.tiers(), record, container);
  // Index entry first: a process that dies in between leaves an entry without a record, which is
  // harmless, not a record that no entry leads to.
  if (auto done = transaction.store().put_container(
          {.id = container.id, .bundle = container.bundle, .uid = record.pod.uid});
      !done)
    return done;
  return transaction.save(record);
}

/// Warns if the pod's spec has no container of this name: it would run without values unnoticed.
void warn_unknown_container(const AdmissionContext& context, const core::PodRecord& record,
                            const core::ContainerRecord& container) {
  // Neither of these gets container values.
  if (container.sandbox || record.adopted) return;
  if (!core::lacks_container(record, context.claim, container.name)) return;
  context.transaction->log().warning(
      cat(name_of(record.pod), ", container ", printable(container.id),
          ": the pod's spec has no container \"", printable(container.name),
          "\", so it gets no values of its own: set podqos.io/container to one of ",
          names_of(record.pod)));
}

/// Removes cgroups of ended containers. That of a killed process is busy until it has exited.
Status clear_children(Transaction& transaction, const std::string& cgroup) {
  constexpr std::chrono::milliseconds kPause{10};
  while (true) {
    if (auto done = remove_empty_children(transaction, cgroup); !done) return done;
    const auto left = transaction.machine().children(cgroup);
    if (!left || left->empty() || !transaction.machine().wait(kPause)) return {};
  }
}

/// Creates or updates the pod's cgroup, after removing what an earlier pod of this uid left.
Status make_cgroups(Transaction& transaction, const std::optional<core::PodRecord>& before,
                    core::PodRecord& record, bool first) {
  if (before && before->cgroup != record.cgroup && !before->adopted) {
    if (auto done = transaction.run(core::plan_removal(before->cgroup)); !done) return done;
  }
  if (record.adopted) return {};
  if (first && before) {
    // Left-over child cgroups have old limits, which the kernel checks the pod's new ones against.
    if (auto done = clear_children(transaction, record.cgroup); !done) return done;
  }
  auto done =
      first || !before ? transaction.make_pod(record) : transaction.update_pod(record, *before);
  if (done || done.error().code != ErrorCode::kBusy) return done;
  transaction.log().info(
      cat(name_of(record.pod), ": values not written yet, retrying: ", done.error().message));
  leave_unwritten(transaction, record, done.error());
  return {};
}

Result<Admission> admit_container(AdmissionContext& context,
                                  const std::optional<core::PodRecord>& before,
                                  core::PodRecord record, Described described) {
  Transaction& transaction = *context.transaction;
  core::ContainerRecord& container = described.container;
  const AdmissionRequest& request = *context.request;
  const bool first = record.containers.empty();
  record.containers.push_back(container);
  // Before computing values: they follow from the granted requests.
  grant_pod(transaction, record, before);
  Admission admission;
  auto values = core::container_values(record, container.name, transaction.settings());
  if (!values) return fail(std::move(values).error());
  if (!core::engine_sets_oom(request.facts) && !record.adopted)
    admission.oom_score_adj = oom_score_for(transaction, request, record, container);
  // Reject invalid values before anything is written.
  if (auto sound = core::pod_values(record, transaction.settings()); !sound && !record.adopted)
    return fail(std::move(sound).error());
  warn_unknown_container(context, record, container);
  if (auto done = write_state(context, before, record, container); !done)
    return fail(std::move(done).error());
  if (auto done = make_cgroups(transaction, before, record, first); !done) {
    withdraw(transaction, record, container, done.error());
    return fail(std::move(done).error());
  }
  transaction.log().info(cat(
      name_of(record.pod), ": ", core::format_qos_class(record.qos_class), ", container ",
      printable(container.name), " (", printable(container.id), ") at ", container.cgroup, ", cpu ",
      record.granted.cpu.value(), "m, memory ", record.granted.memory.value(), " requested"));
  // The pod's cgroup exists from here on.
  values->unified = core::container_unified(
      record, context.claim, container.name,
      core::container_memory_params(transaction.settings(), transaction.capacity(),
                                    transaction.machine().memory_files(record.cgroup)));
  admission.missing =
      core::missing_values(*values, request.facts.resources, transaction.layout_for(*values));
  admission.belongs_to = std::move(described.belongs_to);
  admission.origin = std::move(described.origin);
  admission.stays = std::move(described.stays);
  admission.left_with_engine = described.left_with_engine;
  admission.on_misplaced = request.on_misplaced;
  admission.record = std::move(record);
  admission.container = std::move(container);
  return admission;
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
  if (context.identity.is_sandbox && !context.claim.known && !*before && !context.identity.placed)
    return std::nullopt;
  const auto existing =
      *before ? std::optional{without_dead(transaction.machine(), **before, request.facts)}
              : std::nullopt;
  auto record = decide_record(context, existing);
  if (!record) return fail(std::move(record).error());
  if (!*before && transaction.has_lost_record(*record))
    return admit_after_loss(transaction, request);
  if (auto own = check_own_cgroup(transaction, request, *before, *record); !own)
    return fail(std::move(own).error());
  auto described = describe_container(context, *before, *record);
  if (!described) return fail(std::move(described).error());
  auto admission = admit_container(context, *before, std::move(*record), std::move(*described));
  if (!admission) return fail(std::move(admission).error());
  if (outdated) {
    if (auto done = transaction.store().erase_container(*outdated); !done)
      return fail(std::move(done).error());
  }
  return std::optional{std::move(*admission)};
}

}  // namespace

Result<std::optional<Admission>> admit(Transaction& transaction, AdmissionRequest request) {
  if (auto done = recover(transaction); !done) return fail(std::move(done).error());
  expire_pending(transaction, request.facts.id);
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

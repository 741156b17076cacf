#include "common/app/admission.h"

#include <vector>

#include "common/app/departure.h"
#include "common/app/observe_admission.h"
#include "common/app/oom_kills.h"
#include "common/app/reconciler.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/codec/annotations.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/node_fit.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

/// What each pod requests, for the error of one that does not fit; empty for more pods than are
/// read in a few milliseconds, since others wait for the lock.
std::vector<core::PodShare> holders_in(store::Store& store, const std::string& beside) {
  constexpr std::size_t kMost = 512;
  std::vector<core::PodShare> holders;
  const auto uids = store.pod_uids();
  if (!uids || uids->size() > kMost) return holders;
  for (const std::string& uid : *uids) {
    const auto record = store.pod(uid);
    if (uid == beside || !record || !*record || (*record)->released_at) continue;
    holders.push_back({.name = core::name_of(**record), .requested = core::requested_by(**record)});
  }
  return holders;
}

/// The pods that count although nothing of them lives, since their end was not told.
std::vector<std::string> ended_but_counted(Transaction& transaction) {
  std::vector<std::string> uids;
  for (const core::PodRow& row : transaction.node().rows) {
    const auto record = row.counts != 0 ? transaction.store().pod(row.uid.view()) : std::nullopt;
    if (record && *record && !cgroup::has_living_container(transaction.machine(), **record))
      uids.emplace_back(row.uid.view());
  }
  return uids;
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
      cat(core::name_of(admission.record), ", container ", printable(admission.container.id),
          ": oom_score_adj ", wanted,
          " requires CAP_SYS_RESOURCE, which the engine does not pass on: using ", reachable,
          " instead"));
}

/// Makes the pod's cgroup, or writes what has changed of its values. Before it is observed what the
/// cgroup uses, removes what an earlier pod of this uid has left.
Status make_cgroup(Transaction& transaction, const core::AdmissionSnapshot& snapshot,
                   Admission& admission) {
  const core::PodRecord* before = snapshot.before ? &*snapshot.before : nullptr;
  core::PodRecord& record = admission.record;
  if (before != nullptr && !before->kubelets_own && before->cgroup != record.cgroup) {
    PODQOS_TRY(transaction.execute(core::plan_removal(before->cgroup)));
  }
  if (record.kubelets_own) return {};
  const bool first = record.containers.size() == 1;  // the container itself
  if (first && before != nullptr) {
    transaction.remove_children(
        {.cgroup = record.cgroup, .until = cgroup::RemoveChildren::Until::kEmpty});
  }
  auto written = snapshot.has_cgroup ? transaction.write_pod(record, first ? nullptr : before)
                                     : transaction.make_pod(record);
  if (written || written.error().code != ErrorCode::kBusy) return written;
  transaction.log().info(
      cat(core::name_of(record), ": values not written yet, retrying: ", written.error().message));
  return transaction.postpone(record, written.error());
}

/// Takes back an admission whose registration failed: what it has counted and saved, and a root
/// that was made for it.
void take_back(Transaction& transaction, const core::PodRecord& record,
               const core::PodRecord* before) {
  transaction.log_uncertain(record.pod.uid, before != nullptr ? transaction.save(*before, &record)
                                                              : transaction.erase(record));
  if (const auto root = core::root_of_pod(record.cgroup); root && !record.kubelets_own)
    transaction.take_back_tree(*root);
}

/// Counts the container in the state: its record, below a root that exists.
Status register_container(Transaction& transaction, const std::optional<core::PodRecord>& before,
                          const Admission& admission, const Result<std::string>& root) {
  const core::PodRecord& record = admission.record;
  if (!record.kubelets_own) PODQOS_TRY(transaction.make_tree(*root));
  PODQOS_TRY(transaction.save(record, before ? &*before : nullptr));
  // The entry of a container that starts again may have been lost.
  return transaction.store().put_entry(
      {.name = store::index_name(admission.container.id), .uid = record.pod.uid});
}

/// Carries out a decided admission.
Status write_admission(Transaction& transaction, const core::AdmissionSnapshot& snapshot,
                       Admission& admission) {
  const auto& before = snapshot.before;
  if (auto done = register_container(transaction, before, admission, snapshot.root); !done) {
    take_back(transaction, admission.record, before ? &*before : nullptr);
    return done;
  }
  if (auto made = make_cgroup(transaction, snapshot, admission); !made) {
    withdraw(transaction, admission.record, admission.container, made.error());
    return made;
  }
  const core::ContainerRecord& container = admission.container;
  const bool placed = container.state == core::ContainerState::kPending;
  core::Event event =
      core::event_of(placed ? core::EventKind::kPlaced : core::EventKind::kRegistered,
                     admission.record, &container);
  event.text = core::describe_admission(admission);
  transaction.event(core::LogLevel::kInfo, std::move(event),
                    cat(core::name_of(admission.record, container), ": "));
  return {};
}

/// Checks that the node has room for the pod; where not, the error names the pods that have it.
Status check_room(Transaction& transaction, const AdmissionRequest& request,
                  const core::AdmissionSnapshot& snapshot, Admission& admission) {
  const core::TierSums others = core::sums_beside(transaction.node(), admission.record.pod.uid);
  const core::NodeFit fit{.pod = admission.record,
                          .before = snapshot.before,
                          .others = others,
                          .capacity = snapshot.capacity};
  const core::Settings& settings = transaction.settings();
  // Nothing undoes the start of a container that runs.
  const bool is_enforced = !request.runs() || request.undone_if_refused;
  for (const auto& words : {core::describe_overcommitment(fit, settings, is_enforced),
                            core::describe_pids(fit, settings)})
    if (words) admission.warnings.push_back(cat(core::name_of(admission.record), ": ", *words));
  return is_enforced ? check_fit(transaction, fit) : Status{};
}

/// Checks the room. @return true if there is none because of pods of which nothing lives, which
/// have been released now: the admission begins anew.
Result<bool> release_for_room(Transaction& transaction, const AdmissionRequest& request,
                              const core::AdmissionSnapshot& snapshot, Admission& admission) {
  auto room = check_room(transaction, request, snapshot, admission);
  if (room) return false;
  const std::vector<std::string> ended = transaction.node_is_reconciled()
                                             ? std::vector<std::string>{}
                                             : ended_but_counted(transaction);
  if (ended.empty()) return fail(std::move(room).error());
  transaction.begin_node_reconciliation();
  PODQOS_TRY(reconcile_pods(transaction, ended));
  return true;
}

/// Checks that the pod may have the cgroup that has been decided on.
/// @return whether the decision begins anew: the cgroup is that of a pod whose record was lost
Result<bool> check_own_cgroup(Transaction& transaction, const AdmissionRequest& request,
                              core::AdmissionSnapshot& snapshot, const core::PodRecord& record) {
  PODQOS_ASSIGN(const auto origin, observe_origin(transaction, snapshot, record.cgroup));
  if (!snapshot.before && origin == core::CgroupOrigin::kPodqos &&
      !transaction.node_is_reconciled()) {
    PODQOS_TRY(reconcile_interrupted(transaction, true));
    return true;
  }
  PODQOS_TRY(core::check_pod_cgroup(record, origin, request));
  snapshot.has_cgroup = origin != core::CgroupOrigin::kNone;
  return false;
}

/// @param begins_anew  set where what the admission was decided from has changed since
Result<std::optional<Admission>> admit_to_pod(Transaction& transaction, AdmissionRequest& request,
                                              core::AdmissionSnapshot& snapshot,
                                              bool& begins_anew) {
  const core::Settings& settings = transaction.settings();
  PODQOS_TRY(observe_pod(transaction, request, snapshot));
  PODQOS_ASSIGN(auto pod, core::decide_pod(request, snapshot, settings));
  if (!pod) return std::nullopt;
  if (core::must_own_cgroup(snapshot.before, pod->record)) {
    PODQOS_ASSIGN(begins_anew, check_own_cgroup(transaction, request, snapshot, pod->record));
    if (begins_anew) return std::nullopt;
  }
  PODQOS_ASSIGN(auto admission,
                core::decide_admission(request, snapshot, std::move(*pod), settings));
  PODQOS_ASSIGN(begins_anew, release_for_room(transaction, request, snapshot, admission));
  if (begins_anew) return std::nullopt;
  for (const std::string& warning : admission.warnings)
    transaction.log().warning(warning);
  bound_oom_score(transaction, request, admission);
  if (admission.record.containers.size() == 1)
    note_earlier_oom_kills(transaction, admission.record);
  PODQOS_TRY(codec::check_record_size(transaction.store().text_of(admission.record)));
  PODQOS_TRY(write_admission(transaction, snapshot, admission));
  // The pod's cgroup exists from here on.
  core::fill_in_missing(
      admission, request, snapshot.claim,
      core::container_memory_params(settings, transaction.capacity(),
                                    transaction.machine().memory_files(admission.record.cgroup)),
      transaction.layout_for(admission.wanted));
  return std::optional{std::move(admission)};
}

/// As admit(), without the end of the transaction where it fails.
Result<std::optional<Admission>> admit_unfinished(Transaction& transaction,
                                                  AdmissionRequest request) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  expire_pending(transaction, request.facts.key());
  PODQOS_ASSIGN(auto snapshot, observe_place(transaction, request));
  // Which may remove the cgroup of an earlier pod.
  if (handle_if_due(transaction, snapshot.identity.uid)) {
    PODQOS_ASSIGN(snapshot, observe_place(transaction, request));
  }
  bool begins_anew = false;
  auto admission = admit_to_pod(transaction, request, snapshot, begins_anew);
  if (begins_anew) return admit_unfinished(transaction, std::move(request));
  if (admission) return admission;
  return fail(std::move(admission).error().with_context(cat("pod ", snapshot.identity.uid)));
}

}  // namespace

Result<std::optional<AdmissionRequest>> admission_request(core::ContainerFacts facts,
                                                          const core::Settings& settings,
                                                          std::optional<std::string> placed_at) {
  auto podqos = codec::parse_podqos_annotations(facts.annotations);
  auto engine = facts.engine ? Result<core::EngineAnnotations>{*std::exchange(facts.engine, {})}
                             : codec::parse_engine_annotations(
                                   facts.annotations,
                                   {.id = facts.id,
                                    .cgroup = placed_at ? std::string_view{*placed_at} : "",
                                    .bundle = facts.bundle});
  if (!engine) return fail(std::move(engine).error());
  // Under a CRI engine annotations are those of the pod's author.
  if (!podqos && engine->cri && settings.trust_annotations == core::TrustAnnotations::kNone)
    podqos = core::PodqosAnnotations{};
  if (!podqos && engine->pod_uid)
    return fail(std::move(podqos).error().with_context(cat("pod ", *engine->pod_uid)));
  if (!podqos) return fail(std::move(podqos).error());
  if (!core::is_managed(*podqos, *engine, settings, placed_at)) return std::nullopt;
  Result<std::optional<AdmissionRequest>> found{std::in_place, std::in_place};
  (*found)->facts = std::move(facts);
  (*found)->podqos = std::move(*podqos);
  (*found)->engine = std::move(*engine);
  (*found)->placed_at = std::move(placed_at);
  (*found)->on_misplaced = settings.on_misplaced;
  return found;
}

core::Event subject_of(const core::ContainerFacts& facts, std::string_view placed_at) {
  const auto parsed = codec::parse_engine_annotations(
      facts.annotations, {.id = facts.id, .cgroup = placed_at, .bundle = facts.bundle});
  const core::EngineAnnotations engine =
      facts.engine ? *facts.engine : parsed.value_or(core::EngineAnnotations{});
  // A value that is refused names nothing.
  const auto annotation = [&](std::string_view key, Status (*check)(std::string_view)) {
    const auto found = facts.annotations.find(key);
    const bool is_there = found != facts.annotations.end() && check(found->second);
    return is_there ? found->second : std::string{};
  };
  core::Event subject{
      .engine = std::string{core::format_engine(engine.engine)},
      .pod_namespace = engine.pod_namespace.value_or(""),
      .pod_name = engine.pod_name.value_or(""),
      .uid = engine.pod_uid.value_or(annotation("podqos.io/pod-uid", core::check_pod_uid)),
      .container = engine.container_name.value_or(
          annotation("podqos.io/container", core::check_cgroup_component)),
      .container_id = facts.id};
  if (subject.uid.empty()) subject.uid = engine.sandbox_id.value_or("");
  return subject;
}

Status check_fit(Transaction& transaction, core::NodeFit fit) {
  if (core::check_node_fit(fit, transaction.settings())) return {};
  fit.holders = holders_in(transaction.store(), fit.pod.pod.uid);
  return core::check_node_fit(fit, transaction.settings());
}

Result<std::optional<Admission>> admit(Transaction& transaction, AdmissionRequest request) {
  auto admission = admit_unfinished(transaction, std::move(request));
  if (admission) return admission;
  // What was taken back, the care for other pods, or a reconciliation has changed something.
  if (auto done = transaction.finish_if_changed(); !done)
    transaction.log().error(done.error().message);
  return admission;
}

}  // namespace podqos::app

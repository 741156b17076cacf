#include "common/app/engine_events.h"

#include <algorithm>
#include <utility>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/follow_memory_qos.h"
#include "common/app/resize_pod.h"
#include "common/base/text.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/node.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/pod_name.h"
#include "common/store/store.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// Reads the container's current cgroup; nullopt if its init has ended, also if another process has
/// got its pid since.
Result<std::optional<Init>> init_of(const core::Process& process) {
  auto actual = cgroup::bounding_cgroup(process.pid);
  // Read afterwards, so that the cgroup is that of this process.
  PODQOS_ASSIGN(auto thread, sys::living_thread_of(process.pid, process.start_time));
  if (thread && *thread != process.pid) {
    actual = cgroup::bounding_cgroup(*thread);
    PODQOS_ASSIGN(thread, sys::living_thread_of(process.pid, process.start_time));
  }
  if (!thread) return std::nullopt;
  if (!actual && actual.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!actual) return fail(std::move(actual).error());
  return Init{.process = process, .cgroup = std::move(*actual), .child_of_monitor = process.pid};
}

/// Builds the request of a container that runs; nullopt if podqos does not manage it.
/// @param cgroup  that of its init
Result<std::optional<AdmissionRequest>> request_of(const core::Settings& settings, Log& log,
                                                   const ContainerEvent& event,
                                                   const std::string& cgroup) {
  core::ContainerFacts facts = event.facts;
  if (event.of_pod) facts.annotations.insert(event.of_pod->begin(), event.of_pod->end());
  auto request = admission_request(std::move(facts), settings, cgroup);
  if (!request || !*request || cgroup::owns_host()) return request;
  log.debug(cat("container ", printable(event.facts.id),
                ": not managed, podqos is not root on the host"));
  return std::nullopt;
}

/// Handles container_started() in one transaction.
Status start(const core::Settings& settings, Log& log, const ContainerEvent& event,
             const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto init, init_of(event.init));
  if (!init) {
    return fail(ErrorCode::kNotFound,
                cat("process ", event.init.pid.value(), ", the container's init, has ended"));
  }
  std::optional<AdmissionRequest> request;
  // The annotations of one that is known were judged when it was created.
  const bool is_known = store::is_indexed(settings.state_dir, event.facts.id);
  if (!is_known) {
    PODQOS_ASSIGN(request, request_of(settings, log, event, init->cgroup));
    if (!request) return {};
  }
  PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log, timeouts));
  PODQOS_ASSIGN(const bool confirmed,
                confirm_started(transaction, event.facts, *init, Reporter::kPlugin));
  if (confirmed) return {};
  if (is_known) {
    PODQOS_ASSIGN(request, request_of(settings, log, event, init->cgroup));
    if (!request) return transaction.finish_if_changed();
  }
  if (event.stays) request->on_misplaced = core::OnMisplaced::kIgnore;
  request->undone_if_refused = event.undone_if_refused;
  return register_started(transaction, *std::move(request), *init, Reporter::kPlugin);
}

/// The container's name in the pod spec.
std::string name_in(const core::PodRecord& record, const AdmissionRequest& request) {
  for (const core::ContainerRecord& container : record.containers) {
    if (container.id == request.facts.id) return container.name;
  }
  return request.engine.container_name.value_or(request.facts.id);
}

/// Applies a resize to the record, the sums and the pod's cgroup.
Result<Followed> resize(Transaction& transaction, core::PodRecord record,
                        const AdmissionRequest& request) {
  const core::EngineAnnotations& engine = request.engine;
  const core::PodRecord before = record;
  core::Resize update{.container = name_in(record, request), .now = request.facts.resources};
  if (engine.is_sandbox)
    update = {.container = "", .now = engine.pod_sums.value_or(core::EngineResources{})};
  core::apply_resize(record, update);
  if (record.pod == before.pod && record.sums == before.sums &&
      record.containers == before.containers) {
    follow_memory_qos(transaction, record);
    if (record != before) PODQOS_TRY(transaction.save(record, &before));
    return Followed::kNow;
  }
  const std::vector<core::ContainerRecord> given = record.containers;
  PODQOS_ASSIGN(const auto refused, save_resized(transaction, record, before));
  if (record.kubelets_own) return Followed::kByKubelet;
  // Its update writes the Memory QoS values that the engine knows once more.
  if (!refused) return record.containers == given ? Followed::kNow : Followed::kLater;
  // The engine resizes its container after this call; until then cgroup v1 refuses a lower pod
  // quota.
  transaction.log().info(
      cat(core::name_of(record),
          ": resize deferred until its containers are resized: ", refused->message));
  return Followed::kLater;
}

/// The record of the pod to which the reported sandbox or container belongs.
Result<std::optional<core::PodRecord>> pod_of(Transaction& transaction,
                                              const AdmissionRequest& request) {
  PODQOS_ASSIGN(auto found,
                store::find_container(transaction.store(), request.facts.id, request.facts.bundle));
  if (found) return std::move(found->record);
  // Sandboxes without a process and containers that have not started are not recorded.
  if (!request.engine.pod_uid) return std::nullopt;
  PODQOS_ASSIGN(auto record, transaction.store().pod(*request.engine.pod_uid));
  const bool same_sandbox =
      record && !record->sandbox_id.empty() && request.engine.sandbox_id == record->sandbox_id;
  if (!request.engine.is_sandbox && !same_sandbox) return std::nullopt;
  return record;
}

/// Lowers the container's burst to what its new quota permits: otherwise the kernel refuses the
/// quota.
void prepare_burst(Transaction& transaction, const core::PodRecord& record,
                   const AdmissionRequest& request) {
  const core::ContainerFacts& facts = request.facts;
  const auto known = std::ranges::find(record.containers, facts.id, &core::ContainerRecord::id);
  if (known == record.containers.end()) return;
  write_burst(transaction, record, *known,
              facts.resources.cpu_quota.transform([](auto quota) { return Micros{quota}; }));
}

/// Registers a running container that has no record; not a sandbox.
Status count_unknown(Transaction& transaction, const AdmissionRequest& request,
                     const std::optional<Init>& init) {
  if (!init || request.engine.is_sandbox) return {};
  PODQOS_ASSIGN(const auto found,
                store::find_container(transaction.store(), request.facts.id, request.facts.bundle));
  return found ? Status{} : count_running(transaction, request, *init);
}

/// Handles resources_changed() in one transaction.
Result<Followed> change(const core::Settings& settings, Log& log, const ContainerEvent& event,
                        const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto init, init_of(event.init));
  PODQOS_ASSIGN(auto request, request_of(settings, log, event, init ? init->cgroup : ""));
  if (!request) return Followed::kNow;
  PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log, timeouts));
  // It may have ended while the lock was waited for.
  PODQOS_ASSIGN(init, init_of(event.init));
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_TRY(count_unknown(transaction, *request, init));
  PODQOS_ASSIGN(auto record, pod_of(transaction, *request));
  auto followed = Followed::kNow;
  if (record) {
    prepare_burst(transaction, *record, *request);
    PODQOS_ASSIGN(followed, resize(transaction, *std::move(record), *request));
  } else if (init && request->engine.is_sandbox) {  // of an unknown pod
    PODQOS_TRY(count_running(transaction, *std::move(request), *init));
  }
  PODQOS_TRY(transaction.finish_if_changed());
  return followed;
}

/// Handles one container of the engine's list. Opens `transaction` if there was no state and this
/// is the first container of podqos.
Status observe_container(std::optional<Transaction>& transaction, const core::Settings& settings,
                         Log& log, const ContainerEvent& event, const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto init, init_of(event.init));
  if (!init) return {};
  std::optional<store::KnownContainer> found;
  if (transaction) {
    PODQOS_ASSIGN(found,
                  store::find_container(transaction->store(), event.facts.id, event.facts.bundle));
  }
  if (found) {
    const core::ContainerRecord& known = found->container();
    const bool is_confirmed = known.state == core::ContainerState::kLive &&
                              core::Process{known.pid, known.start_time} == init->process;
    return is_confirmed ? Status{}
                        : confirm(*transaction, *found, event.facts, *init, Reporter::kPlugin);
  }
  PODQOS_ASSIGN(auto request, request_of(settings, log, event, init->cgroup));
  if (!request) return {};
  if (!transaction) {
    PODQOS_ASSIGN(auto opened, Transaction::open(settings, log, timeouts));
    transaction = std::move(opened);
  }
  return count_running(*transaction, std::move(*request), *init);
}

}  // namespace

Status container_started(const core::Settings& settings, Log& log, const ContainerEvent& event,
                         const Timeouts& timeouts) {
  return with_container_id(start(settings, log, event, timeouts), event.facts.id);
}

Result<Followed> resources_changed(const core::Settings& settings, Log& log,
                                   const ContainerEvent& event, const Timeouts& timeouts) {
  return with_container_id(change(settings, log, event, timeouts), event.facts.id);
}

Synchronization::Synchronization(std::optional<std::vector<ContainerEvent>> all, Failed failed)
    : is_listed_{all.has_value()},
      all_{std::move(all).value_or(std::vector<ContainerEvent>{})},
      failed_{std::move(failed)} {}

void Synchronization::forget(std::string_view id) {
  const auto gone =
      std::ranges::find_if(all_, [&](const ContainerEvent& event) { return event.facts.id == id; });
  if (gone == all_.end()) return;
  if (gone - all_.begin() < static_cast<std::ptrdiff_t>(next_)) --next_;
  all_.erase(gone);
}

Status Synchronization::compare(const Context& context) {
  PODQOS_ASSIGN(auto transaction,
                Transaction::open_existing(context.settings, context.log, context.timeouts));
  if (transaction) PODQOS_TRY(comparison_->step(*transaction, &context.list));
  comparison_->report() = {};  // it has been logged
  // Without a state there is nothing to compare.
  if (!transaction || comparison_->is_done()) comparison_.reset();
  return {};
}

Status Synchronization::compare_until_end(const Context& context) {
  while (true) {
    PODQOS_TRY(compare(context));
    if (!comparison_ || context.timeouts.clock->now() >= context.end) return {};
    Reconciler::let_others_in();
  }
}

Status Synchronization::take_in(const Context& context, std::size_t count) {
  const auto& [settings, log, list, timeouts, end] = context;
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (transaction) PODQOS_TRY(reconcile_interrupted(*transaction, false, {.list = &list}));
  while (next_ < count) {
    const ContainerEvent& event = all_[next_++];
    if (event.init.pid == Pid{0}) continue;
    if (auto done = with_container_id(
            observe_container(transaction, settings, log, event, timeouts), event.facts.id);
        !done)
      failed_(done.error());
    if (timeouts.clock->now() >= end) break;
  }
  return transaction ? transaction->finish() : Status{};
}

Result<bool> Synchronization::resume(const core::Settings& settings, Log& log,
                                     const EngineList& list, const Piece& piece) {
  if (!cgroup::owns_host()) return true;
  EngineList whole = list;
  for (const ContainerEvent& event : all_) {
    whole.ids.insert(event.facts.id);
    if (event.init.start_time != StartTime{0}) whole.running.emplace(event.facts.id, event.init);
  }
  const Context context{
      .settings = settings,
      .log = log,
      .list = whole,
      .timeouts = piece.timeouts,
      .end = piece.at_most ? piece.timeouts.clock->now() + *piece.at_most : TimePoint::max()};
  auto last = all_.end();
  if (!piece.sandbox.empty()) {
    last = std::stable_partition(unprocessed(), last, [&](const ContainerEvent& event) {
      return event.sandbox == piece.sandbox;
    });
  } else if (comparison_) {
    PODQOS_TRY(compare_until_end(context));
    if (comparison_) return false;
  }
  PODQOS_TRY(take_in(context, static_cast<std::size_t>(last - all_.begin())));
  return !comparison_ && next_ == all_.size();
}

bool Synchronization::awaits(std::string_view sandbox) {
  return std::any_of(unprocessed(), all_.end(),
                     [&](const ContainerEvent& event) { return event.sandbox == sandbox; });
}

Status reconcile_due(const core::Settings& settings, Log& log, const EngineList& list,
                     const Timeouts& timeouts) {
  if (!cgroup::owns_host()) return {};
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return {};
  PODQOS_TRY(reconcile_interrupted(*transaction, false, {.list = &list}));
  expire_pending(*transaction, {}, &list);
  handle_what_is_due(*transaction);
  transaction->write_root_limits();
  return transaction->finish();
}

}  // namespace podqos::app

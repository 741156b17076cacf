#include "nri/plugin.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/app/departure.h"
#include "common/app/place.h"
#include "common/base/text.h"
#include "common/sys/process.h"
#include "nri/facts.h"

namespace podqos::nri {

namespace {

using Kind = DeferredEvent::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long a container counts as being created: runtimes may abandon one without reporting it. A
/// container that starts later is registered then.
constexpr seconds kCreation{120};
/// Interval at which due pods are released.
constexpr seconds kReleaseInterval{5};
/// Maximum wait for the lock in each step of housekeeping: other processes are served first.
constexpr milliseconds kHousekeepingLock{100};
/// Maximum wait in a whole round of housekeeping, for the lock and for systemd: a request that
/// arrives meanwhile is answered within the runtime's 2 s, since its own waits take at most 1 s.
constexpr milliseconds kHousekeeping{500};

}  // namespace

Result<core::Process> Plugin::process_of(std::uint32_t pid) {
  const Pid init{static_cast<pid_t>(pid)};
  PODQOS_ASSIGN(auto started, sys::start_time_of(init));
  // One that has ended matches no process with its pid.
  return core::Process{.pid = init, .start_time = started.value_or(StartTime{0})};
}

app::Timeouts Plugin::timeouts(Budget budget) const {
  // The default request timeout of runtimes; half of it is for the work itself and transmission.
  constexpr std::chrono::nanoseconds kRequestTimeout = seconds{2};
  const auto whole = std::min(budget.value_or(kRequestTimeout), kRequestTimeout);
  return {.deadline = clock_.now() + whole / 2, .clock = &clock_};
}

app::Timeouts Plugin::housekeeping() const {
  return {.deadline = clock_.now() + kHousekeeping,
          .lock = kHousekeepingLock,
          .systemd = kHousekeeping,
          .clock = &clock_};
}

app::Timeouts Plugin::whole_node(const app::Timeouts& round) const {
  const auto left = std::chrono::floor<milliseconds>(round.deadline - clock_.now());
  return {.lock = std::clamp(left, milliseconds{0}, kHousekeepingLock),
          .systemd = kHousekeeping,
          .clock = &clock_};
}

Status Plugin::configure(const ConfigureRequest& request, Budget) {
  const auto begun = clock_.now();
  // The state of an earlier connection may be outdated.
  state_.reset();
  synchronization_.reset();
  log().info(cat("configured by ", printable(request.runtime_name), " ",
                 printable(request.runtime_version)));
  auto done = configuration_.lay_over(request.config);
  // Errors of pods and containers are counted in log_failure().
  if (!done) metrics_.failed(done.error().code);
  metrics_.handled(Request::kConfigure, clock_.now() - begun);
  return done;
}

void Plugin::log_failure(std::string_view what, const Error& error, std::string_view then) {
  metrics_.failed(error.code);
  log().error(cat(what, ": ", error.message, then));
}

Status Plugin::report(std::string_view what, Status done) {
  if (done) return done;
  log_failure(what, done.error(), "");
  return core::refuses(configuration_.settings(), done.error()) ? done : Status{};
}

Result<bool> Plugin::apply(const DeferredEvent& deferred, const app::Timeouts& timeouts) {
  const core::Settings& settings = configuration_.settings();
  const std::string& id = deferred.event.facts.id;
  switch (deferred.kind) {
    case Kind::kStarted:
      PODQOS_TRY(app::container_started(settings, log(), deferred.event, timeouts));
      return true;
    case Kind::kChanged: {
      PODQOS_ASSIGN(auto followed,
                    app::resources_changed(settings, log(), deferred.event, timeouts));
      if (followed == app::Followed::kLater) recomputes_ = true;
      return true;
    }
    case Kind::kEnded: break;
  }
  // A container is being created in the pod's cgroup.
  if (!created_in(id).empty()) return false;
  PODQOS_ASSIGN(auto ended, app::container_ended(settings, log(), id, own_process_.pid, timeouts));
  if (ended == app::Ending::kDone) return true;
  return fail(ErrorCode::kBusy, cat("container ", printable(id), " has not ended"));
}

Status Plugin::apply_or_defer(Kind kind, Result<core::ContainerFacts> facts, std::uint32_t pid,
                              const app::Timeouts& timeouts) {
  if (!facts) return fail(std::move(facts).error());
  PODQOS_ASSIGN(auto process, process_of(pid));
  // Plugins cannot change a sandbox's cgroup, so onMisplaced does not apply to it.
  const bool sandbox = kind == Kind::kStarted && facts->engine && facts->engine->is_sandbox;
  DeferredEvent event{.kind = kind,
                      .event = {.facts = std::move(*facts),
                                .init = process,
                                .stays = sandbox,
                                .undone_if_refused = sandbox}};
  auto done = deferred_.apply_before(event, timeouts);
  if (done) {
    if (auto applied = apply(event, timeouts); !applied) done = fail(std::move(applied).error());
  }
  // CRI-O starts a container also after an error of the plugin.
  const bool goes_on =
      kind == Kind::kStarted || configuration_.settings().on_error == core::OnError::kAdmit;
  if (!is_late(done) || !goes_on) return done;
  // By then the container is running: it is not moved or undone any more.
  event.event.stays = true;
  event.event.undone_if_refused = false;
  deferred_.defer(std::move(event));
  return done;
}

void Plugin::drop(const DeferredEvent& event, const Error& error) {
  metrics_.dropped();
  recomputes_ = true;
  if (event.kind == Kind::kEnded)
    log_failure("release", error, "; deferred to the next recomputation");
  else
    log_failure("deferred event", error, "; dropped, waiting for the runtime's next update");
}

Status Plugin::synchronize(NodeState state, Budget) {
  const auto begun = clock_.now();
  // Done by housekeep() right after the answer: thousands of containers take a while.
  state_ = std::move(state);
  synchronization_.reset();
  deferred_.keep_changes();
  sandboxes_.clear();
  created_.clear();
  metrics_.handled(Request::kSynchronize, clock_.now() - begun);
  return {};
}

Result<std::string> Plugin::handle(Request request, const PodEvent& event, Budget budget) {
  const auto begun = clock_.now();
  auto done = answer(request, event, budget);
  metrics_.handled(request, clock_.now() - begun);
  return done;
}

Result<std::string> Plugin::answer(Request request, const PodEvent& event, Budget budget) {
  const auto call =
      [&](Status (Plugin::*function)(const PodEvent&, Budget)) -> Result<std::string> {
    PODQOS_TRY((this->*function)(event, budget));
    return std::string{};
  };
  switch (request) {
    case Request::kCreateContainer: {
      PODQOS_ASSIGN(const auto edit, create_container(event, budget));
      return format_create_response(edit);
    }
    case Request::kRunPodSandbox: return call(&Plugin::run_pod_sandbox);
    case Request::kUpdatePodSandbox: return call(&Plugin::update_pod_sandbox);
    case Request::kStopPodSandbox: return call(&Plugin::stop_pod_sandbox);
    case Request::kRemovePodSandbox: return call(&Plugin::remove_pod_sandbox);
    case Request::kStartContainer: return call(&Plugin::start_container);
    case Request::kUpdateContainer: return call(&Plugin::update_container);
    case Request::kStopContainer: return call(&Plugin::stop_container);
    case Request::kRemoveContainer: return call(&Plugin::remove_container);
    // podqos has acted on the preceding event or request; the first two have functions of their
    // own.
    case Request::kConfigure:
    case Request::kSynchronize:
    case Request::kPostUpdatePodSandbox:
    case Request::kPostCreateContainer:
    case Request::kPostStartContainer:
    case Request::kPostUpdateContainer: return std::string{};
  }
  return std::string{};
}

Result<core::ConfigEdit> Plugin::create_container(const PodEvent& event, Budget budget) {
  const Container& container = event.container;
  const app::Timeouts timeouts = this->timeouts(budget);
  synchronize_pod(event.pod.id, timeouts);
  core::ConfigEdit adjustment;
  const auto create = [&]() -> Status {
    PODQOS_ASSIGN(auto facts, container_facts(event.pod, container));
    auto edit =
        app::adjust(configuration_.settings(), log(),
                    {.facts = std::move(facts), .creator = own_process_.pid, .timeouts = timeouts});
    if (!edit) {
      return fail(std::move(edit).error().with_context(cat("container ", printable(container.id))));
    }
    if (!*edit) return {};
    created_.insert_or_assign(container.id,
                              Creation{.sandbox = container.sandbox_id, .since = clock_.now()});
    adjustment = std::move(**edit);
    return {};
  };
  PODQOS_TRY(report("create container", create()));
  return adjustment;
}

Status Plugin::update_container(const PodEvent& event, Budget budget) {
  const auto& [pod, container] = event;
  const app::Timeouts timeouts = this->timeouts(budget);
  synchronize_pod(pod.id, timeouts);
  return report("update container", apply_or_defer(Kind::kChanged, container_facts(pod, container),
                                                   container.pid, timeouts));
}

Status Plugin::stop_container(const PodEvent& event, Budget budget) {
  return report("stop container", release(event.container.id, timeouts(budget)));
}

Status Plugin::update_pod_sandbox(const PodEvent& event, Budget budget) {
  const app::Timeouts timeouts = this->timeouts(budget);
  synchronize_pod(event.pod.id, timeouts);
  return report("update pod",
                apply_or_defer(Kind::kChanged, sandbox_facts(event.pod), event.pod.pid, timeouts));
}

Status Plugin::run_pod_sandbox(const PodEvent& event, Budget budget) {
  // Without a process the pod is registered with its first container.
  if (event.pod.pid == 0) return {};
  register_sandbox(event.pod);
  return report("run pod", apply_or_defer(Kind::kStarted, sandbox_facts(event.pod), event.pod.pid,
                                          timeouts(budget)));
}

std::vector<std::string> Plugin::created_in(std::string_view sandbox) const {
  std::vector<std::string> ids;
  for (const auto& [id, creation] : created_) {
    if (creation.sandbox == sandbox) ids.push_back(id);
  }
  return ids;
}

Status Plugin::release(const std::string& id, const app::Timeouts& timeouts) {
  created_.erase(id);
  deferred_.remove(id);
  DeferredEvent end{.kind = Kind::kEnded, .event = {}};
  end.event.facts.id = id;
  auto ended = apply(end, timeouts);
  if (ended && *ended) return {};
  deferred_.defer_end(id);
  if (ended || ended.error().code == ErrorCode::kBusy) return {};
  return fail(std::move(ended).error());
}

Status Plugin::stop_pod_sandbox(const PodEvent& event, Budget budget) {
  return report("stop pod", release(event.pod.id, timeouts(budget)));
}

Status Plugin::remove_pod_sandbox(const PodEvent& event, Budget budget) {
  const app::Timeouts timeouts = this->timeouts(budget);
  const std::string& id = event.pod.id;
  sandboxes_.erase(id);
  forget_reported(id);
  // Containers that are being created in it will not start.
  std::vector<std::string> ended = created_in(id);
  ended.push_back(id);
  Status done;
  for (const std::string& each : ended) {
    // The runtime waits for the answer: after one timeout the other ends are deferred.
    if (done) {
      done = release(each, timeouts);
    } else {
      created_.erase(each);
      deferred_.defer_end(each);
    }
  }
  return report("remove pod", std::move(done));
}

Status Plugin::start_container(const PodEvent& event, Budget budget) {
  const app::Timeouts timeouts = this->timeouts(budget);
  if (event.container.pid != 0) synchronize_pod(event.pod.id, timeouts);
  created_.erase(event.container.id);
  if (event.container.pid == 0) return {};
  return report("start container",
                apply_or_defer(Kind::kStarted, container_facts(event.pod, event.container),
                               event.container.pid, timeouts));
}

Status Plugin::remove_container(const PodEvent& event, Budget budget) {
  forget_reported(event.container.id);
  return report("remove container", release(event.container.id, timeouts(budget)));
}

void Plugin::reconcile(const app::Timeouts& timeouts) {
  const auto now = clock_.now();
  const bool everything = recomputes_ || now >= next_recomputation_;
  if (!everything && now < next_release_) return;
  next_release_ = now + kReleaseInterval;
  if (auto done = app::housekeep(configuration_.settings(), log(), listener(), everything,
                                 everything ? whole_node(timeouts) : timeouts);
      !done) {
    log_failure("housekeeping", done.error(), "; retrying");
    return;
  }
  if (!everything) return;
  recomputes_ = false;
  next_recomputation_ = now + kRecomputation;
}

bool Plugin::housekeep() {
  const auto now = clock_.now();
  std::erase_if(created_, [&](const auto& entry) { return now - entry.second.since > kCreation; });
  const app::Timeouts timeouts = housekeeping();
  if (synchronize_piece(timeouts)) return true;
  // After a timeout, waiting for the lock or systemd, the following steps would time out as well.
  if (deferred_.apply(timeouts) && release_ended_sandboxes(timeouts)) reconcile(timeouts);
  return false;
}

}  // namespace podqos::nri

#include "nri/plugin.h"

#include <algorithm>
#include <utility>

#include "common/app/admission.h"
#include "common/app/departure.h"
#include "common/app/place.h"
#include "common/base/text.h"
#include "common/core/pods/pod_name.h"

namespace podqos::nri {

namespace {

using Kind = DeferredEvent::Kind;
using std::chrono::seconds;

/// Within which a kubelet that has changed a container has resized its pod's cgroup as well.
constexpr seconds kKubeletsResize{5};

/// The end of a pod or container.
DeferredEvent end_of(const std::string& id) {
  DeferredEvent end{.kind = Kind::kEnded, .event = {}};
  end.event.facts.id = id;
  return end;
}

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

void Plugin::log_failure(std::string_view what, const Error& error, std::string_view then) {
  metrics_.failed(error.code);
  log().error(cat(what, ": ", error.message, then));
}

Status Plugin::configure(const ConfigureRequest& request) {
  const auto begun = clock_.now();
  // The state of an earlier connection may be outdated.
  state_.reset();
  synchronization_.reset();
  log().info(cat("configured by ", printable(request.runtime_name), " ",
                 printable(request.runtime_version)));
  // As containerd and CRI-O call themselves.
  engine_ = core::parse_engine(request.runtime_name);
  metrics_.handled(Request::kConfigure, clock_.now() - begun);
  return {};
}

Status Plugin::synchronize(NodeState state) {
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
  configuration_.follow();
  auto done = answer(request, event, timeouts(budget));
  metrics_.handled(request, clock_.now() - begun);
  if (done) return done;
  record_failure(request, event, done.error());
  if (core::refuses(configuration_.settings(), done.error())) return done;
  return std::string{};
}

void Plugin::record_failure(Request request, const PodEvent& event, const Error& error) {
  metrics_.failed(error.code);
  const auto& [pod, container, number] = event;
  const auto facts =
      container.facts.id.empty() ? sandbox_facts(pod) : container_facts(pod, container);
  core::Event failure = facts ? app::subject_of(*facts, "") : core::Event{};
  failure.kind = core::kind_of_failure(configuration_.settings(), error);
  failure.container_id = container.facts.id.empty() ? pod.facts.id : container.facts.id;
  failure.text = error.message;
  log().failure(std::move(failure), cat(kind_of(request).name, ": "));
}

Result<std::string> Plugin::answer(Request request, const PodEvent& event,
                                   const app::Timeouts& timeouts) {
  const auto& [pod, container, number] = event;
  Status done;
  switch (request) {
    case Request::kRunPodSandbox:
      // Without a process the pod is registered with its first container.
      if (pod.pid == 0) break;
      register_sandbox(pod);
      done = apply_or_defer(Kind::kStarted, sandbox_facts(pod, engine_), pod.pid, timeouts);
      break;
    case Request::kUpdatePodSandbox:
      synchronize_pod(pod, timeouts);
      done = apply_or_defer(Kind::kChanged, sandbox_facts(pod, engine_), pod.pid, timeouts);
      break;
    case Request::kStopPodSandbox: done = release(pod.facts.id, timeouts); break;
    case Request::kRemovePodSandbox: done = remove_sandbox(pod.facts.id, timeouts); break;
    case Request::kCreateContainer: synchronize_pod(pod, timeouts); return create(event, timeouts);
    case Request::kStartContainer:
      if (container.pid != 0) synchronize_pod(pod, timeouts);
      created_.erase(container.facts.id);
      if (container.pid == 0) break;
      done = apply_or_defer(Kind::kStarted, container_facts(pod, container, engine_), container.pid,
                            timeouts);
      break;
    case Request::kUpdateContainer:
      synchronize_pod(pod, timeouts);
      done = apply_or_defer(Kind::kChanged, container_facts(pod, container, engine_), container.pid,
                            timeouts);
      break;
    case Request::kRemoveContainer:
      if (synchronization_) synchronization_->forget(container.facts.id);
      done = release(container.facts.id, timeouts);
      break;
    case Request::kStopContainer: done = release(container.facts.id, timeouts); break;
    // They have functions of their own.
    case Request::kConfigure:
    case Request::kSynchronize: break;
  }
  PODQOS_TRY(done);
  return std::string{};
}

Result<std::string> Plugin::create(const PodEvent& event, const app::Timeouts& timeouts) {
  const auto& [pod, container, number] = event;
  const std::string& id = container.facts.id;
  PODQOS_ASSIGN(auto facts, container_facts(pod, container, engine_));
  auto edit =
      app::adjust(configuration_.settings(), log(), std::move(facts), own_process_, timeouts);
  if (!edit) return fail(std::move(edit).error().with_context(cat("container ", printable(id))));
  if (!*edit) return std::string{};
  created_.insert_or_assign(id, Creation{.sandbox = container.sandbox, .since = clock_.now()});
  return format_create_response(**edit);
}

Status Plugin::apply_or_defer(Kind kind, Result<core::ContainerFacts> facts, std::uint32_t pid,
                              const app::Timeouts& timeouts) {
  if (!facts) return fail(std::move(facts).error());
  PODQOS_ASSIGN(auto process, process_of(pid));
  // Plugins cannot change a sandbox's cgroup, so onMisplaced does not apply to it.
  const bool sandbox = kind == Kind::kStarted && facts->engine->is_sandbox;
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
  deferred_.defer(event);
  return done;
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
      if (followed == app::Followed::kLater) compares_soon_ = true;
      if (followed == app::Followed::kByKubelet)
        next_comparison_ = std::min(next_comparison_, clock_.now() + kKubeletsResize);
      return true;
    }
    case Kind::kEnded: break;
  }
  const app::EndReport report{.id = id, .bundle = "", .caller = own_process_.pid};
  PODQOS_ASSIGN(
      const auto outcome,
      app::with_container_id(
          app::end_container(settings, log(), report, app::IfStillDying::kLeave, timeouts), id));
  return outcome.state == app::EndState::kDone;
}

void Plugin::drop(const DeferredEvent& event, const Error& error) {
  metrics_.dropped();
  compares_soon_ = true;
  metrics_.failed(error.code);
  core::Event failure = app::subject_of(event.event.facts, "");
  failure.kind = core::EventKind::kFailed;
  // Records do not tell of changed values.
  failure.text = cat(error.message, event.kind == Kind::kChanged
                                        ? "; dropped, waiting for the runtime's next update"
                                        : "; dropped, waiting for the next comparison");
  log().failure(std::move(failure),
                event.kind == Kind::kEnded ? "deferred release: " : "deferred event: ");
}

Status Plugin::release(const std::string& id, const app::Timeouts& timeouts) {
  created_.erase(id);
  deferred_.remove(id);
  auto ended = apply(end_of(id), timeouts);
  if (ended && *ended) return {};
  deferred_.defer(end_of(id));
  PODQOS_TRY(ended);
  return {};
}

Status Plugin::remove_sandbox(const std::string& id, const app::Timeouts& timeouts) {
  sandboxes_.erase(id);
  if (synchronization_) synchronization_->forget(id);
  std::vector<std::string> ended;
  for (const auto& [container, creation] : created_) {
    if (creation.sandbox == id) ended.push_back(container);
  }
  ended.push_back(id);
  Status done;
  for (const std::string& each : ended) {
    if (auto released = release(each, timeouts); !released) done = std::move(released);
  }
  return done;
}

}  // namespace podqos::nri

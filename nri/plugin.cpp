#include "nri/plugin.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/app/hook_stages.h"
#include "common/app/place.h"
#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/sys/process.h"
#include "nri/adjustment.h"
#include "nri/facts.h"

namespace podqos::nri {

namespace {

/// A container that is about to be made counts as long as somebody can still hear what becomes of
/// it.
Pid own_pid() {
  return Pid{::getpid()};
}

/// Its init, whose parent is what watches over it: the shim, or conmon.
app::Process process_of(std::uint32_t pid) {
  const Pid init{static_cast<pid_t>(pid)};
  return {.init = init, .runtime = init};
}

}  // namespace

core::Settings Plugin::settings() const {
  // A runtime waits 2 s for an answer, and goes on without the plugin then.
  constexpr std::int64_t kLongestWaitMs = 500;
  core::Settings settings = configuration_.settings();
  settings.lock_deadline_ms = std::min(settings.lock_deadline_ms, kLongestWaitMs);
  return settings;
}

void Plugin::registered(Status status) {
  if (!status) log().error(cat("the runtime refuses the plugin: ", status.error().message));
}

Status Plugin::configure(const api::ConfigureRequest& request, Budget) {
  log().info(cat("configured by ", printable(request.runtime_name()), " ",
                 printable(request.runtime_version())));
  return configuration_.lay_over(request.config());
}

Status Plugin::settle(std::string_view what, Status done) {
  if (done) return done;
  log().error(cat(what, ": ", done.error().message));
  if (settings().on_error == core::OnError::kAdmit) return {};
  return done;
}

Status Plugin::note_sandbox(const api::PodSandbox& pod, Note note) {
  auto facts = sandbox_facts(pod);
  if (!facts) return fail(std::move(facts).error());
  if (pod.pid() == 0) {
    // An old runtime does not tell it.
    auto joined =
        app::adjust(settings(), log(), {.facts = std::move(*facts), .creator = own_pid()});
    if (!joined) return fail(std::move(joined).error());
    return {};
  }
  sandboxes_.insert_or_assign(pod.id(), Pid{static_cast<pid_t>(pod.pid())});
  // Its process is where the runtime has put it, which no plugin can change.
  core::Settings settings = this->settings();
  settings.on_misplaced = core::OnMisplaced::kIgnore;
  return note(settings, log(), *facts, process_of(pod.pid()));
}

Status Plugin::note_container(const api::PodSandbox& pod, const api::Container& container,
                              Note note) {
  if (container.pid() == 0) return {};
  auto facts = container_facts(pod, container);
  if (!facts) return fail(std::move(facts).error());
  return note(settings(), log(), *facts, process_of(container.pid()));
}

Result<api::SynchronizeResponse> Plugin::synchronize(api::SynchronizeRequest request, Budget) {
  sandboxes_.clear();
  std::vector<std::string> ids;
  std::map<std::string, const api::PodSandbox*> pods;
  for (const api::PodSandbox& pod : request.pods()) {
    ids.push_back(pod.id());
    if (pod.pid() != 0) sandboxes_.insert_or_assign(pod.id(), Pid{static_cast<pid_t>(pod.pid())});
    pods.emplace(pod.id(), &pod);
  }
  for (const api::Container& container : request.containers())
    ids.push_back(container.id());
  // What ended unseen goes; what came unseen is taken in.
  auto missing = app::recompute_without(settings(), log(), ids);
  if (!missing) {
    auto done = settle("synchronize", fail(std::move(missing).error()));
    if (!done) return fail(std::move(done).error());
    return api::SynchronizeResponse{};
  }
  for (const auto& [id, pod] : pods) {
    if (!missing->contains(id)) continue;
    if (auto done = settle("synchronize", note_sandbox(*pod, app::container_started)); !done)
      return fail(std::move(done).error());
  }
  for (const api::Container& container : request.containers()) {
    const auto pod = pods.find(container.pod_sandbox_id());
    if (pod == pods.end() || !missing->contains(container.id())) continue;
    if (auto done =
            settle("synchronize", note_container(*pod->second, container, app::container_started));
        !done)
      return fail(std::move(done).error());
  }
  return api::SynchronizeResponse{};
}

Result<api::CreateContainerResponse> Plugin::create_container(
    const api::CreateContainerRequest& request, Budget) {
  api::CreateContainerResponse response;
  const auto create = [&]() -> Status {
    auto facts = container_facts(request.pod(), request.container());
    if (!facts) return fail(std::move(facts).error());
    auto edit = app::adjust(settings(), log(), {.facts = std::move(*facts), .creator = own_pid()});
    if (!edit) return fail(std::move(edit).error());
    if (*edit && **edit != core::ConfigEdit{}) *response.mutable_adjust() = adjustment_for(**edit);
    return {};
  };
  if (auto done = settle("create container", create()); !done) return fail(std::move(done).error());
  return response;
}

Result<api::UpdateContainerResponse> Plugin::update_container(
    const api::UpdateContainerRequest& request, Budget) {
  api::Container updated = request.container();
  updated.mutable_linux()->mutable_resources()->MergeFrom(request.linux_resources());
  if (auto done = settle("update container",
                         note_container(request.pod(), updated, app::container_updated));
      !done)
    return fail(std::move(done).error());
  return api::UpdateContainerResponse{};
}

Result<api::StopContainerResponse> Plugin::stop_container(const api::StopContainerRequest& request,
                                                          Budget) {
  if (auto done =
          settle("stop container",
                 app::container_ended(settings(), log(), request.container().id(), own_pid()));
      !done)
    return fail(std::move(done).error());
  return api::StopContainerResponse{};
}

Status Plugin::update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget) {
  api::PodSandbox pod = request.pod();
  pod.mutable_linux()->mutable_pod_resources()->MergeFrom(request.linux_resources());
  return settle("update pod", note_sandbox(pod, app::container_updated));
}

Status Plugin::run_pod_sandbox(const api::EventRequest& event, Budget) {
  return settle("run pod", note_sandbox(event.pod(), app::container_started));
}

void Plugin::tend() {
  for (auto sandbox = sandboxes_.begin(); sandbox != sandboxes_.end();) {
    const auto& [id, pid] = *sandbox;
    const auto started = sys::start_time_of(pid);
    if (!started || *started) {
      ++sandbox;
      continue;
    }
    auto done = settle("sandbox has ended", app::container_ended(settings(), log(), id, own_pid()));
    if (!done) log().info(cat("sandbox ", id, " is left to the next connection"));
    sandbox = sandboxes_.erase(sandbox);
  }
}

Status Plugin::stop_pod_sandbox(const api::EventRequest& event, Budget) {
  return settle("stop pod", app::container_ended(settings(), log(), event.pod().id(), own_pid()));
}

Status Plugin::remove_pod_sandbox(const api::EventRequest& event, Budget) {
  sandboxes_.erase(event.pod().id());
  return settle("remove pod", app::container_ended(settings(), log(), event.pod().id(), own_pid()));
}

Status Plugin::start_container(const api::EventRequest& event, Budget) {
  return settle("start container",
                note_container(event.pod(), event.container(), app::container_started));
}

Status Plugin::remove_container(const api::EventRequest& event, Budget) {
  return settle("remove container",
                app::container_ended(settings(), log(), event.container().id(), own_pid()));
}

// Before them podqos has done all that there is to do.
Status Plugin::post_update_pod_sandbox(const api::EventRequest&, Budget) {
  return {};
}
Status Plugin::post_create_container(const api::EventRequest&, Budget) {
  return {};
}
Status Plugin::post_start_container(const api::EventRequest&, Budget) {
  return {};
}
Status Plugin::post_update_container(const api::EventRequest&, Budget) {
  return {};
}

void Plugin::shutdown() {}

}  // namespace podqos::nri

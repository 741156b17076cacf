#include "nri/plugin.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/app/ending.h"
#include "common/app/place.h"
#include "common/base/text.h"
#include "common/sys/process.h"
#include "nri/adjustment.h"
#include "nri/facts.h"

namespace podqos::nri {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// So that a request that comes meanwhile does not wait for long.
constexpr int kReleasesAtOnce = 16;
constexpr std::size_t kLooksAtOnce = 64;
/// How often a release is tried again, one try each time that tend() is called.
constexpr int kLateTries = 30;
/// For what a runtime does not say that it has given it up. What it starts later nevertheless is
/// taken in then.
constexpr seconds kCreation{120};
constexpr seconds kLook{5};
constexpr seconds kRecomputation{300};
/// For housekeeping: a request that comes meanwhile has time left.
constexpr milliseconds kHousekeepingLock{100};

}  // namespace

app::Process Plugin::process_of(std::uint32_t pid) {
  const Pid init{static_cast<pid_t>(pid)};
  return {.init = init, .runtime = init};
}

app::Patience Plugin::patience(Budget budget) const {
  // What a runtime waits for an answer before it goes on without the plugin; half of it is for the
  // work itself and the way.
  constexpr std::chrono::nanoseconds kRequestTimeout = seconds{2};
  const auto whole = std::min(budget.value_or(kRequestTimeout), kRequestTimeout);
  return {.deadline = clock_.now() + whole / 2, .clock = &clock_};
}

app::Patience Plugin::housekeeping(milliseconds lock) const {
  return {.lock = lock, .systemd = milliseconds{500}, .clock = &clock_};
}

void Plugin::registered(Status status) {
  if (!status) log().error(cat("the runtime refuses the plugin: ", status.error().message));
}

Status Plugin::configure(const api::ConfigureRequest& request, Budget) {
  // What an earlier connection has told is no longer sure.
  stock_.reset();
  taking_.reset();
  log().info(cat("configured by ", printable(request.runtime_name()), " ",
                 printable(request.runtime_version())));
  auto done = configuration_.lay_over(request.config());
  // What goes wrong with pods and containers is counted where it is settled.
  if (!done) measures_.failed(done.error().code);
  return done;
}

void Plugin::complain(std::string_view what, const Error& error, std::string_view then) {
  measures_.failed(error.code);
  log().error(cat(what, ": ", error.message, then));
}

Status Plugin::settle(std::string_view what, Status done) {
  if (done) return done;
  complain(what, done.error(), "");
  // A refusal is what the operator wants, whatever becomes of errors.
  const bool answered = done.error().code == ErrorCode::kRefused ||
                        configuration_.settings().on_error == core::OnError::kReject;
  return answered ? done : Status{};
}

Status Plugin::start(Result<core::ContainerFacts> facts, std::uint32_t pid,
                     const core::Settings& settings, const app::Patience& patience) {
  if (!facts) return fail(std::move(facts).error());
  return take({.what = News::What::kStarted, .facts = std::move(*facts), .pid = pid}, settings,
              patience);
}

Status Plugin::follow(Result<core::ContainerFacts> facts, std::uint32_t pid,
                      const app::Patience& patience) {
  if (!facts) return fail(std::move(facts).error());
  return take({.what = News::What::kChanged, .facts = std::move(*facts), .pid = pid},
              configuration_.settings(), patience);
}

Status Plugin::act_on(const News& news, const core::Settings& settings,
                      const app::Patience& patience) {
  const app::Told told{.facts = news.facts, .process = process_of(news.pid)};
  if (news.what == News::What::kStarted)
    return app::container_started(settings, log(), told, patience);
  auto followed = app::resources_changed(settings, log(), told, patience);
  if (!followed) return fail(std::move(followed).error());
  if (*followed == app::Followed::kLater) due_ = true;
  return {};
}

Status Plugin::take(News news, const core::Settings& settings, const app::Patience& patience) {
  auto done = late_news_.act_before(
      news, [&](const News& older) { return act_on(older, settings, patience); });
  if (done) done = act_on(news, settings, patience);
  // CRI-O starts a container also where the plugin answers with an error.
  const bool goes_on =
      news.what == News::What::kStarted || settings.on_error == core::OnError::kAdmit;
  if (is_late(done) && goes_on) late_news_.keep(std::move(news));
  return done;
}

void Plugin::remember(const api::PodSandbox& pod) {
  const Pid pid{static_cast<pid_t>(pod.pid())};
  if (pid == Pid{0}) return;
  const auto started = sys::start_time_of(pid);
  if (!started || !*started) return;
  sandboxes_.insert_or_assign(pod.id(), Sandbox{.pid = pid, .start_time = **started});
}

Result<api::SynchronizeResponse> Plugin::synchronize(NodeState state, Budget) {
  // Done by tend(), at once, but after the answer: of thousands it takes its time.
  stock_ = std::move(state);
  taking_.reset();
  sandboxes_.clear();
  late_.clear();
  created_.clear();
  // What has started since is among what is told; of changes nothing is said there.
  late_news_.forget_starts();
  return api::SynchronizeResponse{};
}

Result<api::CreateContainerResponse> Plugin::create_container(
    const api::CreateContainerRequest& request, Budget budget) {
  api::CreateContainerResponse response;
  const app::Patience patience = this->patience(budget);
  catch_up(request.pod().id(), patience);
  const auto create = [&]() -> Status {
    auto facts = container_facts(request.pod(), request.container());
    if (!facts) return fail(std::move(facts).error());
    auto edit = app::adjust(configuration_.settings(), log(),
                            {.facts = std::move(*facts), .creator = own_pid_, .patience = patience},
                            foresight_);
    if (!edit) {
      return fail(std::move(edit).error().with_context(
          cat("container ", printable(request.container().id()))));
    }
    if (!*edit) return {};
    created_.insert_or_assign(
        request.container().id(),
        Creation{.sandbox = request.container().pod_sandbox_id(), .since = clock_.now()});
    if (**edit != core::ConfigEdit{}) *response.mutable_adjust() = adjustment_for(**edit);
    return {};
  };
  if (auto done = settle("create container", create()); !done) return fail(std::move(done).error());
  return response;
}

Result<api::UpdateContainerResponse> Plugin::update_container(
    const api::UpdateContainerRequest& request, Budget budget) {
  const app::Patience patience = this->patience(budget);
  catch_up(request.pod().id(), patience);
  api::Container updated = request.container();
  updated.mutable_linux()->mutable_resources()->MergeFrom(request.linux_resources());
  auto done = settle("update container",
                     follow(container_facts(request.pod(), updated), updated.pid(), patience));
  if (!done) return fail(std::move(done).error());
  return api::UpdateContainerResponse{};
}

Result<api::StopContainerResponse> Plugin::stop_container(const api::StopContainerRequest& request,
                                                          Budget budget) {
  if (auto done = settle("stop container", release(request.container().id(), patience(budget)));
      !done)
    return fail(std::move(done).error());
  return api::StopContainerResponse{};
}

Status Plugin::update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget budget) {
  const app::Patience patience = this->patience(budget);
  catch_up(request.pod().id(), patience);
  api::PodSandbox pod = request.pod();
  pod.mutable_linux()->mutable_pod_resources()->MergeFrom(request.linux_resources());
  return settle("update pod", follow(sandbox_facts(pod), pod.pid(), patience));
}

Status Plugin::run_pod_sandbox(const api::EventRequest& event, Budget budget) {
  // Without a process there is nothing to place: the pod comes with its first container.
  if (event.pod().pid() == 0) return {};
  remember(event.pod());
  // Its process is where the runtime has put it, which no plugin can change.
  core::Settings settings = configuration_.settings();
  settings.on_misplaced = core::OnMisplaced::kIgnore;
  return settle("run pod",
                start(sandbox_facts(event.pod()), event.pod().pid(), settings, patience(budget)));
}

std::vector<std::string> Plugin::created_in(std::string_view sandbox) const {
  std::vector<std::string> ids;
  for (const auto& [id, creation] : created_) {
    if (creation.sandbox == sandbox) ids.push_back(id);
  }
  return ids;
}

Status Plugin::release(const std::string& id, const app::Patience& patience) {
  late_news_.forget(id);
  created_.erase(id);
  // The pod's cgroup is about to be used.
  if (!created_in(id).empty()) {
    late_.emplace(id, 0);
    return {};
  }
  if (foresight_.is_foreign(configuration_.settings(), id)) {
    late_.erase(id);
    return {};
  }
  auto ended = app::container_ended(configuration_.settings(), log(), id, own_pid_, patience);
  if (ended && *ended == app::Ending::kDone) {
    late_.erase(id);
    return {};
  }
  late_.emplace(id, 0);
  if (!ended) return fail(std::move(ended).error());
  return {};
}

Status Plugin::stop_pod_sandbox(const api::EventRequest& event, Budget budget) {
  return settle("stop pod", release(event.pod().id(), patience(budget)));
}

Status Plugin::remove_pod_sandbox(const api::EventRequest& event, Budget budget) {
  const std::string& id = event.pod().id();
  sandboxes_.erase(id);
  if (taking_) taking_->forget(id);
  // What was to be made in it never will be.
  std::vector<std::string> ended = created_in(id);
  ended.push_back(id);
  Status done;
  for (const std::string& each : ended) {
    // The runtime waits: it is not kept for one deadline after the other.
    if (done) {
      done = release(each, patience(budget));
    } else {
      created_.erase(each);
      late_.emplace(each, 0);
    }
  }
  return settle("remove pod", std::move(done));
}

Status Plugin::start_container(const api::EventRequest& event, Budget budget) {
  if (event.container().pid() != 0) catch_up(event.pod().id(), patience(budget));
  created_.erase(event.container().id());
  if (event.container().pid() == 0) return {};
  return settle("start container",
                start(container_facts(event.pod(), event.container()), event.container().pid(),
                      configuration_.settings(), patience(budget)));
}

Status Plugin::remove_container(const api::EventRequest& event, Budget budget) {
  if (taking_) taking_->forget(event.container().id());
  return settle("remove container", release(event.container().id(), patience(budget)));
}

bool Plugin::take_late() {
  // It runs by now, where it is.
  core::Settings settings = configuration_.settings();
  settings.on_misplaced = core::OnMisplaced::kIgnore;
  bool late = false;
  auto done = late_news_.act([&](const News& news) {
    auto acted = act_on(news, settings, housekeeping(kHousekeepingLock));
    late = is_late(acted);
    return acted;
  });
  if (!done) complain("late news", done.error(), "; left to the runtime's next word");
  return !late;
}

bool Plugin::release_late() {
  int left = kReleasesAtOnce;
  bool late = false;
  for (auto next = late_.begin(); next != late_.end() && left > 0 && !late;) {
    const std::string id = next->first;
    if (!created_in(id).empty()) {
      ++next;
      continue;
    }
    --left;
    const int tries = ++next->second;
    ++next;
    auto done = release(id, housekeeping(kHousekeepingLock));
    late = is_late(done);
    const auto still = late_.find(id);
    if (still == late_.end() || tries < kLateTries) continue;
    late_.erase(still);
    if (done) continue;
    complain("release", done.error(), "; left to the next look at everything");
    due_ = true;
  }
  return !late;
}

bool Plugin::release_silent() {
  int left = kReleasesAtOnce;
  bool late = false;
  auto looks = std::min(sandboxes_.size(), kLooksAtOnce);
  for (auto sandbox = sandboxes_.upper_bound(looked_at_); looks > 0 && left > 0 && !late; --looks) {
    if (sandbox == sandboxes_.end()) sandbox = sandboxes_.begin();
    const auto& [id, process] = *sandbox;
    looked_at_ = id;
    if (sys::is_alive(process.pid, process.start_time)) {
      ++sandbox;
      continue;
    }
    --left;
    auto done = release(id, housekeeping(kHousekeepingLock));
    late = is_late(done);
    if (!done) complain("sandbox has ended", done.error(), "; trying again");
    sandbox = sandboxes_.erase(sandbox);
  }
  return !late;
}

void Plugin::look_after() {
  const auto now = clock_.now();
  const bool everything = due_ || now >= next_recomputation_;
  if (!everything && now < next_look_) return;
  next_look_ = now + kLook;
  if (auto done = app::look_after(configuration_.settings(), log(), own_pid_, creating(),
                                  everything, housekeeping(kHousekeepingLock));
      !done) {
    complain("look at what is left", done.error(), "; trying again");
    return;
  }
  if (!everything) return;
  due_ = false;
  reconciled();
}

void Plugin::reconciled() {
  next_recomputation_ = clock_.now() + kRecomputation;
  measures_.reconciled();
}

bool Plugin::tend() {
  const auto now = clock_.now();
  std::erase_if(created_, [&](const auto& entry) { return now - entry.second.since > kCreation; });
  if (take_stock()) return true;
  // After the first that has waited in vain, for the lock or for systemd, the others would as well.
  if (take_late() && release_late() && release_silent()) look_after();
  return false;
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

void Plugin::handled(Request request, std::chrono::nanoseconds time) {
  measures_.handled(request, time);
}

}  // namespace podqos::nri

#include "hook/lifecycle.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/place.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/machine.h"
#include "common/store/state_directory.h"
#include "common/sys/process.h"
#include "hook/bundle.h"

namespace podqos::hook {

namespace {

using app::Admission;
using std::chrono::milliseconds;

/// Registers a container that podqos did not place, with the facts of its config.json, which has
/// more than the OCI state; and edits it for the container's next start.
Status register_from(Bundle& bundle, app::Transaction& transaction, const std::string& id,
                     const core::Init& init) {
  PODQOS_TRY(bundle.read_config());
  const bool edited_before = bundle.take_edits_back();
  const auto config = codec::OciConfig::parse(bundle.config());
  if (!config)
    return fail(Error{config.error()}.with_context(cat(bundle.canonical(), "/config.json")));
  core::ContainerFacts facts = config->facts;
  facts.id = id;
  facts.bundle = bundle.canonical();
  PODQOS_ASSIGN(auto request,
                app::admission_request(std::move(facts), transaction.settings(), init.cgroup));
  if (!request) return transaction.finish_if_changed();
  const auto registered = [&](const Admission& admission) -> Status {
    // A container in its place is there because of an earlier edit, whose values may be outdated.
    const bool concerned = admission.belongs_to || edited_before;
    if (!concerned || admission.on_misplaced == core::OnMisplaced::kIgnore) return {};
    PODQOS_ASSIGN(const auto edited,
                  codec::edit_config(*config, app::edit_for(admission), std::nullopt));
    return bundle.write_config(edited);
  };
  return app::register_started(transaction, *std::move(request), init, app::Reporter::kHook,
                               registered);
}

/// Handles create_runtime() in one transaction.
Status start_in_bundle(const core::Settings& settings, app::Log& log, const codec::OciState& state,
                       Pid runtime, const app::Timeouts& timeouts) {
  if (!state.pid) {
    return fail(ErrorCode::kInvalidArgument,
                "the OCI state has no pid: register podqos-hook for the stage createRuntime");
  }
  PODQOS_ASSIGN(auto actual, cgroup::bounding_cgroup(*state.pid));
  PODQOS_ASSIGN(const auto started, sys::start_time_of(*state.pid));
  const core::Init init{
      .process = {.pid = *state.pid, .start_time = started.value_or(StartTime{0})},
      .cgroup = std::move(actual),
      .child_of_monitor = runtime};
  core::ContainerFacts facts = state.facts;
  // The annotations of a container that is known were judged when it was created.
  if (!store::is_indexed(settings.state_dir, facts.id)) {
    PODQOS_ASSIGN(const auto request, app::admission_request(facts, settings, init.cgroup));
    if (!request) return {};
  }
  // Runtimes run the hook in the bundle; some do not report its path.
  auto opened = Bundle::open(facts.bundle.empty() ? "." : facts.bundle);
  if (opened) facts.bundle = opened->identity();
  PODQOS_ASSIGN(auto transaction, app::Transaction::open(settings, log, timeouts));
  PODQOS_ASSIGN(const bool confirmed,
                app::confirm_started(transaction, facts, init, app::Reporter::kHook));
  if (confirmed) return {};
  if (!opened) return fail(std::move(opened).error());
  return register_from(*opened, transaction, facts.id, init);
}

}  // namespace

Status create_runtime(const core::Settings& settings, app::Log& log, std::string_view text,
                      Pid runtime, const app::Timeouts& timeouts) {
  PODQOS_ASSIGN(const auto state, codec::parse_oci_state(text));
  auto done = start_in_bundle(settings, log, state, runtime, timeouts);
  if (!done) log.set_subject(app::subject_of(state.facts, ""));
  return app::with_container_id(std::move(done), state.facts.id);
}

namespace {

// Runtimes that do not wait for the processes they killed call the hook at once.
constexpr milliseconds kWhileAlive{200};
// Well below the 30 s after which the hook ends itself (hook/stages.cpp).
constexpr milliseconds kWhileDying{5000};
// Each attempt takes the lock; pause in between.
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{160};

/// Retries app::end_container() until the container is removed from its pod, or is known to run.
Status end(const core::Settings& settings, app::Log& log, const app::EndReport& report,
           const app::Timeouts& timeouts) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    const auto if_still_dying =
        waited < kWhileDying ? app::IfStillDying::kLeave : app::IfStillDying::kDrop;
    auto outcome = app::end_container(settings, log, report, if_still_dying, timeouts);
    // What fails once, such as a file that cannot be opened, would leave a pod that counts.
    const bool is_final = waited >= kWhileAlive;
    if (!outcome && (is_final || outcome.error().code == ErrorCode::kTimeout))
      return fail(std::move(outcome).error());
    if (outcome && outcome->state == app::EndState::kDone)
      return app::follow_up(settings, log, std::move(outcome->unfinished), timeouts);
    if (outcome && outcome->state == app::EndState::kStillAlive && is_final) break;
    std::this_thread::sleep_for(pause);
  }
  log.info(cat("container ", printable(report.id),
               ": ignored poststop of an earlier container with this id"));
  return {};
}

}  // namespace

Status poststop(const core::Settings& settings, app::Log& log, std::string_view text, Pid caller,
                const app::Timeouts& timeouts) {
  PODQOS_ASSIGN(const auto state, codec::parse_oci_state(text));
  const std::string& id = state.facts.id;
  const app::EndReport report{
      .id = id, .bundle = canonical_bundle(state.facts.bundle), .caller = caller};
  log.set_subject({.container_id = id});
  return app::with_container_id(end(settings, log, report, timeouts), id);
}

}  // namespace podqos::hook

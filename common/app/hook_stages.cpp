#include "common/app/hook_stages.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "common/app/admission.h"
#include "common/app/apply_container.h"
#include "common/app/bundle.h"
#include "common/app/departure.h"
#include "common/app/known_container.h"
#include "common/app/running_container.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/codec/oci_state.h"
#include "common/core/container_values.h"
#include "common/core/naming.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

using std::chrono::milliseconds;

/// Edits config.json for the container's next start; the current one does not read it again.
Status rewrite_bundle(Bundle& bundle, std::string_view text, const codec::OciConfig& config,
                      const Admission& admission) {
  const core::ConfigEdit edit =
      core::config_edit(core::oci_cgroups_path(*admission.belongs_to, admission.container.id),
                        admission.missing, admission.oom_score_adj);
  auto splices = codec::plan_splices(text, config, edit, std::nullopt);
  if (!splices) return fail(std::move(splices).error());
  if (splices->empty()) return {};
  auto edited = codec::apply_splices(text, *splices);
  if (!edited) return fail(std::move(edited).error());
  return bundle.write_config(*edited);
}

/// The request with the facts of config.json, which has more than the OCI state.
Result<std::optional<AdmissionRequest>> request_from_bundle(const Transaction& transaction,
                                                            AdmissionRequest announced,
                                                            core::ContainerFacts facts,
                                                            const std::string& actual) {
  // Runtimes pass the bundle's annotations on: do not parse the same ones again.
  if (facts.annotations == announced.facts.annotations) {
    announced.facts = std::move(facts);
    return announced;
  }
  return admission_request(std::move(facts), transaction.settings(), actual);
}

/// Registers a container that was not placed.
/// @param announced  the request built from the OCI state
Status register_from_bundle(Transaction& transaction, AdmissionRequest announced, const Init& init,
                            Result<Bundle>& bundle) {
  if (!bundle) return fail(bundle.error());
  auto text = bundle->read_config();
  if (!text) return fail(std::move(text).error());
  auto config = codec::OciConfig::parse(*text);
  if (!config)
    return fail(std::move(config).error().with_context(cat(bundle->canonical(), "/config.json")));
  core::ContainerFacts facts = config->facts;
  facts.id = announced.facts.id;
  facts.bundle = bundle->canonical();
  auto request =
      request_from_bundle(transaction, std::move(announced), std::move(facts), init.cgroup);
  if (!request) return fail(std::move(request).error());
  if (!*request) return {};
  auto admission = admit_running(transaction, std::move(**request), init);
  if (!admission) return fail(std::move(admission).error());
  if (!*admission) return {};
  auto done = apply_container(transaction, **admission, init.cgroup);
  if (done && (*admission)->belongs_to && (*admission)->on_misplaced != core::OnMisplaced::kIgnore)
    done = rewrite_bundle(*bundle, *text, *config, **admission);
  try_charge_monitor(transaction, (*admission)->record, init.runtime);
  auto finished = transaction.finish();
  return done ? finished : done;
}

/// Confirms the container if it was placed, registers it otherwise.
Status start_under_lock(Transaction& transaction, AdmissionRequest request, const Init& init,
                        Result<Bundle>& bundle) {
  auto found = find_known(transaction, request.facts);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    auto done = register_from_bundle(transaction, std::move(request), init, bundle);
    return done ? transaction.finish_recovery() : done;
  }
  if (auto done = confirm(transaction, std::move(**found), request.facts, init); !done) return done;
  return finish_confirmed(transaction);
}

/// Handles create_runtime() in one transaction, then retries unfinished work without the lock.
Status start_in_bundle(const core::Settings& settings, Log& log, const codec::OciState& state,
                       Pid runtime, const Timeouts& timeouts) {
  if (!state.pid) {
    return fail(ErrorCode::kInvalidArgument,
                "the OCI state has no pid: register podqos-hook for the stage createRuntime");
  }
  auto actual = cgroup::real_cgroup(*state.pid);
  if (!actual) return fail(std::move(actual).error());
  const Init init{.pid = *state.pid, .runtime = runtime, .cgroup = std::move(*actual)};
  core::ContainerFacts facts;
  facts.id = state.id;
  facts.annotations = state.annotations;
  auto request = request_of_started(settings, log, std::move(facts), init.cgroup);
  if (!request) return fail(std::move(request).error());
  if (!*request) return {};
  // Runtimes run the hook in the bundle; some do not report its path.
  auto bundle = Bundle::open(state.bundle.empty() ? "." : state.bundle);
  (*request)->facts.bundle = bundle ? bundle->canonical() : state.bundle;
  std::optional<Error> unfinished;
  {
    auto transaction = Transaction::open(settings, log, timeouts);
    if (!transaction) return fail(std::move(transaction).error());
    if (auto done = start_under_lock(*transaction, std::move(**request), init, bundle); !done)
      return done;
    unfinished = transaction->unfinished();
  }
  return follow_up(settings, log, std::move(unfinished), timeouts);
}

}  // namespace

Status create_runtime(const core::Settings& settings, Log& log, std::string_view text, Pid runtime,
                      const Timeouts& timeouts) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  return with_container_id(start_in_bundle(settings, log, *state, runtime, timeouts), state->id);
}

namespace {

// Runtimes that do not wait for the processes they killed call the hook at once.
constexpr milliseconds kWhileAlive{200};
// Well below the 30 s after which the hook ends itself (hook/stages.cpp).
constexpr milliseconds kWhileEnding{5000};
// Each attempt takes the lock; pause in between.
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{160};

/// Sleeps with the lock released. A signal only shortens the pause.
void pause_for(milliseconds pause) {
  const timespec time{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds{pause}.count()};
  static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr));
}

/// Retries end_container() until the container is removed from its pod, or is known to run.
Status end(const core::Settings& settings, Log& log, const EndedContainer& ended,
           const Timeouts& timeouts) {
  if (!cgroup::owns_host()) return {};
  const auto begin = std::chrono::steady_clock::now();
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    const auto on_ending = waited < kWhileEnding ? OnEnding::kLeave : OnEnding::kDrop;
    auto outcome = end_container(settings, log, ended, on_ending, timeouts);
    if (!outcome) return fail(std::move(outcome).error());
    if (outcome->ending == Ending::kDone)
      return follow_up(settings, log, std::move(outcome->unfinished), timeouts);
    if (outcome->ending == Ending::kStillAlive && waited >= kWhileAlive) break;
    pause_for(pause);
  }
  log.info(cat("container ", printable(ended.id),
               ": ignored poststop of an earlier container with this id"));
  return {};
}

}  // namespace

Status poststop(const core::Settings& settings, Log& log, std::string_view text, Pid caller,
                const Timeouts& timeouts) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  const EndedContainer ended{
      .id = state->id, .bundle = canonical_bundle(state->bundle), .caller = caller};
  return with_container_id(end(settings, log, ended, timeouts), state->id);
}

}  // namespace podqos::app

#include "hook/lifecycle.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/codec/oci_state.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/pod_values.h"
#include "common/sys/process.h"
#include "hook/bundle.h"

namespace podqos::hook {

namespace {

using app::Admission;
using app::AdmissionRequest;
using std::chrono::milliseconds;

/// config.json for the container's next start; the current one does not read it again.
/// @param text  the config.json without earlier edits of podqos
Result<std::string> for_next_start(std::string_view text, const codec::OciConfig& config,
                                   const Admission& admission) {
  core::ConfigEdit edit{.values = admission.missing, .oom_score_adj = admission.oom_score_adj};
  if (!admission.record.adopted && !admission.left_with_engine)
    edit.cgroups_path = core::oci_cgroups_path(
        admission.belongs_to.value_or(admission.container.cgroup), admission.container.id);
  return codec::edit_config(text, config, edit, std::nullopt);
}

/// What only the bundle tells of a container that podqos did not place, and its next start.
class BundleOfContainer {
 public:
  BundleOfContainer(const core::Settings& settings, Result<Bundle> bundle)
      : settings_(&settings), bundle_(std::move(bundle)) {}

  /// The request with the facts of config.json, which has more than the OCI state.
  /// @param announced  the request built from the OCI state
  Result<std::optional<AdmissionRequest>> complete(AdmissionRequest announced) {
    if (!bundle_) return fail(bundle_.error());
    PODQOS_TRY(bundle_->read_config());
    edited_before_ = bundle_->take_edits_back();
    auto config = codec::OciConfig::parse(bundle_->config());
    if (!config) {
      return fail(
          std::move(config).error().with_context(cat(bundle_->canonical(), "/config.json")));
    }
    config_ = std::move(*config);
    core::ContainerFacts facts = config_->facts;
    facts.id = announced.facts.id;
    facts.bundle = bundle_->canonical();
    // Runtimes pass the bundle's annotations on: do not parse the same ones again.
    if (facts.annotations == announced.facts.annotations) {
      announced.facts = std::move(facts);
      return announced;
    }
    return app::admission_request(std::move(facts), *settings_, announced.placed_at);
  }

  /// Edits config.json, unless the container is to stay where it is.
  Status registered(const Admission& admission) {
    // A container in its place is there because of an earlier edit, whose values may be outdated.
    const bool concerned = admission.belongs_to || edited_before_;
    if (!concerned || admission.on_misplaced == core::OnMisplaced::kIgnore) return {};
    PODQOS_ASSIGN(const auto edited, for_next_start(bundle_->config(), *config_, admission));
    return bundle_->write_config(edited);
  }

 private:
  const core::Settings* settings_;
  Result<Bundle> bundle_;
  bool edited_before_ = false;
  std::optional<codec::OciConfig> config_;
};

/// Handles create_runtime() in one transaction.
Status start_in_bundle(const core::Settings& settings, app::Log& log, const codec::OciState& state,
                       Pid runtime, const app::Timeouts& timeouts) {
  if (!state.pid) {
    return fail(ErrorCode::kInvalidArgument,
                "the OCI state has no pid: register podqos-hook for the stage createRuntime");
  }
  PODQOS_ASSIGN(auto actual, cgroup::real_cgroup(*state.pid));
  PODQOS_ASSIGN(const auto started, sys::start_time_of(*state.pid));
  core::Init init{.process = {.pid = *state.pid, .start_time = started.value_or(StartTime{0})},
                  .cgroup = std::move(actual),
                  .child_of_monitor = runtime};
  core::ContainerFacts facts;
  facts.id = state.id;
  facts.annotations = state.annotations;
  PODQOS_ASSIGN(auto request, app::admission_request(std::move(facts), settings, init.cgroup));
  if (!request) return {};
  // Runtimes run the hook in the bundle; some do not report its path.
  auto opened = Bundle::open(state.bundle.empty() ? "." : state.bundle);
  request->facts.bundle = opened ? opened->identity() : state.bundle;
  BundleOfContainer bundle{settings, std::move(opened)};
  PODQOS_ASSIGN(auto transaction, app::Transaction::open(settings, log, timeouts));
  return app::container_started(
      transaction,
      {.request = std::move(*request),
       .init = std::move(init),
       .read_config = [&](AdmissionRequest r) { return bundle.complete(std::move(r)); },
       .after_registration =
           [&](const Admission& admission) { return bundle.registered(admission); }});
}

}  // namespace

Status create_runtime(const core::Settings& settings, app::Log& log, std::string_view text,
                      Pid runtime, const app::Timeouts& timeouts) {
  PODQOS_ASSIGN(const auto state, codec::parse_oci_state(text));
  return app::with_container_id(start_in_bundle(settings, log, state, runtime, timeouts), state.id);
}

namespace {

// Runtimes that do not wait for the processes they killed call the hook at once.
constexpr milliseconds kWhileAlive{200};
// Well below the 30 s after which the hook ends itself (hook/stages.cpp).
constexpr milliseconds kWhileEnding{5000};
// Each attempt takes the lock; pause in between.
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{160};

/// Retries app::end_container() until the container is removed from its pod, or is known to run.
Status end(const core::Settings& settings, app::Log& log, const app::EndedContainer& ended,
           const app::Timeouts& timeouts) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    const auto on_ending = waited < kWhileEnding ? app::OnEnding::kLeave : app::OnEnding::kDrop;
    PODQOS_ASSIGN(auto outcome, app::end_container(settings, log, ended, on_ending, timeouts));
    if (outcome.ending == app::Ending::kDone)
      return app::follow_up(settings, log, std::move(outcome.unfinished), timeouts);
    if (outcome.ending == app::Ending::kStillAlive && waited >= kWhileAlive) break;
    std::this_thread::sleep_for(pause);
  }
  log.info(cat("container ", printable(ended.id),
               ": ignored poststop of an earlier container with this id"));
  return {};
}

}  // namespace

Status poststop(const core::Settings& settings, app::Log& log, std::string_view text, Pid caller,
                const app::Timeouts& timeouts) {
  PODQOS_ASSIGN(const auto state, codec::parse_oci_state(text));
  const app::EndedContainer ended{
      .id = state.id, .bundle = canonical_bundle(state.bundle), .caller = caller};
  return app::with_container_id(end(settings, log, ended, timeouts), state.id);
}

}  // namespace podqos::hook

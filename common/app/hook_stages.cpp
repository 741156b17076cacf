#include "common/app/hook_stages.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/bundle.h"
#include "common/app/event.h"
#include "common/app/known_container.h"
#include "common/app/membership.h"
#include "common/app/monitor.h"
#include "common/app/node.h"
#include "common/app/place.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/app/settle.h"
#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/codec/oci_state.h"
#include "common/core/driver.h"
#include "common/core/policy.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// A container's init, in the cgroup where it really is, and the runtime that has started it.
struct Init {
  Pid pid;
  Pid runtime;
  std::string cgroup;
};

/// Which formula the node's runtime uses, if the weight that it gave the container tells.
void observe_weight(Event& event, const core::PodRecord& record,
                    const core::ContainerRecord& container) {
  const bool wanted = event.settings().weight_formula == core::WeightFormulaSetting::kAuto &&
                      !event.tiers().weight_formula &&
                      event.cgroups().layout_without_hugepages().cpu == core::CgroupVersion::kV2;
  if (!wanted) return;
  const auto values = core::container_values(record, container.name, event.settings());
  if (!values || !values->cpu_shares) return;
  const auto text = event.cgroups().read(container.cgroup, core::Controller::kCpu, "cpu.weight");
  const std::int64_t weight = text ? parse_int(*text).value_or(0) : 0;
  const auto linear =
      core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLinear).value();
  const auto log = core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLog).value();
  if (linear == log) return;
  if (weight == linear) event.tiers().weight_formula = core::WeightFormula::kLinear;
  if (weight == log) event.tiers().weight_formula = core::WeightFormula::kLog;
}

/// The container can do without: what the monitor needs is charged elsewhere then.
void try_charge_monitor(Event& event, const core::PodRecord& record, Pid runtime) {
  auto done = charge_monitor(event, record, runtime);
  if (!done) {
    event.log().warning(
        cat("pod ", record.pod.uid, ": its monitor is not charged to it: ", done.error().message));
  }
}

/// The runtime has made a container that was placed before.
Status confirm(Event& event, KnownContainer found, const std::string& bundle, const Init& init) {
  core::ContainerRecord& container = found.container();
  auto started = sys::start_time_of(init.pid);
  if (!started) return fail(std::move(started).error());
  std::erase_if(event.tiers().pending, [&](const core::PendingEntry& entry) {
    return entry.id == container.id && entry.bundle == container.bundle;
  });
  container.state = core::ContainerState::kLive;
  container.pid = init.pid;
  container.start_time = started->value_or(StartTime{0});
  const bool elsewhere =
      init.cgroup != container.cgroup && !init.cgroup.starts_with(cat(container.cgroup, "/"));
  if (elsewhere) {
    event.log().warning(cat("pod ", found.record.pod.uid, ", container ", printable(container.id),
                            ": the runtime put it into cgroup ", init.cgroup, ", not into ",
                            container.cgroup, ": the pod's limits do not bound it"));
    container.cgroup = init.cgroup;
  }
  if (container.bundle != bundle && !bundle.empty()) {
    const core::IndexEntry old{
        .id = container.id, .bundle = container.bundle, .uid = found.record.pod.uid};
    container.bundle = bundle;
    if (auto done = event.store().put_container(
            {.id = container.id, .bundle = container.bundle, .uid = found.record.pod.uid});
        !done)
      return done;
    if (auto done = event.save(found.record); !done) return done;
    if (auto done = event.store().erase_container(old); !done) return done;
  } else if (auto done = event.save(found.record); !done) {
    return done;
  }
  try_charge_monitor(event, found.record, init.runtime);
  const auto before = event.tiers().weight_formula;
  observe_weight(event, found.record, container);
  if (event.tiers().weight_formula != before) {
    // Every weight written so far used the other formula.
    if (auto done = recompute(event); !done) return fail(std::move(done).error());
    return event.finish();
  }
  return event.recovered() ? event.finish() : event.store().commit();
}

Status rewrite_bundle(Bundle& bundle, std::string_view text, const codec::OciConfig& config,
                      const Membership& member) {
  const core::ConfigEdit edit =
      core::config_edit(core::oci_cgroups_path(*member.belongs_to, member.container.id),
                        member.missing, member.oom_score_adj);
  auto splices = codec::plan_splices(text, config, edit, std::nullopt);
  if (!splices) return fail(std::move(splices).error());
  if (splices->empty()) return {};
  auto edited = codec::apply_splices(text, *splices);
  if (!edited) return fail(std::move(edited).error());
  return bundle.write_config(*edited);
}

Result<std::optional<Arrival>> arrival_from_bundle(const Event& event, Arrival announced,
                                                   core::ContainerFacts facts,
                                                   const std::string& actual) {
  // Runtimes hand the bundle's annotations on: the same ones need not be read again.
  if (facts.annotations == announced.facts.annotations) {
    announced.facts = std::move(facts);
    return announced;
  }
  return arrival_of(std::move(facts), event.settings(), actual);
}

/// What becomes of the bundle of a container that runs outside its pod.
using Rewrite = std::function<Status(const Membership&)>;

/// A container that nobody placed, with all that is known of it.
Status register_running(Event& event, Arrival arrival, const Init& init, const Rewrite& rewrite) {
  // A process has a cgroup, so that something tells.
  arrival.driver = core::detect_driver({.path = arrival.facts.cgroups_path, .real = init.cgroup})
                       .value_or(machine_driver());
  if (auto fits = core::check_driver(event.settings().cgroup_driver, arrival.driver); !fits)
    return fits;
  auto started = sys::start_time_of(init.pid);
  if (!started) return fail(std::move(started).error());
  arrival.running = true;
  arrival.state = core::ContainerState::kLive;
  arrival.pid = init.pid;
  arrival.start_time = started->value_or(StartTime{0});
  event.tell_at_the_end();
  auto member = join(event, arrival);
  if (!member) return fail(std::move(member).error());
  if (!*member) return {};
  const auto on_misplaced = event.settings().on_misplaced;
  auto done = settle_container(event, **member, init.cgroup);
  if (done && (*member)->belongs_to && on_misplaced != core::OnMisplaced::kIgnore)
    done = rewrite(**member);
  try_charge_monitor(event, (*member)->record, init.runtime);
  auto finished = event.finish();
  if (!done) return done;
  return finished;
}

/// The same where the facts come from the bundle. `announced` is what the state told of it.
Status register_from_bundle(Event& event, Arrival announced, const Init& init,
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
  auto arrival = arrival_from_bundle(event, std::move(announced), std::move(facts), init.cgroup);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  return register_running(event, std::move(**arrival), init, [&](const Membership& member) {
    return rewrite_bundle(*bundle, *text, *config, member);
  });
}

/// One that was placed before keeps its place, another one is registered. nullopt: it does not
/// concern podqos.
Result<std::optional<Arrival>> announce(const core::Settings& settings, Log& log,
                                        core::ContainerFacts facts, const std::string& cgroup) {
  auto arrival = arrival_of(std::move(facts), settings, cgroup);
  if (!arrival || !*arrival) return arrival;
  if (owns_host()) return arrival;
  log.debug(cat("container ", printable((*arrival)->facts.id),
                ": not root on the host, nothing to manage"));
  return std::nullopt;
}

Result<std::optional<KnownContainer>> look_for(Event& event, const core::ContainerFacts& facts) {
  if (auto done = recover(event); !done) return fail(std::move(done).error());
  return find_container(event, facts.id, facts.bundle);
}

/// Where no engine carries the score.
Status set_oom_score(Event& event, const KnownContainer& found, const core::ContainerFacts& told,
                     Pid pid) {
  if (core::engine_sets_oom(told) || found.record.adopted) return {};
  const int score = core::container_oom_score_adj(
      found.record, found.record.containers[found.index], event.capacity().memory);
  return event.run({core::SetOomScore{.pid = pid, .score = reachable_oom_score(score)}});
}

Status start_in_bundle(const core::Settings& settings, Log& log, const codec::OciState& state,
                       Pid runtime) {
  if (!state.pid) {
    return fail(ErrorCode::kInvalidArgument,
                "the state names no pid: register podqos-hook for the stage createRuntime");
  }
  auto actual = real_cgroup(*state.pid);
  if (!actual) return fail(std::move(actual).error());
  const Init init{.pid = *state.pid, .runtime = runtime, .cgroup = std::move(*actual)};
  core::ContainerFacts facts;
  facts.id = state.id;
  facts.annotations = state.annotations;
  auto arrival = announce(settings, log, std::move(facts), init.cgroup);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  // Runtimes run the hook in the bundle; some do not name it.
  auto bundle = Bundle::open(state.bundle.empty() ? "." : state.bundle);
  (*arrival)->facts.bundle = bundle ? bundle->canonical() : state.bundle;
  auto event = Event::open(settings, log);
  if (!event) return fail(std::move(event).error());
  auto found = look_for(*event, (*arrival)->facts);
  if (!found) return fail(std::move(found).error());
  auto done = *found ? confirm(*event, std::move(**found), (*arrival)->facts.bundle, init)
                     : register_from_bundle(*event, std::move(**arrival), init, bundle);
  return done ? event->finish_recovery() : done;
}

/// What is told of a container that podqos knows already.
enum class Told : std::uint8_t { kAsBefore, kOtherwise };

Status start_as_told(const core::Settings& settings, Log& log, const core::ContainerFacts& told,
                     const Process& process, Told how) {
  auto actual = real_cgroup(process.init);
  if (!actual) return fail(std::move(actual).error());
  const Init init{.pid = process.init, .runtime = process.runtime, .cgroup = std::move(*actual)};
  auto arrival = announce(settings, log, told, init.cgroup);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  auto event = Event::open(settings, log);
  if (!event) return fail(std::move(event).error());
  auto found = look_for(*event, told);
  if (!found) return fail(std::move(found).error());
  Status done;
  if (*found && how == Told::kAsBefore) {
    done = set_oom_score(*event, **found, told, init.pid);
    if (done) done = confirm(*event, std::move(**found), told.bundle, init);
  } else {
    done = register_running(*event, std::move(**arrival), init,
                            [](const Membership&) { return Status{}; });
  }
  return done ? event->finish_recovery() : done;
}

Status named(Status done, const std::string& id) {
  if (done) return done;
  return fail(std::move(done).error().with_context(cat("container ", printable(id))));
}

}  // namespace

Status create_runtime(const core::Settings& settings, Log& log, std::string_view text,
                      Pid runtime) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  return named(start_in_bundle(settings, log, *state, runtime), state->id);
}

Status container_started(const core::Settings& settings, Log& log, const core::ContainerFacts& told,
                         const Process& process) {
  return named(start_as_told(settings, log, told, process, Told::kAsBefore), told.id);
}

Status container_updated(const core::Settings& settings, Log& log, const core::ContainerFacts& told,
                         const Process& process) {
  return named(start_as_told(settings, log, told, process, Told::kOtherwise), told.id);
}

namespace {

enum class Poststop : std::uint8_t { kDone, kStillAlive };

/// One try under the lock.
Result<Poststop> try_poststop(const core::Settings& settings, Log& log, const std::string& id,
                              const std::string& bundle, Pid caller) {
  auto event = Event::open_existing(settings, log);
  if (!event) return fail(std::move(event).error());
  if (!*event) return Poststop::kDone;
  if (auto done = recover(**event); !done) return fail(std::move(done).error());
  auto found = find_container(**event, id, bundle);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Poststop::kDone;
  }
  const core::ContainerRecord container = (*found)->container();
  const bool own_failure =
      container.state == core::ContainerState::kPending && container.pid == caller;
  // A runtime removes the container's cgroup before this hook; its init may still be on its way
  // out.
  const bool living = lives(container) && (*event)->cgroups().exists(container.cgroup);
  if (living && !own_failure) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Poststop::kStillAlive;
  }
  auto done = drop_container(**event, std::move((*found)->record), container.id, container.bundle);
  if (done) {
    expire_pending(**event, id);
    tend_lingering(**event);
    done = (*event)->finish();
  }
  if (!done) return fail(std::move(done).error());
  return Poststop::kDone;
}

constexpr int kPoststopTries = 20;
constexpr timespec kPoststopPause{.tv_sec = 0, .tv_nsec = 10'000'000};

Status end(const core::Settings& settings, Log& log, const std::string& id,
           const std::string& bundle, Pid caller) {
  if (!owns_host()) return {};
  for (int tries = 0; tries < kPoststopTries; ++tries) {
    auto outcome = try_poststop(settings, log, id, bundle, caller);
    if (!outcome) return fail(std::move(outcome).error());
    if (*outcome == Poststop::kDone) return {};
    // A process that was killed a moment ago; the lock is free. A signal only shortens it.
    static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, 0, &kPoststopPause, nullptr));
  }
  log.info(cat("container ", printable(id),
               ": a poststop for an earlier container of this id, nothing is released"));
  return {};
}

}  // namespace

Status poststop(const core::Settings& settings, Log& log, std::string_view text, Pid caller) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  return named(end(settings, log, state->id, canonical_bundle(state->bundle), caller), state->id);
}

Status container_ended(const core::Settings& settings, Log& log, const std::string& id,
                       Pid caller) {
  return named(end(settings, log, id, "", caller), id);
}

}  // namespace podqos::app

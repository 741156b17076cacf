#include "common/app/hook_stages.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "common/app/bundle.h"
#include "common/app/event.h"
#include "common/app/membership.h"
#include "common/app/monitor.h"
#include "common/app/node.h"
#include "common/app/place.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/codec/oci_state.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// A container of the state, and its record.
struct Found {
  core::PodRecord record;
  std::size_t index = 0;
  [[nodiscard]] core::ContainerRecord& container() { return record.containers[index]; }
};

/// The entry that the id and bundle mean: an exact match, else the only one of that id whose bundle
/// is not known yet.
Result<std::optional<core::IndexEntry>> look_up(Event& event, const std::string& id,
                                                const std::string& bundle) {
  auto entries = event.store().containers(id);
  if (!entries) return fail(std::move(entries).error());
  const core::IndexEntry* loose = nullptr;
  std::size_t candidates = 0;
  for (const core::IndexEntry& entry : *entries) {
    if (entry.id != id) continue;
    if (!bundle.empty() && entry.bundle == bundle) return entry;
    if (!bundle.empty() && !entry.bundle.empty()) continue;
    loose = &entry;
    ++candidates;
  }
  if (candidates > 1) {
    return fail(
        ErrorCode::kConflict,
        cat("container id ", printable(id), " is in use in ", candidates,
            " bundles and the runtime names none: nothing is done, podqosctl reconcile will "
            "find out which of them has ended"));
  }
  if (loose == nullptr) return std::nullopt;
  return *loose;
}

Result<std::optional<Found>> find_container(Event& event, const std::string& id,
                                            const std::string& bundle) {
  auto entry = look_up(event, id, bundle);
  if (!entry) return fail(std::move(entry).error());
  if (!*entry) return std::nullopt;
  auto record = event.store().pod((*entry)->uid);
  if (!record) return fail(std::move(record).error());
  if (*record) {
    auto& containers = (*record)->containers;
    const auto found = std::ranges::find_if(containers, [&](const core::ContainerRecord& c) {
      return c.id == id && c.bundle == (*entry)->bundle;
    });
    if (found != containers.end()) {
      const auto index = static_cast<std::size_t>(found - containers.begin());
      return Found{.record = std::move(**record), .index = index};
    }
  }
  // An entry without its record is what a process left that died in between.
  if (auto done = event.store().erase_container(**entry); !done)
    return fail(std::move(done).error());
  if (auto done = event.store().commit(); !done) return fail(std::move(done).error());
  return std::nullopt;
}

/// The real cgroup of a process: the path below a pod cgroup if any hierarchy shows one, else
/// memory's, else the first.
Result<std::string> real_cgroup(Pid pid) {
  auto entries = sys::cgroups_of(pid);
  if (!entries) return fail(std::move(entries).error());
  const sys::ProcCgroup* chosen = nullptr;
  for (const sys::ProcCgroup& entry : *entries) {
    const bool memory = std::ranges::find(entry.controllers, "memory") != entry.controllers.end();
    if (memory || chosen == nullptr) chosen = &entry;
    if (memory) break;
  }
  if (chosen == nullptr)
    return fail(ErrorCode::kNotFound, cat("process ", pid.value(), " is in no cgroup"));
  return chosen->path;
}

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
Status confirm(Event& event, Found found, const core::ContainerFacts& facts,
               const codec::OciState& state, Pid runtime, const std::string& actual) {
  core::ContainerRecord& container = found.container();
  const Pid pid = *state.pid;
  auto started = sys::start_time_of(pid);
  if (!started) return fail(std::move(started).error());
  std::erase_if(event.tiers().pending, [&](const core::PendingEntry& entry) {
    return entry.id == container.id && entry.bundle == container.bundle;
  });
  container.state = core::ContainerState::kLive;
  container.pid = pid;
  container.start_time = started->value_or(StartTime{0});
  const bool elsewhere =
      actual != container.cgroup && !actual.starts_with(cat(container.cgroup, "/"));
  if (elsewhere) {
    event.log().warning(cat("pod ", found.record.pod.uid, ", container ", printable(container.id),
                            ": the runtime put it into cgroup ", actual, ", not into ",
                            container.cgroup, ": the pod's limits do not bound it"));
    container.cgroup = actual;
  }
  if (container.bundle != facts.bundle && !facts.bundle.empty()) {
    const core::IndexEntry old{
        .id = container.id, .bundle = container.bundle, .uid = found.record.pod.uid};
    container.bundle = facts.bundle;
    if (auto done = event.store().put_container(
            {.id = container.id, .bundle = container.bundle, .uid = found.record.pod.uid});
        !done)
      return done;
    if (auto done = event.save(found.record); !done) return done;
    if (auto done = event.store().erase_container(old); !done) return done;
  } else if (auto done = event.save(found.record); !done) {
    return done;
  }
  try_charge_monitor(event, found.record, runtime);
  const auto before = event.tiers().weight_formula;
  observe_weight(event, found.record, container);
  if (event.tiers().weight_formula != before) {
    // Every weight written so far used the other formula.
    if (auto done = recompute(event); !done) return fail(std::move(done).error());
    return event.finish();
  }
  return event.recovered() ? event.finish() : event.store().commit();
}

/// A runtime that was told to make no cgroup leaves the container, like this hook, in its caller's.
Result<bool> holds_this_process(const std::string& cgroup) {
  auto own = real_cgroup(Pid{::getpid()});
  if (!own) return fail(std::move(own).error());
  return cgroup == "/" || *own == cgroup || own->starts_with(cat(cgroup, "/"));
}

/// Values for the container where it is, and for the next start from this bundle.
Status settle_container(Event& event, const Membership& member, const core::ContainerFacts& facts,
                        const std::string& actual) {
  if (member.belongs_to && event.settings().on_misplaced == core::OnMisplaced::kIgnore) {
    event.log().info(cat("pod ", member.record.pod.uid, ", container ", printable(facts.id),
                         " runs in cgroup ", actual, ", not in ", *member.belongs_to,
                         ": only counted"));
    return {};
  }
  const core::ContainerRecord& container = member.container;
  if (member.belongs_to && !container.moved) {
    auto shared = holds_this_process(actual);
    if (!shared) return fail(std::move(shared).error());
    if (*shared) {
      return fail(ErrorCode::kConflict,
                  cat("pod ", member.record.pod.uid, ": cgroup ", actual,
                      " is the runtime's own, so the container's limits are not written there: let "
                      "the runtime give the container a cgroup of its own"));
    }
  }
  core::Plan plan = core::plan_container(container, member.missing,
                                         event.layout_for(member.missing), event.formula());
  if (member.oom_score_adj) {
    plan.emplace_back(core::SetOomScore{.pid = container.pid, .score = *member.oom_score_adj});
  }
  const bool scope_made =
      container.moved && core::driver_of(container.cgroup) == core::Driver::kSystemd;
  if (auto done = scope_made ? event.run_beside_systemd(plan) : event.run(plan); !done) return done;
  if (!member.belongs_to) return {};
  event.log().warning(cat("pod ", member.record.pod.uid, ", container ", printable(facts.id),
                          " runs in cgroup ", actual,
                          container.moved ? " and was moved to " : ", not in ", *member.belongs_to,
                          ": register podqos-runtime, or Podman's precreate hook, so that it is "
                          "placed before it starts"));
  return {};
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

/// A container that nobody placed: its facts come from the bundle. `announced` is what the state
/// told of it.
Status register_container(Event& event, const codec::OciState& state, Pid runtime,
                          Arrival announced, Result<Bundle>& bundle, const std::string& actual) {
  if (!bundle) return fail(bundle.error());
  auto text = bundle->read_config();
  if (!text) return fail(std::move(text).error());
  auto config = codec::OciConfig::parse(*text);
  if (!config)
    return fail(std::move(config).error().with_context(cat(bundle->canonical(), "/config.json")));
  core::ContainerFacts facts = config->facts;
  facts.id = state.id;
  facts.bundle = bundle->canonical();
  // A process has a cgroup, so that something tells.
  const core::Driver driver =
      core::detect_driver({.path = facts.cgroups_path, .real = actual}).value_or(machine_driver());
  if (auto fits = core::check_driver(event.settings().cgroup_driver, driver); !fits) return fits;
  auto started = sys::start_time_of(*state.pid);
  if (!started) return fail(std::move(started).error());

  auto arrival = arrival_from_bundle(event, std::move(announced), std::move(facts), actual);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  (*arrival)->running = true;
  (*arrival)->driver = driver;
  (*arrival)->state = core::ContainerState::kLive;
  (*arrival)->pid = *state.pid;
  (*arrival)->start_time = started->value_or(StartTime{0});
  event.tell_at_the_end();
  auto member = join(event, **arrival);
  if (!member) return fail(std::move(member).error());
  if (!*member) return {};
  const auto on_misplaced = event.settings().on_misplaced;
  auto done = settle_container(event, **member, (*arrival)->facts, actual);
  if (done && (*member)->belongs_to && on_misplaced != core::OnMisplaced::kIgnore) {
    done = rewrite_bundle(*bundle, *text, *config, **member);
  }
  try_charge_monitor(event, (*member)->record, runtime);
  auto finished = event.finish();
  if (!done) return done;
  return finished;
}

}  // namespace

Status create_runtime(const core::Settings& settings, Log& log, std::string_view text,
                      Pid runtime) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  const std::string who = cat("container ", printable(state->id));
  if (!state->pid) {
    return fail(
        ErrorCode::kInvalidArgument,
        cat(who, ": the state names no pid: register podqos-hook for the stage createRuntime"));
  }
  auto actual = real_cgroup(*state->pid);
  if (!actual) return fail(std::move(actual).error().with_context(who));
  core::ContainerFacts facts;
  facts.id = state->id;
  facts.annotations = state->annotations;
  auto arrival = arrival_of(std::move(facts), settings, *actual);
  if (!arrival) return fail(std::move(arrival).error().with_context(who));
  if (!*arrival) return {};
  if (!owns_host()) {
    log.debug(cat(who, ": not root on the host, nothing to manage"));
    return {};
  }
  // Runtimes run the hook in the bundle; some do not name it.
  auto bundle = Bundle::open(state->bundle.empty() ? "." : state->bundle);
  (*arrival)->facts.bundle = bundle ? bundle->canonical() : state->bundle;
  auto event = Event::open(settings, log);
  if (!event) return fail(std::move(event).error().with_context(who));
  if (auto done = recover(*event); !done) return fail(std::move(done).error().with_context(who));
  auto found = find_container(*event, state->id, (*arrival)->facts.bundle);
  if (!found) return fail(std::move(found).error().with_context(who));
  auto done =
      *found ? confirm(*event, std::move(**found), (*arrival)->facts, *state, runtime, *actual)
             : register_container(*event, *state, runtime, std::move(**arrival), bundle, *actual);
  if (done) done = event->finish_recovery();
  if (!done) return fail(std::move(done).error().with_context(who));
  return {};
}

namespace {

enum class Poststop : std::uint8_t { kDone, kStillAlive };

/// One try under the lock.
Result<Poststop> try_poststop(const core::Settings& settings, Log& log,
                              const codec::OciState& state, Pid caller) {
  auto event = Event::open_existing(settings, log);
  if (!event) return fail(std::move(event).error());
  if (!*event) return Poststop::kDone;
  if (auto done = recover(**event); !done) return fail(std::move(done).error());
  auto found = find_container(**event, state.id, canonical_bundle(state.bundle));
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
    expire_pending(**event, state.id);
    tend_lingering(**event);
    done = (*event)->finish();
  }
  if (!done) return fail(std::move(done).error());
  return Poststop::kDone;
}

constexpr int kPoststopTries = 20;
constexpr timespec kPoststopPause{.tv_sec = 0, .tv_nsec = 10'000'000};

}  // namespace

Status poststop(const core::Settings& settings, Log& log, std::string_view text, Pid caller) {
  auto state = codec::parse_oci_state(text);
  if (!state) return fail(std::move(state).error());
  const std::string who = cat("container ", printable(state->id));
  if (!owns_host()) return {};
  for (int tries = 0; tries < kPoststopTries; ++tries) {
    auto outcome = try_poststop(settings, log, *state, caller);
    if (!outcome) return fail(std::move(outcome).error().with_context(who));
    if (*outcome == Poststop::kDone) return {};
    // A process that was killed a moment ago; the lock is free meanwhile.
    // Woken early by a signal it only looks again sooner.
    static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, 0, &kPoststopPause, nullptr));
  }
  log.info(cat(who, ": a poststop for an earlier container of this id, nothing is released"));
  return {};
}

}  // namespace podqos::app

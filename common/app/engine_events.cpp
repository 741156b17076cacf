#include "common/app/engine_events.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/app/counting.h"
#include "common/app/event.h"
#include "common/app/known_container.h"
#include "common/app/node.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/app/running_container.h"
#include "common/app/settle.h"
#include "common/base/text.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "common/core/record_size.h"
#include "common/core/resize.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// Where no engine carries the score.
Status set_oom_score(Event& event, const KnownContainer& found, const core::ContainerFacts& told,
                     Pid pid) {
  if (core::engine_sets_oom(told) || found.record.adopted) return {};
  const int score = core::container_oom_score_adj(
      found.record, found.record.containers[found.index], event.capacity().memory);
  return event.run({core::SetOomScore{.pid = pid, .score = reachable_oom_score(score)}});
}

/// nullopt: the process has gone.
Result<std::optional<Init>> init_of(const Process& process) {
  auto thread = sys::living_thread_of(process.init);
  if (!thread) return fail(std::move(thread).error());
  if (!*thread) return std::nullopt;
  auto actual = real_cgroup(**thread);
  if (!actual && actual.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!actual) return fail(std::move(actual).error());
  return Init{.pid = process.init, .runtime = process.runtime, .cgroup = std::move(*actual)};
}

Status confirm_told(Event& event, KnownContainer found, const Told& told, const Init& init) {
  if (auto done = set_oom_score(event, found, told.facts, init.pid); !done) return done;
  return confirm(event, std::move(found), told.facts, init);
}

Status start(const core::Settings& settings, Log& log, const Told& told, const Patience& patience) {
  auto actual = real_cgroup(told.process.init);
  if (!actual) return fail(std::move(actual).error());
  const Init init{
      .pid = told.process.init, .runtime = told.process.runtime, .cgroup = std::move(*actual)};
  auto arrival = announce(settings, log, told.facts, init.cgroup);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  auto event = Event::open(settings, log, patience);
  if (!event) return fail(std::move(event).error());
  auto found = look_for(*event, told.facts);
  if (!found) return fail(std::move(found).error());
  if (*found) {
    if (auto done = confirm_told(*event, std::move(**found), told, init); !done) return done;
    return finish_confirmed(*event);
  }
  auto member = take_in(*event, std::move(**arrival), init);
  if (!member) return fail(std::move(member).error());
  Status done;
  if (*member) {
    Status learned;
    if (!(*member)->belongs_to && !(*member)->left_with_engine) {
      // Whoever has put it there has asked the runtime for its values.
      (*member)->missing = {};
      if (told.facts.resources.cpu_shares)
        learned =
            learn_formula(*event, (*member)->record, (*member)->container, told.facts.resources);
    }
    done = settle_container(*event, **member, init.cgroup);
    if (done) done = std::move(learned);
    try_charge_monitor(*event, (*member)->record, init.runtime);
  }
  auto finished = event->finish();
  return done ? finished : done;
}

/// A container that runs, and of whose coming nobody has told.
Status count_running(Event& event, Arrival arrival, const Init& init) {
  auto member = take_in(event, std::move(arrival), init);
  if (!member) return fail(std::move(member).error());
  if (!*member || !(*member)->belongs_to) return {};
  event.log().info(cat("pod ", (*member)->record.pod.uid, ", container ",
                       printable((*member)->container.id), " runs in cgroup ", init.cgroup,
                       " since before podqos knew of it, not in ", *(*member)->belongs_to,
                       ": only counted"));
  return {};
}

/// Settings for what runs already: it is not touched.
core::Settings without_touching(core::Settings settings) {
  settings.on_misplaced = core::OnMisplaced::kIgnore;
  return settings;
}

Result<Followed> finished(Status done, Followed followed = Followed::kNow) {
  if (!done) return fail(std::move(done).error());
  return followed;
}

Result<Followed> resize(Event& event, core::PodRecord record, const core::Resize& change) {
  const core::PodRecord before = record;
  core::apply_resize(record, change);
  if (record.pod == before.pod && record.sums == before.sums &&
      record.containers == before.containers)
    return finished(event.finish_recovery());
  if (auto fits = core::check_record_size(record); !fits) return fail(std::move(fits).error());
  // Of the containers that are known now; before, it may have been more.
  record.grown_cpu_limit.reset();
  record.grown_memory_limit.reset();
  grant_pod(event, record, before);
  if (!record.adopted) {
    if (auto sound = core::pod_values(record, event.settings()); !sound)
      return fail(std::move(sound).error());
  }
  if (auto done = event.store().begin(); !done) return fail(std::move(done).error());
  count_pod(event, record, before);
  if (auto done = event.save(record); !done) return fail(std::move(done).error());
  // Its kubelet changes the pod's cgroup by itself.
  if (record.adopted) return finished(event.finish());
  const auto written = event.update_pod(record, before);
  event.log().info(cat("pod ", record.pod.uid, " resized: cpu ", record.granted.cpu.value(),
                       "m, memory ", record.granted.memory.value(), " requested"));
  if (written) return finished(event.finish());
  // The engine changes its container after this: until then cgroup v1 keeps the pod's quota up.
  event.log().info(
      cat("pod ", record.pod.uid, " follows once its containers have: ", written.error().message));
  return finished(event.finish(), Followed::kLater);
}

/// The record of the pod that a sandbox is told of, or of the pod of a container.
Result<std::optional<core::PodRecord>> pod_of(Event& event, const Arrival& arrival) {
  auto found = find_container(event, arrival.facts.id, arrival.facts.bundle);
  if (!found) return fail(std::move(found).error());
  if (*found) return std::move((*found)->record);
  // Not every engine has a process for its sandbox, and not every container has started.
  if (!arrival.annotations.engine.pod_uid) return std::nullopt;
  auto record = event.store().pod(*arrival.annotations.engine.pod_uid);
  if (!record) return fail(std::move(record).error());
  const bool same_sandbox = *record && !(*record)->sandbox_id.empty() &&
                            arrival.annotations.engine.sandbox_id == (*record)->sandbox_id;
  if (!arrival.annotations.engine.is_sandbox && !same_sandbox) return std::nullopt;
  return std::move(*record);
}

std::string name_in(const core::PodRecord& record, const Arrival& arrival) {
  for (const core::ContainerRecord& container : record.containers) {
    if (container.id == arrival.facts.id) return container.name;
  }
  return arrival.annotations.engine.container_name.value_or(arrival.facts.id);
}

/// One that runs and is not known yet, for whatever reason; not a sandbox.
Result<bool> count_unknown(Event& event, const Arrival& arrival, const std::optional<Init>& init) {
  if (!init || arrival.annotations.engine.is_sandbox) return false;
  auto found = find_container(event, arrival.facts.id, arrival.facts.bundle);
  if (!found) return fail(std::move(found).error());
  if (*found) return false;
  if (auto done = count_running(event, arrival, *init); !done) return fail(std::move(done).error());
  return true;
}

Result<Followed> change(const core::Settings& settings, Log& log, const Told& told,
                        const Patience& patience) {
  auto init = init_of(told.process);
  if (!init) return fail(std::move(init).error());
  auto arrival = announce(settings, log, told.facts, *init ? (*init)->cgroup : "");
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return Followed::kNow;
  const core::Settings untouched = without_touching(settings);
  auto event = Event::open(untouched, log, patience);
  if (!event) return fail(std::move(event).error());
  if (auto done = recover(*event); !done) return fail(std::move(done).error());
  const auto counted = count_unknown(*event, **arrival, *init);
  if (!counted) return fail(counted.error());
  auto record = pod_of(*event, **arrival);
  if (!record) return fail(std::move(record).error());
  if (*record) {
    const bool whole_pod = (*arrival)->annotations.engine.is_sandbox;
    core::Resize resized{
        .whole_pod = whole_pod,
        .container = name_in(**record, **arrival),
        .now = whole_pod ? (*arrival)->annotations.engine.pod_sums.value_or(core::EngineResources{})
                         : told.facts.resources};
    auto followed = resize(*event, std::move(**record), resized);
    if (!followed || !*counted || event->finished()) return followed;
    return finished(event->finish(), *followed);
  }
  // A sandbox of which nothing was known.
  if (*init && !*counted) {
    if (auto done = count_running(*event, std::move(**arrival), **init); !done)
      return fail(std::move(done).error());
  }
  return finished(*init ? event->finish() : event->finish_recovery());
}

/// One of a stock. `event` is opened where nothing of podqos was there and this is the first.
Status look_at(std::optional<Event>& event, const core::Settings& settings, Log& log,
               const Told& told, const Patience& patience) {
  auto init = init_of(told.process);
  if (!init) return fail(std::move(init).error());
  if (!*init) return {};
  auto arrival = announce(settings, log, told.facts, (*init)->cgroup);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return {};
  if (!event) {
    auto opened = Event::open(settings, log, patience);
    if (!opened) return fail(std::move(opened).error());
    event = std::move(*opened);
  }
  auto found = find_container(*event, told.facts.id, told.facts.bundle);
  if (!found) return fail(std::move(found).error());
  auto done = *found ? confirm_told(*event, std::move(**found), told, **init)
                     : count_running(*event, std::move(**arrival), **init);
  // The sums may know what the record does not, but for a claim that is refused before anything is
  // written.
  if (!done && done.error().code != ErrorCode::kInvalidArgument) event->store().keep_mark();
  return done;
}

Result<EngineList> list_of(const Listener& listener) {
  auto started = sys::start_time_of(listener.pid);
  if (!started) return fail(std::move(started).error());
  return EngineList{.ids = listener.ids,
                    .listener = listener.pid,
                    .listener_start = started->value_or(StartTime{0})};
}

}  // namespace

Status container_started(const core::Settings& settings, Log& log, const Told& told,
                         const Patience& patience) {
  return about(start(settings, log, told, patience), told.facts.id);
}

Result<Followed> resources_changed(const core::Settings& settings, Log& log, const Told& told,
                                   const Patience& patience) {
  return about(change(settings, log, told, patience), told.facts.id);
}

StockTaking::StockTaking(std::vector<Told> all) : all_{std::move(all)} {}

void StockTaking::forget(std::string_view id) {
  const auto gone =
      std::ranges::find_if(all_, [&](const Told& told) { return told.facts.id == id; });
  if (gone == all_.end()) return;
  if (gone - all_.begin() < static_cast<std::ptrdiff_t>(next_)) --next_;
  all_.erase(gone);
}

Status StockTaking::compare(Event& event, const Listener& listener) {
  auto list = list_of(listener);
  if (!list) return fail(std::move(list).error());
  for (const Told& told : all_)
    list->ids.insert(told.facts.id);
  auto live = recompute_beside(event, *list);
  if (!live) return fail(std::move(live).error());
  live_ = std::move(*live);
  return {};
}

Status StockTaking::prepare(Event& event, const Listener& listener) {
  if (!compared_) {
    if (auto done = compare(event, listener); !done) return done;
    compared_ = true;
    return {};
  }
  if (!kept_mark_) return recover(event);
  // What a piece could not bring to an end would make each of the next recompute everything: that
  // is for the event after the last.
  event.begin_recovery();
  event.store().keep_mark();
  return {};
}

Result<bool> StockTaking::take(const core::Settings& settings, Log& log, const Listener& listener,
                               const Piece& piece) {
  if (!owns_host()) return true;
  const core::Settings untouched = without_touching(settings);
  auto event = Event::open_existing(untouched, log, piece.patience);
  if (!event) return fail(std::move(event).error());
  if (*event) {
    if (auto done = prepare(**event, listener); !done) return fail(std::move(done).error());
  }
  compared_ = true;  // without a state there is nothing to compare with
  const sys::Clock& clock = *piece.patience.clock;
  const auto begin = clock.now();
  while (next_ < piece.end) {
    const Told& told = all_[next_++];
    if (told.process.init == Pid{0} || live_.contains(told.facts.id)) continue;
    if (auto done = about(look_at(*event, untouched, log, told, piece.patience), told.facts.id);
        !done)
      log.error(done.error().message);
    if (piece.at_most && clock.now() - begin >= *piece.at_most) break;
  }
  if (*event) {
    if (auto done = (*event)->finish(); !done) return fail(std::move(done).error());
    kept_mark_ = (*event)->store().dirty();
  }
  return next_ == all_.size();
}

Result<bool> StockTaking::go_on(const core::Settings& settings, Log& log, const Listener& listener,
                                std::chrono::milliseconds at_most, const Patience& patience) {
  return take(settings, log, listener,
              {.end = all_.size(), .at_most = at_most, .patience = patience});
}

bool StockTaking::awaits(std::string_view sandbox) const {
  return std::any_of(all_.begin() + static_cast<std::ptrdiff_t>(next_), all_.end(),
                     [&](const Told& told) { return told.sandbox == sandbox; });
}

Result<bool> StockTaking::take_pod(const core::Settings& settings, Log& log,
                                   const Listener& listener, std::string_view sandbox,
                                   const Patience& patience) {
  const auto rest =
      std::stable_partition(all_.begin() + static_cast<std::ptrdiff_t>(next_), all_.end(),
                            [&](const Told& told) { return told.sandbox == sandbox; });
  const auto end = static_cast<std::size_t>(rest - all_.begin());
  return take(settings, log, listener, {.end = end, .at_most = std::nullopt, .patience = patience});
}

Result<Ending> container_ended(const core::Settings& settings, Log& log, const std::string& id,
                               Pid caller, const Patience& patience) {
  if (!owns_host()) return Ending::kDone;
  auto ended = about(end_container(settings, log, {.id = id, .bundle = "", .caller = caller},
                                   OnEnding::kLeave, patience),
                     id);
  if (!ended) return fail(std::move(ended).error());
  return ended->ending;
}

Status look_after(const core::Settings& settings, Log& log, const Listener& listener,
                  bool everything, const Patience& patience) {
  if (!owns_host()) return {};
  auto list = list_of(listener);
  if (!list) return fail(std::move(list).error());
  auto event = Event::open_existing(settings, log, patience);
  if (!event) return fail(std::move(event).error());
  if (!*event) return {};
  if (everything) {
    if (auto live = recompute_beside(**event, *list); !live) return fail(std::move(live).error());
  } else {
    if (auto done = recover(**event); !done) return done;
    expire_pending(**event, "", &*list);
    tend_lingering(**event);
  }
  return (*event)->finish();
}

}  // namespace podqos::app

#include "common/app/place.h"

#include <algorithm>
#include <utility>

#include "common/app/cgroup_reading.h"
#include "common/app/event.h"
#include "common/app/follow_up.h"
#include "common/app/membership.h"
#include "common/app/node.h"
#include "common/app/release.h"
#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/oci_config.h"
#include "common/core/container_values.h"
#include "common/core/naming.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// The cgroup that cgroupsPath means: a scope's stands in three parts there.
std::optional<std::string> placed_at_of(const std::optional<std::string>& cgroups_path,
                                        core::Driver driver) {
  if (!cgroups_path || driver == core::Driver::kCgroupfs) return cgroups_path;
  const auto unit = core::parse_systemd_cgroups_path(*cgroups_path);
  return unit ? core::scope_path(*unit) : cgroups_path;
}

/// The limits of the cgroup that the engine has made for its pod, which the container is about to
/// leave; nullopt if it has none. An engine that names the pod's uid has a kubelet for that.
std::optional<core::EngineResources> engine_pod_limits(cgroup::Cgroupfs& cgroups,
                                                       const Arrival& arrival) {
  const core::EngineAnnotations& engine = arrival.annotations.engine;
  if (!engine.sandbox_id || engine.pod_uid || engine.is_sandbox) return std::nullopt;
  const std::string path = arrival.placed_at.value_or("");
  // In a pod cgroup already: an earlier way in has been here.
  if (!path.starts_with('/') || core::find_pod_cgroup(path)) return std::nullopt;
  const CgroupReading reading = read_cgroup(cgroups, path.substr(0, path.rfind('/')));
  core::EngineResources limits;
  if (reading.memory_limit) limits.memory_limit = reading.memory_limit->value();
  if (reading.cpu_quota) limits.cpu_quota = reading.cpu_quota->value();
  if (reading.cpu_quota && reading.cpu_period) limits.cpu_period = reading.cpu_period->value();
  if (limits == core::EngineResources{}) return std::nullopt;
  return limits;
}

/// A container that has joined its pod, under the lock that the event holds.
struct Joined {
  Event event;
  Membership member;
  core::ConfigEdit edit;
};

/// @param keeps_place  it stays in the engine's own place, in the engine's own words
core::ConfigEdit edit_for(const Seat& seat, bool keeps_place) {
  core::ConfigEdit edit =
      core::config_edit(core::oci_cgroups_path(seat.container.cgroup, seat.container.id),
                        seat.missing, seat.oom_score_adj);
  if (keeps_place) edit.cgroups_path.reset();
  return edit;
}

/// What an engine tells of a container that it is about to make; nullopt: it is not podqos's.
Result<std::optional<Arrival>> arrival_at_engine(const core::Settings& settings,
                                                 core::ContainerFacts&& facts,
                                                 Result<core::PodqosAnnotations>&& podqos,
                                                 std::optional<core::Driver> flags) {
  if (!podqos) return fail(std::move(podqos).error());
  const auto told = core::detect_driver({.flags = flags, .path = facts.cgroups_path});
  const core::Driver driver = told ? *told : machine_driver();
  auto placed_at = placed_at_of(facts.cgroups_path, driver);
  auto arrival = arrival_of(std::move(facts), std::move(*podqos), settings, std::move(placed_at));
  if (!arrival || !*arrival) return arrival;
  if (auto fits = core::check_driver(settings.cgroup_driver, driver); !fits)
    return fail(std::move(fits).error());
  (*arrival)->driver = driver;
  return arrival;
}

/// nullopt: it stays as it is.
Result<std::optional<Joined>> join_pod_of(const core::Settings& settings, Log& log, Arrival arrival,
                                          Pid creator, const Patience& patience) {
  if (!owns_host()) {
    log.debug(cat("container ", printable(arrival.facts.id),
                  ": not root on the host, nothing to manage"));
    return std::nullopt;
  }
  auto started = sys::start_time_of(creator);
  if (!started) return fail(std::move(started).error());
  arrival.pid = creator;
  arrival.start_time = started->value_or(StartTime{0});

  auto event = Event::open(settings, log, patience);
  if (!event) return fail(std::move(event).error());
  if (auto limits = engine_pod_limits(event->cgroups(), arrival))
    arrival.annotations.engine.pod_bound = std::move(limits);
  auto member = join(*event, std::move(arrival));
  if (!member) return fail(std::move(member).error());
  if (!*member) {
    if (auto done = event->finish_recovery(); !done) return fail(std::move(done).error());
    return std::nullopt;
  }
  core::ConfigEdit edit =
      edit_for(**member, (*member)->record.adopted || (*member)->left_with_engine);
  return Joined{.event = std::move(*event), .member = std::move(**member), .edit = std::move(edit)};
}

}  // namespace

bool may_concern(std::string_view config, const core::Settings& settings) {
  if (!settings.enabled) return false;
  if (settings.scope == core::Scope::kAll) return true;
  for (const std::string_view name : {"podqos.io/", "io.kubernetes.", "kubepods"}) {
    if (config.find(name) != std::string_view::npos) return true;
  }
  return false;
}

Result<std::optional<Placement>> place(const core::Settings& settings, Log& log,
                                       const PlacementRequest& request) {
  auto config = codec::OciConfig::parse(request.config);
  if (!config) return fail(std::move(config).error());
  core::ContainerFacts facts = config->facts;
  facts.id = request.id;
  facts.bundle = request.bundle;
  auto podqos = codec::parse_podqos_annotations(facts.annotations);
  auto arrival = arrival_at_engine(settings, std::move(facts), std::move(podqos), request.driver);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return std::nullopt;
  auto joined = join_pod_of(settings, log, std::move(**arrival), request.creator, {});
  if (!joined) return fail(std::move(joined).error());
  if (!*joined) return std::nullopt;
  auto& [event, member, edit] = **joined;
  auto splices = codec::plan_splices(request.config, *config, edit, request.hooks);
  if (!splices) {
    auto dropped = drop_container(event, member.record, request.id, request.bundle);
    if (dropped) dropped = event.finish();
    if (!dropped) log.error(dropped.error().message);
    return fail(std::move(splices).error());
  }
  if (auto done = event.finish(); !done) return fail(std::move(done).error());
  Placement placement{.cgroups_path = core::oci_cgroups_path(member.container.cgroup, request.id),
                      .splices = std::move(*splices)};
  auto unfinished = event.unfinished();
  joined->reset();  // and with it the lock
  if (auto done = follow_up(settings, log, std::move(unfinished)); !done) {
    if (settings.on_error == core::OnError::kReject) return fail(std::move(done).error());
    log.error(done.error().message);
  }
  return placement;
}

std::string unmanaged_cgroups_path(std::string_view id) {
  return cat("system.slice:podqos:", id);
}

Result<std::optional<Placement>> make_startable(const PlacementRequest& request) {
  if (request.driver != core::Driver::kSystemd) return std::nullopt;
  auto config = codec::OciConfig::parse(request.config);
  if (!config) return fail(std::move(config).error());
  const auto& path = config->facts.cgroups_path;
  if (!path || path->empty() || core::parse_systemd_cgroups_path(*path)) return std::nullopt;
  Placement placement{.cgroups_path = unmanaged_cgroups_path(request.id), .splices = {}};
  const core::ConfigEdit edit{.cgroups_path = placement.cgroups_path};
  auto splices = codec::plan_splices(request.config, *config, edit, std::nullopt);
  if (!splices) return fail(std::move(splices).error());
  placement.splices = std::move(*splices);
  return placement;
}

Result<std::optional<core::ConfigEdit>> adjust(const core::Settings& settings, Log& log,
                                               AdjustmentRequest request, Foresight& foresight) {
  auto podqos = foresight.read(request.facts.annotations);
  auto arrival =
      arrival_at_engine(settings, std::move(request.facts), std::move(podqos), std::nullopt);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return std::nullopt;
  (*arrival)->engine_writes = true;
  if (const auto seat = foresight.look(settings, **arrival)) {
    if (log.shows_debug()) {
      log.debug(cat("pod ", seat->pod_uid, ", container ", printable(seat->container.id), " at ",
                    seat->container.cgroup, ": counted once it has started"));
    }
    return edit_for(*seat, seat->adopted);
  }
  auto joined = join_pod_of(settings, log, std::move(**arrival), request.creator, request.patience);
  if (!joined) return fail(std::move(joined).error());
  if (!*joined) return std::nullopt;
  if (auto done = (*joined)->event.finish(); !done) return fail(std::move(done).error());
  return std::move((*joined)->edit);
}

}  // namespace podqos::app

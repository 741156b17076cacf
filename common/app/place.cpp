#include "common/app/place.h"

#include <algorithm>
#include <utility>

#include "common/app/event.h"
#include "common/app/membership.h"
#include "common/app/node.h"
#include "common/app/release.h"
#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/core/naming.h"
#include "common/core/policy.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

Result<std::vector<codec::Splice>> edit_for(const PlacementRequest& request,
                                            const codec::OciConfig& config,
                                            const Membership& member) {
  core::ConfigEdit edit =
      core::config_edit(member.container.cgroup, member.missing, member.oom_score_adj);
  // An adopted container stays in the engine's own place, in the engine's own words.
  if (member.record.adopted) edit.cgroups_path.reset();
  return codec::plan_splices(request.config, config, edit, request.hooks);
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

bool is_systemd_path(std::string_view path) {
  if (core::parse_systemd_cgroups_path(path)) return true;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.ends_with(".scope") || component.ends_with(".slice")) return true;
    begin = end + 1;
  }
  return false;
}

Result<bool> check_driver(const core::Settings& settings, Log& log, std::string_view id,
                          const std::optional<std::string>& path, bool systemd_runtime) {
  if (!systemd_runtime && !(path && is_systemd_path(*path))) return true;
  const std::string what =
      cat("container ", printable(id), " is run by a runtime that uses systemd's cgroup driver",
          path ? cat(" (cgroupsPath \"", printable(*path), "\")") : std::string{});
  if (settings.cgroup_driver == core::DriverSetting::kCgroupfs) {
    return fail(ErrorCode::kUnsupported,
                cat(what,
                    ", but cgroupDriver is \"cgroupfs\": let the engine use cgroupfs, or set "
                    "cgroupDriver to \"auto\""));
  }
  log.warning(cat(what,
                  ", which this version does not manage: it is left alone; let the engine "
                  "use the cgroupfs driver to have it managed"));
  return false;
}

Result<std::optional<Placement>> place(const core::Settings& settings, Log& log,
                                       const PlacementRequest& request) {
  auto config = codec::OciConfig::parse(request.config);
  if (!config) return fail(std::move(config).error());
  core::ContainerFacts facts = config->facts;
  facts.id = request.id;
  facts.bundle = request.bundle;
  const auto path = facts.cgroups_path;
  auto arrival = arrival_of(std::move(facts), settings, path);
  if (!arrival) return fail(std::move(arrival).error());
  if (!*arrival) return std::nullopt;
  if (!owns_host()) {
    log.debug(
        cat("container ", printable(request.id), ": not root on the host, nothing to manage"));
    return std::nullopt;
  }
  auto managed = check_driver(settings, log, request.id, path, request.systemd_runtime);
  if (!managed) return fail(std::move(managed).error());
  if (!*managed) return std::nullopt;

  auto started = sys::start_time_of(request.creator);
  if (!started) return fail(std::move(started).error());
  (*arrival)->pid = request.creator;
  (*arrival)->start_time = started->value_or(StartTime{0});

  auto event = Event::open(settings, log);
  if (!event) return fail(std::move(event).error());
  auto member = join(*event, **arrival);
  if (!member) return fail(std::move(member).error());
  if (!*member) {
    if (auto done = event->finish_recovery(); !done) return fail(std::move(done).error());
    return std::nullopt;
  }
  auto splices = edit_for(request, *config, **member);
  if (!splices) {
    auto dropped = drop_container(*event, (*member)->record, request.id, request.bundle);
    if (dropped) dropped = event->finish();
    if (!dropped) log.error(dropped.error().message);
    return fail(std::move(splices).error());
  }
  if (auto done = event->finish(); !done) return fail(std::move(done).error());
  return Placement{.cgroups_path = (*member)->container.cgroup, .splices = std::move(*splices)};
}

}  // namespace podqos::app

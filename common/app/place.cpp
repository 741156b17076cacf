#include "common/app/place.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/app/admission.h"
#include "common/app/departure.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/node.h"
#include "common/codec/oci_config.h"
#include "common/sys/clock.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// The cgroup that cgroupsPath stands for; with the systemd driver it is "slice:prefix:name".
std::optional<std::string> placed_at_of(const std::optional<std::string>& cgroups_path,
                                        core::Driver driver) {
  if (!cgroups_path || driver == core::Driver::kCgroupfs) return cgroups_path;
  const auto unit = core::parse_systemd_cgroups_path(*cgroups_path);
  return unit ? core::scope_path(*unit) : cgroups_path;
}

/// The limits of the cgroup that the engine created for its pod and that the container will leave;
/// nullopt if it has none, or if the engine reports the pod's uid: then a kubelet sets them.
std::optional<core::EngineResources> engine_pod_limits(cgroup::Machine& machine,
                                                       const AdmissionRequest& request) {
  const core::EngineAnnotations& engine = request.engine;
  if (!engine.sandbox_id || engine.pod_uid || engine.is_sandbox) return std::nullopt;
  const std::string path = request.placed_at.value_or("");
  // Already placed in a pod cgroup by an earlier interface.
  if (!path.starts_with('/') || core::find_pod_cgroup(path)) return std::nullopt;
  const cgroup::CgroupView above{machine, path.substr(0, path.rfind('/'))};
  core::EngineResources limits;
  if (const auto limit = above.memory_limit()) limits.memory_limit = limit->value();
  if (const auto quota = above.cpu_quota()) {
    limits.cpu_quota = quota->value();
    if (const auto period = above.cpu_period()) limits.cpu_period = period->value();
  }
  if (limits == core::EngineResources{}) return std::nullopt;
  return limits;
}

/// Who asks for a container to be admitted.
struct Caller {
  Pid creator;                                       ///< see PlacementRequest
  std::optional<StartTime> started = {};             ///< the creator's, if it is known
  std::optional<core::Driver> flags = std::nullopt;  ///< see PlacementRequest::driver
  bool engine_writes = false;                        ///< see core::AdmissionRequest
};

/// An admitted container; its transaction still holds the lock.
struct Admitted {
  Transaction transaction;
  Admission admission;
};

/// The request of a container that an engine is about to create; nullopt if podqos does not manage
/// it.
Result<std::optional<AdmissionRequest>> request_of(const core::Settings& settings, Log& log,
                                                   core::ContainerFacts facts,
                                                   const Caller& caller) {
  const auto told =
      caller.flags ? caller.flags : core::detect_driver(facts.cgroups_path.value_or(""));
  const core::Driver driver = told ? *told : cgroup::machine_driver();
  auto placed_at = placed_at_of(facts.cgroups_path, driver);
  PODQOS_ASSIGN(auto request, admission_request(std::move(facts), settings, std::move(placed_at)));
  if (!request) return std::nullopt;
  PODQOS_TRY(core::check_driver(settings.cgroup_driver, driver));
  if (!cgroup::owns_host()) {
    log.debug(cat("container ", printable(request->facts.id),
                  ": not managed, podqos is not root on the host"));
    return std::nullopt;
  }
  auto started = caller.started;
  if (!started) {
    PODQOS_ASSIGN(started, sys::start_time_of(caller.creator));
  }
  request->driver = driver;
  request->engine_writes = caller.engine_writes;
  request->process = {.pid = caller.creator, .start_time = started.value_or(StartTime{0})};
  if (!caller.engine_writes) request->pending_since = BootSeconds{sys::seconds_since_boot()};
  return request;
}

/// Admits the container, under the lock.
Result<std::optional<Admitted>> admit(const core::Settings& settings, Log& log,
                                      Result<std::optional<AdmissionRequest>> request,
                                      const Timeouts& timeouts) {
  if (!request) return fail(std::move(request).error());
  if (!*request) return std::nullopt;
  PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log, timeouts));
  PODQOS_ASSIGN(auto admission, admit_created(transaction, **std::move(request)));
  if (!admission) return std::nullopt;
  return Admitted{.transaction = std::move(transaction), .admission = *std::move(admission)};
}

}  // namespace

Result<std::optional<AdmissionRequest>> request_of(const core::Settings& settings, Log& log,
                                                   const PlacementRequest& call,
                                                   const codec::OciConfig& config) {
  core::ContainerFacts facts = config.facts;
  facts.id = call.id;
  facts.bundle = call.bundle;
  return request_of(settings, log, std::move(facts),
                    Caller{.creator = call.creator, .flags = call.driver});
}

Result<std::optional<Admission>> admit_created(Transaction& transaction, AdmissionRequest request) {
  if (auto limits = engine_pod_limits(transaction.machine(), request))
    request.engine.pod_bound = std::move(limits);
  PODQOS_ASSIGN(auto admission, admit(transaction, std::move(request)));
  if (!admission) PODQOS_TRY(transaction.finish_if_changed());
  return admission;
}

core::ConfigEdit edit_for(const Admission& admission) {
  core::ConfigEdit edit{.values = admission.missing, .oom_score_adj = admission.oom_score_adj};
  if (!admission.record.kubelets_own && !admission.left_with_engine)
    edit.cgroups_path = core::oci_cgroups_path(
        admission.belongs_to.value_or(admission.container.cgroup), admission.container.id);
  return edit;
}

bool may_concern(std::string_view config, const core::Settings& settings) {
  constexpr std::array<std::string_view, 3> kNames{"podqos.io/", "io.kubernetes.", "kubepods"};
  return settings.enabled &&
         (settings.scope == core::Scope::kAll ||
          std::ranges::any_of(kNames, [&](auto name) { return config.contains(name); }));
}

namespace {

Result<std::optional<std::string>> place(const core::Settings& settings, Log& log,
                                         const PlacementRequest& call,
                                         const codec::OciConfig& config) {
  PODQOS_ASSIGN(auto admitted,
                admit(settings, log, request_of(settings, log, call, config), call.timeouts));
  if (!admitted) return std::nullopt;
  auto& [transaction, admission] = *admitted;
  auto edited = codec::edit_config(config, edit_for(admission), call.hooks);
  if (!edited) {
    auto dropped =
        drop_container(transaction, admission.record, {.id = call.id, .bundle = call.bundle});
    if (dropped) dropped = transaction.finish();
    if (!dropped) log.error(dropped.error().message);
    return fail(std::move(edited).error());
  }
  PODQOS_TRY(transaction.finish());
  return *std::move(edited);
}

}  // namespace

Result<std::optional<std::string>> place(const core::Settings& settings, Log& log,
                                         const PlacementRequest& call) {
  PODQOS_ASSIGN(const auto config, codec::OciConfig::parse(call.config, call.names));
  auto placed = place(settings, log, call, config);
  if (placed) return placed;
  core::Event subject = subject_of(config.facts, config.facts.cgroups_path.value_or(""));
  subject.container_id = call.id;
  log.set_subject(std::move(subject));
  return placed;
}

std::string unmanaged_cgroups_path(std::string_view id) {
  return cat("system.slice:podqos:", id);
}

Result<std::optional<std::string>> make_startable(const PlacementRequest& call) {
  if (call.driver != core::Driver::kSystemd) return std::nullopt;
  PODQOS_ASSIGN(const auto config, codec::OciConfig::parse(call.config, call.names));
  const auto& path = config.facts.cgroups_path;
  if (!path || path->empty() || core::parse_systemd_cgroups_path(*path)) return std::nullopt;
  const core::ConfigEdit edit{.cgroups_path = unmanaged_cgroups_path(call.id)};
  return codec::edit_config(config, edit, std::nullopt);
}

Result<std::optional<core::ConfigEdit>> adjust(const core::Settings& settings, Log& log,
                                               core::ContainerFacts facts,
                                               const core::Process& creator,
                                               const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto admitted, admit(settings, log,
                                     request_of(settings, log, std::move(facts),
                                                Caller{.creator = creator.pid,
                                                       .started = creator.start_time,
                                                       .engine_writes = true}),
                                     timeouts));
  if (!admitted) return std::nullopt;
  PODQOS_TRY(admitted->transaction.finish());
  return edit_for(admitted->admission);
}

}  // namespace podqos::app

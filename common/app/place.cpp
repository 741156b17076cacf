#include "common/app/place.h"

#include <algorithm>
#include <utility>

#include "common/app/admission.h"
#include "common/app/departure.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/node.h"
#include "common/codec/oci_config.h"
#include "common/core/pods/pod_values.h"
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
  const core::EngineAnnotations& engine = request.annotations.engine;
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

/// An admitted container; its transaction still holds the lock.
struct Admitted {
  Transaction transaction;
  Admission admission;
  core::ConfigEdit edit;
};

/// Builds the request of a container that an engine is about to create; nullopt if podqos does not
/// manage it.
Result<std::optional<AdmissionRequest>> request_from_engine(const core::Settings& settings,
                                                            core::ContainerFacts&& facts,
                                                            std::optional<core::Driver> flags) {
  const auto told = core::detect_driver({.flags = flags, .path = facts.cgroups_path});
  const core::Driver driver = told ? *told : cgroup::machine_driver();
  auto placed_at = placed_at_of(facts.cgroups_path, driver);
  auto request = admission_request(std::move(facts), settings, std::move(placed_at));
  if (!request || !*request) return request;
  PODQOS_TRY(core::check_driver(settings.cgroup_driver, driver));
  (*request)->driver = driver;
  return request;
}

/// Admits the container; nullopt if it is left unchanged.
Result<std::optional<Admitted>> admit_to_pod(const core::Settings& settings, Log& log,
                                             AdmissionRequest request, Pid creator,
                                             const Timeouts& timeouts) {
  if (!cgroup::owns_host()) {
    log.debug(cat("container ", printable(request.facts.id),
                  ": not managed, podqos is not root on the host"));
    return std::nullopt;
  }
  PODQOS_ASSIGN(auto started, sys::start_time_of(creator));
  request.pid = creator;
  request.start_time = started.value_or(StartTime{0});

  PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log, timeouts));
  if (auto limits = engine_pod_limits(transaction.machine(), request))
    request.annotations.engine.pod_bound = std::move(limits);
  PODQOS_ASSIGN(auto admission, admit(transaction, std::move(request)));
  if (!admission) {
    PODQOS_TRY(transaction.finish_if_changed());
    return std::nullopt;
  }
  core::ConfigEdit edit = edit_for(*admission);
  return Admitted{.transaction = std::move(transaction),
                  .admission = std::move(*admission),
                  .edit = std::move(edit)};
}

}  // namespace

core::ConfigEdit edit_for(const Admission& admission) {
  core::ConfigEdit edit{.values = admission.missing, .oom_score_adj = admission.oom_score_adj};
  if (!admission.record.adopted && !admission.left_with_engine)
    edit.cgroups_path = core::oci_cgroups_path(
        admission.belongs_to.value_or(admission.container.cgroup), admission.container.id);
  return edit;
}

bool may_concern(std::string_view config, const core::Settings& settings) {
  if (!settings.enabled) return false;
  if (settings.scope == core::Scope::kAll) return true;
  for (const std::string_view name : {"podqos.io/", "io.kubernetes.", "kubepods"}) {
    if (config.find(name) != std::string_view::npos) return true;
  }
  return false;
}

Result<std::optional<std::string>> place(const core::Settings& settings, Log& log,
                                         const PlacementRequest& call) {
  PODQOS_ASSIGN(const auto config, codec::OciConfig::parse(call.config, call.names));
  core::ContainerFacts facts = config.facts;
  facts.id = call.id;
  facts.bundle = call.bundle;
  PODQOS_ASSIGN(auto request, request_from_engine(settings, std::move(facts), call.driver));
  if (!request) return std::nullopt;
  PODQOS_ASSIGN(auto admitted,
                admit_to_pod(settings, log, std::move(*request), call.creator, call.timeouts));
  if (!admitted) return std::nullopt;
  auto& [transaction, admission, edit] = *admitted;
  auto edited = codec::edit_config(config, edit, call.hooks);
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
                                               AdjustmentRequest call) {
  PODQOS_ASSIGN(auto request, request_from_engine(settings, std::move(call.facts), std::nullopt));
  if (!request) return std::nullopt;
  request->engine_writes = true;
  PODQOS_ASSIGN(auto admitted,
                admit_to_pod(settings, log, std::move(*request), call.creator, call.timeouts));
  if (!admitted) return std::nullopt;
  PODQOS_TRY(admitted->transaction.finish());
  return std::move(admitted->edit);
}

}  // namespace podqos::app

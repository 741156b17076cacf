#include "common/app/running_container.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/counting.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/core/value_table.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// Sets tiers().weight_formula if the container's weight tells which formula its runtime uses.
void detect_formula(Transaction& transaction, const core::PodRecord& record,
                    const core::ContainerRecord& container, const core::EngineResources& told) {
  const bool wanted =
      transaction.settings().weight_formula == core::WeightFormulaSetting::kAuto &&
      !transaction.tiers().weight_formula &&
      transaction.machine().layout_without_hugepages().cpu == core::CgroupVersion::kV2;
  if (!wanted) return;
  const auto values = core::container_values(record, container.name, transaction.settings());
  const std::string file{core::file_of(core::Value::kCpuShares, core::CgroupVersion::kV2)};
  if (!values || !values->cpu_shares || told.unified.contains(file)) return;
  // Annotations may request other shares than the engine has set.
  if (told.cpu_shares && *told.cpu_shares != values->cpu_shares->value()) return;
  const auto text = transaction.machine().read(container.cgroup, core::Controller::kCpu, file);
  const std::int64_t weight = text ? parse_int(*text).value_or(0) : 0;
  const auto linear =
      core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLinear).value();
  const auto log = core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLog).value();
  if (linear == log) return;
  if (weight == linear) transaction.tiers().weight_formula = core::WeightFormula::kLinear;
  if (weight == log) transaction.tiers().weight_formula = core::WeightFormula::kLog;
}

}  // namespace

namespace {

/// Moves the runtime's monitor into the pod's cgroup, see try_charge_monitor().
Status charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime) {
  if (!transaction.settings().charge_monitor || record.adopted) return {};
  const auto monitor = cgroup::monitor_of(transaction.machine(), runtime);
  if (!monitor) return fail(monitor.error());
  // Placed there by the engine, or for an earlier container of the pod.
  if (!*monitor || (*monitor)->cgroup.starts_with(cat(record.cgroup, "/"))) return {};
  auto done =
      transaction.execute(core::Execute{core::plan_monitor(record.cgroup, (*monitor)->pid)});
  // It has ended in the meantime.
  if (!done && done.error().code == ErrorCode::kNotFound) return {};
  if (!done) return done;
  transaction.log().info(cat("pod ", record.pod.uid, ": process ", (*monitor)->pid.value(),
                             " from ", (*monitor)->cgroup,
                             " is charged to the pod as its monitor"));
  return {};
}

}  // namespace

void try_charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime) {
  auto done = charge_monitor(transaction, record, runtime);
  if (!done) {
    transaction.log().warning(cat(
        "pod ", record.pod.uid, ": its monitor is not charged to the pod: ", done.error().message));
  }
}

Result<std::optional<AdmissionRequest>> request_of_started(const core::Settings& settings, Log& log,
                                                           core::ContainerFacts facts,
                                                           const std::string& cgroup) {
  auto request = admission_request(std::move(facts), settings, cgroup);
  if (!request || !*request) return request;
  if (cgroup::owns_host()) return request;
  log.debug(cat("container ", printable((*request)->facts.id),
                ": not managed, podqos is not root on the host"));
  return std::nullopt;
}

Result<std::optional<KnownContainer>> find_known(Transaction& transaction,
                                                 const core::ContainerFacts& facts) {
  if (auto done = recover(transaction); !done) return fail(std::move(done).error());
  return find_container(transaction, facts.id, facts.bundle);
}

Status confirm(Transaction& transaction, KnownContainer found, const core::ContainerFacts& told,
               const Init& init) {
  const std::string& bundle = told.bundle;
  core::ContainerRecord& container = found.container();
  auto started = transaction.machine().start_time_of(init.pid);
  if (!started) return fail(std::move(started).error());
  container.state = core::ContainerState::kLive;
  core::note_pending(transaction.tiers(), found.record, container);
  container.pid = init.pid;
  container.start_time = started->value_or(StartTime{0});
  const bool elsewhere =
      init.cgroup != container.cgroup && !init.cgroup.starts_with(cat(container.cgroup, "/"));
  const bool bounded = !core::lies_outside(container.cgroup, found.record.cgroup);
  if (elsewhere && bounded) {
    transaction.log().warning(cat("pod ", found.record.pod.uid, ", container ",
                                  printable(container.id), ": the runtime put it into cgroup ",
                                  init.cgroup, ", not into ", container.cgroup,
                                  ": the pod's limits do not apply to it"));
  }
  if (elsewhere) container.cgroup = init.cgroup;
  core::EventPlan plan;
  if (container.bundle != bundle && !bundle.empty()) {
    core::IndexEntry old = core::index_entry(found.record, container);
    container.bundle = bundle;
    plan = core::plan_renaming(found.record, container, std::move(old));
  } else {
    plan.emplace_back(core::SaveRecord{found.record});
  }
  if (const auto done = transaction.execute(plan); !done) return fail(done.error());
  try_charge_monitor(transaction, found.record, init.runtime);
  return learn_formula(transaction, found.record, container, told.resources);
}

Status learn_formula(Transaction& transaction, const core::PodRecord& record,
                     const core::ContainerRecord& container, const core::EngineResources& told) {
  const auto before = transaction.tiers().weight_formula;
  detect_formula(transaction, record, container, told);
  if (transaction.tiers().weight_formula == before) return {};
  // All weights written so far used the other formula.
  if (auto done = recompute(transaction); !done) return fail(std::move(done).error());
  transaction.begin_recovery();
  return {};
}

Status finish_confirmed(Transaction& transaction) {
  return transaction.recovered() ? transaction.finish() : transaction.store().commit();
}

Result<std::optional<Admission>> admit_running(Transaction& transaction, AdmissionRequest request,
                                               const Init& init) {
  // The process's cgroup shows the driver even if cgroupsPath does not.
  request.driver = core::detect_driver({.path = request.facts.cgroups_path, .real = init.cgroup})
                       .value_or(cgroup::machine_driver());
  if (auto fits = core::check_driver(transaction.settings().cgroup_driver, request.driver); !fits)
    return fail(std::move(fits).error());
  auto started = transaction.machine().start_time_of(init.pid);
  if (!started) return fail(std::move(started).error());
  request.running = true;
  request.state = core::ContainerState::kLive;
  request.pid = init.pid;
  request.start_time = started->value_or(StartTime{0});
  transaction.defer_unit_changes();
  return admit(transaction, std::move(request));
}

}  // namespace podqos::app

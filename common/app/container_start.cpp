#include "common/app/container_start.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "common/app/admission.h"
#include "common/app/departure.h"
#include "common/app/follow_memory_qos.h"
#include "common/app/reconciler.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/machine.h"
#include "common/cgroup/node.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"

namespace podqos::app {

namespace {

/// Detects which formula the node's runtime uses to convert shares to a weight, from the weight of
/// a container whose shares it converted. From then on podqos uses the same formula for all
/// weights, and reconciles those already written, unless weightFormula says which.
/// @param told  the engine's resources; ignored if their shares differ from the record's
Status learn_formula(Transaction& transaction, const core::PodRecord& record,
                     const core::ContainerRecord& container, const core::EngineResources& told) {
  const auto before = transaction.node().weight_formula;
  detect_formula(transaction, record, container, told);
  const bool is_set = transaction.settings().weight_formula != core::WeightFormulaSetting::kAuto;
  if (is_set || transaction.node().weight_formula == before) return {};
  // All weights written so far used the other formula.
  PODQOS_TRY(reconcile_node(transaction));
  transaction.begin_node_reconciliation();
  return {};
}

/// Moves the container's monitor (conmon or a containerd shim), which is the parent of the runtime,
/// into the pod's cgroup, so that its usage is charged to the pod. Does nothing unless
/// chargeMonitor is set, and for a kubelet's pods. An error is logged: the container runs without
/// it.
void charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime) {
  if (!transaction.settings().charge_monitor || record.kubelets_own) return;
  const auto monitor = cgroup::monitor_of(transaction.machine(), runtime);
  // Placed there by the engine, or for an earlier container of the pod.
  if (monitor && (!*monitor || is_below((*monitor)->cgroup, record.cgroup))) return;
  const Status done = monitor
                          ? transaction.execute(core::plan_monitor(record.cgroup, (*monitor)->pid))
                          : fail(monitor.error());
  const std::string pod = cat(core::name_of(record), ": ");
  if (done) {
    transaction.log().info(cat(pod, "process ", (*monitor)->pid.value(), " from ",
                               (*monitor)->cgroup, " is charged to the pod as its monitor"));
  } else if (!monitor || done.error().code != ErrorCode::kNotFound) {  // else it has ended
    transaction.log().warning(
        cat(pod, "its monitor is not charged to the pod: ", done.error().message));
  }
}

/// The limits of a container must not be written to a cgroup that its runtime shares: one that was
/// told to create no cgroup leaves the container, like its hook, in its caller's.
Status check_own(const Admission& admission, const std::string& actual) {
  PODQOS_ASSIGN(const auto own, cgroup::bounding_cgroup(Pid{::getpid()}));
  if (!is_at_or_below(own, actual)) return {};
  return fail(
      ErrorCode::kConflict,
      cat(core::name_of(admission.record), ": cgroup ", actual,
          " is the runtime's own, so the container's limits are not written there: configure "
          "the runtime to create a cgroup for the container"));
}

/// Tells systemd-oomd that a started container is to be spared. An error is logged: the container
/// runs without it.
void spare(Transaction& transaction, const core::PodRecord& record,
           const core::ContainerRecord& container) {
  if (!core::is_spared(record, transaction.settings())) return;
  const Status done =
      transaction.execute(plan_preference(transaction.machine(), container, {.oomd_avoid = true}));
  if (!done) transaction.log().warning(cat(core::name_of(record), ": ", done.error().message));
}

/// Tells of a container that runs outside its pod: "pod 42, container c1 runs in cgroup /a, not in
/// /b".
/// @param then  what becomes of it, or what to do about it
void report_misplaced(const Transaction& transaction, core::LogLevel level,
                      const Admission& admission, const Init& init, std::string_view then) {
  core::Event event =
      core::event_of(core::EventKind::kMisplaced, admission.record, &admission.container);
  event.text = cat("runs in cgroup ", init.cgroup, ", not in ", *admission.belongs_to, ": ", then);
  transaction.event(
      level, std::move(event),
      cat(core::name_of(admission.record), ", container ", printable(admission.container.id), " "));
}

constexpr std::string_view kNotMoved = "counted but not moved";

/// Writes the values of a running container in its current cgroup.
/// @param init  with its cgroup when it was registered
Status apply_container(Transaction& transaction, const Admission& admission, const Init& init,
                       Reporter reporter) {
  const core::ContainerRecord& container = admission.container;
  const bool untouched = admission.on_misplaced == core::OnMisplaced::kIgnore;
  if (admission.left_with_engine && untouched) return {};
  if (admission.belongs_to && untouched) {
    // An engine without a cgroup parent starts each sandbox elsewhere, and nothing runs in it.
    if (container.sandbox) return {};
    report_misplaced(transaction, core::LogLevel::kInfo, admission, init, kNotMoved);
    return {};
  }
  if (admission.belongs_to || admission.left_with_engine)
    PODQOS_TRY(check_own(admission, init.cgroup));
  core::Plan plan =
      core::plan_container(container.cgroup, admission.missing,
                           transaction.layout_for(admission.missing), transaction.formula());
  if (admission.oom_score_adj) {
    core::SetOomScore score{.pid = init.process.pid, .score = *admission.oom_score_adj};
    // A runtime that waits for its hook holds the pid.
    if (reporter == Reporter::kPlugin) score.start_time = init.process.start_time;
    plan.emplace_back(score);
  }
  PODQOS_TRY(transaction.execute(plan));
  write_burst(transaction, admission.record, container);
  if (admission.belongs_to) {
    report_misplaced(transaction, core::LogLevel::kWarning, admission, init,
                     "register podqos-runtime, or Podman's precreate hook, so that it is placed "
                     "before it starts");
  }
  return {};
}

/// Registers a running container that podqos did not place. Unit properties are sent to systemd
/// when the transaction finishes.
/// @return nullopt for the sandbox of an unknown pod.
Result<std::optional<Admission>> admit_running(Transaction& transaction, AdmissionRequest request,
                                               const Init& init) {
  // The process's cgroup shows the driver even if cgroupsPath does not.
  request.driver = core::detect_driver(request.facts.cgroups_path.value_or(""))
                       .or_else([&] { return core::detect_driver(init.cgroup); })
                       .value_or(cgroup::machine_driver());
  PODQOS_TRY(core::check_driver(transaction.settings().cgroup_driver, request.driver));
  request.state = core::ContainerState::kLive;
  request.process = init.process;
  // If systemd refuses them at the end, nothing is rolled back.
  transaction.machine().defer_unit_changes(true);
  return admit(transaction, std::move(request));
}

}  // namespace

core::Plan plan_preference(cgroup::Machine& machine, const core::ContainerRecord& container,
                           const core::CgroupValues& values) {
  // No weight is among the values.
  core::Plan plan = core::plan_container(
      container.cgroup, values, machine.layout_without_hugepages(), core::WeightFormula::kLog);
  const auto leaf = machine.cgroup_of(container.pid);
  if (plan.empty() || !leaf || !is_below(*leaf, container.cgroup)) return plan;
  plan.emplace_back(core::SetAttribute{.path = *leaf,
                                       .name = core::kOomdAvoidAttribute,
                                       .value = values.oomd_avoid.value_or(false) ? "1" : "0"});
  return plan;
}

Status confirm(Transaction& transaction, const store::KnownContainer& found,
               const core::ContainerFacts& facts, const Init& init, Reporter reporter) {
  core::PodRecord record = found.record;
  if (reporter == Reporter::kPlugin && !facts.sets_oom_score() && !record.kubelets_own) {
    const int score = core::container_oom_score_adj(record, record.containers[found.index],
                                                    transaction.capacity().memory);
    PODQOS_TRY(
        transaction.execute({core::SetOomScore{.pid = init.process.pid,
                                               .start_time = init.process.start_time,
                                               .score = cgroup::reachable_oom_score(score)}}));
  }
  if (auto warning = core::decide_confirmation(record, found.index, init, facts.bundle)) {
    const core::ContainerRecord& container = record.containers[found.index];
    core::Event event = core::event_of(core::EventKind::kMisplaced, record, &container);
    event.text = *std::move(warning);
    transaction.event(core::LogLevel::kWarning, std::move(event),
                      cat("pod ", record.pod.uid, ", container ", printable(container.id), ": "));
  }
  complete_memory_qos(transaction, record, record.containers[found.index]);
  PODQOS_TRY(transaction.save(record, &found.record));
  transaction.renew_copy(record);
  spare(transaction, record, record.containers[found.index]);
  write_burst(transaction, record, record.containers[found.index]);
  charge_monitor(transaction, record, init.child_of_monitor);
  return learn_formula(transaction, record, record.containers[found.index], facts.resources);
}

void write_burst(Transaction& transaction, const core::PodRecord& record,
                 const core::ContainerRecord& container, std::optional<Micros> next) {
  const auto percent = core::burst_percent(record, transaction.settings());
  if (!percent || container.sandbox) return;
  cgroup::Machine& machine = transaction.machine();
  std::vector<std::string> cgroups{container.cgroup};
  const auto limited = cgroup::limited_cgroup(machine, container);
  if (limited && *limited != container.cgroup) cgroups.push_back(*limited);
  core::Plan plan;
  for (const std::string& path : cgroups) {
    const auto quota = cgroup::CgroupView{machine, path}.cpu_quota();
    if (!quota) continue;
    const Micros burst =
        std::min(core::cpu_burst_for(next && *next > Micros{0} ? next : quota, *percent), *quota);
    std::ranges::move(
        core::lower_values(path, {.cpu_burst = burst}, machine.layout_without_hugepages(),
                           transaction.formula(), "container"),
        std::back_inserter(plan));
  }
  // Each step may be refused.
  if (!plan.empty()) static_cast<void>(transaction.execute(plan).has_value());
}

void detect_formula(Transaction& transaction, const core::PodRecord& record,
                    const core::ContainerRecord& container, const core::EngineResources& told) {
  const bool wanted =
      !transaction.node().weight_formula &&
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
  if (weight == linear) transaction.node().weight_formula = core::WeightFormula::kLinear;
  if (weight == log) transaction.node().weight_formula = core::WeightFormula::kLog;
}

Result<bool> confirm_started(Transaction& transaction, const core::ContainerFacts& facts,
                             const Init& init, Reporter reporter) {
  // No runtime waits for the plugin, as it does for its hook.
  if (reporter == Reporter::kPlugin) {
    PODQOS_ASSIGN(const auto now, transaction.machine().start_time_of(init.process.pid));
    if (now != init.process.start_time) {
      return fail(ErrorCode::kNotFound,
                  cat("process ", init.process.pid.value(), ", the container's init, has ended"));
    }
  }
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_ASSIGN(const auto found,
                store::find_container(transaction.store(), facts.id, facts.bundle));
  if (!found) return false;
  PODQOS_TRY(confirm(transaction, *found, facts, init, reporter));
  // Values that the kernel refused for the moment when the container was placed.
  const bool retried = handle_if_due(transaction, found->record.pod.uid);
  PODQOS_TRY(retried || transaction.remakes_trees() ? transaction.finish()
                                                    : transaction.store().commit());
  return true;
}

Status register_started(Transaction& transaction, AdmissionRequest request, const Init& init,
                        Reporter reporter,
                        const std::function<Status(const Admission&)>& registered) {
  PODQOS_ASSIGN(const auto admission, admit_running(transaction, std::move(request), init));
  if (!admission) return transaction.finish_if_changed();
  auto done = apply_container(transaction, *admission, init, reporter);
  spare(transaction, admission->record, admission->container);
  if (done && registered) done = registered(*admission);
  charge_monitor(transaction, admission->record, init.child_of_monitor);
  auto finished = transaction.finish();
  return done ? finished : done;
}

Status count_running(Transaction& transaction, AdmissionRequest request, const Init& init) {
  request.on_misplaced = core::OnMisplaced::kIgnore;
  PODQOS_ASSIGN(auto admission, admit_running(transaction, std::move(request), init));
  if (!admission || !admission->belongs_to) return {};
  report_misplaced(transaction, core::LogLevel::kInfo, *admission, init, kNotMoved);
  return {};
}

}  // namespace podqos::app

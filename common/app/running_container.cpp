#include "common/app/running_container.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/app/monitor.h"
#include "common/app/node.h"
#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/driver.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// Which formula the node's runtime uses, if the weight that it gave the container tells.
void observe_weight(Event& event, const core::PodRecord& record,
                    const core::ContainerRecord& container, const core::EngineResources& told) {
  const bool wanted = event.settings().weight_formula == core::WeightFormulaSetting::kAuto &&
                      !event.tiers().weight_formula &&
                      event.cgroups().layout_without_hugepages().cpu == core::CgroupVersion::kV2;
  if (!wanted) return;
  const auto values = core::container_values(record, container.name, event.settings());
  if (!values || !values->cpu_shares || told.unified.contains("cpu.weight")) return;
  // Annotations may ask for other shares than the engine has set.
  if (told.cpu_shares && *told.cpu_shares != values->cpu_shares->value()) return;
  const auto text = event.cgroups().read(container.cgroup, core::Controller::kCpu, "cpu.weight");
  const std::int64_t weight = text ? parse_int(*text).value_or(0) : 0;
  const auto linear =
      core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLinear).value();
  const auto log = core::cpu_weight_for(*values->cpu_shares, core::WeightFormula::kLog).value();
  if (linear == log) return;
  if (weight == linear) event.tiers().weight_formula = core::WeightFormula::kLinear;
  if (weight == log) event.tiers().weight_formula = core::WeightFormula::kLog;
}

}  // namespace

void try_charge_monitor(Event& event, const core::PodRecord& record, Pid runtime) {
  auto done = charge_monitor(event, record, runtime);
  if (!done) {
    event.log().warning(
        cat("pod ", record.pod.uid, ": its monitor is not charged to it: ", done.error().message));
  }
}

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

Status confirm(Event& event, KnownContainer found, const core::ContainerFacts& told,
               const Init& init) {
  const std::string& bundle = told.bundle;
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
  const bool bounded = !core::lies_outside(container.cgroup, found.record.cgroup);
  if (elsewhere && bounded) {
    event.log().warning(cat("pod ", found.record.pod.uid, ", container ", printable(container.id),
                            ": the runtime put it into cgroup ", init.cgroup, ", not into ",
                            container.cgroup, ": the pod's limits do not bound it"));
  }
  if (elsewhere) container.cgroup = init.cgroup;
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
  return learn_formula(event, found.record, container, told.resources);
}

Status learn_formula(Event& event, const core::PodRecord& record,
                     const core::ContainerRecord& container, const core::EngineResources& told) {
  const auto before = event.tiers().weight_formula;
  observe_weight(event, record, container, told);
  if (event.tiers().weight_formula == before) return {};
  // Every weight written so far used the other formula.
  if (auto done = recompute(event); !done) return fail(std::move(done).error());
  event.begin_recovery();
  return {};
}

Status finish_confirmed(Event& event) {
  return event.recovered() ? event.finish() : event.store().commit();
}

Result<std::optional<Membership>> take_in(Event& event, Arrival arrival, const Init& init) {
  // A process has a cgroup, so that something tells.
  arrival.driver = core::detect_driver({.path = arrival.facts.cgroups_path, .real = init.cgroup})
                       .value_or(machine_driver());
  if (auto fits = core::check_driver(event.settings().cgroup_driver, arrival.driver); !fits)
    return fail(std::move(fits).error());
  auto started = sys::start_time_of(init.pid);
  if (!started) return fail(std::move(started).error());
  arrival.running = true;
  arrival.state = core::ContainerState::kLive;
  arrival.pid = init.pid;
  arrival.start_time = started->value_or(StartTime{0});
  event.tell_at_the_end();
  return join(event, std::move(arrival));
}

}  // namespace podqos::app

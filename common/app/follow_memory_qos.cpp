#include "common/app/follow_memory_qos.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/app/due_pods.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/container_memory.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

bool is_throttled_from(const core::MemoryQos& given) {
  return given.high && *given.high != core::kUnlimitedMemory;
}

/// The container's cgroup and, where its runtime has set limits below that, the cgroup there, whose
/// values bound the container as well.
std::vector<cgroup::CgroupView> cgroups_of(cgroup::Machine& machine,
                                           const core::ContainerRecord& container) {
  std::vector<cgroup::CgroupView> cgroups{{machine, container.cgroup}};
  const auto limited = cgroup::limited_cgroup(machine, container);
  if (limited && *limited != container.cgroup) cgroups.emplace_back(machine, *limited);
  return cgroups;
}

/// core::decide_throttling() of what the kernel shows, if it does.
/// @param high  of the container, unless podqos has raised it
void observe_throttling(std::span<const cgroup::CgroupView> cgroups, Bytes high,
                        std::optional<core::Throttling>& throttling,
                        const core::MemoryQosParams& node, std::int64_t patience) {
  core::ThrottlingSnapshot snapshot{.stalled_percent = cgroups.front().memory_pressure("full"),
                                    .high = high,
                                    .limit = cgroups.front().memory_limit()};
  if (throttling && throttling->raised) snapshot.high = *throttling->raised;
  for (const cgroup::CgroupView& cgroup : cgroups) {
    const auto events = cgroup.own_throttled_events();
    if (!events) return;
    snapshot.events += *events;
  }
  core::decide_throttling(throttling, snapshot, node, patience,
                          BootSeconds{sys::seconds_since_boot()});
}

/// Writes the values that differ. @return false if they could not be written
bool write(Transaction& transaction, const std::string& label, const std::string& path,
           const core::MemoryQos& qos) {
  const core::CgroupValues values{.unified = core::unified_values(qos)};
  if (values.unified.empty()) return true;
  const auto done = transaction.execute(
      core::plan_container(path, values, transaction.layout_for(values), transaction.formula()));
  if (!done && done.error().code != ErrorCode::kNotFound)  // else it has ended
    transaction.log().warning(cat(label, ": ", done.error().message));
  return done.has_value();
}

/// Tells of the first raise of a container's memory.high.
/// @param event  about the container, without a text
void log_raise(Transaction& transaction, const std::string& label, core::Event event, Bytes given,
               Bytes raised) {
  event.text =
      cat("throttled at memory.high ", format_amount(given), " for longer than ",
          transaction.settings().memory_high_patience_seconds, " s: raised to ",
          raised == core::kUnlimitedMemory ? "max" : format_amount(raised),
          ", and further while that lasts: raise its memory limit, or memoryThrottlingFactor");
  transaction.event(core::LogLevel::kWarning, std::move(event), cat(label, ": "));
}

/// What podqos gives the container now; nullopt where Memory QoS is off, and was taken back.
std::optional<core::MemoryQos> given_to(const core::PodRecord& record,
                                        const core::ContainerRecord& container,
                                        const core::MemoryQosParams& params) {
  const core::MemoryQos given = core::next_memory_qos(
      container.memory_qos, core::container_memory_qos(record, container.name, params));
  if (!params.enabled() && given == container.memory_qos) return std::nullopt;
  return given;
}

/// Whether podqos gives it Memory QoS, and it runs.
bool has_memory_qos(const core::PodRecord& record, const core::ContainerRecord& container) {
  return !record.kubelets_own && container.memory_qos != core::MemoryQos{} &&
         container.state == core::ContainerState::kLive;
}

void follow_container(Transaction& transaction, const core::PodRecord& record,
                      core::ContainerRecord& container, const core::MemoryQosParams& params) {
  const auto next = given_to(record, container, params);
  if (!next) return;
  const core::MemoryQos& given = *next;
  const std::string label = cat(core::name_of(record), ", container ", printable(container.name));
  const auto cgroups = cgroups_of(transaction.machine(), container);
  core::MemoryQos wanted = given;
  std::optional<core::Throttling>& throttling = container.throttling;
  if (!is_throttled_from(given) || given.high != container.memory_qos.high) throttling.reset();
  if (is_throttled_from(given)) {
    const bool first = !throttling || !throttling->raised;
    observe_throttling(cgroups, *given.high, throttling, params,
                       transaction.settings().memory_high_patience_seconds);
    if (throttling && throttling->raised) {
      wanted.high = throttling->raised;
      if (first)
        log_raise(transaction, label,
                  core::event_of(core::EventKind::kThrottled, record, &container), *given.high,
                  *wanted.high);
    }
  }
  bool written = true;
  for (const cgroup::CgroupView& cgroup : cgroups)
    written = write(transaction, label, cgroup.path(),
                    core::differing_memory_qos(wanted, cgroup.memory_qos(), params.page_size)) &&
              written;
  if (written) container.memory_qos = given;
}

}  // namespace

void follow_memory_qos(Transaction& transaction, core::PodRecord& record) {
  const core::MemoryQosParams params =
      core::memory_qos_params(transaction.settings(), transaction.capacity());
  for (core::ContainerRecord& container : record.containers)
    if (has_memory_qos(record, container)) follow_container(transaction, record, container, params);
}

std::vector<std::string> describe_memory_qos(cgroup::Machine& machine,
                                             const core::PodRecord& record,
                                             const core::MemoryQosParams& params) {
  std::vector<std::string> found;
  for (const core::ContainerRecord& container : record.containers) {
    if (!has_memory_qos(record, container)) continue;
    auto wanted = given_to(record, container, params);
    if (!wanted) continue;
    const auto& throttling = container.throttling;
    if (wanted->high == container.memory_qos.high && throttling && throttling->raised)
      wanted->high = throttling->raised;
    for (const cgroup::CgroupView& cgroup : cgroups_of(machine, container)) {
      for (const std::string& words :
           cgroup::memory_qos_differences(cgroup, core::unified_values(*wanted), params.page_size))
        found.push_back(cat("container ", core::display_name(container), ", cgroup ", cgroup.path(),
                            ": ", words));
    }
  }
  return found;
}

void complete_memory_qos(Transaction& transaction, const core::PodRecord& record,
                         core::ContainerRecord& container) {
  if (record.kubelets_own || container.memory_qos == core::MemoryQos{}) return;
  const auto limited = cgroup::limited_cgroup(transaction.machine(), container);
  if (limited && *limited != container.cgroup)
    follow_container(transaction, record, container,
                     core::memory_qos_params(transaction.settings(), transaction.capacity()));
}

Status relieve_throttled(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  if (!settings.memory_throttling_thousandths || settings.memory_high_patience_seconds == 0)
    return {};
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  const core::MemoryQosParams params = core::memory_qos_params(settings, capacity);
  const auto is_due = [&](cgroup::Machine& machine, const core::PodRecord& record) {
    return std::ranges::any_of(record.containers, [&](const core::ContainerRecord& container) {
      if (!is_throttled_from(container.memory_qos)) return false;
      auto throttling = container.throttling;
      observe_throttling(cgroups_of(machine, container), *container.memory_qos.high, throttling,
                         params, settings.memory_high_patience_seconds);
      return throttling != container.throttling;
    });
  };
  return handle_due_pods(settings, log, timeouts, {.is_due = is_due, .handle = follow_memory_qos});
}

}  // namespace podqos::app

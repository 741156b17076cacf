#include "common/app/memory_qos.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/admission.h"
#include "common/core/events/container_memory.h"
#include "common/core/pods/pod_values.h"
#include "common/store/store.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

core::ThrottlingBounds bounds_of(const core::Settings& settings,
                                 const core::NodeCapacity& capacity) {
  return {.patience_seconds = settings.memory_high_patience_seconds,
          .allocatable = core::allocatable_memory(settings, capacity),
          .page_size = capacity.page_size};
}

bool is_throttled_from(const core::MemoryQos& given) {
  return given.high && *given.high != core::kUnlimitedMemory;
}

/// core::decide_throttling() of what the kernel shows; nullopt also if it does not tell.
std::optional<Bytes> observe_throttling(const cgroup::CgroupView& cgroup,
                                        std::optional<core::Throttling>& throttling,
                                        const core::ThrottlingBounds& bounds) {
  const auto events = cgroup.throttled_events();
  const auto high = cgroup.memory_qos().high;
  if (!events || !high) return std::nullopt;
  return core::decide_throttling(throttling,
                                 {.events = *events,
                                  .stalled_percent = cgroup.stalled_percent(),
                                  .high = *high,
                                  .limit = cgroup.memory_limit()},
                                 bounds, BootSeconds{sys::seconds_since_boot()});
}

/// The container's cgroup and, where its runtime has set limits below that, the cgroup there, whose
/// values bound the container as well.
std::vector<std::string> cgroups_of(cgroup::Machine& machine,
                                    const core::ContainerRecord& container) {
  std::vector<std::string> cgroups{container.cgroup};
  auto limited = cgroup::limited_cgroup(machine, container);
  if (limited && *limited != container.cgroup) cgroups.push_back(*std::move(limited));
  return cgroups;
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
void log_raise(Transaction& transaction, const std::string& label, Bytes given, Bytes raised) {
  transaction.log().warning(
      cat(label, ": throttled at memory.high ", format_amount(given), " for longer than ",
          transaction.settings().memory_high_patience_seconds, " s: raised to ",
          raised == core::kUnlimitedMemory ? "max" : format_amount(raised),
          ", and further while that lasts: raise its memory limit, or memoryThrottlingFactor"));
}

void follow_container(Transaction& transaction, const core::PodRecord& record,
                      core::ContainerRecord& container, const core::MemoryQosParams& params) {
  const core::MemoryQos wanted = core::container_memory_qos(record, container.name, params);
  const core::MemoryQos given =
      core::decide_memory_qos(container.memory_qos, wanted, {}, params.page_size).given;
  // Switched off, and taken back already.
  if (!params.enabled() && given == container.memory_qos) return;
  const std::string label =
      cat(core::name_of(record.pod), ", container ", printable(container.name));
  if (!is_throttled_from(given)) container.throttling.reset();
  std::optional<Bytes> raised;
  bool written = true;
  for (const std::string& path : cgroups_of(transaction.machine(), container)) {
    const cgroup::CgroupView cgroup{transaction.machine(), path};
    const core::MemoryQos held = cgroup.memory_qos();
    core::MemoryQos write_now =
        core::decide_memory_qos(container.memory_qos, wanted, held, params.page_size).write;
    if (path == container.cgroup && is_throttled_from(given) && !write_now.high) {
      raised = observe_throttling(cgroup, container.throttling,
                                  bounds_of(transaction.settings(), transaction.capacity()));
      const bool first = raised && held.high && *held.high <= *given.high;
      if (first) log_raise(transaction, label, *held.high, *raised);
    }
    if (raised) write_now.high = raised;
    written = write(transaction, label, path, write_now) && written;
  }
  if (written) container.memory_qos = given;
}

/// Uids of the pods of which relieve_throttled() has something to note or to write.
Result<std::vector<std::string>> throttled_pods(const core::Settings& settings) {
  std::vector<std::string> found;
  auto records = store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked);
  if (!records && records.error().code == ErrorCode::kNotFound) return found;
  if (!records) return fail(std::move(records).error());
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  PODQOS_ASSIGN(const auto uids, records->pod_uids());
  const core::ThrottlingBounds bounds = bounds_of(settings, capacity);
  const auto is_due = [&](const core::ContainerRecord& container) {
    if (!is_throttled_from(container.memory_qos)) return false;
    auto throttling = container.throttling;
    const bool raises =
        observe_throttling({machine, container.cgroup}, throttling, bounds).has_value();
    return raises || throttling != container.throttling;
  };
  for (const std::string& uid : uids) {
    const auto record = records->pod(uid);
    if (record && *record && std::ranges::any_of((*record)->containers, is_due))
      found.push_back(uid);
  }
  return found;
}

}  // namespace

void follow_memory_qos(Transaction& transaction, core::PodRecord& record) {
  if (record.kubelets_own) return;
  const core::MemoryQosParams params =
      core::memory_qos_params(transaction.settings(), transaction.capacity());
  for (core::ContainerRecord& container : record.containers) {
    const bool given = container.memory_qos != core::MemoryQos{};
    if (given && container.state == core::ContainerState::kLive)
      follow_container(transaction, record, container, params);
  }
}

Status relieve_throttled(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  if (!settings.memory_throttling_thousandths || settings.memory_high_patience_seconds == 0)
    return {};
  PODQOS_ASSIGN(const auto uids, throttled_pods(settings));
  if (uids.empty()) return {};
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return {};
  PODQOS_TRY(recover(*transaction));
  for (const std::string& uid : uids) {
    PODQOS_ASSIGN(auto record, transaction->store().pod(uid));
    if (!record || record->released_at) continue;
    const core::PodRecord before = *record;
    follow_memory_qos(*transaction, *record);
    if (*record != before) PODQOS_TRY(transaction->save(*record, &before));
  }
  return transaction->finish_if_changed();
}

}  // namespace podqos::app

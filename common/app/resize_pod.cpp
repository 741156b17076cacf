#include "common/app/resize_pod.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/follow_memory_qos.h"
#include "common/app/reconciler.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/codec/record_json.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/merge.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"

namespace podqos::app {

namespace {

/// A container whose runtime is to change its values.
struct ContainerUpdate {
  core::ContainerRecord container;
  core::RuntimeUpdate values;
};

struct DecidedResize {
  core::RequestedResize pod;
  std::vector<ContainerUpdate> updates;
};

/// Lowers the bursts to what the kernel takes beside the old quotas and the new ones.
void lower_bursts(Transaction& transaction, const DecidedResize& decided) {
  for (const ContainerUpdate& update : decided.updates) {
    auto quota = update.values.steps.back().cpu_quota;
    // Where the runtime has failed, the container may have the new one already.
    const auto old = update.values.undo.cpu_quota;
    if (old && *old > 0 && (!quota || *quota <= 0 || *old < *quota)) quota = old;
    write_burst(transaction, decided.pod.before, update.container,
                quota.transform([](auto micros) { return Micros{micros}; }));
  }
}

Result<core::PodRecord> find_pod(store::Store& store, const std::string& uid) {
  PODQOS_ASSIGN(auto record, store.pod(uid));
  if (record && !record->released_at) return *std::move(record);
  return fail(ErrorCode::kNotFound, "it has ended");
}

/// A container's limit of memory and swap together, as runtimes are told it; nullopt for none.
std::optional<std::int64_t> swap_limit(cgroup::Machine& machine, const std::string& cgroup,
                                       std::int64_t memory) {
  const auto read = [&](const char* file) {
    const auto text = machine.read(cgroup, core::Controller::kMemory, file);
    return text ? parse_int(*text) : std::nullopt;
  };
  if (const auto both = read("memory.memsw.limit_in_bytes"))
    return *both < core::kMaxMemoryLimit.value() ? both : std::nullopt;
  // "max" is not a number.
  const auto swap = read("memory.swap.max");
  const bool bounds = swap && memory > 0 && *swap < core::kMaxMemoryLimit.value() - memory;
  return bounds ? std::optional{memory + *swap} : std::nullopt;
}

/// What a container's cgroup has, with its limits of swap and processes.
core::HeldResources values_of(cgroup::Machine& machine, const core::ContainerRecord& container) {
  const cgroup::CgroupView view{machine, container.cgroup};
  core::HeldResources held = cgroup::held_by(machine, container, view);
  held.values.memory_swap =
      swap_limit(machine, container.cgroup, held.values.memory_limit.value_or(-1));
  held.values.pids_limit = view.pids_limit();
  return held;
}

/// What is to be told of one container; nullopt if nothing is.
/// @param wanted  what the resize asks for
Result<std::optional<ContainerUpdate>> decide_update(Transaction& transaction,
                                                     const core::RequestedResize& pod,
                                                     const core::Resources& wanted,
                                                     const core::ContainerRecord& container) {
  const core::Container* const old = core::find_container(pod.before.pod, container.name);
  const core::Container* const now = core::find_container(pod.after.pod, container.name);
  if (container.sandbox || old == nullptr || now == nullptr) return std::nullopt;
  const core::PodConfigParams params = core::pod_config_params(transaction.settings());
  PODQOS_ASSIGN(auto before, core::container_cgroup_values(pod.before.pod, *old, params));
  PODQOS_ASSIGN(const auto after, core::container_cgroup_values(pod.after.pod, *now, params));
  const core::HeldResources held = values_of(transaction.machine(), container);
  if (container.name == pod.container && core::tells_of_updates(pod.after, container))
    core::assume_held(before, core::find_update(pod.after, container, held, transaction.rules()),
                      wanted);
  if (before == after) return std::nullopt;
  PODQOS_TRY(core::check_kernel_bounds(after));
  if (container.state != core::ContainerState::kLive)
    return fail(ErrorCode::kBusy, "it is being created: try again once it runs");
  const cgroup::CgroupView view{transaction.machine(), container.cgroup};
  PODQOS_TRY(core::check_usage(before, after, view.memory_usage()));
  auto values = core::runtime_update(before, after, held, transaction.formula());
  // What the container's own period rounds to the same quota.
  if (values.steps.empty()) return std::nullopt;
  return ContainerUpdate{container, std::move(values)};
}

core::PodRecord settled_record(Transaction& transaction, const core::PodRecord& record) {
  return core::settle_resize(record, cgroup::held_by_containers(transaction.machine(), record),
                             transaction.rules());
}

/// The pod as it is, where an earlier resize was interrupted, too: the lock for resizes is this
/// process's own.
Result<core::PodRecord> take_up_pod(Transaction& transaction, const std::string& uid) {
  PODQOS_ASSIGN(auto record, find_pod(transaction.store(), uid));
  if (!record.resizing) return record;
  core::PodRecord settled = settled_record(transaction, record);
  PODQOS_ASSIGN(const auto refused, save_resized(transaction, settled, record));
  if (refused) PODQOS_TRY(transaction.postpone(settled, *refused));
  return settled;
}

/// Decides all that is to be done, and finds what is in the way of it.
Result<DecidedResize> decide_steps(Transaction& transaction, const PodResize& wanted) {
  const core::Settings& settings = transaction.settings();
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_ASSIGN(const auto record, take_up_pod(transaction, wanted.uid));
  DecidedResize decided;
  PODQOS_ASSIGN(decided.pod, core::decide_resize(record, wanted.request));
  const core::PodRecord& after = decided.pod.after;
  decided.pod.raised.resizing =
      core::Resizing{.container = decided.pod.container,
                     .before = core::amounts_of(record, decided.pod.container),
                     .raised = core::amounts_of(decided.pod.raised, decided.pod.container),
                     .after = core::amounts_of(after, decided.pod.container)};
  PODQOS_ASSIGN(const auto values, core::pod_values(record, settings));
  PODQOS_ASSIGN(const auto new_values, core::pod_values(after, settings));
  const cgroup::CgroupView view{transaction.machine(), record.cgroup};
  PODQOS_TRY(core::check_usage(values, new_values, view.memory_usage()));
  const std::optional before{record};
  PODQOS_TRY(
      check_fit(transaction, {.pod = after,
                              .before = before,
                              .others = core::sums_beside(transaction.node(), record.pod.uid),
                              .capacity = transaction.capacity()}));
  bool runs = decided.pod.container.empty();
  for (const core::ContainerRecord& container : record.containers) {
    if (!cgroup::lives(transaction.machine(), container)) continue;
    runs = runs || container.name == decided.pod.container;
    PODQOS_ASSIGN(auto update, with_container_id(decide_update(transaction, decided.pod,
                                                               wanted.request.wanted, container),
                                                 container.id));
    if (update) decided.updates.push_back(*std::move(update));
  }
  if (runs) return decided;
  return fail(ErrorCode::kNotFound, cat("container ", printable(decided.pod.container),
                                        " does not run: resize it once it does"));
}

/// The resize of one pod, step by step.
class Resizing {
 public:
  Resizing(const Begin& begin, const PodResize& wanted) : begin_(begin), wanted_(wanted) {}

  Result<core::RequestedResize> run(const FindRuntime& find) {
    PODQOS_TRY(look());
    if (decided_.pod.after == decided_.pod.before && decided_.updates.empty()) return decided_.pod;
    for (const ContainerUpdate& update : decided_.updates) {
      PODQOS_ASSIGN(auto runtime, with_container_id(find(update.container), update.container.id));
      runtimes_.push_back(std::move(runtime));
    }
    PODQOS_ASSIGN(Status done, raise());
    if (done) done = update_containers();
    const bool all_updated = done.has_value();
    if (done) done = give(decided_.pod.after, decided_.updates);
    if (!done) return fail(take_back(std::move(done).error(), all_updated));
    return decided_.pod;
  }

 private:
  Status look() {
    PODQOS_ASSIGN(auto transaction, begin_());
    auto decided = decide_steps(transaction, wanted_);
    PODQOS_TRY(transaction.finish_if_changed());
    PODQOS_ASSIGN(decided_, std::move(decided));
    return {};
  }

  /// Decides once more, as the lock was free while runtimes were asked, and raises the pod.
  /// @return an error if nothing is written, else how it went
  Result<Status> raise() {
    PODQOS_ASSIGN(auto transaction, begin_());
    PODQOS_ASSIGN(auto again, decide_steps(transaction, wanted_));
    if (again.pod.before != decided_.pod.before)
      return fail(ErrorCode::kBusy, "the pod has just changed: try again");
    decided_ = std::move(again);
    lower_bursts(transaction, decided_);
    return write(transaction, decided_.pod.raised, decided_.pod.before);
  }

  /// Gives the pod the resources of one of its records, as it is by now.
  /// @param updated  see write()
  Status give(core::PodRecord& record, const std::vector<ContainerUpdate>& updated) {
    PODQOS_ASSIGN(auto transaction, begin_());
    PODQOS_TRY(reconcile_interrupted(transaction));
    PODQOS_ASSIGN(const auto now, transaction.store().pod(record.pod.uid));
    if (!now || now->released_at) return fail(ErrorCode::kNotFound, "the pod has ended meanwhile");
    const std::string& container = decided_.pod.container;
    auto resizing = std::move(record.resizing);
    record = core::with_amounts(*now, core::amounts_of(record, container), container);
    record.resizing = std::move(resizing);
    return write(transaction, record, *now, updated);
  }

  /// @param updated  containers whose burst follows the quota that they have by now
  static Status write(Transaction& transaction, core::PodRecord& record,
                      const core::PodRecord& before,
                      const std::vector<ContainerUpdate>& updated = {}) {
    PODQOS_ASSIGN(auto refused, save_resized(transaction, record, before));
    if (refused && refused->code == ErrorCode::kBusy) {
      PODQOS_TRY(transaction.postpone(record, *refused));
      refused.reset();
    }
    if (!refused) {
      for (const ContainerUpdate& update : updated)
        write_burst(transaction, record, update.container);
    }
    PODQOS_TRY(transaction.finish());
    return refused ? fail(*std::move(refused)) : Status{};
  }

  Status update_containers() {
    for (const ContainerUpdate& update : decided_.updates) {
      const UpdateContainer& runtime = runtimes_.at(reached_++);
      for (const core::EngineResources& step : update.values.steps)
        PODQOS_TRY(with_container_id(tell(runtime, step), update.container.id));
    }
    return {};
  }

  /// Once more if it fails beside a burst, which a reconciliation may have raised meanwhile, by the
  /// quota that it found.
  Status tell(const UpdateContainer& runtime, const core::EngineResources& values) {
    auto done = runtime(values);
    if (done || !decided_.pod.before.cpu_burst) return done;
    {
      PODQOS_ASSIGN(auto transaction, begin_());
      PODQOS_TRY(reconcile_interrupted(transaction));
      lower_bursts(transaction, decided_);
      PODQOS_TRY(transaction.finish_if_changed());
    }
    return runtime(values);
  }

  /// @param all_updated  whether all containers were
  /// @return the cause, with what has become of what was done
  Error take_back(Error cause, bool all_updated) {
    std::string left;
    const auto note = [&left](const Status& undone) {
      if (!undone) left += cat(left.empty() ? "" : "; ", undone.error().message);
    };
    // cgroup v1 refuses a container a quota above its pod's, which may have been lowered. No burst
    // follows: the kernel refuses a quota below it.
    if (all_updated) static_cast<void>(give(decided_.pod.raised, {}).has_value());
    for (std::size_t at = 0; at < reached_; ++at) {
      const ContainerUpdate& update = decided_.updates.at(at);
      note(with_container_id(tell(runtimes_.at(at), update.values.undo), update.container.id));
    }
    note(give(decided_.pod.before, decided_.updates));
    cause.message += left.empty() ? std::string{"; what was done has been taken back"}
                                  : cat("; not all that was done could be taken back: ", left,
                                        "; podqosctl status shows what the pod has now");
    return cause;
  }

  const Begin& begin_;
  const PodResize& wanted_;
  DecidedResize decided_;
  std::vector<UpdateContainer> runtimes_;  ///< of decided_.updates
  std::size_t reached_ = 0;                ///< number of containers that may have been changed
};

}  // namespace

Result<std::optional<Error>> save_resized(Transaction& transaction, core::PodRecord& record,
                                          const core::PodRecord& before) {
  PODQOS_TRY(core::check_described(record));
  core::count_requests(record, transaction.settings(), transaction.capacity());
  record.due.reset();
  PODQOS_TRY(codec::check_record_size(transaction.store().text_of(record)));
  if (!record.kubelets_own) PODQOS_TRY(core::pod_values(record, transaction.settings()));
  follow_memory_qos(transaction, record);
  PODQOS_TRY(transaction.save(record, &before));
  if (record.kubelets_own) return std::nullopt;
  auto written = transaction.write_pod(record, &before);
  auto refused = written ? std::nullopt : std::optional{std::move(written).error()};
  // Of the steps of a resize, one changes no amount if all goes up, or down.
  core::PodRecord marked = before;
  marked.resizing = record.resizing;
  const std::string changed = core::describe_resize(before, record);
  if (record == marked || changed.empty()) return refused;
  core::Event event = core::event_of(core::EventKind::kResized, record);
  event.text = cat("resized: ", changed);
  transaction.event(core::LogLevel::kInfo, std::move(event), cat(core::name_of(record), ": "));
  return refused;
}

std::optional<core::PodRecord> settle_resize(Transaction& transaction,
                                             const core::PodRecord& record) {
  if (!record.resizing) return std::nullopt;
  if (const sys::Directory* const state = transaction.state()) {
    // Who resizes, and its runtime after it, has the lock. A new resize waits for this transaction.
    const auto free = sys::FileLock::acquire(*state, kResizeLock, std::chrono::milliseconds{0});
    if (!free && free.error().code != ErrorCode::kTimeout)
      transaction.log().warning(
          cat(core::name_of(record),
              ": whether its resize goes on cannot be told: ", free.error().message));
    if (!free) return std::nullopt;
  }
  return settled_record(transaction, record);
}

Result<core::RequestedResize> resize_pod(const Begin& begin, const PodResize& wanted,
                                         const FindRuntime& find) {
  return Resizing{begin, wanted}.run(find);
}

}  // namespace podqos::app

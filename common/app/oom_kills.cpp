#include "common/app/oom_kills.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/due_pods.h"
#include "common/app/reconcile.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/core/cgroups/naming.h"
#include "common/core/events/admission.h"
#include "common/core/events/event.h"
#include "common/core/events/oom_kill.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

using core::CgroupVersion;
using core::OomCounters;

/// The cgroups above a pod's, which may be a kubelet's.
struct Above {
  std::string tier;  ///< "" of a Guaranteed pod
  std::string root;
};

/// The class whose tier the pod's cgroup lies in. That of a pod whose spec was taken back is lower.
core::QosClass tier_of(const core::PodRecord& record) {
  const auto placed = core::find_pod_cgroup(record.cgroup);
  return placed ? placed->qos_class : record.qos_class;
}

Above above(const core::PodRecord& record) {
  std::string parent{parent_of(record.cgroup)};
  if (tier_of(record) == core::QosClass::kGuaranteed) return {.tier = "", .root = parent};
  return {.tier = parent, .root = std::string{parent_of(parent)}};
}

/// The count of a tier; nullptr for a class without.
std::int64_t* count_of(core::TreeOoms& ooms, core::QosClass qos_class) {
  switch (qos_class) {
    case core::QosClass::kGuaranteed: return nullptr;
    case core::QosClass::kBurstable: return &ooms.burstable;
    case core::QosClass::kBestEffort: return &ooms.besteffort;
  }
  return nullptr;
}

OomCounters counters_in(cgroup::Machine& machine, const std::string& cgroup) {
  return cgroup::CgroupView{machine, cgroup}.oom_counters().value_or(OomCounters{});
}

/// Sums over the pod's containers, less one of them, of what was not reported.
OomCounters unreported(cgroup::Machine& machine, const core::PodRecord& record,
                       const core::ContainerRecord* subject = nullptr) {
  OomCounters sums;
  for (const core::ContainerRecord& container : record.containers) {
    if (&container == subject || !is_below(container.cgroup, record.cgroup)) continue;
    const auto now = cgroup::CgroupView{machine, container.cgroup}.oom_counters();
    if (!now) continue;
    const core::ReportedOoms reported = container.oom.value_or(core::ReportedOoms{});
    sums.kills += now->kills - reported.kills;
    sums.ooms += now->ooms - reported.ooms;
  }
  return sums;
}

/// Keeps what was seen of the tree, for pods that come later.
void note_tree(Transaction& transaction, const core::PodRecord& record,
               const core::OomSnapshot& snapshot) {
  if (record.kubelets_own || (snapshot.tier == 0 && snapshot.root == 0)) return;
  core::TreeRecord* const tree = core::find_tree(transaction.tiers(), record.cgroup);
  if (tree == nullptr) return;
  core::TreeOoms ooms = tree->ooms.value_or(core::TreeOoms{});
  ooms.root = snapshot.root;
  if (std::int64_t* const count = count_of(ooms, tier_of(record))) *count = snapshot.tier;
  tree->ooms = ooms;
}

/// What the sentence about a kill names, read from the kernel.
core::OomWords words_for(Transaction& transaction, const core::PodRecord& record,
                         const core::ContainerRecord& container, const Above& cgroups) {
  cgroup::Machine& machine = transaction.machine();
  const cgroup::CgroupView pod{machine, record.cgroup};
  const auto values = core::container_values(record, container.name, transaction.settings());
  const std::string_view tier = tier_of(record) == core::QosClass::kBurstable
                                    ? std::string_view{"burstable"}
                                    : std::string_view{"besteffort"};
  return {.limits = {values ? values->memory_limit : std::nullopt, pod.memory_limit(),
                     cgroup::CgroupView{machine, cgroups.tier}.memory_limit(),
                     cgroup::CgroupView{machine, cgroups.root}.memory_limit()},
          .tier = tier,
          .root = cgroups.root,
          .peak = pod.memory_peak()};
}

}  // namespace

std::int64_t count_oom_kills(cgroup::Machine& machine, const core::PodRecord& record) {
  const std::int64_t reported = record.oom ? record.oom->kills : 0;
  const auto kills = cgroup::CgroupView{machine, record.cgroup}.oom_kills();
  // cgroup v1 counts in the cgroups of containers alone, which go with them.
  return kills ? std::max(*kills, reported) : reported + unreported(machine, record).kills;
}

void note_earlier_ooms(Transaction& transaction, core::PodRecord& record) {
  if (record.cgroup.empty()) return;
  // The cgroup may be older than the record: a kubelet's, or that of a former pod of this uid.
  const OomCounters pod = counters_in(transaction.machine(), record.cgroup);
  core::OomCounts counts{.kills = pod.kills, .below = pod.ooms - pod.own_ooms, .pod = pod.own_ooms};
  const core::TreeRecord* const tree =
      record.kubelets_own ? nullptr : core::find_tree(transaction.tiers(), record.cgroup);
  if (tree != nullptr && tree->ooms) {
    core::TreeOoms ooms = *tree->ooms;
    const std::int64_t* const tier = count_of(ooms, tier_of(record));
    counts.tier = tier != nullptr ? *tier : 0;
    counts.root = ooms.root;
  }
  if (counts != core::OomCounts{}) record.oom = counts;
}

bool report_oom_kill(Transaction& transaction, core::PodRecord& record,
                     core::ContainerRecord& container) {
  cgroup::Machine& machine = transaction.machine();
  const auto version = machine.layout_without_hugepages().memory;
  const bool has_run = container.state == core::ContainerState::kLive;
  if (!version || record.cgroup.empty() || !has_run) return false;
  const cgroup::CgroupView own{machine, container.cgroup};
  core::OomSnapshot snapshot{.version = *version, .container = own.oom_counters()};
  const cgroup::CgroupView pod{machine, record.cgroup};
  // Most containers are not killed: one or two files are all that is read for them.
  const bool may_be_killed = snapshot.container
                                 ? snapshot.container->kills > 0
                                 : core::has_new_kills(record.oom.value_or(core::OomCounts{}),
                                                       {.kills = pod.oom_kills().value_or(0)});
  if (!may_be_killed) return false;
  const Above cgroups = above(record);
  snapshot.pod = pod.oom_counters().value_or(OomCounters{});
  snapshot.others = unreported(machine, record, &container);
  snapshot.tier = counters_in(machine, cgroups.tier).own_ooms;
  snapshot.root = counters_in(machine, cgroups.root).own_ooms;
  const auto met = core::decide_oom_kill(record, container, snapshot);
  if (!met) return false;
  note_tree(transaction, record, snapshot);
  core::Event event = core::event_of(core::EventKind::kOomKilled, record, &container);
  event.text = core::describe_oom_kill(*met, words_for(transaction, record, container, cgroups));
  transaction.event(core::LogLevel::kWarning, std::move(event),
                    cat(core::name_of(record, container), ": "));
  return true;
}

Status report_before_removal(const core::Settings& settings, Log& log, const std::string& id,
                             const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return {};
  PODQOS_TRY(recover(*transaction));
  PODQOS_ASSIGN(auto found, store::find_container(transaction->store(), id, ""));
  const bool has_ended = found && !cgroup::lives(transaction->machine(), found->container());
  if (has_ended && report_oom_kill(*transaction, found->record, found->container()))
    PODQOS_TRY(transaction->save(found->record, &found->record));
  return transaction->finish_if_changed();
}

Status report_oom_kills(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  const auto has_kills = [](cgroup::Machine& machine, const core::ContainerRecord& container) {
    const std::int64_t reported = container.oom.value_or(core::ReportedOoms{}).kills;
    return container.state == core::ContainerState::kLive &&
           counters_in(machine, container.cgroup).kills > reported;
  };
  const auto report = [](Transaction& transaction, core::PodRecord& record) {
    for (core::ContainerRecord& container : record.containers)
      report_oom_kill(transaction, record, container);
  };
  return handle_due_pods(settings, log, timeouts, {.is_due = has_kills, .handle = report});
}

}  // namespace podqos::app

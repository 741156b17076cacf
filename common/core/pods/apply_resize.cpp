#include "common/core/pods/apply_resize.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {

namespace {

/// Whether the engine's quota, or none, is what it makes of the known CPU limit.
bool gives_quota(const Resources& known, const EngineResources& now) {
  const auto limit = find(known.limits, kCpu);
  if (!limit) return *now.cpu_quota <= 0;
  return cpu_quota_for(MilliCpu{limit->milli_value()}, now.period()).value() == *now.cpu_quota;
}

void update(Resources& known, const EngineResources& now) {
  const Resources updated = infer_resources(now);
  if (now.cpu_shares && cpu_shares_for(cpu_of(known.requests)).value() != *now.cpu_shares)
    take(known.requests, updated.requests, kCpu);
  if (now.cpu_quota && !gives_quota(known, now)) take(known.limits, updated.limits, kCpu);
  if (now.memory_limit) take(known.limits, updated.limits, kMemory);
  if (now.memory_reservation) take(known.requests, updated.requests, kMemory);
}

/// @return whether the update had exact amounts
bool assign_exact(Resources& known, const std::optional<Resources>& exact) {
  if (!exact) return false;
  for (const auto& [name, amount] : exact->requests)
    known.requests.insert_or_assign(name, amount);
  for (const auto& [name, amount] : exact->limits)
    known.limits.insert_or_assign(name, amount);
  return true;
}

void raise(ResourceList& pod_level, const ResourceList& sums) {
  for (auto& [name, value] : pod_level) {
    if (const auto sum = find(sums, name)) value = std::max(value, *sum);
  }
}

/// Updates the pod-level resources if the pod has some, else the engine's sums. Sums of requests
/// may exceed those of limits, since containers may lack a limit.
void resize_whole(PodRecord& record, const Resize& resize) {
  if (record.pod.resources) {
    if (assign_exact(*record.pod.resources, resize.exact)) return;
    update(*record.pod.resources, resize.now);
    cap_requests(*record.pod.resources);
    if (*record.pod.resources == Resources{}) record.pod.resources.reset();
    return;
  }
  EngineSums sums = record.sums.value_or(EngineSums{});
  update(sums.resources, resize.now);
  record.sums = sums.resources == Resources{} ? std::nullopt : std::optional{std::move(sums)};
}

/// Lets the requests be the limits.
void request_limits(Resources& known) {
  for (const std::string_view name : {kCpu, kMemory}) {
    if (const auto limit = find(known.limits, name))
      known.requests.insert_or_assign(std::string{name}, *limit);
  }
}

/// Updates the memory limit that backs the container's request. Updates contain all values, also
/// those that podqos has filled in, so only a limit that differs from the known one is the
/// engine's.
void update_backing(PodRecord& record, const Resize& resize) {
  if (!resize.now.memory_limit) return;
  const Container* known = find_container(record.pod, resize.container);
  const auto limit = known == nullptr ? std::nullopt : find(known->resources.limits, kMemory);
  if (limit && limit->value() == *resize.now.memory_limit) return;
  for (ContainerRecord& container : record.containers) {
    if (container.name != resize.container || !container.backed_memory) continue;
    container.backed_memory = Bytes{std::max<std::int64_t>(*resize.now.memory_limit, 0)};
  }
}

/// True if the containers together request more than the engine says of their pod: then that states
/// pod-level resources, which a container's update does not change.
bool are_pod_level(const EngineSums& sums, const Pod& pod) {
  const ResourceList together = sum_of_containers(pod).requests;
  return std::ranges::any_of(sums.resources.requests, [&](const auto& request) {
    const auto sum = find(together, request.first);
    return sum && *sum > request.second;
  });
}

}  // namespace

void raise_to_containers(Resources& whole, const Pod& pod) {
  const Resources sum = sum_of_containers(pod);
  raise(whole.requests, sum.requests);
  raise(whole.limits, sum.limits);
}

bool undo_resize(PodRecord& record, const Identity& identity, const PodClaim& claim) {
  if (identity.source != IdentitySource::kEngine || claim.source != ClassSource::kPodAnnotation)
    return false;
  const Container* const claimed = find_container(claim.pod, identity.container_name);
  Container* const own = find_container(record.pod, identity.container_name);
  if (claimed == nullptr || own == nullptr) return false;
  Pod as_specified = record.pod;
  if (as_specified.resources && claim.pod.resources) as_specified.resources = claim.pod.resources;
  for (auto* list : {&as_specified.containers, &as_specified.init_containers}) {
    for (Container& container : *list) {
      if (const Container* const same = find_container(claim.pod, container.name))
        container.resources = same->resources;
    }
  }
  if (describes_otherwise(claim, as_specified)) return false;
  // An update may come before the start, which then claims the spec once more.
  if (claim.runs_as_specified) own->resources = claimed->resources;
  return true;
}

void apply_resize(PodRecord& record, const Resize& resize) {
  Pod& pod = record.pod;
  if (resize.container.empty()) {
    resize_whole(record, resize);
    return;
  }
  update_backing(record, resize);
  const bool pod_level = record.sums && are_pod_level(*record.sums, pod);
  Container* known = find_container(pod, resize.container);
  if (known == nullptr)
    known = &pod.containers.emplace_back(
        Container{.name = resize.container, .kind = ContainerKind::kApp, .resources = {}});
  if (!assign_exact(known->resources, resize.exact)) {
    update(known->resources, resize.now);
    cap_requests(known->resources);
    if (record.kubelets_own && record.qos_class == QosClass::kGuaranteed)
      request_limits(known->resources);
  }
  if (pod.resources) raise_to_containers(*pod.resources, pod);
  if (record.sums && !record.sums->enforced && !pod_level)
    raise_to_containers(record.sums->resources, pod);
}

namespace {

constexpr std::int64_t kNone = -1;
/// Shares and weight of a new cgroup.
/// @note kernel/sched/sched.h NICE_0_LOAD; Documentation/admin-guide/cgroup-v2.rst, cpu.weight
constexpr CpuShares kNewShares{1024};
constexpr CpuWeight kNewWeight{100};

bool limits_memory(const EngineResources& values) {
  return values.memory_limit.value_or(kNone) > 0;
}

}  // namespace

bool has_new_share(const HeldResources& held) {
  return held.cpu_weight
             ? *held.cpu_weight == kNewWeight
             : held.values.cpu_shares.value_or(kNewShares.value()) == kNewShares.value();
}

bool gives_share(MilliCpu request, const HeldResources& held,
                 std::optional<WeightFormula> formula) {
  const CpuShares most = cpu_shares_for(request);
  for (const CpuShares shares : {most, CpuShares{most.value() - 1}}) {
    if (!held.cpu_weight && held.values.cpu_shares == shares.value()) return true;
    for (const WeightFormula each : kWeightFormulas)
      if (formula.value_or(each) == each && held.cpu_weight == cpu_weight_for(shares, each))
        return true;
  }
  return false;
}

namespace {

/// Whether the container had limits, and has none and no CPU share either.
bool has_lost_limits(const Resources& known, const HeldResources& held) {
  const bool had = find(known.limits, kMemory) || find(known.limits, kCpu);
  return had && !limits_memory(held.values) && held.values.cpu_quota.value_or(kNone) <= 0 &&
         has_new_share(held);
}

/// Shares that a runtime has set. Those of a new cgroup tell nothing: the engine may have set none.
std::optional<std::int64_t> updated_shares(const Resources& known, const HeldResources& held,
                                           WeightFormula formula) {
  // An idle cgroup shows weight 0.
  if (has_new_share(held) || held.cpu_weight == CpuWeight{0} ||
      gives_share(cpu_of(known.requests), held))
    return std::nullopt;
  if (!held.cpu_weight) return held.values.cpu_shares;
  return shares_for_weight(*held.cpu_weight, formula).value();
}

/// Whether the quota is that of the known limit as systemd rounds it.
bool is_rounded_quota(const Resources& known, const EngineResources& values,
                      const ContainerRecord& container) {
  const auto limit = find(known.limits, kCpu);
  if (!limit || driver_of(container.cgroup) != Driver::kSystemd) return false;
  const CgroupValues wanted{
      .cpu_quota = cpu_quota_for(MilliCpu{limit->milli_value()}, values.period()),
      .cpu_period = values.period()};
  return rounded_by_systemd(wanted).cpu_quota == Micros{*values.cpu_quota};
}

bool gives_memory(const Resources& known, std::int64_t limit, Bytes page_size) {
  const auto own = find(known.limits, kMemory);
  if (!own || limit < 0) return !own && limit < 0;
  return own->value() / page_size.value() == limit / page_size.value();
}

const Resources& resources_of(const PodRecord& record, const ContainerRecord& container) {
  static const Resources none;
  const Container* known = find_container(record.pod, container.name);
  return known == nullptr ? none : known->resources;
}

}  // namespace

EngineResources find_update(const PodRecord& record, const ContainerRecord& container,
                            const HeldResources& held, const NodeRules& node) {
  const Resources& known = resources_of(record, container);
  const EngineResources& values = held.values;
  EngineResources update;
  update.cpu_shares = updated_shares(known, held, node.formula);
  if (values.cpu_quota && !gives_quota(known, values) &&
      !is_rounded_quota(known, values, container)) {
    update.cpu_quota = values.cpu_quota;
    update.cpu_period = values.cpu_period;
  }
  if (values.memory_limit && !gives_memory(known, *values.memory_limit, node.capacity.page_size))
    update.memory_limit = values.memory_limit;
  return update;
}

bool has_inferred_resources(const PodRecord& record, const ContainerRecord& container) {
  return !record.kubelets_own && !record.complete && !container.stated &&
         record.class_source != ClassSource::kShortForms;
}

namespace {

std::string memory_text(std::int64_t limit) {
  return cat("memory limit ", limit > 0 ? format_amount(Bytes{limit}) : "unlimited");
}

std::string cpu_text(const EngineResources& values) {
  const auto limit = milli_cpu_for_quota(Micros{*values.cpu_quota}, values.period());
  return cat("CPU limit ", limit ? format_amount(*limit) : "unlimited");
}

/// @param held  whose weight, and not the least shares with it, is what was set
std::string describe(const EngineResources& update, const HeldResources& held) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    text += cat(text.empty() ? "" : ", ", part);
  };
  if (update.memory_limit) add(memory_text(*update.memory_limit));
  if (update.cpu_quota) add(cpu_text(update));
  if (update.cpu_shares) {
    add(held.cpu_weight ? cat("CPU weight ", held.cpu_weight->value())
                        : cat("CPU shares ", *update.cpu_shares));
  }
  return text;
}

std::string label_of(const ContainerRecord& container) {
  return cat("container ", printable(container.name));
}

/// What a pod follows of one container, "" for nothing; or why it does not.
using Followed = std::expected<std::string, std::string>;

/// Lets the pod follow one container.
Followed follow(PodRecord& record, const ContainerRecord& container, const HeldResources& held,
                const NodeRules& node) {
  if (has_lost_limits(resources_of(record, container), held)) {
    return std::unexpected(
        cat(" has no limits any more in ", container.cgroup,
            ", but its pod keeps its own: the cgroup was made anew, or all limits were lifted; "
            "recreate the container"));
  }
  const EngineResources update = find_update(record, container, held, node);
  if (update == EngineResources{}) return {};
  PodRecord updated = record;
  apply_resize(updated, {.container = container.name, .now = update});
  if (updated == record) return {};
  count_requests(updated, node.settings, node.capacity);
  const auto values = pod_values(updated, node.settings);
  if (!values) {
    return std::unexpected(cat(" was updated to ", describe(update, held),
                               ", which its pod does not follow: ", values.error().message));
  }
  const bool is_same = pod_values(record, node.settings) == values;
  // `container` is one of the record's.
  std::string change = cat(is_same ? "keeps its values beside " : "follows ", label_of(container),
                           ", updated to ", describe(update, held));
  record = std::move(updated);
  return change;
}

std::vector<Followed> follow_all(PodRecord& record, std::span<const HeldResources> held,
                                 const NodeRules& node) {
  std::vector<Followed> all(held.size());
  for (std::size_t at = 0; at < held.size(); ++at) {
    if (has_inferred_resources(record, record.containers[at]) && held[at] != HeldResources{})
      all[at] = follow(record, record.containers[at], held[at], node);
  }
  return all;
}

/// Which limit of a container is above its pod's; nullopt if none is.
std::optional<std::string> excess_of(const EngineResources& held, const CgroupValues& pod,
                                     Bytes page_size) {
  const std::int64_t memory = pod.memory_limit.value_or(Bytes{kNone}).value();
  if (limits_memory(held) && memory > 0 &&
      *held.memory_limit / page_size.value() > memory / page_size.value())
    return cat(memory_text(*held.memory_limit), " is above its pod's ",
               format_amount(Bytes{memory}));
  // In millicpu, since the pod's quota is that of whole ones.
  const auto own = milli_cpu_for_quota(Micros{held.cpu_quota.value_or(kNone)}, held.period());
  const auto bound = milli_cpu_for_quota(pod.cpu_quota.value_or(Micros{kNone}),
                                         pod.cpu_period.value_or(kDefaultPeriod));
  if (!own || !bound || *own <= *bound) return std::nullopt;
  return cat(cpu_text(held), " is above its pod's ", format_amount(*bound));
}

}  // namespace

bool tells_of_updates(const PodRecord& record, const ContainerRecord& container) {
  return container.state == ContainerState::kLive && !container.sandbox &&
         is_below(container.cgroup, record.cgroup) &&
         std::ranges::count(record.containers, container.name, &ContainerRecord::name) == 1;
}

std::vector<std::string> follow_updates(PodRecord& record, std::span<const HeldResources> held,
                                        const NodeRules& node) {
  std::vector<std::string> changes;
  for (Followed& each : follow_all(record, held, node)) {
    if (each && !each->empty()) changes.push_back(*std::move(each));
  }
  return changes;
}

std::vector<std::string> describe_unfollowed(const PodRecord& record,
                                             std::span<const HeldResources> held,
                                             const NodeRules& node) {
  std::vector<std::string> found;
  const auto values = pod_values(record, node.settings);
  if (!values || record.kubelets_own) return found;
  PodRecord later = record;
  const std::vector<Followed> followed = follow_all(later, held, node);
  const auto later_values = pod_values(later, node.settings);
  for (std::size_t at = 0; at < held.size(); ++at) {
    const std::string label = label_of(record.containers[at]);
    if (!followed[at]) {
      found.push_back(cat(label, followed[at].error()));
    } else if (const auto excess = excess_of(held[at].values, *values, node.capacity.page_size)) {
      std::string_view remedy = "run podqosctl reconcile, which lets the pod follow";
      if (!has_inferred_resources(record, record.containers[at]))
        remedy = "the pod's annotations state its resources: change them and recreate the pod";
      else if (!later_values || excess_of(held[at].values, *later_values, node.capacity.page_size))
        remedy = "the pod's limit is its engine's: recreate the pod with a higher one";
      found.push_back(cat(label, ": its ", *excess, ", so it has no effect: ", remedy));
    }
  }
  return found;
}

}  // namespace podqos::core

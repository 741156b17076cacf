#include "common/core/pods/resize_request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/kubernetes/validation.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {

namespace {

/// The name that the request means; "" for the pod-level resources. Containers that end before the
/// pod does are not resized.
Result<std::string> named_container(const Pod& pod, const std::string& name) {
  if (name.empty() && pod.resources) return name;
  if (name.empty() && pod.containers.size() == 1) return pod.containers.front().name;
  std::string names;
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const Container& container : *list) {
      if (container.kind == ContainerKind::kInit) continue;
      if (container.name == name) return name;
      names += cat(names.empty() ? "" : ", ", printable(container.name));
    }
  }
  return fail(ErrorCode::kNotFound,
              cat(name.empty() ? "the pod has no resources of its own"
                               : cat("no container ", printable(name), " can be resized"),
                  ": name one of these with --container: ", names));
}

bool is_resizable(const ResourceList& list) {
  return std::ranges::all_of(
      list, [](const auto& entry) { return entry.first == kCpu || entry.first == kMemory; });
}

/// Sums of the engine that are those of the containers stay so; apply_resize() has raised others.
void follow_containers(ResourceList& sums, const ResourceList& before, const ResourceList& after) {
  for (auto& [name, sum] : sums) {
    const auto old = find(before, name);
    const auto now = find(after, name);
    if (old && now && sum == std::max(*old, *now)) sum = *now;
  }
}

/// The API's rules that the pod breaks, but did not before, and the class.
Status check_rules(const PodRecord& before, const PodRecord& after) {
  const auto known = validate(whole_pod(before.pod, before.sums));
  std::string broken;
  for (const std::string& problem : validate(whole_pod(after.pod, after.sums)))
    if (std::ranges::find(known, problem) == known.end())
      broken += cat(broken.empty() ? "" : "; ", problem);
  if (!broken.empty()) return fail(ErrorCode::kInvalidArgument, std::move(broken));
  const auto verdict_on = [](const PodRecord& record) {
    Pod pod = whole_pod(record.pod, record.sums);
    pod.status_qos_class.reset();
    QosVerdict verdict = classify(pod);
    // As merge_claim(): containers that are known so far do not prove it.
    if (!record.complete && verdict.qos_class == QosClass::kGuaranteed)
      verdict.qos_class = QosClass::kBurstable;
    return verdict;
  };
  const QosVerdict old = verdict_on(before);
  const QosVerdict now = verdict_on(after);
  if (old.qos_class == now.qos_class) return {};
  return fail(ErrorCode::kRefused,
              cat("the class of a running pod cannot change, from ",
                  format_qos_class(old.qos_class), " to ", format_qos_class(now.qos_class), " (",
                  now.reason, "): recreate the pod, or ask for amounts that keep its class"));
}

/// The resources of the container, or of the pod; nullptr if they have gone.
template <class AnyPod>
auto* resources_in(AnyPod& pod, const std::string& container) {
  using Found = decltype(&*pod.resources);
  if (container.empty()) return pod.resources ? &*pod.resources : Found{};
  auto* const found = find_container(pod, container);
  return found == nullptr ? Found{} : &found->resources;
}

void raise_resources(Resources& raised, const Resources& other) {
  for (const auto& [name, amount] : other.requests) {
    Quantity& request = raised.requests.try_emplace(name, amount).first->second;
    request = std::max(request, amount);
  }
  std::erase_if(raised.limits, [&](const auto& limit) { return !find(other.limits, limit.first); });
  for (auto& [name, limit] : raised.limits)
    limit = std::max(limit, other.limits.at(name));
}

std::optional<std::int64_t> memory_of(const CgroupValues& values) {
  const Bytes limit = values.memory_limit.value_or(Bytes{0});
  return limit > Bytes{0} ? std::optional{limit.value()} : std::nullopt;
}

/// The quota of the rule in the period that the container has.
std::optional<std::int64_t> quota_of(const CgroupValues& values, Micros period) {
  return quota_in(period, values).transform(&Micros::value);
}

/// The shares of which the runtime has made what the cgroup has.
/// @param rule  tried first: several shares have one weight
std::optional<std::int64_t> shares_of(const HeldResources& held,
                                      const std::optional<CpuShares>& rule, WeightFormula formula) {
  if (!held.cpu_weight) return held.values.cpu_shares;
  if (rule && cpu_weight_for(*rule, formula) == *held.cpu_weight) return rule->value();
  return shares_for_weight(*held.cpu_weight, formula).value();
}

/// Which amounts the containers have as the resize makes them.
struct Arrived {
  bool cpu = true;
  bool memory = true;
};

/// Looks at what the resize changes of one container.
void compare(Arrived& arrived, const CgroupValues& before, const CgroupValues& after,
             const HeldResources& held, const NodeRules& node) {
  const EngineResources& values = held.values;
  const auto bound = [](std::optional<std::int64_t> limit) {
    return limit.value_or(0) > 0 ? limit : std::nullopt;
  };
  const auto pages = [&](std::optional<std::int64_t> limit) {
    return limit.transform([&](auto bytes) { return bytes / node.capacity.page_size.value(); });
  };
  if (memory_of(before) != memory_of(after) &&
      pages(memory_of(after)) != pages(bound(values.memory_limit)))
    arrived.memory = false;
  const auto quota = quota_of(after, values.period());
  if (quota_of(before, values.period()) != quota && quota != bound(values.cpu_quota)) {
    const CgroupValues whole{.cpu_quota = Micros{quota.value_or(-1)},
                             .cpu_period = values.period()};
    arrived.cpu = arrived.cpu && quota &&
                  rounded_by_systemd(whole).cpu_quota == Micros{values.cpu_quota.value_or(-1)};
  }
  if (before.cpu_shares != after.cpu_shares &&
      (!after.cpu_shares ||
       shares_of(held, after.cpu_shares, node.formula) != after.cpu_shares->value()))
    arrived.cpu = false;
}

/// What has arrived of a resize.
/// @param before  as `after`, the pod
Arrived arrived_of(const Pod& before, const Pod& after, const PodRecord& record,
                   std::span<const HeldResources> held, const NodeRules& node) {
  Arrived arrived;
  const PodConfigParams params = pod_config_params(node.settings);
  for (std::size_t at = 0; at < held.size(); ++at) {
    const Container* const old = find_container(before, record.containers[at].name);
    const Container* const now = find_container(after, record.containers[at].name);
    if (old == nullptr || now == nullptr) continue;
    const auto values = container_cgroup_values(before, *old, params);
    const auto wanted = container_cgroup_values(after, *now, params);
    if (!values || !wanted || *values == *wanted) continue;
    // What cannot be seen may be missing.
    if (held[at] == HeldResources{}) return {.cpu = false, .memory = false};
    compare(arrived, *values, *wanted, held[at], node);
  }
  return arrived;
}

/// Takes over an amount, or that there is none.
void take(Resources& resources, const Resources& other, std::string_view name) {
  take(resources.requests, other.requests, name);
  take(resources.limits, other.limits, name);
}

}  // namespace

Result<RequestedResize> decide_resize(const PodRecord& record, const ResizeRequest& request) {
  if (record.kubelets_own)
    return fail(ErrorCode::kRefused,
                "a kubelet has placed the pod, and resizes it itself: use "
                "kubectl patch pod --subresource resize");
  if (!is_resizable(request.wanted.requests) || !is_resizable(request.wanted.limits))
    return fail(ErrorCode::kInvalidArgument, "of a running pod only cpu and memory can change");
  PODQOS_ASSIGN(const auto name, named_container(record.pod, request.container));
  Resize resize{.container = name, .now = {}, .exact = request.wanted};
  if (const auto limit = find(request.wanted.limits, kMemory))
    resize.now.memory_limit = limit->value();
  RequestedResize decided{.container = name, .before = record, .raised = {}, .after = record};
  PodRecord& after = decided.after;
  apply_resize(after, resize);
  if (after.sums && !name.empty() && !after.sums->enforced) {
    const Resources old = sum_of_containers(record.pod);
    const Resources now = sum_of_containers(after.pod);
    follow_containers(after.sums->resources.requests, old.requests, now.requests);
    follow_containers(after.sums->resources.limits, old.limits, now.limits);
  }
  // apply_resize() has raised the pod's resources, which the operator did not ask for.
  if (!name.empty()) after.pod.resources = record.pod.resources;
  PODQOS_TRY(check_rules(record, after));
  decided.raised = after;
  raise_resources(*resources_in(decided.raised.pod, name), *resources_in(record.pod, name));
  if (after.sums) raise_resources(decided.raised.sums->resources, record.sums->resources);
  for (std::size_t at = 0; at < after.containers.size(); ++at) {
    auto& backed = decided.raised.containers[at].backed_memory;
    backed = std::max(backed, record.containers[at].backed_memory);
  }
  return decided;
}

ResizedAmounts amounts_of(const PodRecord& record, const std::string& container) {
  ResizedAmounts amounts{.resources = {}, .sums = record.sums};
  if (const auto* const resources = resources_in(record.pod, container))
    amounts.resources = *resources;
  const auto of = std::ranges::find(record.containers, container, &ContainerRecord::name);
  if (of != record.containers.end()) amounts.backed_memory = of->backed_memory;
  return amounts;
}

PodRecord with_amounts(PodRecord now, const ResizedAmounts& amounts, const std::string& container) {
  if (auto* const resources = resources_in(now.pod, container)) *resources = amounts.resources;
  if (now.sums && amounts.sums) now.sums = amounts.sums;
  for (ContainerRecord& each : now.containers)
    if (each.name == container) each.backed_memory = amounts.backed_memory;
  return now;
}

void assume_held(CgroupValues& before, const EngineResources& differs, const Resources& wanted) {
  if (differs.memory_limit && find(wanted.limits, kMemory))
    before.memory_limit = Bytes{*differs.memory_limit};
  if (differs.cpu_quota && find(wanted.limits, kCpu)) {
    before.cpu_quota = Micros{*differs.cpu_quota};
    before.cpu_period = differs.period();
  }
  if (differs.cpu_shares && find(wanted.requests, kCpu))
    before.cpu_shares = CpuShares{*differs.cpu_shares};
}

RuntimeUpdate runtime_update(const CgroupValues& before, const CgroupValues& after,
                             const HeldResources& held, WeightFormula formula) {
  const Micros period = held.values.period();
  const bool memory = memory_of(before) != memory_of(after);
  const bool shares = before.cpu_shares != after.cpu_shares;
  const bool quota = quota_of(before, period) != quota_of(after, period);
  EngineResources values = held.values;
  values.cpu_period = period.value();
  values.cpu_shares = shares_of(held, before.cpu_shares, formula);
  // What an update leaves out stays without a limit, and a share that was never set stays so.
  if (!shares && has_new_share(held)) values.cpu_shares.reset();
  if (!memory && values.memory_limit.value_or(-1) < 0) values.memory_limit.reset();
  if (!quota && values.cpu_quota.value_or(-1) < 0) values.cpu_quota = values.cpu_period = {};
  RuntimeUpdate update{.steps = {}, .undo = values};
  // The kernel's own "no limit": with -1, runc would lift the limit of swap as well (v2).
  if (memory && values.memory_limit.value_or(-1) < 0)
    update.undo.memory_limit = kMaxMemoryLimit.value();
  if (memory) {
    if (values.memory_swap && values.memory_limit)
      values.memory_swap = saturated(Wide{*values.memory_swap} + memory_of(after).value_or(0) -
                                     *values.memory_limit);
    values.memory_limit = memory_of(after);
    update.steps.push_back(values);
  }
  if (shares) values.cpu_shares = after.cpu_shares->value();
  if (quota) values.cpu_quota = quota_of(after, period);
  if (shares || quota) update.steps.push_back(values);
  return update;
}

PodRecord settle_resize(const PodRecord& record, std::span<const HeldResources> held,
                        const NodeRules& node) {
  const Resizing& resizing = *record.resizing;
  PodRecord settled = record;
  settled.resizing.reset();
  // Something else has changed the pod since.
  if (amounts_of(record, resizing.container) != resizing.raised) return settled;
  const auto with = [&](const ResizedAmounts& amounts) {
    return with_amounts(record, amounts, resizing.container);
  };
  const Arrived arrived =
      arrived_of(with(resizing.before).pod, with(resizing.after).pod, record, held, node);
  ResizedAmounts amounts = resizing.before;
  for (const auto& [name, has] :
       {std::pair{kCpu, arrived.cpu}, std::pair{kMemory, arrived.memory}}) {
    if (!has) continue;
    take(amounts.resources, resizing.after.resources, name);
    if (amounts.sums && resizing.after.sums)
      take(amounts.sums->resources, resizing.after.sums->resources, name);
  }
  if (arrived.memory) amounts.backed_memory = resizing.after.backed_memory;
  return with_amounts(std::move(settled), amounts, resizing.container);
}

namespace {

/// What the pod as a whole requests, and where it is limited.
Resources whole_resources(const PodRecord& record) {
  const Pod whole = whole_pod(record.pod, record.sums);
  Resources resources{.requests = pod_requests(whole), .limits = pod_limits(whole)};
  std::erase_if(resources.limits,
                [&](const auto& limit) { return !limit_declared(whole, limit.first); });
  return resources;
}

std::string differences(const Resources& before, const Resources& after) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view kind, const ResourceList& was,
                       const ResourceList& is) {
    const auto amount = [&](const ResourceList& list) {
      const auto found = find(list, name);
      if (!found) return std::string{"none"};
      return name == kCpu ? format_amount(MilliCpu{found->milli_value()})
                          : format_amount(Bytes{found->value()});
    };
    if (amount(was) == amount(is)) return;
    text += cat(text.empty() ? "" : ", ", name, " ", kind, " ", amount(was), " → ", amount(is));
  };
  for (const std::string_view name : {kCpu, kMemory}) {
    add(name, "request", before.requests, after.requests);
    add(name, "limit", before.limits, after.limits);
  }
  return text;
}

}  // namespace

std::string describe_resize(const PodRecord& before, const PodRecord& after) {
  std::string text = differences(whole_resources(before), whole_resources(after));
  if (!text.empty()) return text;
  for (const auto* list : {&after.pod.containers, &after.pod.init_containers}) {
    for (const Container& container : *list) {
      const Container* known = find_container(before.pod, container.name);
      const std::string changed =
          differences(known == nullptr ? Resources{} : known->resources, container.resources);
      if (!changed.empty())
        text +=
            cat(text.empty() ? "" : "; ", "container ", printable(container.name), ": ", changed);
    }
  }
  return text;
}

Status check_usage(const CgroupValues& before, const CgroupValues& after,
                   const std::optional<Bytes>& usage) {
  const auto limit = memory_of(after);
  if (!limit || !usage || memory_of(before).value_or(kInt64Max) <= *limit) return {};
  const Bytes least = bounded_tier_limit(Bytes{*limit}, usage, Bytes{0});
  if (least == Bytes{*limit}) return {};
  return fail(
      ErrorCode::kRefused,
      cat("memory limit ", format_amount(Bytes{*limit}), " is too low: ", format_amount(*usage),
          " is in use; ask for ", exact_amount(least), " at least, or let it use less"));
}

}  // namespace podqos::core

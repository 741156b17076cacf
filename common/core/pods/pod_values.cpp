#include "common/core/pods/pod_values.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// The container's description; nullptr if there is none, or if a kubelet sets its values.
const Container* described_container(const PodRecord& record, const std::string& name) {
  if (record.kubelets_own) return nullptr;
  // Inferred resources came from the engine's own values, so none are missing.
  const bool inferred = !record.complete && record.class_source == ClassSource::kInference;
  return inferred ? nullptr : find_container(record.pod, name);
}

/// Scales what follows from a memory request by the counted part of the pod's. No scheduler has
/// checked the pod, so all pods together may request more than the node has.
Bytes counted_part(Bytes amount, const PodRecord& record) {
  const ResourceList requests = pod_requests(record.pod);
  const std::int64_t requested = find(requests, kMemory).value_or(Quantity{}).value();
  const std::int64_t counted = record.counted_request.memory.value();
  return requested <= counted ? amount : Bytes{mul_div(amount.value(), counted, requested)};
}

/// True if the runtimes take values of cgroup v2: those that use cgroup v1, also on hybrid hosts,
/// refuse a container with them.
bool takes_unified(const CgroupLayout& layout) {
  return layout.memory == CgroupVersion::kV2 && layout.cpu != CgroupVersion::kV1;
}

/// Adds the quota, converted to the engine's period if it has set one, unless the engine's own is
/// at most that.
void add_missing_quota(CgroupValues& missing, const CgroupValues& wanted,
                       const EngineResources& engine) {
  const auto most = quota_in(engine.period(), wanted);
  if (!most || (engine.cpu_quota && *engine.cpu_quota <= most->value())) return;
  missing.cpu_quota = engine.cpu_period ? *most : *wanted.cpu_quota;
  if (!engine.cpu_period) missing.cpu_period = wanted.cpu_period;
}

void add_missing_hugepages(CgroupValues& missing, const CgroupValues& wanted,
                           const EngineResources& engine, const CgroupLayout& layout) {
  // Runtimes use one cgroup version for all controllers and do not find hugetlb on the other.
  if (!layout.hugetlb || layout.hugetlb != layout.memory) return;
  for (const auto& [label, limit] : wanted.hugepages) {
    // Runtimes refuse a container with a page size that the host lacks, since it has no file.
    const bool on_host =
        std::ranges::find(layout.hugepage_labels, label) != layout.hugepage_labels.end();
    const bool set = engine.hugepages.contains(label) ||
                     engine.unified.contains(hugepage_file(label, CgroupVersion::kV2));
    if (limit.value() > 0 && on_host && !set) missing.hugepages.emplace(label, limit);
  }
}

void add_missing_unified(CgroupValues& missing, const CgroupValues& wanted,
                         const EngineResources& engine, const CgroupLayout& layout) {
  if (!takes_unified(layout)) return;
  const std::string_view swap_limit = file_of(Value::kSwapLimit, CgroupVersion::kV2);
  for (const auto& [file, value] : wanted.unified) {
    const bool set = engine.unified.contains(file) || (file == swap_limit && engine.memory_swap) ||
                     (file == "memory.low" && engine.memory_reservation);
    if (!set) missing.unified.emplace(file, value);
  }
}

/// Whether the pod requests more of a resource than one pod may claim, and podqos bounds that.
bool exceeds_claim(const PodRecord& record) {
  if (record.kubelets_own || record.qos_class == QosClass::kBestEffort) return false;
  const TierSum requested = amounts_requested(record);
  const TierSum& capped = record.capped_request;
  return requested.cpu > capped.cpu || requested.memory > capped.memory;
}

/// The limit of one resource of an incomplete pod; nullopt if a container has none.
std::optional<Quantity> partial_limit(const Pod& whole, const ResourceList& limits,
                                      std::string_view resource) {
  const auto limit = find(limits, resource);
  const bool bounded = limit && !limit->is_zero() && limit_declared(whole, resource);
  return bounded ? limit : std::nullopt;
}

/// Sets the limits of an incomplete pod whatever its class is, so that they can grow with it: those
/// of its containers, or unlimited.
void apply_partial_limits(CgroupValues& values, const Pod& whole, const Settings& settings) {
  const ResourceList limits = pod_limits(whole);
  const auto cpu = settings.cpu_cfs_quota ? partial_limit(whole, limits, kCpu) : std::nullopt;
  const auto memory = partial_limit(whole, limits, kMemory);
  values.cpu_quota =
      cpu ? cpu_quota_for(MilliCpu{cpu->milli_value()}, settings.cpu_cfs_quota_period) : Micros{-1};
  values.cpu_period = settings.cpu_cfs_quota_period;
  values.memory_limit = Bytes{memory ? memory->value() : -1};
}

/// Reserves what counts of the request: the rest would be taken from other pods.
void cap_reserved(CgroupValues& values, Bytes counted) {
  for (auto& [file, value] : values.unified)
    value = std::to_string(std::min(parse_int(value).value_or(0), counted.value()));
}

}  // namespace

Result<CgroupValues> container_values(const PodRecord& record, const std::string& name,
                                      const Settings& settings) {
  const Container* container = described_container(record, name);
  if (container == nullptr) return CgroupValues{};
  PODQOS_ASSIGN(auto values,
                container_cgroup_values(record.pod, *container, pod_config_params(settings)));
  values.pids_limit = settings.pod_pids_limit;
  if (auto taken = check_kernel_bounds(values); !taken)
    return fail(std::move(taken).error().with_context(cat("container ", printable(name))));
  return values;
}

UnifiedValues container_unified(const PodRecord& record, const PodClaim& claim,
                                const std::string& name, const ContainerMemoryParams& params) {
  const Container* container = described_container(record, name);
  const bool described = record.complete || claim.source != ClassSource::kInference;
  if (container == nullptr || !described) return {};
  ContainerMemoryParams scaled = params;
  if (params.limited_swap) scaled.swap_capacity = counted_part(params.swap_capacity, record);
  return container_unified_values(record.pod, record.qos_class, *container, scaled);
}

MemoryQos container_memory_qos(const PodRecord& record, const std::string& name,
                               const MemoryQosParams& params) {
  const Container* container = record.kubelets_own ? nullptr : find_container(record.pod, name);
  if (container == nullptr) return {};
  MemoryQos qos = container_memory_qos(record.qos_class, *container, params);
  for (auto* reserved : {&qos.min, &qos.low})
    if (*reserved) *reserved = counted_part(**reserved, record);
  return qos;
}

MemoryQosParams memory_qos_params(const Settings& settings, const NodeCapacity& capacity) {
  return {.reserves = settings.reserve_memory,
          .throttling_thousandths = settings.memory_throttling_thousandths,
          .allocatable = allocatable_memory(settings, capacity),
          .page_size = capacity.page_size};
}

MemoryQos given_memory_qos(const MemoryQos& wanted, const EngineResources& engine,
                           const CgroupLayout& layout) {
  if (wanted == MemoryQos{} || !takes_unified(layout)) return {};
  MemoryQos given{.min = wanted.min.value_or(*kNoMemoryQos.min),
                  .low = wanted.low.value_or(*kNoMemoryQos.low),
                  .high = wanted.high.value_or(*kNoMemoryQos.high)};
  if (engine.unified.contains("memory.min")) given.min.reset();
  if (engine.unified.contains("memory.low") || engine.memory_reservation) given.low.reset();
  if (engine.unified.contains("memory.high")) given.high.reset();
  return given;
}

ContainerMemoryParams container_memory_params(const Settings& settings,
                                              const NodeCapacity& capacity,
                                              const MemoryFiles& files) {
  ContainerMemoryParams params;
  params.limited_swap = settings.swap_behavior == SwapBehavior::kLimitedSwap;
  params.swap_controller_available = settings.swap_behavior.has_value() && files.swap_max;
  params.group_oom_kill = !settings.single_process_oom_kill && files.oom_group;
  // Newer than memory.min (Linux 4.18), which is the newest of those files.
  params.memory_qos_available = files.oom_group;
  params.node_memory = capacity.memory;
  params.swap_capacity = capacity.swap;
  return params;
}

std::optional<Micros> quota_in(Micros period, const CgroupValues& values) {
  return limiting_quota(values).transform([&](Micros quota) {
    const Micros own = values.cpu_period.value_or(kDefaultPeriod);
    const Micros scaled{mul_div(quota.value(), period.value(), own.value())};
    return std::clamp(scaled, kMinQuota, kMaxQuota);
  });
}

CgroupValues missing_values(const CgroupValues& wanted, const EngineResources& engine,
                            const CgroupLayout& layout) {
  CgroupValues missing;
  // A unified file stands for the engine's field.
  const auto in_unified = [&](Value value) {
    return engine.unified.contains(file_of(value, CgroupVersion::kV2));
  };
  if (layout.cpu) {
    if (!engine.cpu_shares && !in_unified(Value::kCpuShares))
      missing.cpu_shares = wanted.cpu_shares;
    if (!in_unified(Value::kCpuQuota)) add_missing_quota(missing, wanted, engine);
  }
  if (layout.memory && !engine.memory_limit && !in_unified(Value::kMemoryLimit) &&
      wanted.memory_limit && wanted.memory_limit->value() > 0)
    missing.memory_limit = wanted.memory_limit;
  if (layout.pids && !engine.pids_limit && !in_unified(Value::kPidsLimit))
    missing.pids_limit = wanted.pids_limit;
  add_missing_hugepages(missing, wanted, engine, layout);
  add_missing_unified(missing, wanted, engine, layout);
  return missing;
}

Status check_realtime(const EngineResources& resources, std::optional<CgroupVersion> cpu,
                      std::string_view pod_cgroup) {
  if (!resources.cpu_realtime_runtime || cpu != CgroupVersion::kV1) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("linux.resources.cpu.realtimeRuntime ", *resources.cpu_realtime_runtime,
                  ": on cgroup v1 the kernel refuses it in ", pod_cgroup,
                  ", which has no realtime time to share: remove it, or annotate the container "
                  "with podqos.io/ignore=true, so that it runs where its engine puts it"));
}

bool is_spared(const PodRecord& record, const Settings& settings) {
  return settings.eviction.of(record.qos_class) && !record.kubelets_own && is_critical(record.pod);
}

PodConfigParams pod_config_params(const Settings& settings) {
  return {.enforce_cpu_limits = settings.cpu_cfs_quota,
          .cpu_period = settings.cpu_cfs_quota_period,
          .reserve_memory = settings.reserve_memory,
          .pod_pids_limit = settings.pod_pids_limit,
          .guaranteed_io_weight = settings.io_weight.guaranteed};
}

Result<CgroupValues> pod_values(const PodRecord& record, const Settings& settings) {
  PodConfigParams params = pod_config_params(settings);
  if (record.kubelets_own) {
    params.guaranteed_io_weight.reset();
    params.reserve_memory = false;
  }
  const Pod whole = whole_pod(record.pod, record.sums);
  PODQOS_ASSIGN(auto values, pod_cgroup_values(whole, record.qos_class, params));
  if (record.qos_class != QosClass::kBestEffort) {
    if (!record.kubelets_own) values.cpu_shares = cpu_shares_for(record.capped_request.cpu);
    cap_reserved(values, record.counted_request.memory);
  }
  if (!record.complete) apply_partial_limits(values, whole, settings);
  if (is_spared(record, settings)) values.oomd_avoid = true;
  if (!record.kubelets_own) {
    PODQOS_TRY(check_kernel_bounds(values));
    set_cpu_class(values, record, settings);
  }
  return values;
}

int container_oom_score_adj(const PodRecord& record, const ContainerRecord& container,
                            Bytes node_memory) {
  if (container.sandbox) return kSandboxOomScoreAdj;
  static const Container unknown;
  const Container* known = find_container(record.pod, container.name);
  const Container& facts = known != nullptr ? *known : unknown;
  if (!exceeds_claim(record))
    return oom_score_adj(record.pod, record.qos_class, facts, node_memory);
  Pod uncritical = record.pod;
  uncritical.is_static = false;
  uncritical.priority.reset();
  return oom_score_adj(uncritical, QosClass::kBurstable, facts, node_memory);
}

WeightFormula weight_formula(const Settings& settings, std::optional<WeightFormula> observed) {
  if (settings.weight_formula == WeightFormulaSetting::kAuto)
    return observed.value_or(WeightFormula::kLog);
  return settings.weight_formula == WeightFormulaSetting::kLog ? WeightFormula::kLog
                                                               : WeightFormula::kLinear;
}

Micros cpu_burst_for(std::optional<Micros> quota, std::int64_t percent) {
  if (!quota || *quota <= Micros{0}) return Micros{0};
  const Micros part{mul_div(quota->value(), percent, kPercent)};
  return std::clamp(part, Micros{0}, std::max(kMaxQuota - *quota, Micros{0}));
}

std::optional<std::int64_t> burst_percent(const PodRecord& record, const Settings& settings) {
  if (!record.cpu_burst) return std::nullopt;
  return std::min(*record.cpu_burst, settings.cpu_burst.of(record.qos_class).value_or(0));
}

void decide_cpu_class(PodRecord& record, const std::optional<PodRecord>& before,
                      const Settings& settings) {
  if (record.kubelets_own) return;
  record.cpu_burst = settings.cpu_burst.of(record.qos_class);
  if (!record.cpu_burst && before && before->cpu_burst) record.cpu_burst = 0;
  record.cpu_idle = before && before->cpu_idle ? std::optional{false} : std::nullopt;
}

void apply_cpu_annotations(PodRecord& record, const PodqosAnnotations& annotations,
                           const Settings& settings) {
  if (record.kubelets_own || settings.trust_annotations == TrustAnnotations::kNone) return;
  if (record.cpu_burst && annotations.cpu_burst)
    record.cpu_burst = std::min(*record.cpu_burst, *annotations.cpu_burst);
  if (annotations.cpu_idle) record.cpu_idle = true;
}

void set_cpu_class(CgroupValues& values, const PodRecord& record, const Settings& settings) {
  if (const auto percent = burst_percent(record, settings))
    values.cpu_burst = cpu_burst_for(limiting_quota(values), *percent);
  values.cpu_idle = record.cpu_idle;
  if (record.cpu_idle.value_or(false)) values.cpu_shares = kMinShares;
}

}  // namespace podqos::core

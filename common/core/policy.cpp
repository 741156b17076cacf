#include "common/core/policy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/aggregation.h"
#include "common/core/driver.h"
#include "common/core/kernel_bounds.h"
#include "common/core/node_bound.h"
#include "common/core/oom.h"
#include "common/core/ownership.h"
#include "common/core/pod_plan.h"
#include "common/core/qos.h"
#include "common/core/record_size.h"
#include "common/core/reservation.h"
#include "common/core/resize.h"
#include "common/core/whole_pod.h"

namespace podqos::core {

namespace {

/// 0 for Guaranteed, the best protected class, to 2 for BestEffort.
int rank(QosClass qos_class) {
  return static_cast<int>(qos_class);
}

/// Class of the claim alone, including the rules for declared classes and incomplete pods.
QosClass claimed_class(const PodClaim& claim, const Settings& settings,
                       std::vector<std::string>& warnings) {
  if (claim.engine_class) {
    if (claim.declared_class && *claim.declared_class != *claim.engine_class) {
      warnings.push_back(
          cat("annotation podqos.io/qos-class \"", format_qos_class(*claim.declared_class),
              "\" refused: the engine runs the pod as ", format_qos_class(*claim.engine_class)));
    }
    return *claim.engine_class;
  }
  const QosClass computed =
      (claim.sums ? classify(with_sums(claim.pod, *claim.sums)) : classify(claim.pod)).qos_class;
  if (claim.declared_class) {
    if (rank(*claim.declared_class) >= rank(computed) || settings.allow_qos_override)
      return *claim.declared_class;
    warnings.push_back(cat("annotation podqos.io/qos-class \"",
                           format_qos_class(*claim.declared_class),
                           "\" refused: the pod's resources make it ", format_qos_class(computed),
                           "; set allowQosOverride to let annotations raise the class"));
  }
  // A single container does not prove that the whole pod is Guaranteed.
  if (!claim.complete && computed == QosClass::kGuaranteed) return QosClass::kBurstable;
  return computed;
}

ClassSource source_of_class(const PodClaim& claim, QosClass qos_class) {
  if (claim.engine_class) return ClassSource::kEngine;
  if (claim.declared_class && *claim.declared_class == qos_class)
    return ClassSource::kQosAnnotation;
  return claim.source;
}

/// The name, with a number if one of the containers has it.
std::string free_name(const std::string& name, const std::vector<ContainerRecord>& containers) {
  std::string free = name;
  for (int number = 2;
       std::ranges::find(containers, free, &ContainerRecord::name) != containers.end(); ++number)
    free = cat(name, "-", number);
  return free;
}

/// Adds what a claim says of its own container, and of others that are not known yet.
/// @param own  the container's name in the record
void merge_containers(Pod& known, const PodClaim& claim, const std::string& own) {
  for (const Container& container : claim.pod.containers) {
    const bool is_own = container.name == claim.container;
    const std::string& name = is_own ? own : container.name;
    const auto same = std::ranges::find(known.containers, name, &Container::name);
    if (same == known.containers.end()) {
      known.containers.push_back(
          {.name = name, .kind = container.kind, .resources = container.resources});
    } else if (is_own) {
      same->resources = container.resources;
    }
  }
}

/// Raises the engine's pod sums, which date from the sandbox's creation, to those of the running
/// containers: a container restarted after a resize has its new values. Not those of a kubelet's
/// pod: with pod-level resources, each container without a limit has the shares of the pod's.
void raise_to_running(PodRecord& record, const PodClaim& claim, const std::string& own) {
  if (record.adopted || !record.sums || record.sums->enforced ||
      claim.source != ClassSource::kInference)
    return;
  Pod running;
  std::ranges::copy_if(record.pod.containers, std::back_inserter(running.containers),
                       [&](const Container& described) {
                         const auto is_it = [&](const ContainerRecord& container) {
                           return !container.sandbox && container.name == described.name;
                         };
                         return described.name == own ||
                                std::ranges::any_of(record.containers, is_it);
                       });
  raise_to_containers(record.sums->resources, running);
}

/// True for the claim of a further container of a pod whose class and resources are those of a spec
/// that this container has, too. This is what most claims are.
bool repeats(const PodClaim& claim, const PodRecord& record) {
  return record.complete && record.class_source == ClassSource::kPodAnnotation && claim.complete &&
         claim.source == ClassSource::kPodAnnotation && !claim.declared_class &&
         !claim.engine_class && claim.sums == record.sums &&
         !describes_otherwise(claim, record.pod);
}

void add_claim(MergedPod& merged, const Identity& identity, const PodClaim& claim,
               const Settings& settings) {
  PodRecord& record = merged.record;
  if (!identity.sandbox_id.empty()) record.sandbox_id = identity.sandbox_id;
  if (!claim.known || repeats(claim, record)) return;
  const QosClass claimed = claimed_class(claim, settings, merged.warnings);
  if (record.complete && claim.complete && describes_otherwise(claim, record.pod) &&
      !undo_resize(record, identity, claim)) {
    merged.warnings.push_back(
        "pod spec differs from the first container's, which applies until the pod has ended: "
        "annotate all containers of a pod with the same spec");
  }
  if (!record.complete && claim.complete) {
    Pod known = std::exchange(record.pod, claim.pod);
    // The complete spec may lack the namespace and overhead that were known before.
    if (record.pod.pod_namespace.empty()) record.pod.pod_namespace = std::move(known.pod_namespace);
    if (record.pod.overhead.empty()) record.pod.overhead = std::move(known.overhead);
    record.complete = true;
    record.sums = claim.sums;
  } else if (!record.complete) {
    merged.container = free_name(claim.container, record.containers);
    merge_containers(record.pod, claim, merged.container);
    if (record.pod.overhead.empty()) record.pod.overhead = claim.pod.overhead;
    if (!record.sums) record.sums = claim.sums;
    raise_to_running(record, claim, merged.container);
  }
  if (claim.declared_class && *claim.declared_class != record.qos_class && !claim.engine_class) {
    merged.warnings.push_back(
        cat("annotation podqos.io/qos-class \"", format_qos_class(*claim.declared_class),
            "\" is too late: the pod runs as ", format_qos_class(record.qos_class),
            "; annotate its first container"));
  } else if (rank(claimed) < rank(record.qos_class) && !claim.engine_class) {
    merged.warnings.push_back(
        cat("the container's resources would make the pod ", format_qos_class(claimed),
            ", but since its first container it runs as ", format_qos_class(record.qos_class),
            ": annotate the pod with podqos.io/pod (podqosctl annotate) so that its class is known "
            "from the start"));
  }
}

PodRecord new_record(const Identity& identity, const PodClaim& claim, const Settings& settings,
                     std::vector<std::string>& warnings) {
  PodRecord record;
  record.pod = claim.pod;
  record.complete = claim.complete;
  record.sums = claim.sums;
  record.founded_by = identity.source;
  record.sandbox_id = identity.sandbox_id;
  record.qos_class = claimed_class(claim, settings, warnings);
  record.class_source = source_of_class(claim, record.qos_class);
  return record;
}

}  // namespace

Result<MergedPod> merge_claim(const std::optional<PodRecord>& existing, const Identity& identity,
                              const PodClaim& claim, const Settings& settings) {
  MergedPod merged{.record = {}, .container = claim.container, .warnings = claim.warnings};
  if (existing) {
    PODQOS_TRY(check_owner(*existing, identity));
  }
  // A pod whose containers have all ended is a new pod with an old uid; its cgroup may still be
  // charged with tmpfs memory. A pod placed by a kubelet replaces one of podqos's own.
  const bool kubelets = existing && identity.placed && !existing->adopted;
  const bool fresh = !existing || (existing->containers.empty() && (claim.known || kubelets));
  if (!fresh) {
    merged.record = *existing;
    merged.record.released_at.reset();
    if (existing->containers.empty()) merged.record.founded_by = identity.source;
    add_claim(merged, identity, claim, settings);
  } else {
    merged.record = new_record(identity, claim, settings, merged.warnings);
  }
  PODQOS_TRY(check_record_size(merged.record));
  return merged;
}

MilliCpu reserved_cpu(const Settings& settings) {
  return MilliCpu{
      saturating_add(settings.system_reserved.cpu.value(), settings.kube_reserved.cpu.value())};
}

MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity) {
  const std::int64_t left = saturating_sub(capacity.cpu.value(), reserved_cpu(settings).value());
  return MilliCpu{std::max<std::int64_t>(left, 0)};
}

Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity) {
  return allocatable(capacity.memory, settings.system_reserved.memory,
                     settings.kube_reserved.memory);
}

TierSum free_resources(const TierSums& sums, const Settings& settings,
                       const NodeCapacity& capacity) {
  const TierSum own = sum_of_own(sums);
  const auto left = [](auto allocatable, auto granted, auto adopted) {
    return grant(allocatable.value(), allocatable.value(),
                 saturating_add(granted.value(), adopted.value()));
  };
  return {.pods = 0,
          .cpu = MilliCpu{left(allocatable_cpu(settings, capacity), own.cpu, sums.adopted.cpu)},
          .memory =
              Bytes{left(allocatable_memory(settings, capacity), own.memory, sums.adopted.memory)}};
}

Grants grants_for(const PodRecord& record, const TierSums& others, const Settings& settings,
                  const NodeCapacity& capacity) {
  const ResourceList requests = requests_of(record);
  const auto cpu = find(requests, kCpu);
  const auto memory = find(requests, kMemory);
  const std::int64_t cpu_capacity = allocatable_cpu(settings, capacity).value();
  const std::int64_t memory_capacity = allocatable_memory(settings, capacity).value();
  const auto may_claim = [&](std::int64_t of_node) {
    return record.adopted ? of_node : claimable(of_node, settings);
  };
  Grants grants;
  grants.claimed =
      TierSum{.pods = 1,
              .cpu = MilliCpu{grant(cpu ? cpu->milli_value() : 0, may_claim(cpu_capacity), 0)},
              .memory = Bytes{grant(memory ? memory->value() : 0, may_claim(memory_capacity), 0)}};
  grants.granted = countable(record, grants.claimed, settings);
  // The kubelet has granted the requests of its pods.
  if (record.adopted) return grants;
  const TierSum free = free_resources(others, settings, capacity);
  grants.granted.cpu = std::min(grants.granted.cpu, free.cpu);
  grants.granted.memory = std::min(grants.granted.memory, free.memory);
  return grants;
}

void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity) {
  const Grants grants = grants_for(record, others, settings, capacity);
  record.claimed = grants.claimed;
  record.granted = grants.granted;
}

namespace {

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

}  // namespace

PodConfigParams pod_config_params(const Settings& settings) {
  return {.enforce_cpu_limits = settings.cpu_cfs_quota,
          .cpu_period = settings.cpu_cfs_quota_period,
          .enforce_memory_qos = false,
          .reservation_policy = MemoryReservationPolicy::kNone,
          .pod_pids_limit = settings.pod_pids_limit,
          .guaranteed_io_weight = settings.io_weight.guaranteed};
}

Result<CgroupValues> pod_values(const PodRecord& record, const Settings& settings) {
  PodConfigParams params = pod_config_params(settings);
  if (record.adopted) params.guaranteed_io_weight.reset();
  std::optional<Pod> with;
  if (record.sums) with = whole_pod(record);
  const Pod& whole = with ? *with : record.pod;
  auto values = pod_cgroup_values(whole, record.qos_class, params);
  if (values && exceeds_node_cpu(record)) values->cpu_shares = cpu_shares_for(record.claimed.cpu);
  if (values && !record.complete) apply_partial_limits(*values, whole, settings);
  if (!values || record.adopted) return values;
  PODQOS_TRY(check_kernel_bounds(*values));
  return values;
}

int container_oom_score_adj(const PodRecord& record, const ContainerRecord& container,
                            Bytes node_memory) {
  if (container.sandbox) return kSandboxOomScoreAdj;
  static const Container unknown;
  const Container* known = find_container(record.pod, container.name);
  const Container& facts = known != nullptr ? *known : unknown;
  if (!exceeds_node(record)) return oom_score_adj(record.pod, record.qos_class, facts, node_memory);
  Pod uncritical = record.pod;
  uncritical.is_static = false;
  uncritical.priority.reset();
  return oom_score_adj(uncritical, QosClass::kBurstable, facts, node_memory);
}

namespace {

/// The engine's own name if it contains the id, else one made of the id.
std::string wanted_leaf(const ContainerFacts& facts, bool systemd) {
  const std::string_view path = facts.cgroups_path ? *facts.cgroups_path : std::string_view{};
  std::string_view leaf = leaf_of(path);
  if (systemd) {
    const auto unit = parse_systemd_cgroups_path(path);
    if (unit && unit->name.find(facts.id) != std::string::npos && !unit->name.ends_with(".slice"))
      return cat(unit->prefix, "-", unit->name, ".scope");
    leaf = scope_of(path);
    if (!leaf.empty() && leaf.find(facts.id) != std::string_view::npos) return std::string{leaf};
    // Unit names are unique on a machine, but two runtimes may use one id.
    return cat("podqos-", facts.id, "-", stable_hash(cat(facts.id, "\n", facts.bundle)), ".scope");
  }
  return leaf.find(facts.id) == std::string_view::npos ? facts.id : std::string{leaf};
}

}  // namespace

Result<std::string> container_leaf(const ContainerFacts& facts, const std::string& pod_cgroup,
                                   std::span<const ContainerRecord> known) {
  const bool systemd = driver_of(pod_cgroup) == Driver::kSystemd;
  constexpr std::string_view kScope = ".scope";
  std::string leaf = wanted_leaf(facts, systemd);
  const std::string monitor = monitor_path(pod_cgroup);
  const auto taken = [&](const std::string& name) {
    const std::string path = cat(pod_cgroup, "/", name);
    if (path == monitor) return true;
    return std::ranges::any_of(known, [&](const ContainerRecord& other) {
      return other.cgroup == path && (other.id != facts.id || other.bundle != facts.bundle);
    });
  };
  // Two runtimes may use one id, but not one bundle.
  if (taken(leaf)) {
    if (systemd) leaf.resize(leaf.size() - kScope.size());
    leaf = cat(leaf.substr(0, 128), "-", stable_hash(cat(facts.id, "\n", facts.bundle)),
               systemd ? kScope : "");
  }
  PODQOS_TRY(check_cgroup_component(leaf));
  if (taken(leaf)) {
    return fail(ErrorCode::kConflict, cat("cgroup ", pod_cgroup, "/", leaf,
                                          " belongs to another container: use another id"));
  }
  return leaf;
}

bool engine_sets_oom(const ContainerFacts& facts) {
  return facts.oom_score_adj.value_or(0) != 0;
}

WeightFormula weight_formula(const Settings& settings, std::optional<WeightFormula> observed) {
  switch (settings.weight_formula) {
    case WeightFormulaSetting::kLinear: return WeightFormula::kLinear;
    case WeightFormulaSetting::kLog: return WeightFormula::kLog;
    case WeightFormulaSetting::kAuto: break;
  }
  return observed.value_or(WeightFormula::kLog);
}

}  // namespace podqos::core

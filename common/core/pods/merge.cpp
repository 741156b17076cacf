#include "common/core/pods/merge.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// Class of the claim alone, including the rules for declared classes and incomplete pods.
QosClass claimed_class(const PodClaim& claim, const Settings& settings,
                       std::vector<std::string>& warnings) {
  if (claim.engine_class) {
    if (claim.declared_class && claim.declared_class != claim.engine_class)
      warnings.push_back(
          cat("annotation podqos.io/qos-class \"", format_qos_class(*claim.declared_class),
              "\" refused: the engine runs the pod as ", format_qos_class(*claim.engine_class)));
    return *claim.engine_class;
  }
  const QosClass computed = classify(whole_pod(claim.pod, claim.sums)).qos_class;
  if (claim.declared_class) {
    if (*claim.declared_class >= computed || settings.allow_qos_override)
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
  if (record.kubelets_own || !record.sums || record.sums->enforced ||
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

/// Adds what a later container tells of the pod and earlier ones have not.
void fill_names(PodRecord& record, const Identity& identity, const Pod& claimed) {
  if (!identity.sandbox_id.empty()) record.sandbox_id = identity.sandbox_id;
  if (!record.pod_id) record.pod_id = identity.pod_id;
  if (!record.engine) record.engine = identity.engine;
  if (record.pod.name.empty()) record.pod.name = claimed.name;
  if (record.pod.pod_namespace.empty()) record.pod.pod_namespace = claimed.pod_namespace;
}

/// What a claim says of its own container, which its engine's limits bear out.
PodClaim of_own(PodClaim claim) {
  const Pod pod = std::exchange(claim.pod, {});
  if (const Container* const own = find_container(pod, claim.container))
    claim.pod.containers.push_back(*own);
  claim.complete = false;
  return claim;
}

/// Whether the pod's spec has come by its sandbox, and a container's limits contradict it.
bool contradicts_sandbox(const PodRecord& record, const PodClaim& claim) {
  return claim.refused && record.complete &&
         std::ranges::any_of(record.containers, &ContainerRecord::sandbox);
}

/// Leaves the pod what its other containers have borne out. Its cgroup stays where it is, since
/// its sandbox runs there.
void take_back_spec(MergedPod& merged) {
  PodRecord& record = merged.record;
  const Pod spec = std::exchange(record.pod, {});
  record.pod.uid = spec.uid;
  record.pod.name = spec.name;
  record.pod.pod_namespace = spec.pod_namespace;
  for (const ContainerRecord& container : record.containers) {
    const Container* const known = find_container(spec, container.name);
    if (known != nullptr && !container.sandbox) record.pod.containers.push_back(*known);
  }
  record.complete = false;
  record.taken_back = true;
  merged.warnings.emplace_back(
      "what its sandbox claimed is taken back: the pod has what its engine gives its containers");
}

/// The class of a pod whose spec was taken back: a lower one.
void lower_class(PodRecord& record, PodClaim claim, const Settings& settings) {
  claim.pod = record.pod;
  std::vector<std::string> told;
  record.qos_class = std::max(record.qos_class, claimed_class(claim, settings, told));
  record.class_source = ClassSource::kInference;
}

/// Adds a claim that is not of what a taken-back spec says of others.
/// @return the class that it would make the pod
QosClass add_known(MergedPod& merged, const Identity& identity, const PodClaim& claim,
                   const Settings& settings) {
  PodRecord& record = merged.record;
  const QosClass claimed = claimed_class(claim, settings, merged.warnings);
  if (record.complete && claim.complete && describes_otherwise(claim, record.pod) &&
      !undo_resize(record, identity, claim))
    merged.warnings.push_back(
        "pod spec differs from the first container's, which applies until the pod has ended: "
        "annotate all containers of a pod with the same spec");
  if (!record.complete && claim.complete) {
    Pod known = std::exchange(record.pod, claim.pod);
    // The complete spec may lack the names and overhead that were known before.
    if (record.pod.name.empty()) record.pod.name = std::move(known.name);
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
  return claimed;
}

void add_claim(MergedPod& merged, const Identity& identity, const PodClaim& made,
               const Settings& settings) {
  PodRecord& record = merged.record;
  fill_names(record, identity, made.pod);
  if (!made.known) return;
  const bool contradicts = contradicts_sandbox(record, made);
  if (contradicts) take_back_spec(merged);
  const PodClaim claim = record.taken_back && made.complete ? of_own(made) : made;
  const QosClass claimed = add_known(merged, identity, claim, settings);
  if (contradicts) lower_class(record, claim, settings);
  if (claim.declared_class && *claim.declared_class != record.qos_class && !claim.engine_class) {
    merged.warnings.push_back(
        cat("annotation podqos.io/qos-class \"", format_qos_class(*claim.declared_class),
            "\" is too late: the pod runs as ", format_qos_class(record.qos_class),
            "; annotate its first container"));
  } else if (claimed < record.qos_class && !claim.engine_class) {
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
  record.uid_source = identity.source;
  fill_names(record, identity, claim.pod);
  record.qos_class = claimed_class(claim, settings, warnings);
  record.class_source = source_of_class(claim, record.qos_class);
  return record;
}

}  // namespace

Result<MergedPod> merge_claim(const std::optional<PodRecord>& existing, const Identity& identity,
                              const PodClaim& claim, const Settings& settings) {
  MergedPod merged{.record = {}, .container = claim.container, .warnings = claim.warnings};
  if (existing) PODQOS_TRY(check_owner(*existing, identity));
  // A pod whose containers have all ended is a new pod with an old uid; its cgroup may still be
  // charged with tmpfs memory. A pod placed by a kubelet replaces one of podqos's own.
  const bool kubelets = existing && identity.placed && !existing->kubelets_own;
  const bool fresh = !existing || (existing->containers.empty() && (claim.known || kubelets));
  if (!fresh) {
    merged.record = *existing;
    merged.record.released_at.reset();
    if (existing->containers.empty()) merged.record.uid_source = identity.source;
    add_claim(merged, identity, claim, settings);
  } else {
    merged.record = new_record(identity, claim, settings, merged.warnings);
  }
  PODQOS_TRY(check_described(merged.record));
  return merged;
}

Status check_described(const PodRecord& record) {
  constexpr std::size_t kMaxPartialContainers = 256;
  const std::size_t described = record.pod.containers.size();
  if (record.complete || described <= kMaxPartialContainers) return {};
  return fail(ErrorCode::kTooLarge,
              cat("the pod has ", described, " containers without podqos.io/pod, at most ",
                  kMaxPartialContainers,
                  " are allowed: describe the pod once with podqos.io/pod (podqosctl annotate)"));
}

}  // namespace podqos::core

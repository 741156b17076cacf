#include "common/core/events/decide_admission.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/placement.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {

namespace {

/// The names of the pod's containers: "web, log".
std::string names_of(const Pod& pod) {
  std::string names;
  for (const Container& container : pod.containers)
    names += cat(names.empty() ? "" : ", ", printable(container.name));
  return names;
}

/// The containers that the pod has had so far.
std::span<const ContainerRecord> known_in(const AdmissionSnapshot& snapshot) {
  if (!snapshot.before) return {};
  return snapshot.before->containers;
}

/// True if the container runs in the pod's cgroup.
bool is_in_place(const AdmissionRequest& request, const PodRecord& pod) {
  return request.runs() && request.placed_at && is_below(*request.placed_at, pod.cgroup);
}

/// True if the container stays where it is without being misplaced.
bool stays(const AdmissionRequest& request, const PodRecord& pod, const Settings& settings) {
  return pod.kubelets_own || is_in_place(request, pod) ||
         stays_without_parent(request.facts, request.driver, settings);
}

/// The memory backing reported when the container was created; later reports may contain a limit
/// that podqos filled in.
std::optional<Bytes> backing_in(const AdmissionSnapshot& snapshot,
                                const AdmissionRequest& request) {
  std::optional<Bytes> backing;
  for (const ContainerRecord& container : known_in(snapshot))
    if (container.key() == request.facts.key()) backing = container.backed_memory;
  return backing ? backing : backing_of(request.facts, request.engine);
}

ContainerRecord describe(const AdmissionRequest& request, const AdmissionSnapshot& snapshot,
                         std::string name) {
  return {.id = request.facts.id,
          .bundle = request.facts.bundle,
          .name = std::move(name),
          .state = request.state,
          .pid = request.process.pid,
          .start_time = request.process.start_time,
          .pending_since = request.pending_since,
          .cgroup = request.placed_at.value_or(""),
          .sandbox = snapshot.identity.is_sandbox,
          .backed_memory = backing_in(snapshot, request),
          .stated = snapshot.claim.stated ? std::optional{true} : std::nullopt};
}

/// Leaves a container of a pod without a cgroup parent where its engine puts it.
void leave_with_engine(Admission& admission) {
  admission.left_with_engine = true;
  ContainerRecord& container = admission.container;
  // Provisional until it runs: its runtime decides where a relative or missing path leads.
  if (!container.cgroup.starts_with('/')) container.cgroup = cat("/crio-", container.id);
  const PodRecord& pod = admission.record;
  const bool told = std::ranges::any_of(pod.containers, [&](const ContainerRecord& known) {
    return !known.sandbox && !is_below(known.cgroup, pod.cgroup);
  });
  if (container.sandbox || told) return;
  admission.warnings.push_back(
      cat(name_of(pod), ": ", describe_missing_parent(container.id, container.cgroup, pod.cgroup)));
}

/// Checks that the container's runtime can make a cgroup in the pod's: it has one driver.
Status check_pod_driver(const AdmissionRequest& request, const PodRecord& record) {
  const Driver driver = driver_of(record.cgroup);
  if (driver == request.driver) return {};
  return fail(ErrorCode::kConflict,
              cat("container ", printable(request.facts.id), ": its runtime uses the ",
                  format_driver(request.driver), " driver, but its pod is in ", record.cgroup,
                  ", of the ", format_driver(driver),
                  " driver: let all containers of a pod use one driver, or give this one another "
                  "podqos.io/pod-uid"));
}

/// Chooses the container's cgroup in its pod.
Status place_in_pod(Admission& admission, const AdmissionRequest& request,
                    const AdmissionSnapshot& snapshot) {
  PODQOS_TRY(check_pod_driver(request, admission.record));
  const std::string& pod = admission.record.cgroup;
  PODQOS_TRY(check_realtime(request.facts.resources, snapshot.layout.cpu, pod));
  PODQOS_ASSIGN(auto leaf, container_leaf(request.facts, pod, known_in(snapshot)));
  std::string target = cat(pod, "/", leaf);
  if (request.runs() && request.on_misplaced == OnMisplaced::kFail)
    return fail(ErrorCode::kRefused,
                cat("container ", printable(request.facts.id), " runs in cgroup ",
                    request.placed_at.value_or(""), ", not in ", target,
                    ": refused by placement.onMisplaced \"fail\"; register podqos-runtime, or "
                    "Podman's precreate hook, so that it is placed before it starts"));
  (request.runs() ? admission.belongs_to.emplace() : admission.container.cgroup) =
      std::move(target);
  return {};
}

/// Warns if the pod's spec has no container of this name: it would run without values unnoticed.
void warn_unknown_container(Admission& admission, const PodClaim& claim) {
  const PodRecord& record = admission.record;
  const ContainerRecord& container = admission.container;
  // Neither of these gets container values.
  if (container.sandbox || record.kubelets_own) return;
  // Pod-level resources alone are not a spec.
  const bool is_spec =
      record.complete && !record.pod.containers.empty() && claim.source != ClassSource::kShortForms;
  if (!is_spec || find_container(record.pod, container.name) != nullptr) return;
  admission.warnings.push_back(
      cat(name_of(record), ", container ", printable(container.id),
          ": the pod's spec has no container \"", printable(container.name),
          "\", so it gets no values of its own: set podqos.io/container to one of ",
          names_of(record.pod)));
}

/// Notes the Memory QoS values that the container gets. One that runs elsewhere and stays untouched
/// gets none.
void give_memory_qos(Admission& admission, const AdmissionRequest& request,
                     const AdmissionSnapshot& snapshot, const Settings& settings) {
  if (request.runs() && request.on_misplaced == OnMisplaced::kIgnore) return;
  ContainerRecord& container = admission.container;
  const MemoryQos wanted = container_memory_qos(admission.record, container.name,
                                                memory_qos_params(settings, snapshot.capacity));
  admission.wanted.unified = unified_values(wanted);
  container.memory_qos = given_memory_qos(wanted, request.facts.resources, snapshot.layout);
  admission.record.containers.back().memory_qos = container.memory_qos;
}

/// Bounds the quota of the container by its pod's: on cgroup v1 no runtime can write a higher one.
void bound_quota(CgroupValues& wanted, const CgroupValues& pod) {
  const auto most = limiting_quota(pod);
  if (!most || limiting_quota(wanted).value_or(*most) < *most) return;
  wanted.cpu_quota = most;
  wanted.cpu_period = pod.cpu_period;
}

/// Warns if not all requests of the pod count, once and not for each of its containers.
void warn_uncounted(Admission& admission, const AdmissionSnapshot& snapshot,
                    const Settings& settings) {
  const PodRecord& record = admission.record;
  const auto words = describe_uncounted(record, settings);
  if (!words) return;
  std::optional<PodRecord> before = snapshot.before;
  if (before) before->released_at.reset();
  if (before && describe_uncounted(*before, settings) == words) return;
  admission.warnings.push_back(cat(name_of(record), " ", *words));
}

}  // namespace

std::string describe_admission(const Admission& admission) {
  const PodRecord& record = admission.record;
  const ContainerRecord& container = admission.container;
  return cat(format_qos_class(record.qos_class), ", ", describe_requests(record), ", at ",
             container.cgroup);
}

void reconcile_bundle(PodRecord& record, ContainerFacts& facts) {
  auto& containers = record.containers;
  const auto known = std::ranges::find(containers, facts.id, &ContainerRecord::id);
  const bool exact = std::ranges::count(containers, facts.key(), &ContainerRecord::key) != 0;
  if (exact || std::ranges::count(containers, facts.id, &ContainerRecord::id) != 1) return;
  if (facts.bundle.empty())
    facts.bundle = known->bundle;
  else if (known->bundle.empty())
    known->bundle = facts.bundle;
}

Result<std::optional<MergedPod>> decide_pod(const AdmissionRequest& request,
                                            const AdmissionSnapshot& snapshot,
                                            const Settings& settings) {
  // Its runtime will refuse it too, and the record of the running one must not be lost to it.
  if (snapshot.running)
    return fail(ErrorCode::kConflict,
                cat("container ", printable(snapshot.running->id), " runs already, as process ",
                    snapshot.running->pid.value(),
                    ": its record stays as it is; delete it before it is created again"));
  const auto& placed = snapshot.identity.placed;
  if (snapshot.identity.is_sandbox && !snapshot.claim.known && !snapshot.before && !placed)
    return std::nullopt;
  PODQOS_ASSIGN(auto pod,
                merge_claim(snapshot.existing, snapshot.identity, snapshot.claim, settings));
  PodRecord& record = pod.record;
  for (std::string& warning : pod.warnings)
    warning = cat(name_of(record), ", container ", printable(request.facts.id), ": ", warning);
  const bool fresh = record.cgroup.empty();
  if (fresh) record.kubelets_own = placed.has_value();
  if (!record.kubelets_own && !snapshot.root) return fail(snapshot.root.error());
  if (fresh)
    record.cgroup =
        placed ? placed->pod_path : pod_path(*snapshot.root, record.qos_class, record.pod.uid);
  if (record.containers.empty()) decide_cpu_class(record, snapshot.before, settings);
  apply_cpu_annotations(record, request.podqos, settings);
  return pod;
}

Result<Admission> decide_admission(const AdmissionRequest& request,
                                   const AdmissionSnapshot& snapshot, MergedPod pod,
                                   const Settings& settings) {
  Admission admission;
  admission.container = describe(request, snapshot, std::move(pod.container));
  admission.record = std::move(pod.record);
  admission.warnings = std::move(pod.warnings);
  admission.on_misplaced = request.on_misplaced;
  PodRecord& record = admission.record;
  if (!stays(request, record, settings)) {
    PODQOS_TRY(place_in_pod(admission, request, snapshot));
  } else if (!record.kubelets_own && !is_in_place(request, record)) {
    leave_with_engine(admission);
  }
  record.containers.push_back(admission.container);
  // Its values are written now, or it is due again.
  record.due.reset();
  // Before computing values: they follow from the counted requests.
  count_requests(record, settings, snapshot.capacity);
  warn_uncounted(admission, snapshot, settings);
  PODQOS_ASSIGN(auto values, container_values(record, admission.container.name, settings));
  admission.wanted = std::move(values);
  give_memory_qos(admission, request, snapshot, settings);
  if (!record.kubelets_own && !request.facts.sets_oom_score())
    admission.oom_score_adj =
        container_oom_score_adj(record, admission.container, snapshot.capacity.memory);
  if (!record.kubelets_own) {
    PODQOS_ASSIGN(const auto pod_wanted, pod_values(record, settings));
    if (request.facts.resources.cpu_quota) bound_quota(admission.wanted, pod_wanted);
  }
  warn_unknown_container(admission, snapshot.claim);
  return admission;
}

void fill_in_missing(Admission& admission, const AdmissionRequest& request, const PodClaim& claim,
                     const ContainerMemoryParams& params, const CgroupLayout& layout) {
  UnifiedValues unified =
      container_unified(admission.record, claim, admission.container.name, params);
  if (params.memory_qos_available) unified.merge(admission.wanted.unified);
  admission.wanted.unified = std::move(unified);
  admission.missing = missing_values(admission.wanted, request.facts.resources, layout);
}

std::optional<std::string> decide_confirmation(PodRecord& record, std::size_t index,
                                               const Init& init, const std::string& bundle) {
  ContainerRecord& container = record.containers[index];
  confirm_container(container, init.process);
  if (!bundle.empty()) container.bundle = bundle;
  if (is_at_or_below(init.cgroup, container.cgroup)) return std::nullopt;
  const std::string placed = std::exchange(container.cgroup, init.cgroup);
  if (!is_below(placed, record.cgroup)) return std::nullopt;
  return cat("the runtime put it into cgroup ", init.cgroup, ", not into ", placed,
             ": the pod's limits do not apply to it");
}

}  // namespace podqos::core

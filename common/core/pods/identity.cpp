#include "common/core/pods/identity.h"

#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

std::string hash_of(const ContainerFacts& facts) {
  return fnv1a_hex(cat(facts.id, "\n", facts.bundle));
}

namespace {

/// Uid of a container that is its own pod. Includes the bundle, since two runtimes may use one id.
std::string lone_uid(const ContainerFacts& facts) {
  std::string name;
  for (const char c : std::string_view{facts.id}.substr(0, 64))
    name += is_alphanumeric(c) || c == '.' ? c : '-';
  return cat(name, "-", hash_of(facts));
}

/// Checks the annotation against the uid that engine or cgroup tell.
Status check_agreement(const Identity& identity, const std::optional<std::string>& annotated) {
  if (!annotated || *annotated == identity.uid) return {};
  const bool engine = identity.source == IdentitySource::kEngine;
  return fail(ErrorCode::kConflict,
              cat("annotation podqos.io/pod-uid \"", printable(*annotated), "\" contradicts ",
                  engine ? "the engine's pod uid" : "the pod cgroup's uid", " \"",
                  printable(identity.uid), "\": remove the annotation or set it to that uid"));
}

bool may_admit(const PodRecord& record, const Identity& identity) {
  const IdentitySource ours = record.uid_source;
  if (ours == IdentitySource::kLone) return false;
  const bool same_sandbox = record.sandbox_id == identity.sandbox_id;
  const bool in_sandbox = same_sandbox && !identity.sandbox_id.empty();
  switch (identity.source) {
    // A kubelet's cgroup has the engine's uid.
    case IdentitySource::kEngine:
    case IdentitySource::kCgroup:
      return ours == IdentitySource::kEngine || ours == IdentitySource::kCgroup || in_sandbox ||
             (identity.placed && identity.placed->pod_path == record.cgroup);
    case IdentitySource::kAnnotation:
      return ours == IdentitySource::kAnnotation ? same_sandbox : in_sandbox;
    case IdentitySource::kSandbox: return in_sandbox;
    case IdentitySource::kLone: return false;
  }
  return false;
}

std::string sandbox_text(std::string_view id) {
  return id.empty() ? "no sandbox" : cat("sandbox \"", printable(id), "\"");
}

/// What to change so that both pods have different uids.
std::string_view remedy(const PodRecord& record, const Identity& identity) {
  if (identity.source == IdentitySource::kAnnotation)
    return "give the container a podqos.io/pod-uid of its own";
  if (record.uid_source == IdentitySource::kAnnotation)
    return "stop the containers whose annotation podqos.io/pod-uid claims this uid";
  return "stop the containers with this uid, or start this container with another id";
}

}  // namespace

bool is_managed(const PodqosAnnotations& podqos, const EngineAnnotations& engine,
                const Settings& settings, const std::optional<std::string>& placed_at) {
  // Under a CRI engine annotations are those of the pod's author.
  const bool untrusted = settings.trust_annotations == TrustAnnotations::kNone && engine.cri;
  if ((podqos.ignore && !untrusted) || !settings.enabled) return false;
  switch (settings.scope) {
    case Scope::kAll: return true;
    case Scope::kAnnotated: return podqos.any_identity_or_resource();
    case Scope::kPods:
      return podqos.any_identity_or_resource() || engine.pod_uid || engine.sandbox_id ||
             placed_at.and_then(find_pod_cgroup);
  }
  return false;
}

Result<Identity> identify(const AdmissionRequest& request, const Settings& settings,
                          std::string_view own_root) {
  const PodqosAnnotations& podqos = request.podqos;
  const EngineAnnotations& engine = request.engine;
  const bool trusted = settings.trust_annotations != TrustAnnotations::kNone;
  const auto annotated = trusted ? podqos.pod_uid : std::nullopt;
  Identity identity;
  auto placed = request.placed_at.and_then(find_pod_cgroup);
  // Ignore cgroups that podqos chose: a copied bundle would be admitted to the original's pod.
  if (placed && is_below(placed->pod_path, own_root)) placed.reset();
  if (engine.pod_uid || placed) {
    identity.uid = engine.pod_uid ? *engine.pod_uid : placed->uid;
    identity.source = engine.pod_uid ? IdentitySource::kEngine : IdentitySource::kCgroup;
    PODQOS_TRY(check_agreement(identity, annotated));
  } else if (annotated) {
    identity.uid = *annotated;
    identity.source = IdentitySource::kAnnotation;
  } else if (engine.sandbox_id) {
    identity.uid = *engine.sandbox_id;
    identity.source = IdentitySource::kSandbox;
  } else {
    identity.uid = lone_uid(request.facts);
  }
  PODQOS_TRY(check_pod_uid(identity.uid));

  if (placed && placed->uid != identity.uid)
    return fail(ErrorCode::kConflict,
                cat("the engine's pod uid \"", printable(identity.uid),
                    "\" contradicts the container's pod cgroup ", printable(placed->pod_path),
                    ": let the engine use one pod uid for both"));
  identity.placed = std::move(placed);
  identity.sandbox_id = engine.sandbox_id.value_or("");
  identity.pod_id = engine.pod_id;
  identity.engine = engine.engine;
  identity.pod_name = engine.pod_name.value_or("");
  identity.pod_namespace = engine.pod_namespace.value_or("");
  // Engines copy the pod's annotations to its sandbox; podqos.io/container does not name that.
  const bool meant = trusted && !engine.is_sandbox;
  identity.container_name =
      engine.container_name.value_or(meant ? podqos.container.value_or("") : "");
  identity.is_sandbox = engine.is_sandbox;
  return identity;
}

Status check_owner(const PodRecord& record, const Identity& identity) {
  if (record.containers.empty()) return {};
  if (identity.placed && !record.kubelets_own && identity.placed->pod_path != record.cgroup)
    return fail(ErrorCode::kConflict,
                cat("the container is in the kubelet's pod cgroup ",
                    printable(identity.placed->pod_path), ", but pod \"", printable(identity.uid),
                    "\" at ", record.cgroup, " was made by podqos: ", remedy(record, identity)));
  const auto refuse = [&](std::string_view theirs, std::string_view own) {
    const std::string_view source = identity.source == IdentitySource::kAnnotation
                                        ? "annotation podqos.io/pod-uid"
                                        : "the engine's pod uid";
    return fail(ErrorCode::kConflict,
                cat(source, " \"", printable(identity.uid), "\" names a pod of ", theirs,
                    ", but this container belongs to ", own, ": ", remedy(record, identity)));
  };
  if (!may_admit(record, identity))
    return refuse(sandbox_text(record.sandbox_id), sandbox_text(identity.sandbox_id));
  const std::string& theirs = record.pod.pod_namespace;
  if (!theirs.empty() && !identity.pod_namespace.empty() && theirs != identity.pod_namespace)
    return refuse(cat("namespace \"", printable(theirs), "\""),
                  cat("namespace \"", printable(identity.pod_namespace), "\""));
  return {};
}

bool is_foreign_cgroup(const std::string& pod_cgroup, CgroupOrigin origin,
                       const std::optional<PodRecord>& record) {
  const bool known = record && record->cgroup == pod_cgroup;
  if (origin == CgroupOrigin::kPodqos || !known) return origin == CgroupOrigin::kOther;
  return record->kubelets_own;
}

bool must_own_cgroup(const std::optional<PodRecord>& before, const PodRecord& record) {
  return !record.kubelets_own &&
         (!before || before->kubelets_own || before->cgroup != record.cgroup);
}

Status check_pod_cgroup(const PodRecord& record, CgroupOrigin origin,
                        const AdmissionRequest& request) {
  const bool named = request.placed_at && is_below(*request.placed_at, record.cgroup);
  if (origin != CgroupOrigin::kOther && (origin != CgroupOrigin::kEngine || named)) return {};
  return fail(
      ErrorCode::kConflict,
      cat("cgroup ", record.cgroup,
          " exists but was not created by podqos: stop what runs in it and remove it, or give "
          "the pod another uid"));
}

}  // namespace podqos::core

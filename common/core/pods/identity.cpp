#include "common/core/pods/identity.h"

#include <cstdint>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

std::string stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out(16, '0');
  for (std::size_t i = out.size(); i-- > 0; hash >>= 4U)
    out[i] = kHex[hash & 0xfU];
  return out;
}

namespace {

/// Uid of a container that is its own pod. Includes the bundle, since two runtimes may use one id.
std::string lone_uid(const ContainerFacts& facts) {
  std::string name;
  for (const char c : std::string_view{facts.id}.substr(0, 64)) {
    name += is_alphanumeric(c) || c == '.' ? c : '-';
  }
  return cat(name, "-", stable_hash(cat(facts.id, "\n", facts.bundle)));
}

Status check_agreement(std::string_view what, std::string_view theirs,
                       const std::optional<std::string>& annotated) {
  if (!annotated || *annotated == theirs) return {};
  return fail(ErrorCode::kConflict,
              cat("annotation podqos.io/pod-uid \"", printable(*annotated), "\" contradicts ", what,
                  " \"", printable(theirs), "\": remove the annotation or set it to that uid"));
}

}  // namespace

std::optional<PodCgroup> placed_in(const std::optional<std::string>& path) {
  if (!path || !path->starts_with('/')) return std::nullopt;
  std::string plain;
  for (const char c : *path) {
    if (c != '/' || !plain.ends_with('/')) plain += c;
  }
  return find_pod_cgroup(plain);
}

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
             placed_in(placed_at);
  }
  return false;
}

Result<Identity> identify(const ContainerFacts& facts, const ParsedAnnotations& annotations,
                          const Settings& settings, const std::optional<std::string>& placed_at,
                          std::string_view own_root) {
  const auto& [podqos, engine] = annotations;
  const auto annotated =
      settings.trust_annotations == TrustAnnotations::kNone ? std::nullopt : podqos.pod_uid;
  Identity identity;
  auto placed = placed_in(placed_at);
  // Ignore cgroups that podqos chose: a copied bundle would be admitted to the original's pod.
  if (placed && is_below(placed->pod_path, own_root)) placed.reset();
  if (engine.pod_uid) {
    identity.uid = *engine.pod_uid;
    identity.source = IdentitySource::kEngine;
    PODQOS_TRY(check_agreement("the engine's pod uid", identity.uid, annotated));
  } else if (placed) {
    identity.uid = placed->uid;
    identity.source = IdentitySource::kCgroup;
    PODQOS_TRY(check_agreement("the pod cgroup's uid", identity.uid, annotated));
  } else if (annotated) {
    identity.uid = *annotated;
    identity.source = IdentitySource::kAnnotation;
  } else if (engine.sandbox_id) {
    identity.uid = *engine.sandbox_id;
    identity.source = IdentitySource::kSandbox;
  } else {
    identity.uid = lone_uid(facts);
  }
  PODQOS_TRY(check_pod_uid(identity.uid));

  if (placed && placed->uid != identity.uid) {
    return fail(ErrorCode::kConflict,
                cat("the engine's pod uid \"", printable(identity.uid),
                    "\" contradicts the container's pod cgroup ", printable(placed->pod_path),
                    ": let the engine use one pod uid for both"));
  }
  identity.placed = std::move(placed);
  identity.sandbox_id = engine.sandbox_id.value_or("");
  identity.pod_name = engine.pod_name.value_or("");
  identity.pod_namespace = engine.pod_namespace.value_or("");
  const bool trusted = settings.trust_annotations != TrustAnnotations::kNone;
  // Engines copy the pod's annotations to its sandbox; podqos.io/container does not name that.
  const bool meant = trusted && !engine.is_sandbox;
  identity.container_name =
      engine.container_name.value_or(meant ? podqos.container.value_or("") : "");
  identity.is_sandbox = engine.is_sandbox;
  return identity;
}

}  // namespace podqos::core

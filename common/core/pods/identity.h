#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Pod and name of a container.
struct Identity {
  std::string uid;  ///< of the pod; valid in a cgroup name (check_pod_uid)
  IdentitySource source = IdentitySource::kLone;
  std::string sandbox_id;             ///< "" if the engine gives none
  std::optional<std::string> pod_id;  ///< as EngineAnnotations::pod_id
  std::optional<Engine> engine;       ///< nullopt if unknown
  std::string pod_name;               ///< "" if unknown
  std::string pod_namespace;          ///< "" if unknown
  std::string container_name;         ///< "" if unknown
  bool is_sandbox = false;
  std::optional<PodCgroup> placed;  ///< the pod cgroup that the engine has chosen for it
};

/// Whether podqos has to handle this container, by `scope`, `enabled` and podqos.io/ignore. Checked
/// before the lock is taken. False means that the container is left unchanged.
/// @param placed_at  the container's cgroupsPath, or the cgroup of its process
[[nodiscard]] bool is_managed(const PodqosAnnotations& podqos, const EngineAnnotations& engine,
                              const Settings& settings,
                              const std::optional<std::string>& placed_at);

/// Determines the pod of a container that concerns podqos. Sources, strongest first: the engine's
/// pod uid, the pod cgroup that it lies in, podqos.io/pod-uid, the sandbox id. Without any, the
/// container becomes a pod of its own.
/// @param own_root   root of podqos's own pods, "" if there is none. Pod cgroups below it were made
///                   by podqos and are ignored.
/// @return kConflict if an annotation or the cgroup contradicts the engine, kInvalidArgument for a
///         uid that cannot be part of a cgroup name
[[nodiscard]] Result<Identity> identify(const AdmissionRequest& request, const Settings& settings,
                                        std::string_view own_root);

/// Checks that a container of this identity may be admitted to the pod of this record.
///
/// - A pod without containers admits any container.
/// - A container without a pod shares its pod with no other: its uid is predictable, so that
///   another container could claim it first.
/// - A uid from an annotation, which any author can write, or from a sandbox id is admitted if the
///   sandbox is the same. Without sandboxes, both uids must be from annotations.
/// - A uid from the engine or from a kubelet's cgroup is admitted if the record's uid is from there
///   too, also with a newer sandbox while containers of the old one still end. Otherwise the
///   sandbox or the pod's cgroup must be the same.
/// - The namespaces must be equal if both are known.
/// - A container in a kubelet's pod cgroup is not admitted to a pod of podqos's own elsewhere.
///
/// @return kConflict with the uid, both sandboxes or namespaces, and the remedy
[[nodiscard]] Status check_owner(const PodRecord& record, const Identity& identity);

/// Whether the pod cgroup that an engine names, below the root of podqos's own pods, was not
/// created by podqos, so that the pod counts as a kubelet's. It is podqos's own if its origin or
/// the record says so, or if a runtime created it.
/// @param record  of the pod that the cgroup's name tells
[[nodiscard]] bool is_foreign_cgroup(const std::string& pod_cgroup, CgroupOrigin origin,
                                     const std::optional<PodRecord>& record);

/// Whether check_pod_cgroup() depends on the origin of the pod's cgroup: not for a kubelet's pod,
/// nor for one of podqos's own that stays where its record says.
/// @param before  the pod's record before this transaction
[[nodiscard]] bool must_own_cgroup(const std::optional<PodRecord>& before, const PodRecord& record);
/// Checks that podqos has created the pod's cgroup, or may create it.
/// @return kConflict if the cgroup exists and is not podqos's own, as defined above.
[[nodiscard]] Status check_pod_cgroup(const PodRecord& record, CgroupOrigin origin,
                                      const AdmissionRequest& request);

/// 64-bit FNV-1a hash of id and bundle as 16 hex digits, for short names that are the same on every
/// machine. Not collision-resistant.
[[nodiscard]] std::string hash_of(const ContainerFacts& facts);

}  // namespace podqos::core

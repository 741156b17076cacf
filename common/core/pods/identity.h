#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Pod and name of a container.
struct Identity {
  std::string uid;  ///< of the pod; valid in a cgroup name (check_pod_uid)
  IdentitySource source = IdentitySource::kLone;
  std::string sandbox_id;      ///< "" if the engine gives none
  std::string pod_name;        ///< "" if unknown
  std::string pod_namespace;   ///< "" if unknown
  std::string container_name;  ///< "" if unknown
  bool is_sandbox = false;
  std::optional<PodCgroup> placed;  ///< the pod cgroup that the engine has chosen for it
};

/// The pod cgroup that contains `path`; "//" counts as "/", as in the kernel. nullopt if there is
/// none, and for a relative path, since the runtime chooses what that is relative to.
[[nodiscard]] std::optional<PodCgroup> placed_in(const std::optional<std::string>& path);

/// Whether podqos has to handle this container, by `scope`, `enabled` and podqos.io/ignore. Checked
/// before the lock is taken. False means that the container is left unchanged.
/// @param placed_at  the container's cgroupsPath, or the cgroup of its process
[[nodiscard]] bool is_managed(const PodqosAnnotations& podqos, const EngineAnnotations& engine,
                              const Settings& settings,
                              const std::optional<std::string>& placed_at);

/// Determines the pod of a container that concerns podqos. Sources, strongest first: the engine's
/// pod uid, the pod cgroup that it lies in, podqos.io/pod-uid, the sandbox id. Without any, the
/// container becomes a pod of its own.
/// @param placed_at  as above
/// @param own_root   root of podqos's own pods, "" if there is none. Pod cgroups below it were made
///                   by podqos and are ignored.
/// @return kConflict if an annotation or the cgroup contradicts the engine, kInvalidArgument for a
///         uid that cannot be part of a cgroup name
[[nodiscard]] Result<Identity> identify(const ContainerFacts& facts,
                                        const ParsedAnnotations& annotations,
                                        const Settings& settings,
                                        const std::optional<std::string>& placed_at,
                                        std::string_view own_root);

/// 64-bit FNV-1a hash as 16 hex digits, for short names that are the same on every machine. Not
/// collision-resistant.
[[nodiscard]] std::string stable_hash(std::string_view text);

}  // namespace podqos::core

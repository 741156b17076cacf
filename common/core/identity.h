#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/claims.h"
#include "common/core/container_facts.h"
#include "common/core/naming.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

struct Identity {
  std::string uid;
  IdentitySource source = IdentitySource::kLone;
  std::string sandbox_id;  ///< "" when the engine names none
  std::string pod_name;
  std::string pod_namespace;
  std::string container_name;  ///< "" when nobody names it
  bool is_sandbox = false;
  std::optional<PodCgroup> placed;  ///< the pod cgroup it lies in already
};

/// The pod cgroup that a path lies in, "//" taken for "/" as the kernel does. nullopt for a
/// relative path too: what that leads to is the runtime's choice.
[[nodiscard]] std::optional<PodCgroup> placed_in(const std::optional<std::string>& path);

/// Can this container be podqos's business at all? A cheap look before anything is locked or read:
/// false means that it stays to the byte as it is.
/// @param placed_at  where the engine puts the container: cgroupsPath, or its real cgroup.
[[nodiscard]] bool concerns_podqos(const PodqosAnnotations& podqos, const EngineAnnotations& engine,
                                   const Settings& settings,
                                   const std::optional<std::string>& placed_at);

/// Whose pod is this container's, given that it concerns podqos?
/// @param placed_at  as above. A pod cgroup beneath `own_root` is podqos's own earlier work: it
/// names
///                   no pod and never counts as a kubelet's.
/// @return kConflict where an annotation contradicts the engine, kInvalidArgument for a uid that
///         cannot name a cgroup.
[[nodiscard]] Result<Identity> identify(const ContainerFacts& facts,
                                        const ParsedAnnotations& annotations,
                                        const Settings& settings,
                                        const std::optional<std::string>& placed_at,
                                        std::string_view own_root);

/// FNV-1a over the bytes, as 16 hex digits: a short name that is the same on every machine. Not for
/// secrets.
[[nodiscard]] std::string stable_hash(std::string_view text);

}  // namespace podqos::core

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/claims.h"
#include "common/core/engine_sums.h"
#include "common/core/identity.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// What one container's arrival says about its pod.
struct PodClaim {
  Pod pod;  ///< the whole spec, or the containers known from this arrival; API defaults applied
  /// As annotated, where claim_sharing_spec() has spared the copy: then `pod` is the identity
  /// alone.
  std::shared_ptr<const Pod> shared;
  bool complete = false;  ///< the pod's values are final: a whole spec, or pod-level resources
  std::optional<EngineSums> sums;  ///< what the engine says of the whole pod
  ClassSource source = ClassSource::kInference;
  std::optional<QosClass> declared_class;  ///< podqos.io/qos-class
  std::optional<QosClass> engine_class;    ///< from a kubelet's cgroup
  bool known = false;                 ///< false: nothing is known of its resources (a bare sandbox)
  std::vector<std::string> warnings;  ///< annotations that were refused, each a sentence
};

/// Collects the claim from the strongest source there is: podqos.io/pod, podqos.io/requests and
/// limits, the engine's pod sums, else inference from linux.resources. Annotations that promise
/// more than the engine grants the container are refused with a warning (trustAnnotations:
/// engine-checked). What the engine bounds its pod by bounds every claim.
[[nodiscard]] PodClaim claim_for(const Identity& identity, const ContainerFacts& facts,
                                 const ParsedAnnotations& annotations, const Settings& settings,
                                 Bytes node_memory);

/// The same, but for the copy of what podqos.io/pod says; of use to container_name_for(),
/// describes_otherwise(), lacks_container() and adds_nothing().
[[nodiscard]] PodClaim claim_sharing_spec(const Identity& identity, const ContainerFacts& facts,
                                          const ParsedAnnotations& annotations,
                                          const Settings& settings, Bytes node_memory);
/// Makes it what claim_for() returns.
void own_spec(PodClaim& claim);
/// The containers and resources that the claim is about, whoever holds them; not the identity.
[[nodiscard]] const Pod& spec_of(const PodClaim& claim);

/// The name of this container within its pod: as named by engine or annotation; else the only
/// container of a complete pod; else, in an engine's own pod, the only one that has the limits that
/// the engine has set; else its id, which is that of a sandbox.
[[nodiscard]] std::string container_name_for(const Identity& identity, const PodClaim& claim,
                                             const ContainerFacts& facts);

/// Does a complete claim describe the pod otherwise than it is known by one? Of short forms the
/// limits of the pod itself count: each arrival names its own container, and the requests default
/// to what is known of that.
[[nodiscard]] bool describes_otherwise(const PodClaim& claim, const Pod& known);

/// Does the pod's spec lack the container, so that it gets no values of its own? What says only how
/// much the pod as a whole may use is no spec.
[[nodiscard]] bool lacks_container(const PodRecord& record, const PodClaim& claim,
                                   std::string_view name);

}  // namespace podqos::core

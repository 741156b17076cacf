#pragma once

#include <memory>
#include <utility>

#include "common/core/pods/claim.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core::arrivals {

/// One container's arrival, as plain runc sees it unless a test says otherwise.
struct Arriving {
  Identity identity = facts::identity(IdentitySource::kAnnotation);
  ContainerFacts facts = facts::container_facts("c1");
  PodqosAnnotations podqos;
  EngineAnnotations engine;
  Settings settings;
};

inline PodClaim claim_of(const Arriving& a) {
  return claim_for(a.identity, a.facts, {a.podqos, a.engine}, a.settings, facts::kNodeMemory);
}

inline Pod pod_named_app(ResourceList requests, ResourceList limits = {}) {
  return pod_text::pod({pod_text::container("app", std::move(requests), std::move(limits))});
}

inline Arriving with_spec(Pod pod) {
  Arriving a;
  a.podqos.pod = std::make_shared<const Pod>(std::move(pod));
  return a;
}

}  // namespace podqos::core::arrivals

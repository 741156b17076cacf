#pragma once

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/pods/merge.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

/// Claims as containers bring them one after the other, and the pods that merge_claim() makes of
/// them.
namespace podqos::core::merging {

/// A container whose limits are its requests.
inline Container full(const char* name) {
  const ResourceList both = pod_text::list({{"cpu", "1"}, {"memory", "1Gi"}});
  return pod_text::container(name, both, both);
}

inline Container some(const char* name) {
  return pod_text::container(name, pod_text::list({{"cpu", "100m"}}));
}

inline Container none(const char* name) {
  return pod_text::container(name, {});
}

inline PodClaim partial(Container first) {
  PodClaim claim;
  claim.known = true;
  claim.container = first.name;
  claim.pod = pod_text::pod({std::move(first)});
  claim.pod.uid = "42";
  return claim;
}

inline PodClaim whole(Container first) {
  PodClaim claim = partial(std::move(first));
  claim.complete = true;
  claim.source = ClassSource::kPodAnnotation;
  return claim;
}

inline Identity identity_in(std::string sandbox, std::string pod_namespace = "",
                            IdentitySource source = IdentitySource::kAnnotation) {
  Identity out = facts::identity(source);
  out.sandbox_id = std::move(sandbox);
  out.pod_namespace = std::move(pod_namespace);
  return out;
}

inline MergedPod join(const std::optional<PodRecord>& existing, const PodClaim& claim,
                      const Settings& settings = {}) {
  auto joined = merge_claim(existing, identity_in(""), claim, settings);
  if (joined) return std::move(*joined);
  ADD_FAILURE() << joined.error().message;
  return {};
}

/// The pod after its first container, which lives.
inline PodRecord living(const PodClaim& claim, const Settings& settings = {}) {
  PodRecord record = join(std::nullopt, claim, settings).record;
  record.cgroup = "/kubepods/pod42";
  record.containers.emplace_back().id = "first";
  return record;
}

}  // namespace podqos::core::merging

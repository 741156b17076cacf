#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/policy.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::container;
using pod_text::list;

Pod pod_of(Container first) {
  Pod pod = pod_text::pod({std::move(first)});
  pod.uid = "42";
  return pod;
}

Pod guaranteed() {
  const ResourceList both = list({{"cpu", "1"}, {"memory", "1Gi"}});
  return pod_of(container("a", both, both));
}
Pod burstable() {
  return pod_of(container("a", list({{"cpu", "100m"}})));
}

/// With a sandbox that lives.
PodRecord known(Pod pod, QosClass qos_class) {
  PodRecord record;
  record.pod = std::move(pod);
  record.complete = true;
  record.qos_class = qos_class;
  record.class_source = ClassSource::kPodAnnotation;
  record.founded_by = IdentitySource::kEngine;
  record.sandbox_id = "box";
  record.cgroup = "/kubepods/pod42";
  record.containers.emplace_back().id = "box";
  return record;
}

PodClaim claimed(Pod pod) {
  PodClaim claim;
  claim.pod = std::move(pod);
  claim.complete = true;
  claim.known = true;
  claim.source = ClassSource::kPodAnnotation;
  return claim;
}

template <class T>
T with(T of, void (*change)(T&)) {
  change(of);
  return of;
}

std::vector<PodRecord> records() {
  const PodRecord plain = known(burstable(), QosClass::kBurstable);
  using R = PodRecord;
  return {plain,
          known(guaranteed(), QosClass::kGuaranteed),
          known(guaranteed(), QosClass::kBurstable),
          known(burstable(), QosClass::kBestEffort),
          known(burstable(), QosClass::kGuaranteed),
          with<R>(plain, [](R& r) { r.adopted = true; }),
          with<R>(plain, [](R& r) { r.sandbox_id = "older"; }),
          with<R>(plain, [](R& r) { r.sandbox_id.clear(); }),
          with<R>(plain, [](R& r) { r.complete = false; }),
          with<R>(plain, [](R& r) { r.containers.clear(); }),
          with<R>(plain, [](R& r) { r.released_at = UnixSeconds{1}; }),
          with<R>(plain, [](R& r) { r.founded_by = IdentitySource::kAnnotation; }),
          with<R>(plain, [](R& r) { r.founded_by = IdentitySource::kLone; }),
          with<R>(plain, [](R& r) { r.pod.name = "web"; })};
}

std::vector<PodClaim> claims() {
  const PodClaim plain = claimed(burstable());
  using C = PodClaim;
  return {plain,
          claimed(guaranteed()),
          claimed(pod_of(container("b", list({{"cpu", "100m"}})))),
          claimed(pod_of(container("a", {}))),
          with<C>(plain, [](C& c) { c.pod.name = "web"; }),
          with<C>(plain, [](C& c) { c.pod.pod_namespace = "shop"; }),
          with<C>(plain, [](C& c) { c.source = ClassSource::kShortForms; }),
          with<C>(plain, [](C& c) { c.complete = false; }),
          with<C>(plain, [](C& c) { c.known = false; }),
          with<C>(plain, [](C& c) { c.engine_class = QosClass::kBurstable; }),
          with<C>(plain, [](C& c) { c.engine_class = QosClass::kGuaranteed; }),
          with<C>(plain, [](C& c) { c.declared_class = QosClass::kBurstable; }),
          with<C>(plain, [](C& c) { c.declared_class = QosClass::kGuaranteed; }),
          with<C>(plain, [](C& c) { c.warnings.emplace_back("refused"); })};
}

std::vector<Identity> identities() {
  std::vector<Identity> all;
  for (const auto source : {IdentitySource::kEngine, IdentitySource::kCgroup,
                            IdentitySource::kAnnotation, IdentitySource::kSandbox}) {
    for (const char* sandbox : {"box", "another", ""}) {
      Identity identity = facts::identity(source);
      identity.sandbox_id = sandbox;
      all.push_back(std::move(identity));
    }
  }
  return all;
}

/// merge_claim() leaves it as it is, and warns of nothing.
bool stays(const PodRecord& record, const Identity& identity, const PodClaim& claim) {
  const auto joined = merge_claim(record, identity, claim, {});
  return joined && joined->warnings.empty() && joined->record == record;
}

TEST(AddsNothing, IsSaidOnlyWhereJoiningChangesNothing) {
  int said = 0;
  for (const PodRecord& record : records()) {
    for (const PodClaim& claim : claims()) {
      for (const Identity& identity : identities()) {
        if (!adds_nothing(record, identity, claim, {})) continue;
        ++said;
        EXPECT_TRUE(stays(record, identity, claim))
            << record.pod.containers[0].name << claim.pod.containers[0].name << identity.sandbox_id;
      }
    }
  }
  EXPECT_GT(said, 0);
}

/// What it is for: it does not send what can be told to the longer way.
TEST(AddsNothing, IsSaidOfEachContainerOfAWholePod) {
  for (const Pod& pod : {burstable(), guaranteed()}) {
    const auto qos_class = pod == guaranteed() ? QosClass::kGuaranteed : QosClass::kBurstable;
    Identity identity = facts::identity(IdentitySource::kEngine);
    identity.sandbox_id = "box";
    EXPECT_TRUE(stays(known(pod, qos_class), identity, claimed(pod)));
    EXPECT_TRUE(adds_nothing(known(pod, qos_class), identity, claimed(pod), {}));
  }
}

}  // namespace
}  // namespace podqos::core

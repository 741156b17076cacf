#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/manifest.h"

namespace podqos::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> warnings_of(std::string_view text) {
  const auto manifest = parse_manifest(text);
  if (!manifest) return {manifest.error().message};
  return manifest_warnings(manifest->pods().at(0));
}

// kubectl: strict decoding error: unknown field "spec.containers[0].resources.limit".
TEST(ManifestWarnings, NamesUnknownFieldsAsKubectlDoes) {
  EXPECT_THAT(warnings_of(R"(
kind: Pod
metadata: {name: a, annotation: {}}
spec:
  container: []
  resource: {}
  containers:
    - {name: c, resources: {limit: {cpu: 500m}}}
    - {name: d, resource: {limits: {cpu: 1}}, zzz: 1}
  initContainers:
    - {name: i, resources: {request: {}, cpu: 1}}
)"),
              ElementsAre("unknown field \"metadata.annotation\"; did you mean annotations?",
                          "unknown field \"spec.container\"; did you mean containers?",
                          "unknown field \"spec.resource\"; did you mean resources?",
                          "unknown field \"spec.containers[0].resources.limit\"; did you mean "
                          "limits?",
                          "unknown field \"spec.containers[1].resource\"; did you mean resources?",
                          "unknown field \"spec.containers[1].zzz\"",
                          "unknown field \"spec.initContainers[0].resources.request\"; did you "
                          "mean requests?",
                          "unknown field \"spec.initContainers[0].resources.cpu\""));
}

TEST(ManifestWarnings, NamesSoManyAndNoMore) {
  std::string text = "spec: {containers: [{name: c}], ";
  for (int field = 0; field < 100; ++field)
    text += "unknown" + std::to_string(field) + ": 1, ";
  const auto warnings = warnings_of(text + "}");
  EXPECT_THAT(warnings, testing::SizeIs(33));
  EXPECT_EQ(warnings.back(), "more unknown fields");
}

TEST(ManifestWarnings, NamesThePathOfATemplate) {
  EXPECT_THAT(warnings_of(R"({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template":
      {"spec": {"containers": [{"name": "c", "resources": {"limit": {}}}]}}}}}})"),
              ElementsAre("unknown field \"spec.jobTemplate.spec.template.spec.containers[0]"
                          ".resources.limit\"; did you mean limits?"));
}

TEST(ManifestWarnings, KnowsTheFieldsOfKubernetes) {
  EXPECT_THAT(warnings_of(R"(
apiVersion: v1
kind: Pod
metadata:
  {name: a, namespace: b, uid: u, labels: {x: y}, annotations: {a: b}, generateName: a-,
   ownerReferences: [], finalizers: [], managedFields: [], creationTimestamp: null}
spec:
  {restartPolicy: Never, hostNetwork: true, volumes: [], nodeSelector: {}, tolerations: [],
   affinity: {anything: {}}, overhead: {cpu: 1m}, priority: 1, resources: {limits: {cpu: 2}},
   hostUsers: false, resourceClaims: [], schedulingGates: [], os: {name: linux},
   containers: [{name: c, image: i, command: [], args: [], workingDir: /, ports: [], env: [],
     envFrom: [], volumeMounts: [], volumeDevices: [], livenessProbe: {}, lifecycle: {},
     imagePullPolicy: Always, securityContext: {anything: 1}, stdin: true, stdinOnce: true,
     tty: true, resizePolicy: [], restartPolicyRules: [], terminationMessagePath: /x,
     resources: {limits: {cpu: 1}, requests: {cpu: 1}, claims: []}}]}
status: {anything: 1}
)"),
              IsEmpty());
}

TEST(ManifestWarnings, NamesFractionsOfBytesOnce) {
  EXPECT_THAT(warnings_of(R"({"spec": {"containers": [
      {"name": "c", "resources": {"limits": {"memory": "256m", "cpu": "256m"}}}]}})"),
              ElementsAre("container \"c\": memory limit is 0.256 bytes: did you mean 256Mi? "
                          "Kubernetes rounds it up to whole bytes"));
}

TEST(ManifestWarnings, NamesAnnotationsThatPodqosRefuses) {
  EXPECT_THAT(warnings_of(R"(
metadata:
  annotations:
    podqos.io/request: cpu=1
    podqos.io/limits: memory=64m
    podqos.io/requests.c: cpu=1
    other.io/request: x
spec: {containers: [{name: c}]}
)"),
              ElementsAre("annotation podqos.io/request = \"cpu=1\": unknown annotation; did you "
                          "mean podqos.io/requests?",
                          "annotation podqos.io/limits = \"memory=64m\": memory=64m is 0.064 "
                          "bytes: did you mean 64Mi?"));
}

TEST(ManifestWarnings, NamesAnnotationsThatContradictEachOther) {
  EXPECT_THAT(warnings_of(R"(
metadata: {annotations: {podqos.io/requests: cpu=1, podqos.io/cpu-request: "2"}}
spec: {containers: [{name: c}]}
)"),
              ElementsAre("annotation podqos.io/requests = \"cpu=1\": cpu is set by annotation "
                          "podqos.io/cpu-request too: remove one"));
}

}  // namespace
}  // namespace podqos::ctl

#include "ctl/manifest.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kDeployment = R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      priorityClassName: system-node-critical
      containers:
        - {name: app, image: x, resources: {limits: {cpu: 100m, memory: 64Mi}}}
)";

TEST(ParseManifest, FindsThePodOfAWorkload) {
  const auto manifest = parse_manifest(kDeployment);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_TRUE(manifest->is_yaml);
  ASSERT_EQ(manifest->documents.size(), 1U);
  const ManifestPod found = manifest->pods().at(0);
  EXPECT_EQ(found.path, "spec.template");
  EXPECT_EQ(found.title, "Deployment shop/web");
  const auto pod = admitted_pod(found);
  ASSERT_TRUE(pod) << pod.error().message;
  // k8s.io/kubernetes/pkg/apis/scheduling: SystemCriticalPriority + 1000.
  EXPECT_EQ(pod->priority, 2'000'001'000);
}

TEST(ParseManifest, FindsTheItemsOfAList) {
  const auto manifest = parse_manifest(
      R"({"kind": "List", "items": [{"kind": "Service"}, {"kind": "Pod", "metadata": {"name": "a"}}]})");
  ASSERT_TRUE(manifest);
  EXPECT_FALSE(manifest->is_yaml);
  const auto found = manifest->pods();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().path, "items.1");
}

// kubectl get pods -o json, and kubectl get deployments -o json of an older server.
TEST(ParseManifest, KnowsTheItemsOfATypedListByTheKindOfTheList) {
  const auto manifest = parse_manifest(R"({"kind": "PodList", "items": [{"metadata": {"name": "a"},
      "spec": {"containers": [{"name": "c"}]}}]}
{"kind": "DeploymentList", "items": [{"metadata": {"name": "b"}, "spec": {"template": {"spec":
  {"containers": [{"name": "c"}]}}}}]})");
  ASSERT_TRUE(manifest);
  const auto found = manifest->pods();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].title, "Pod a");
  EXPECT_EQ(found[1].title, "Deployment b");
  EXPECT_EQ(found[1].path, "items.0.spec.template");
  EXPECT_TRUE(admitted_pod(found[1]));
}

TEST(ParseManifest, ReadsJsonDocumentsBackToBack) {
  const std::string text =
      "\n{\"kind\": \"Pod\", \"x\": \"}{\\\"\"}{\"kind\": \"Service\"}\n\n{\"kind\": \"Pod\"}\n";
  const auto manifest = parse_manifest(text);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_FALSE(manifest->is_yaml);
  ASSERT_EQ(manifest->documents.size(), 3U);
  EXPECT_EQ(manifest->pods().size(), 2U);
  std::string all;
  for (const Document& document : manifest->documents)
    all += document.text;
  EXPECT_EQ(all, text);
}

TEST(ParseManifest, RefusesOtherTextBehindJson) {
  EXPECT_FALSE(parse_manifest("{\"kind\": \"Pod\"} x"));
  EXPECT_FALSE(parse_manifest("{\"kind\": \"Pod\"}}"));
  EXPECT_FALSE(parse_manifest("{\"kind\": \"Pod\"} {\"kind\": }"));
}

Result<core::Pod> admitted(std::string_view json) {
  PODQOS_ASSIGN(const auto tree, codec::parse_json_tree(json));
  return admitted_pod(tree);
}

TEST(AdmittedPod, AppliesTheDefaultsOfTheApi) {
  const auto pod = admitted(
      R"({"kind": "Pod", "metadata": {"name": "a", "uid": "u"}, "spec": {"containers": [
          {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}]}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->containers.front().resources.requests.at("cpu").milli_value(), 1000);
}

TEST(AdmittedPod, RefusesWhatTheApiServerRefuses) {
  const auto pod = admitted(
      R"({"kind": "Pod", "metadata": {"name": "a", "uid": "u"}, "spec": {"containers": [
          {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}})");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(pod.error().message, HasSubstr("cpu"));
}

TEST(AdmittedPod, ReportsAnErrorOfALimitOnce) {
  const auto pod = admitted(R"({"spec": {"containers": [
      {"name": "c", "resources": {"limits": {"gpu": 1}}}]}})");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().message,
            "container \"c\": resource \"gpu\": expected cpu, memory, ephemeral-storage, "
            "hugepages-SIZE, or a name with a domain such as example.com/device");
}

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

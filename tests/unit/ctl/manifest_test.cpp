#include "ctl/explain/manifest.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/cli/command.h"
#include "tests/unit/temporary_directory.h"

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

/// Notepad and PowerShell write them.
TEST(ReadInput, TakesAByteOrderMarkAndUtf16) {
  const TemporaryDirectory directory;
  const std::string wanted = "a: \xc3\xa9 \xf0\x9f\x98\x80\r\n";
  const std::map<std::string, std::string> files = {
      {"utf8", "\xef\xbb\xbf" + wanted},
      {"little", std::string("\xff\xfe"
                             "a\0:\0 \0\xe9\0 \0\x3d\xd8\x00\xde\r\0\n\0",
                             20)},
      {"big", std::string("\xfe\xff\0a\0:\0 \0\xe9\0 \xd8\x3d\xde\x00\0\r\0\n", 20)}};
  for (const auto& [name, content] : files) {
    directory.write(name, content);
    EXPECT_EQ(read_input(directory.path(name), kMaxInput), wanted) << name;
  }
}

TEST(ParseManifest, FindsThePodOfAWorkload) {
  const auto documents = parse_manifest(kDeployment);
  ASSERT_TRUE(documents) << documents.error().message;
  ASSERT_EQ(documents->size(), 1U);
  EXPECT_TRUE(documents->front().is_yaml);
  const ManifestPod found = pods_in(*documents).at(0);
  EXPECT_EQ(found.path, "spec.template");
  EXPECT_EQ(found.title, "Deployment shop/web");
  const auto pod = admitted_pod(found);
  ASSERT_TRUE(pod) << pod.error().message;
  // k8s.io/kubernetes/pkg/apis/scheduling: SystemCriticalPriority + 1000.
  EXPECT_EQ(pod->priority, 2'000'001'000);
}

/// "title at path" of the pods of JSON documents, which have to make up the text.
std::vector<std::string> pods_of(std::string_view json) {
  const auto documents = parse_manifest(json);
  if (!documents) return {documents.error().message};
  std::string all;
  for (const Document& document : *documents) {
    EXPECT_FALSE(document.is_yaml);
    all += document.text;
  }
  EXPECT_EQ(all, json);
  std::vector<std::string> found;
  for (const ManifestPod& pod : pods_in(*documents))
    found.push_back(pod.title + " at " + pod.path);
  return found;
}

TEST(ParseManifest, FindsTheItemsOfAList) {
  EXPECT_THAT(pods_of(R"({"kind": "List", "items": [{"kind": "Service"},
                          {"kind": "Pod", "metadata": {"name": "a"}}]})"),
              ElementsAre("Pod a at items.1"));
  // kubectl get pods -o json, and kubectl get deployments -o json of an older server.
  EXPECT_THAT(pods_of(R"({"kind": "PodList", "items": [{"metadata": {"name": "a"},
      "spec": {"containers": [{"name": "c"}]}}]}
{"kind": "DeploymentList", "items": [{"metadata": {"name": "b"}, "spec": {"template": {"spec":
  {"containers": [{"name": "c"}]}}}}]})"),
              ElementsAre("Pod a at items.0", "Deployment b at items.0.spec.template"));
}

TEST(ParseManifest, ReadsJsonDocumentsBackToBack) {
  EXPECT_THAT(pods_of("\n{\"kind\": \"Pod\", \"x\": \"}{\\\"\"}{\"kind\": \"Service\"}\n\n"
                      "{\"kind\": \"Pod\"}\n"),
              ElementsAre("Pod (no name) at ", "Pod (no name) at "));
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
  const auto above = admitted(R"({"spec": {"containers": [
      {"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}})");
  ASSERT_FALSE(above);
  EXPECT_EQ(above.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(above.error().message, HasSubstr("cpu"));
  // An error of a limit, which becomes a request, once.
  const auto pod = admitted(R"({"spec": {"containers": [
      {"name": "c", "resources": {"limits": {"gpu": 1}}}]}})");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().message,
            "container \"c\": resource \"gpu\": expected cpu, memory, ephemeral-storage, "
            "hugepages-SIZE, or a name with a domain such as example.com/device");
}

std::vector<std::string> warnings_of(std::string_view text) {
  const auto documents = parse_manifest(text);
  if (!documents) return {documents.error().message};
  return manifest_warnings(pods_in(*documents).at(0));
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

TEST(ManifestWarnings, AreSentencesWithThePath) {
  using Warnings = std::vector<std::string>;
  const std::map<std::string_view, Warnings> cases = {
      {R"({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec":
       {"containers": [{"name": "c", "resources": {"limit": {}}}]}}}}}})",
       {"unknown field \"spec.jobTemplate.spec.template.spec.containers[0].resources.limit\"; did "
        "you mean limits?"}},
      {R"({"spec": {"containers": [
       {"name": "c", "resources": {"limits": {"memory": "256m", "cpu": "256m"}}}]}})",
       {"container \"c\": memory limit is 0.256 bytes: did you mean 256Mi? Kubernetes rounds it up "
        "to whole bytes"}},
      // Annotations that podqos refuses, each by itself.
      {R"({"spec": {"containers": [{"name": "c"}]}, "metadata": {"annotations": {
       "podqos.io/request": "cpu=1", "podqos.io/limits": "memory=64m",
       "podqos.io/requests.c": "cpu=1", "other.io/request": "x"}}})",
       {"annotation podqos.io/request = \"cpu=1\": unknown annotation; did you mean "
        "podqos.io/requests?",
        "annotation podqos.io/limits = \"memory=64m\": memory=64m is 0.064 bytes: did you mean "
        "64Mi?"}},
      // Annotations that contradict each other.
      {R"({"spec": {"containers": [{"name": "c"}]}, "metadata": {"annotations": {
       "podqos.io/requests": "cpu=1", "podqos.io/cpu-request": "2"}}})",
       {"annotation podqos.io/requests = \"cpu=1\": cpu is set by annotation podqos.io/cpu-request "
        "too: remove one"}}};
  for (const auto& [text, warnings] : cases)
    EXPECT_EQ(warnings_of(text), warnings);
}

}  // namespace
}  // namespace podqos::ctl

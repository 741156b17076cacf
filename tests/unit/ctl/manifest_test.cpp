#include "ctl/manifest.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace podqos::ctl

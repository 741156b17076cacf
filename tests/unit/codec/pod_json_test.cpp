#include "common/codec/pod_json.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::ContainerKind;
using core::Quantity;
using testing::HasSubstr;

Result<core::Pod> parse(std::string_view json) {
  PODQOS_ASSIGN(const auto tree, parse_json_tree(json, {.bytes = kUnbounded}));
  return parse_pod(tree);
}

TEST(ParsePod, ReadsEveryFieldThatMatters) {
  const auto pod = parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"uid": "u-1", "name": "web", "namespace": "shop",
                 "annotations": {"kubernetes.io/config.source": "file"}},
    "spec": {
      "nodeName": "ignored",
      "containers": [{"name": "app", "image": "x",
                      "resources": {"requests": {"cpu": " 250m "}, "limits": {"memory": "1Gi"}}}],
      "initContainers": [{"name": "setup"}, {"name": "mesh", "restartPolicy": "Always"}],
      "ephemeralContainers": [{"name": "debug"}],
      "overhead": {"cpu": 0.1},
      "resources": {},
      "priority": -5, "priorityClassName": "low"},
    "status": {"qosClass": "Burstable"}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->uid, "u-1");
  EXPECT_EQ(pod->name, "web");
  EXPECT_EQ(pod->pod_namespace, "shop");
  EXPECT_TRUE(pod->is_static);
  ASSERT_EQ(pod->containers.size(), 1U);
  EXPECT_EQ(pod->containers[0].name, "app");
  EXPECT_EQ(pod->containers[0].resources.requests.at("cpu"), Quantity::from_milli(250));
  EXPECT_EQ(pod->containers[0].resources.limits.at("memory"), Quantity::from_units(1073741824));
  ASSERT_EQ(pod->init_containers.size(), 2U);
  EXPECT_EQ(pod->init_containers[0].kind, ContainerKind::kInit);
  EXPECT_EQ(pod->init_containers[1].kind, ContainerKind::kSidecar);
  ASSERT_EQ(pod->ephemeral_containers.size(), 1U);
  EXPECT_EQ(pod->ephemeral_containers[0].kind, ContainerKind::kEphemeral);
  EXPECT_EQ(pod->overhead.at("cpu"), Quantity::from_milli(100));
  EXPECT_EQ(pod->resources, core::Resources{});
  EXPECT_EQ(pod->priority, -5);
  EXPECT_EQ(pod->priority_class_name, "low");
  EXPECT_EQ(pod->status_qos_class, core::QosClass::kBurstable);
}

TEST(ParsePod, NullIsAbsent) {
  const auto pod = parse(
      R"({"kind":"Pod","metadata":null,"spec":{"containers":null,"resources":null,"priority":null},
          "status":{"qosClass":""}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(*pod, core::Pod{});
}

TEST(ParsePod, AMirrorPodIsStaticAndOneFromTheApiIsNot) {
  const auto is_static = [](const std::string& annotations) {
    const auto pod =
        parse(cat(R"({"kind":"Pod","metadata":{"annotations":)", annotations, R"(},"spec":{}})"));
    return pod.has_value() && pod->is_static;
  };
  EXPECT_TRUE(is_static(R"({"kubernetes.io/config.mirror":""})"));
  EXPECT_TRUE(is_static(R"({"kubernetes.io/config.source":"http"})"));
  EXPECT_FALSE(is_static(R"({"kubernetes.io/config.source":"api"})"));
  EXPECT_FALSE(is_static("{}"));
}

struct QuantityCase {
  const char* json;
  const char* decimal;
};

TEST(ParsePodSpec, BareNumbersKeepTheirExactText) {
  for (const auto& [json, decimal] : {
           QuantityCase{"0.1", "0.1"},
           QuantityCase{"0.300000000", "0.3"},
           QuantityCase{"9007199254740993", "9007199254740993"},
           QuantityCase{"36893488147419103232", "36893488147419103232"},
           QuantityCase{"1e3", "1000"},
           QuantityCase{"1.000000001E2", "100.0000001"},
           QuantityCase{"-2", "-2"},
           QuantityCase{"null", "0"},
           QuantityCase{"\"\\n1.5Gi\\t\"", "1610612736"},
       }) {
    const auto pod = parse_pod_spec(cat(R"({"overhead":{"cpu":)", json, "}}"));
    ASSERT_TRUE(pod) << json << ": " << pod.error().message;
    EXPECT_EQ(pod->overhead.at("cpu").format_decimal(), decimal) << json;
  }
}

std::string with_spec(std::string_view spec) {
  return cat(R"({"kind":"Pod","spec":)", spec, "}");
}

std::string many_containers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += cat(i == 0 ? "" : ",", R"({"name":"c)", i, "\"}");
  return cat(R"({"containers":[)", list, "]}");
}

std::string named(std::string_view name) {
  return with_spec(cat(R"({"containers":[{"name":")", name, "\"}]}"));
}

struct PodRefusal {
  std::string json;
  std::string says;
  ErrorCode code = ErrorCode::kInvalidArgument;
};

TEST(ParsePod, RefusesWithThePathAndTheReason) {
  const std::vector<PodRefusal> cases = {
      {"[]", "expected an object, found array"},
      {R"({"kind":"Deployment"})", R"(kind "Deployment": expected Pod)"},
      {R"({"kind":"Pod"})", "spec is missing"},
      {R"({"spec":{},"spec":{}})", "spec: member is repeated"},
      {with_spec(R"({"containers":{}})"), "spec.containers: expected an array, found object"},
      {with_spec(R"({"containers":[1]})"), "spec.containers[0]: expected an object, found 1"},
      {with_spec(R"({"containers":[{"name":"a","resources":{"limits":{"cpu":true}}}]})"),
       "spec.containers[0].resources.limits.cpu: expected a quantity, found boolean"},
      {with_spec(R"({"resources":{"requests":{"cpu":"1 Gi"}}})"),
       R"(spec.resources.requests.cpu: "1 Gi" is not a quantity)"},
      {with_spec(R"({"overhead":{"cpu":1,"cpu":2}})"), "spec.overhead.cpu: member is repeated"},
      {with_spec(R"({"overhead":{"":1}})"), "resource name"},
      {with_spec(R"({"priority":"1"})"),
       "spec.priority: expected an integer from -2147483648 to 2147483647, found \"1\""},
      {with_spec(R"({"priority":1.5})"),
       "spec.priority: expected an integer from -2147483648 to 2147483647, found"},
      {with_spec(R"({"priority":2147483648})"),
       "spec.priority: expected an integer from -2147483648 to 2147483647, found"},
      {R"({"spec":{},"status":{"qosClass":"Silver"}})", R"(qosClass "Silver": expected one of)"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":1}},"spec":{}})",
       "metadata.annotations.kubernetes.io/config.mirror: expected a string"},
      {with_spec(R"({"containers":[{}]})"), R"(container name "")"},
      {named(".."), R"(container name "..")"},
      {named("a\\nb"), R"(container name "a\x0ab")"},
      {named("App"), "not a DNS label"},
      {named("-a"), "not a DNS label"},
      {named(std::string(64, 'a')), "not a DNS label"},
      {with_spec(R"({"containers":[{"name":"a"}],"ephemeralContainers":[{"name":"a"}]})"),
       R"(two containers are named "a")"},
      {with_spec(many_containers(1001)), "1001 containers, at most 1000", ErrorCode::kTooLarge},
      {cat("{", std::string(kMaxPodJsonBytes, ' '), "}"), "1048578 bytes", ErrorCode::kTooLarge},
  };
  for (const auto& [json, says, code] : cases) {
    const auto pod = parse(json);
    ASSERT_FALSE(pod) << json;
    EXPECT_EQ(pod.error().code, code) << json;
    EXPECT_THAT(pod.error().message, HasSubstr(says)) << json;
  }
}

TEST(ParsePodSpec, RefusesTextThatIsNoSpec) {
  const std::vector<PodRefusal> cases = {
      {"", "pod: malformed JSON"},
      {R"({"containers":[)", "pod: malformed JSON"},
      {"{}x", "pod: malformed JSON"},
      {R"({"overhead":{"cpu":1e999}})", "pod: malformed JSON"},
      {"[]", "pod: expected an object, found array"},
      {R"({"metadata":[]})", "pod: metadata: expected an object, found array"},
      {R"({"metadata":{"name":1}})", "pod: metadata.name: expected a string, found 1"},
      {R"({"metadata":{"name":"a/b"}})", "pod: metadata: name \"a/b\" cannot be"},
      {R"({"metadata":{"namespace":"\u001b"}})", R"(pod: metadata: namespace "\x1b" cannot be)"},
      {std::string(65, '['), "nested deeper than 64", ErrorCode::kTooLarge},
      {std::string(kMaxPodJsonBytes + 1, ' '), "1048577 bytes", ErrorCode::kTooLarge},
  };
  for (const auto& [json, says, code] : cases) {
    const auto pod = parse_pod_spec(json);
    ASSERT_FALSE(pod) << json;
    EXPECT_EQ(pod.error().code, code) << json;
    EXPECT_THAT(pod.error().message, HasSubstr(says)) << json;
  }
}

TEST(ParsePod, TakesAThousandContainers) {
  const auto pod = parse(with_spec(many_containers(1000)));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->containers.size(), 1000U);
}

TEST(ParsePodSpec, TakesNameAndNamespaceOfMetadata) {
  const auto pod = parse_pod_spec(R"({"metadata":{"name":"web","namespace":"","uid":"u"}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->name, "web");
  EXPECT_EQ(pod->pod_namespace, "");
  EXPECT_EQ(pod->uid, "");
}

TEST(FormatPodSpec, WritesOnlyWhatMatters) {
  core::Pod pod;
  pod.uid = "u";
  pod.name = "web";
  pod.pod_namespace = "shop";
  pod.containers.push_back({"app",
                            ContainerKind::kApp,
                            {.requests = {{"cpu", Quantity::from_milli(250)}},
                             .limits = {{"memory", Quantity::from_units(1024)}}}});
  pod.init_containers.push_back({"mesh", ContainerKind::kSidecar, {}});
  pod.overhead = {{"cpu", Quantity::from_milli(1)}};
  pod.resources = core::Resources{};
  pod.priority = 7;
  EXPECT_EQ(format_pod_spec(pod),
            R"({"metadata":{"name":"web","namespace":"shop"},)"
            R"("containers":[{"name":"app","resources":{"requests":{"cpu":"0.25"},)"
            R"("limits":{"memory":"1024"}}}],)"
            R"("initContainers":[{"name":"mesh","restartPolicy":"Always"}],)"
            R"("overhead":{"cpu":"0.001"},"resources":{},"priority":7})");
}

TEST(FormatPodSpec, AnEmptyPodIsAnEmptySpec) {
  EXPECT_EQ(format_pod_spec({}), "{}");
}

}  // namespace
}  // namespace podqos::codec

#include "common/codec/pod_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::ContainerKind;
using core::Quantity;
using testing::HasSubstr;

TEST(ParsePod, ReadsEveryFieldThatMatters) {
  const auto pod = parse_pod(R"({
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
  const auto pod = parse_pod(
      R"({"kind":"Pod","metadata":null,"spec":{"containers":null,"resources":null,"priority":null},
          "status":{"qosClass":""}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(*pod, core::Pod{});
}

TEST(ParsePod, AMirrorPodIsStaticAndOneFromTheApiIsNot) {
  const auto is_static = [](const std::string& annotations) {
    const auto pod = parse_pod(
        cat(R"({"kind":"Pod","metadata":{"annotations":)", annotations, R"(},"spec":{}})"));
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

struct PodRefusal {
  const char* name;
  std::string json;
  ErrorCode code;
  const char* says;
};

class ParsePodRefuses : public testing::TestWithParam<PodRefusal> {};

TEST_P(ParsePodRefuses, WithThePathAndTheReason) {
  const auto pod = parse_pod(GetParam().json);
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, GetParam().code);
  EXPECT_THAT(pod.error().message, HasSubstr(GetParam().says));
}

std::string with_spec(const std::string& spec) {
  return cat(R"({"kind":"Pod","spec":)", spec, "}");
}

std::string many_containers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += cat(i == 0 ? "" : ",", R"({"name":"c)", i, "\"}");
  return cat(R"({"containers":[)", list, "]}");
}

std::string named(const std::string& name) {
  return with_spec(cat(R"({"containers":[{"name":")", name, "\"}]}"));
}

constexpr auto kInvalid = ErrorCode::kInvalidArgument;

INSTANTIATE_TEST_SUITE_P(
    All, ParsePodRefuses,
    testing::Values(
        PodRefusal{"Empty", "", kInvalid, "malformed JSON"},
        PodRefusal{"Truncated", R"({"kind":"Pod","spec":{)", kInvalid, "malformed JSON"},
        PodRefusal{"TrailingText", with_spec("{}") + "x", kInvalid, "malformed JSON"},
        PodRefusal{"BadUtf8", "{\"kind\":\"\xff\"}", kInvalid, "malformed JSON"},
        PodRefusal{"HugeExponent", with_spec(R"({"overhead":{"cpu":1e999}})"), kInvalid,
                   "malformed JSON"},
        PodRefusal{"NoObject", "[]", kInvalid, "expected an object, found array"},
        PodRefusal{"OtherKind", R"({"kind":"Deployment"})", kInvalid,
                   R"(kind "Deployment": expected Pod)"},
        PodRefusal{"NoSpec", R"({"kind":"Pod"})", kInvalid, "spec is missing"},
        PodRefusal{"SpecTwice", R"({"spec":{},"spec":{}})", kInvalid, "spec: member is repeated"},
        PodRefusal{"ContainersNoArray", with_spec(R"({"containers":{}})"), kInvalid,
                   "spec.containers: expected an array, found object"},
        PodRefusal{"ContainerNoObject", with_spec(R"({"containers":[1]})"), kInvalid,
                   "spec.containers[0]: expected an object, found 1"},
        PodRefusal{
            "QuantityBoolean",
            with_spec(R"({"containers":[{"name":"a","resources":{"limits":{"cpu":true}}}]})"),
            kInvalid,
            "spec.containers[0].resources.limits.cpu: expected a quantity, found boolean"},
        PodRefusal{"QuantityMalformed", with_spec(R"({"resources":{"requests":{"cpu":"1 Gi"}}})"),
                   kInvalid, R"(spec.resources.requests.cpu: "1 Gi" is not a quantity)"},
        PodRefusal{"ResourceTwice", with_spec(R"({"overhead":{"cpu":1,"cpu":2}})"), kInvalid,
                   "spec.overhead.cpu: member is repeated"},
        PodRefusal{"ResourceUnnamed", with_spec(R"({"overhead":{"":1}})"), kInvalid,
                   "resource name"},
        PodRefusal{
            "PriorityText", with_spec(R"({"priority":"1"})"), kInvalid,
            "spec.priority: expected an integer from -2147483648 to 2147483647, found string"},
        PodRefusal{"PriorityFraction", with_spec(R"({"priority":1.5})"), kInvalid,
                   "spec.priority: expected an integer from -2147483648 to 2147483647, found"},
        PodRefusal{"PriorityHuge", with_spec(R"({"priority":2147483648})"), kInvalid,
                   "spec.priority: expected an integer from -2147483648 to 2147483647, found"},
        PodRefusal{"ClassUnknown", R"({"spec":{},"status":{"qosClass":"Silver"}})", kInvalid,
                   R"(qosClass "Silver": expected one of)"},
        PodRefusal{"AnnotationNoText",
                   R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":1}},"spec":{}})",
                   kInvalid, "metadata.annotations.kubernetes.io/config.mirror: expected a string"},
        PodRefusal{"NameMissing", with_spec(R"({"containers":[{}]})"), kInvalid,
                   R"(container name "")"},
        PodRefusal{"NameParent", named(".."), kInvalid, R"(container name "..")"},
        PodRefusal{"NameNewline", named("a\\nb"), kInvalid, R"(container name "a\x0ab")"},
        PodRefusal{"NameUpperCase", named("App"), kInvalid, "not a DNS label"},
        PodRefusal{"NameDashFirst", named("-a"), kInvalid, "not a DNS label"},
        PodRefusal{"NameTooLong", named(std::string(64, 'a')), kInvalid, "not a DNS label"},
        PodRefusal{
            "NameTwice",
            with_spec(R"({"containers":[{"name":"a"}],"ephemeralContainers":[{"name":"a"}]})"),
            kInvalid, R"(two containers are named "a")"},
        PodRefusal{"TooManyContainers", with_spec(many_containers(1001)), ErrorCode::kTooLarge,
                   "1001 containers, at most 1000"},
        PodRefusal{"TooDeep", std::string(65, '['), ErrorCode::kTooLarge, "nested deeper than 64"},
        PodRefusal{"TooLong", std::string(kMaxPodJsonBytes + 1, ' '), ErrorCode::kTooLarge,
                   "1048577 bytes"}),
    [](const auto& row) { return row.param.name; });

TEST(ParsePod, TakesAThousandContainers) {
  const auto pod = parse_pod(with_spec(many_containers(1000)));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->containers.size(), 1000U);
}

TEST(FormatPodSpec, WritesOnlyWhatMatters) {
  core::Pod pod;
  pod.uid = "u";
  pod.containers.push_back({"app",
                            ContainerKind::kApp,
                            {.requests = {{"cpu", Quantity::from_milli(250)}},
                             .limits = {{"memory", Quantity::from_units(1024)}}}});
  pod.init_containers.push_back({"mesh", ContainerKind::kSidecar, {}});
  pod.overhead = {{"cpu", Quantity::from_milli(1)}};
  pod.resources = core::Resources{};
  pod.priority = 7;
  EXPECT_EQ(format_pod_spec(pod),
            R"({"containers":[{"name":"app","resources":{"requests":{"cpu":"0.25"},)"
            R"("limits":{"memory":"1024"}}}],)"
            R"("initContainers":[{"name":"mesh","restartPolicy":"Always"}],)"
            R"("overhead":{"cpu":"0.001"},"resources":{},"priority":7})");
}

TEST(FormatPodSpec, AnEmptyPodIsAnEmptySpec) {
  EXPECT_EQ(format_pod_spec({}), "{}");
}

}  // namespace
}  // namespace podqos::codec

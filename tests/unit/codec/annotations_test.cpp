#include "common/codec/annotations.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::Annotations;
using core::Quantity;
using testing::HasSubstr;

core::ResourceList list(
    std::initializer_list<std::pair<const std::string, std::string_view>> items) {
  core::ResourceList out;
  for (const auto& [name, quantity] : items)
    out.emplace(name, Quantity::parse(quantity).value());
  return out;
}

TEST(IsKnownAnnotation, TakesOursAndTheEngines) {
  for (const std::string_view key :
       {"podqos.io/pod", "podqos.io/limits.web", "podqos.io/typo", "io.kubernetes.cri.sandbox-uid",
        "io.kubernetes.cri-o.SandboxID", "io.kubernetes.cri-o.Labels", "io.kubernetes.pod.uid",
        "pod-linux-resources.crio.io", "io.container.manager"}) {
    EXPECT_TRUE(is_known_annotation(key)) << key;
  }
}

TEST(IsKnownAnnotation, LeavesOthersAlone) {
  // cri-o.Annotations repeats all annotations of the pod and can be of any size.
  for (const std::string_view key :
       {"", "podqos.io", "xpodqos.io/pod", "io.kubernetes.cri-o.Annotations",
        "io.kubernetes.cri.image-name", "org.opencontainers.image.title"}) {
    EXPECT_FALSE(is_known_annotation(key)) << key;
  }
}

TEST(ParseShortForm, ReadsResources) {
  EXPECT_EQ(parse_short_form("cpu=250m,memory=1Gi"), list({{"cpu", "250m"}, {"memory", "1Gi"}}));
  EXPECT_EQ(parse_short_form(" cpu = 1 , hugepages-2Mi=4Mi "),
            list({{"cpu", "1"}, {"hugepages-2Mi", "4Mi"}}));
  EXPECT_EQ(parse_short_form("memory=0"), list({{"memory", "0"}}));
}

struct RefusalCase {
  std::string text;
  std::string message;
};

TEST(ParseShortForm, RefusesOtherThings) {
  const std::vector<RefusalCase> cases = {
      {"", "is not of the form name=quantity"},
      {"cpu=1,", "is not of the form name=quantity"},
      {"cpu", "is not of the form name=quantity"},
      {"nvidia.com/gpu=1", "\"nvidia.com/gpu\" is none of cpu, memory, hugepages-<size>"},
      {"CPU=1", "\"CPU\" is none of"},
      {"=1", "is none of"},
      {"hugepages-x=1", "hugepages-x"},
      {"cpu=", "cpu: "},
      {"cpu=1=2", "cpu: "},
      {"memory=-1", "memory=-1 is negative"},
      {"cpu=1,cpu=1", "cpu is there twice"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_short_form(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
  }
}

TEST(ParsePodqosAnnotations, FindsNothingInNothing) {
  const auto parsed = parse_podqos_annotations({{"a", ""}, {"podqos", ""}, {"podqos.iz/x", ""}});
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->ignore);
  EXPECT_FALSE(parsed->any_identity_or_resource());
}

TEST(ParsePodqosAnnotations, ReadsIdentity) {
  const auto parsed = parse_podqos_annotations({{"podqos.io/pod-uid", "1-2.A"},
                                                {"podqos.io/container", "My_web.1"},
                                                {"podqos.io/qos-class", "Burstable"},
                                                {"podqos.io/ignore", "false"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->pod_uid, "1-2.A");
  EXPECT_EQ(parsed->container, "My_web.1");
  EXPECT_EQ(parsed->qos_class, core::QosClass::kBurstable);
  EXPECT_FALSE(parsed->ignore);
  EXPECT_TRUE(parsed->any_identity_or_resource());
}

TEST(ParsePodqosAnnotations, ReadsTheOptOut) {
  const auto parsed = parse_podqos_annotations({{"podqos.io/ignore", "true"}});
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->ignore);
  EXPECT_FALSE(parsed->any_identity_or_resource());
}

TEST(ParsePodqosAnnotations, DefaultsThePodsRequests) {
  const auto parsed = parse_podqos_annotations(
      {{"podqos.io/pod",
        R"({"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]})"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->pod->containers.size(), 1U);
  EXPECT_EQ(parsed->pod->containers[0].resources.requests, list({{"cpu", "1"}, {"memory", "1Gi"}}));
}

TEST(ParsePodqosAnnotations, ReadsShortForms) {
  const auto parsed = parse_podqos_annotations({{"podqos.io/limits", "cpu=2,memory=2Gi"},
                                                {"podqos.io/requests", "cpu=1"},
                                                {"podqos.io/limits.web", "cpu=500m"},
                                                {"podqos.io/requests.a_b", "memory=64Mi"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->pod_level->limits, list({{"cpu", "2"}, {"memory", "2Gi"}}));
  EXPECT_EQ(parsed->pod_level->requests, list({{"cpu", "1"}}));
  ASSERT_EQ(parsed->containers.size(), 2U);
  EXPECT_EQ(parsed->containers.at("web").requests, list({{"cpu", "500m"}}));
  EXPECT_EQ(parsed->containers.at("web").limits, list({{"cpu", "500m"}}));
  EXPECT_EQ(parsed->containers.at("a_b").requests, list({{"memory", "64Mi"}}));
}

struct AnnotationRefusal {
  std::string key;
  std::string value;
  std::string message;
};

TEST(ParsePodqosAnnotations, NamesWhatItRefuses) {
  const std::vector<AnnotationRefusal> cases = {
      {"podqos.io/ignore", "yes",
       "annotation podqos.io/ignore = \"yes\": expected \"true\" or \"false\""},
      {"podqos.io/ignore", "", "podqos.io/ignore"},
      {"podqos.io/pod-uid", "../x", "podqos.io/pod-uid = \"../x\""},
      {"podqos.io/pod-uid", "", "podqos.io/pod-uid"},
      {"podqos.io/pod-uid", std::string(300, 'a'), "podqos.io/pod-uid"},
      {"podqos.io/pod-uid", "a\nb", "podqos.io/pod-uid = \"a\\x0ab\""},
      {"podqos.io/container", "-a", "container name \"-a\""},
      {"podqos.io/container", "a/b", "container name \"a/b\""},
      {"podqos.io/container", std::string(64, 'a'), "container name"},
      {"podqos.io/qos-class", "burstable", "expected Guaranteed, Burstable or BestEffort"},
      {"podqos.io/pod", "{", "annotation podqos.io/pod"},
      {"podqos.io/pod", "[]", "annotation podqos.io/pod"},
      {"podqos.io/pod",
       R"({"containers":[{"name":"a","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}]})",
       "annotation podqos.io/pod"},
      {"podqos.io/limits", "cpu=x", "annotation podqos.io/limits = \"cpu=x\": cpu: "},
      {"podqos.io/limits.", "cpu=1", "container name \"\""},
      {"podqos.io/limits.a b", "cpu=1", "container name \"a b\""},
      {"podqos.io/limit", "cpu=1", "unknown annotation; did you mean podqos.io/limits?"},
      {"podqos.io/QoSClass", "", "did you mean podqos.io/qos-class?"},
      {"podqos.io/", "", "unknown annotation"},
      {"podqos.io/something-else-entirely", "", "unknown annotation"},
  };
  for (const auto& [key, value, message] : cases) {
    const auto parsed = parse_podqos_annotations({{key, value}});
    ASSERT_FALSE(parsed) << key << "=" << value;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << key;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << key;
  }
}

TEST(ParsePodqosAnnotations, RefusesRequestsAboveLimits) {
  EXPECT_FALSE(parse_podqos_annotations(
      {{"podqos.io/limits", "cpu=1"}, {"podqos.io/requests", "cpu=1001m"}}));
  EXPECT_FALSE(parse_podqos_annotations(
      {{"podqos.io/limits.a", "memory=1"}, {"podqos.io/requests.a", "memory=2"}}));
  EXPECT_TRUE(parse_podqos_annotations(
      {{"podqos.io/limits.a", "memory=2"}, {"podqos.io/requests.a", "memory=2"}}));
}

constexpr const char* kUid = "11111111-2222-3333-4444-555555555555";

TEST(ParseEngineAnnotations, ReadsContainerdsSandbox) {
  const auto parsed = parse_engine_annotations({{"io.kubernetes.cri.container-type", "sandbox"},
                                                {"io.kubernetes.cri.sandbox-id", "5a"},
                                                {"io.kubernetes.cri.sandbox-uid", kUid},
                                                {"io.kubernetes.cri.sandbox-name", "web"},
                                                {"io.kubernetes.cri.sandbox-namespace", "default"},
                                                {"io.kubernetes.cri.sandbox-cpu-period", "100000"},
                                                {"io.kubernetes.cri.sandbox-cpu-quota", "-1"},
                                                {"io.kubernetes.cri.sandbox-cpu-shares", "256"},
                                                {"io.kubernetes.cri.sandbox-memory", "0"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->is_sandbox);
  EXPECT_EQ(parsed->sandbox_id, "5a");
  EXPECT_EQ(parsed->pod_uid, kUid);
  EXPECT_EQ(parsed->pod_name, "web");
  EXPECT_EQ(parsed->pod_namespace, "default");
  EXPECT_EQ(parsed->container_name, std::nullopt);
  core::EngineResources sums;
  sums.cpu_period = 100'000;
  sums.cpu_quota = -1;
  sums.cpu_shares = 256;
  EXPECT_EQ(parsed->pod_sums, sums);
}

TEST(ParseEngineAnnotations, ReadsContainerdsContainer) {
  const auto parsed = parse_engine_annotations({{"io.kubernetes.cri.container-type", "container"},
                                                {"io.kubernetes.cri.container-name", "app"},
                                                {"io.kubernetes.cri.sandbox-uid", kUid}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_FALSE(parsed->is_sandbox);
  EXPECT_EQ(parsed->container_name, "app");
  EXPECT_EQ(parsed->pod_sums, std::nullopt);
}

TEST(ParseEngineAnnotations, ReadsCrioSandbox) {
  const auto parsed = parse_engine_annotations(
      {{"io.container.manager", "cri-o"},
       {"io.kubernetes.cri-o.ContainerType", "sandbox"},
       {"io.kubernetes.cri-o.SandboxID", "5a"},
       {"io.kubernetes.cri-o.Labels",
        cat(R"({"app":"x","io.kubernetes.pod.uid":")", kUid, R"("})")},
       {"io.kubernetes.cri-o.KubeName", "web"},
       {"io.kubernetes.cri-o.Namespace", "default"},
       {"io.kubernetes.cri-o.PodLinuxResources",
        R"({"cpu_period":100000,"cpu_quota":20000,"cpu_shares":204,"memory_limit_in_bytes":1073741824,"unified":{}})"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->is_sandbox);
  EXPECT_EQ(parsed->sandbox_id, "5a");
  EXPECT_EQ(parsed->pod_uid, kUid);
  EXPECT_EQ(parsed->pod_name, "web");
  EXPECT_EQ(parsed->pod_namespace, "default");
  core::EngineResources sums;
  sums.cpu_period = 100'000;
  sums.cpu_quota = 20'000;
  sums.cpu_shares = 204;
  sums.memory_limit = 1'073'741'824;
  EXPECT_EQ(parsed->pod_sums, sums);
}

TEST(ParseEngineAnnotations, ReadsCrioContainer) {
  const auto parsed = parse_engine_annotations(
      {{"io.container.manager", "cri-o"},
       {"io.kubernetes.cri-o.ContainerType", "container"},
       {"io.kubernetes.cri-o.Labels",
        R"({"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"web"})"},
       {"io.kubernetes.pod.uid", kUid}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->container_name, "app");
  EXPECT_EQ(parsed->pod_name, "web");
  EXPECT_EQ(parsed->pod_uid, kUid);
}

TEST(ParseEngineAnnotations, ReadsPodmansSandboxIdOnly) {
  // The rest would be the pod author's: Podman copies his annotations and has no uid.
  const auto parsed = parse_engine_annotations({{"io.container.manager", "libpod"},
                                                {"io.kubernetes.cri-o.SandboxID", "5a"},
                                                {"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                                {"io.kubernetes.cri.container-type", "sandbox"},
                                                {"io.kubernetes.cri.sandbox-uid", kUid},
                                                {"io.kubernetes.pod.uid", kUid}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->sandbox_id, "5a");
  EXPECT_EQ(parsed->pod_uid, std::nullopt);
  EXPECT_FALSE(parsed->is_sandbox);
}

TEST(ParseEngineAnnotations, BelievesTheEngineBeforeThePodAuthor) {
  const auto crio = parse_engine_annotations(
      {{"io.container.manager", "cri-o"},
       {"io.kubernetes.cri.container-type", "sandbox"},
       {"io.kubernetes.cri.sandbox-uid", "victim"},
       {"io.kubernetes.pod.uid", "victim"},
       {"io.kubernetes.cri-o.PodLinuxResources", R"({"cpu_shares":9})"},
       {"io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.uid":"own"})"}});
  ASSERT_TRUE(crio) << crio.error().message;
  EXPECT_EQ(crio->pod_uid, "own");
  EXPECT_FALSE(crio->is_sandbox);
  EXPECT_EQ(crio->pod_sums, std::nullopt);
  const auto containerd =
      parse_engine_annotations({{"io.kubernetes.cri.container-type", "container"},
                                {"io.kubernetes.cri.sandbox-id", "5a"},
                                {"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                {"io.kubernetes.cri-o.SandboxID", "victim"},
                                {"io.kubernetes.pod.uid", "victim"}});
  ASSERT_TRUE(containerd) << containerd.error().message;
  EXPECT_FALSE(containerd->is_sandbox);
  EXPECT_EQ(containerd->sandbox_id, "5a");
  EXPECT_EQ(containerd->pod_uid, std::nullopt);
}

TEST(ParseEngineAnnotations, NamesWhatItRefuses) {
  const std::vector<AnnotationRefusal> cases = {
      {"io.kubernetes.cri.container-type", "pause", "io.kubernetes.cri.container-type = \"pause\""},
      {"io.kubernetes.cri.sandbox-uid", "a/b", "annotation io.kubernetes.cri.sandbox-uid"},
      {"io.kubernetes.cri-o.SandboxID", "..", "annotation io.kubernetes.cri-o.SandboxID"},
      {"io.kubernetes.cri-o.Labels", "{", "annotation io.kubernetes.cri-o.Labels"},
      {"io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.uid":"/"})", "io.kubernetes.pod.uid"},
      {"io.kubernetes.pod.name", std::string(256, 'a'), "annotation io.kubernetes.pod.name"},
  };
  for (const auto& [key, value, message] : cases) {
    const auto parsed = parse_engine_annotations({{key, value}});
    ASSERT_FALSE(parsed) << key << "=" << value;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << key;
  }
  EXPECT_FALSE(parse_engine_annotations(
      {{"io.kubernetes.cri.sandbox-id", "a"}, {"io.kubernetes.cri.sandbox-memory", "1Gi"}}));
  EXPECT_FALSE(
      parse_engine_annotations({{"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                {"pod-linux-resources.crio.io", R"({"cpu_shares":"1"})"}}));
}

}  // namespace
}  // namespace podqos::codec

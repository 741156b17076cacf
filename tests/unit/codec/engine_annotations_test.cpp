
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/annotations.h"

namespace podqos::codec {
namespace {

using core::Annotations;
using core::EngineResources;
using testing::HasSubstr;

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
  EngineResources sums;
  sums.cpu_period = 100'000;
  sums.cpu_quota = -1;
  sums.cpu_shares = 256;
  EXPECT_EQ(parsed->pod_sums, sums);
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
        R"({"cpu_period":100000,"cpu_quota":20000,"cpu_shares":204,"memory_limit_in_bytes":1073741824,"unified":{}})"},
       {"io.kubernetes.cri-o.PodLinuxOverhead",
        R"({"cpu_shares":20,"memory_limit_in_bytes":4096})"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EngineResources overhead;
  overhead.cpu_shares = 20;
  overhead.memory_limit = 4096;
  EXPECT_EQ(parsed->pod_overhead, overhead);
  EXPECT_TRUE(parsed->is_sandbox);
  EXPECT_EQ(parsed->sandbox_id, "5a");
  EXPECT_EQ(parsed->pod_uid, kUid);
  EXPECT_EQ(parsed->pod_name, "web");
  EXPECT_EQ(parsed->pod_namespace, "default");
  EngineResources sums;
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
        cat(R"({"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"web",)",
            R"("io.kubernetes.pod.uid":")", kUid, R"("})")},
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
                                                {"io.kubernetes.pod.uid", kUid}},
                                               {.id = "c1", .cgroup = "/machine/libpod-c1"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->sandbox_id, "5a");
  EXPECT_EQ(parsed->pod_uid, std::nullopt);
  EXPECT_FALSE(parsed->is_sandbox);
}

struct EngineAnnotationRefusal {
  std::string key;
  std::string value;
  std::string message;
};

TEST(ParseEngineAnnotations, NamesWhatItRefuses) {
  const std::vector<EngineAnnotationRefusal> cases = {
      {"io.kubernetes.cri.container-type", "pause", "io.kubernetes.cri.container-type = \"pause\""},
      {"io.kubernetes.cri.sandbox-uid", "a/b", "annotation io.kubernetes.cri.sandbox-uid"},
      {"io.kubernetes.cri-o.SandboxID", "..", "annotation io.kubernetes.cri-o.SandboxID"},
      {"io.kubernetes.cri-o.Labels", "{", "annotation io.kubernetes.cri-o.Labels"},
      {"io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.uid":"/"})", "io.kubernetes.pod.uid"},
      {"io.kubernetes.pod.name", std::string(256, 'a'), "annotation io.kubernetes.pod.name"},
  };
  for (const auto& [key, value, message] : cases) {
    Annotations annotations{{key, value}};
    if (!key.starts_with("io.kubernetes.cri.")) {
      annotations.emplace("io.container.manager", "cri-o");
      annotations.emplace("io.kubernetes.cri-o.ContainerType", "sandbox");
    }
    const auto parsed = parse_engine_annotations(annotations);
    ASSERT_FALSE(parsed) << key << "=" << value;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << key;
  }
  EXPECT_FALSE(parse_engine_annotations(
      {{"io.kubernetes.cri.sandbox-id", "a"}, {"io.kubernetes.cri.sandbox-memory", "1Gi"}}));
  EXPECT_FALSE(
      parse_engine_annotations({{"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                {"pod-linux-resources.crio.io", R"({"cpu_shares":"1"})"}}));
}

/// containerd 1.7 and 2, CRI-O and its current names, Podman.
TEST(IsEngineAnnotation, TakesWhatTellsAPod) {
  for (const std::string_view key : {"io.container.manager",
                                     "io.kubernetes.cri.container-type",
                                     "io.kubernetes.cri.sandbox-id",
                                     "io.kubernetes.cri.sandbox-uid",
                                     "io.kubernetes.cri.sandbox-name",
                                     "io.kubernetes.cri.sandbox-namespace",
                                     "io.kubernetes.cri.container-name",
                                     "io.kubernetes.cri.sandbox-cpu-period",
                                     "io.kubernetes.cri.sandbox-cpu-quota",
                                     "io.kubernetes.cri.sandbox-cpu-shares",
                                     "io.kubernetes.cri.sandbox-memory",
                                     "io.kubernetes.cri-o.ContainerType",
                                     "io.kubernetes.cri-o.SandboxID",
                                     "io.kubernetes.cri-o.SandboxName",
                                     "io.kubernetes.cri-o.ContainerID",
                                     "io.kubernetes.cri-o.Name",
                                     "io.kubernetes.cri-o.HostnamePath",
                                     "io.kubernetes.cri-o.Labels",
                                     "io.kubernetes.cri-o.KubeName",
                                     "io.kubernetes.cri-o.Namespace",
                                     "io.kubernetes.cri-o.PodLinuxResources",
                                     "pod-linux-resources.crio.io",
                                     "io.kubernetes.cri-o.PodLinuxOverhead",
                                     "pod-linux-overhead.crio.io",
                                     "io.kubernetes.pod.uid",
                                     "io.kubernetes.pod.name",
                                     "io.kubernetes.pod.namespace",
                                     "io.kubernetes.container.name"}) {
    EXPECT_TRUE(is_engine_annotation(key)) << key;
    EXPECT_TRUE(is_known_annotation(key)) << key;
  }
}

TEST(IsEngineAnnotation, LeavesTheRest) {
  // cri-o.Annotations repeats all annotations of the pod and can be of any size.
  for (const std::string_view key :
       {"", "io.kubernetes.cri.image-name", "io.kubernetes.cri.sandbox-log-directory",
        "io.kubernetes.cri.podsandbox.image-name", "io.kubernetes.cri-o.Annotations",
        "io.kubernetes.cri-o.Metadata", "io.kubernetes.cri-o.CgroupParent",
        "io.kubernetes.cri-o.RuntimeHandler", "io.kubernetes.cri-o.sandboxid",
        "io.kubernetes.cri.sandbox-uid.x", "io.podman.annotations.x", "podqos.io/pod"}) {
    EXPECT_FALSE(is_engine_annotation(key)) << key;
  }
}

TEST(ParseEngineAnnotations, TakesAnUnknownManagerForNone) {
  for (const std::string manager : {"", "docker", "LIBPOD", "cri-o "}) {
    const auto parsed = parse_engine_annotations({{"io.container.manager", manager},
                                                  {"io.kubernetes.cri.sandbox-id", "5a"},
                                                  {"io.kubernetes.cri-o.SandboxID", "6b"}});
    ASSERT_TRUE(parsed) << manager << parsed.error().message;
    EXPECT_EQ(parsed->sandbox_id, "5a") << manager;
  }
}

TEST(ParseEngineAnnotations, TakesTheLastThatCrioWritesToASandbox) {
  // server/sandbox_run_linux.go of CRI-O 1.36: its own keys, the pod's annotations, the labels.
  const auto parsed = parse_engine_annotations({{"io.container.manager", "cri-o"},
                                                {"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                                {"io.kubernetes.cri-o.KubeName", "other"},
                                                {"io.kubernetes.cri-o.Namespace", "other"},
                                                {"io.kubernetes.pod.name", "own"},
                                                {"io.kubernetes.pod.namespace", "own"},
                                                {"io.kubernetes.container.name", "POD"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->pod_name, "own");
  EXPECT_EQ(parsed->pod_namespace, "own");
  EXPECT_EQ(parsed->container_name, "POD");
}

TEST(PodmanContainerId, IsInEachFormOfPodmansNames) {
  EXPECT_EQ(podman_container_id("libpod-c1"), "c1");
  EXPECT_EQ(podman_container_id("/machine/libpod-c1"), "c1");
  EXPECT_EQ(podman_container_id("/machine.slice/libpod-c1.scope"), "c1");
  EXPECT_EQ(podman_container_id("/system.slice/web.service/libpod-payload-c1"), "c1");
  EXPECT_EQ(podman_container_id("/machine.slice/libpod-payload-c1.scope"), "c1");
  EXPECT_EQ(podman_container_id("/libpod_parent/p1"), "");
  EXPECT_EQ(podman_container_id("/libpod-p1/c1"), "");
  EXPECT_EQ(podman_container_id(""), "");
}

TEST(ParseEngineAnnotations, BelievesPlainKeysOfCrioOnly) {
  // No other engine writes them: a user of Docker or nerdctl does, and names a stranger's pod.
  const std::vector<Annotations> engines = {
      {},
      {{"io.container.manager", "docker"}},
      {{"io.kubernetes.cri-o.SandboxID", "5a"}},
      {{"io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.uid":"victim"})"}},
      {{"io.container.manager", "libpod"}},
      {{"io.kubernetes.cri.container-type", "container"}}};
  for (Annotations annotations : engines) {
    for (const std::string key : {"pod.uid", "pod.name", "pod.namespace", "container.name"})
      annotations.emplace(cat("io.kubernetes.", key), "victim");
    const auto parsed = parse_engine_annotations(annotations);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->pod_uid, std::nullopt);
    EXPECT_EQ(parsed->pod_name, std::nullopt);
    EXPECT_EQ(parsed->pod_namespace, std::nullopt);
    EXPECT_EQ(parsed->container_name, std::nullopt);
  }
  EXPECT_TRUE(parse_engine_annotations({{"io.kubernetes.pod.uid", "../x"}}));
}

TEST(ParseEngineAnnotations, DoesNotReadWhatIsNotTheEngines) {
  // What a pod author wrote must not make a container of Podman or containerd fail either.
  EXPECT_TRUE(parse_engine_annotations({{"io.container.manager", "libpod"},
                                        {"io.kubernetes.cri-o.Labels", "{"},
                                        {"io.kubernetes.pod.uid", "../x"}}));
  EXPECT_TRUE(parse_engine_annotations({{"io.kubernetes.cri.container-type", "container"},
                                        {"io.kubernetes.cri-o.SandboxID", ".."},
                                        {"io.kubernetes.pod.uid", "../x"}}));
}

}  // namespace
}  // namespace podqos::codec

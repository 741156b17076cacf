
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/annotations.h"

namespace podqos::codec {
namespace {

using core::Annotations;
using core::EngineAnnotations;
using core::EngineResources;
using testing::HasSubstr;

struct TextCase {
  std::string key;
  std::optional<std::string> EngineAnnotations::* field;
  std::size_t longest;
};

constexpr std::size_t kLongestUid = 128;
constexpr std::size_t kLongestName = 255;  // NAME_MAX

/// Every key whose value is a text of one line, and where it goes.
const std::vector<TextCase> kTexts = {
    {"io.kubernetes.cri.sandbox-id", &EngineAnnotations::sandbox_id, kLongestName},
    {"io.kubernetes.cri.sandbox-uid", &EngineAnnotations::pod_uid, kLongestUid},
    {"io.kubernetes.cri.sandbox-name", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.cri.sandbox-namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.cri.container-name", &EngineAnnotations::container_name, kLongestName},
    {"io.kubernetes.cri-o.SandboxID", &EngineAnnotations::sandbox_id, kLongestName},
    {"io.kubernetes.cri-o.KubeName", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.cri-o.Namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.pod.uid", &EngineAnnotations::pod_uid, kLongestUid},
    {"io.kubernetes.pod.name", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.pod.namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.container.name", &EngineAnnotations::container_name, kLongestName},
};

/// The annotation with what its engine always writes beside it, on a sandbox where CRI-O writes it
/// there.
Annotations of_its_engine(const std::string& key, const std::string& value) {
  if (key.starts_with("io.kubernetes.cri."))
    return {{key, value}, {"io.kubernetes.cri.container-type", "container"}};
  return {{key, value},
          {"io.container.manager", "cri-o"},
          {"io.kubernetes.cri-o.ContainerType", "sandbox"}};
}

TEST(ParseEngineAnnotations, ReadsEveryText) {
  for (const auto& [key, field, longest] : kTexts) {
    for (const std::string& value : {std::string{"a-1.B"}, std::string(longest, 'a')}) {
      const auto parsed = parse_engine_annotations(of_its_engine(key, value));
      ASSERT_TRUE(parsed) << key << parsed.error().message;
      EXPECT_EQ(*parsed.*field, value) << key;
    }
    EXPECT_EQ((*parse_engine_annotations(of_its_engine(key, ""))).*field, std::nullopt) << key;
  }
}

TEST(ParseEngineAnnotations, RefusesTextsThatCanNameNoCgroup) {
  for (const auto& [key, field, longest] : kTexts) {
    for (const std::string& value :
         {std::string(longest + 1, 'a'), std::string{"."}, std::string{".."}, std::string{"a/b"},
          std::string{"/"}, std::string{"a\nb"}, std::string{"a\x7f"}, std::string("a\0b", 3),
          std::string{"\xc3\xa9"}, std::string{"\xff"}}) {
      const auto parsed = parse_engine_annotations(of_its_engine(key, value));
      ASSERT_FALSE(parsed) << key << "=" << value;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << key;
      EXPECT_THAT(parsed.error().message, HasSubstr(cat("annotation ", key))) << key;
    }
  }
}

TEST(ParseEngineAnnotations, HoldsUidsToTheirOwnRule) {
  for (const std::string key : {"io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"}) {
    for (const std::string value : {"a_b", "a b", "...", "a:b"})
      EXPECT_FALSE(parse_engine_annotations(of_its_engine(key, value))) << key << value;
  }
}

TEST(ParseEngineAnnotations, ReadsCriosLabels) {
  for (const auto& [key, field, longest] : kTexts) {
    const bool plain = !key.starts_with("io.kubernetes.cri");
    const auto parsed = parse_engine_annotations(
        {{"io.container.manager", "cri-o"},
         {"io.kubernetes.cri-o.Labels", cat(R"({"app":"x",")", key, R"(":"v1","z":""})")}});
    ASSERT_TRUE(parsed) << key << parsed.error().message;
    EXPECT_EQ(*parsed.*field, plain ? std::optional{"v1"} : std::nullopt) << key;
  }
}

const std::optional<EngineResources> kNoSums;

struct SumCase {
  std::string cri;
  std::string crio;
  std::optional<std::int64_t> EngineResources::* field;
};

const std::vector<SumCase> kSums = {
    {"io.kubernetes.cri.sandbox-cpu-period", "cpu_period", &EngineResources::cpu_period},
    {"io.kubernetes.cri.sandbox-cpu-quota", "cpu_quota", &EngineResources::cpu_quota},
    {"io.kubernetes.cri.sandbox-cpu-shares", "cpu_shares", &EngineResources::cpu_shares},
    {"io.kubernetes.cri.sandbox-memory", "memory_limit_in_bytes", &EngineResources::memory_limit},
};

struct SumText {
  std::string text;
  std::optional<std::int64_t> number;
};

TEST(ParseEngineAnnotations, ReadsEverySum) {
  const std::vector<SumText> numbers = {
      {"1", 1}, {"-1", -1}, {"0", std::nullopt}, {"9223372036854775807", kInt64Max}};
  for (const auto& [cri, crio, field] : kSums) {
    for (const auto& [text, number] : numbers) {
      std::optional<EngineResources> want;
      if (number) want.emplace().*field = number;
      const std::string json = cat("{\"", crio, "\":", text, R"(,"unified":{}})");
      EXPECT_EQ(parse_engine_annotations(of_its_engine(cri, text))->pod_sums, want) << cri << text;
      for (const std::string key :
           {"io.kubernetes.cri-o.PodLinuxResources", "pod-linux-resources.crio.io"})
        EXPECT_EQ(parse_engine_annotations(of_its_engine(key, json))->pod_sums, want)
            << key << json;
      for (const std::string key :
           {"io.kubernetes.cri-o.PodLinuxOverhead", "pod-linux-overhead.crio.io"})
        EXPECT_EQ(parse_engine_annotations(of_its_engine(key, json))->pod_overhead, want)
            << key << json;
    }
  }
}

TEST(ParseEngineAnnotations, RefusesSumsThatAreNoIntegers) {
  for (const auto& [cri, crio, field] : kSums) {
    for (const std::string text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "1Gi",
                                   "9223372036854775808", "-9223372036854775809"}) {
      const auto parsed = parse_engine_annotations(of_its_engine(cri, text));
      ASSERT_FALSE(parsed) << cri << text;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(parsed.error().message, HasSubstr(cat("annotation ", cri, " = \"", text, "\"")));
    }
    for (const std::string json :
         {"\"1\"", "true", "[]", "{}", "1.5", "1e3", "9223372036854775808", "01"}) {
      const auto parsed = parse_engine_annotations(
          of_its_engine("pod-linux-resources.crio.io", cat("{\"", crio, "\":", json, "}")));
      ASSERT_FALSE(parsed) << crio << json;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(parsed.error().message, HasSubstr("annotation pod-linux-resources.crio.io"));
    }
  }
}

TEST(ParseEngineAnnotations, RefusesCriosJsonThatIsNone) {
  for (const std::string key : {"io.kubernetes.cri-o.PodLinuxResources",
                                "pod-linux-resources.crio.io", "io.kubernetes.cri-o.Labels"}) {
    for (const std::string json : {"{", "{}x", "x", "{\"a\":1,}", "{'a':1}"}) {
      const auto parsed = parse_engine_annotations(of_its_engine(key, json));
      ASSERT_FALSE(parsed) << key << json;
      EXPECT_THAT(parsed.error().message, HasSubstr(cat("annotation ", key)));
    }
  }
  EXPECT_FALSE(parse_engine_annotations(
      of_its_engine("pod-linux-resources.crio.io", R"({"cpu_shares":2,"cpu_shares":3})")));
}

/// A CRI-O that writes the prefixed name copies the other one from the pod's annotations.
TEST(ParseEngineAnnotations, TakesCriosOwnNameOfItsSumsBeforeWhatAnAuthorCanWrite) {
  EngineResources of_crio;
  of_crio.cpu_shares = 200;
  for (const std::string authors : {R"({"cpu_shares":300})", "{"}) {
    for (const auto& [own, want] :
         {std::pair{R"({"cpu_shares":200})", std::optional{of_crio}}, std::pair{"", kNoSums},
          std::pair{"{}", kNoSums}, std::pair{R"({"cpu_shares":0})", kNoSums}}) {
      Annotations annotations = of_its_engine("pod-linux-resources.crio.io", authors);
      annotations.emplace("pod-linux-overhead.crio.io", authors);
      annotations.emplace("io.kubernetes.cri-o.PodLinuxResources", own);
      const auto parsed = parse_engine_annotations(annotations);
      ASSERT_TRUE(parsed) << own << parsed.error().message;
      EXPECT_EQ(parsed->pod_sums, want) << own;
      EXPECT_EQ(parsed->pod_overhead, kNoSums) << own;
    }
  }
}

TEST(ParseEngineAnnotations, NamesWhatItRefuses) {
  EXPECT_THAT(
      parse_engine_annotations({{"io.kubernetes.cri.container-type", "pause"}}).error().message,
      HasSubstr("io.kubernetes.cri.container-type = \"pause\""));
  EXPECT_THAT(parse_engine_annotations(
                  of_its_engine("io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.uid":"/"})"))
                  .error()
                  .message,
              HasSubstr("io.kubernetes.pod.uid"));
}

/// containerd 1.7 and 2, CRI-O and its current names, Podman.
TEST(IsEngineAnnotation, TakesWhatTellsAPod) {
  std::vector<std::string> keys = parts_of(
      "io.container.manager io.kubernetes.cri.container-type io.kubernetes.cri-o.ContainerType "
      "io.kubernetes.cri-o.SandboxName io.kubernetes.cri-o.ContainerID io.kubernetes.cri-o.Name "
      "io.kubernetes.cri-o.HostnamePath io.kubernetes.cri-o.Labels "
      "io.kubernetes.cri-o.PodLinuxResources pod-linux-resources.crio.io "
      "io.kubernetes.cri-o.PodLinuxOverhead pod-linux-overhead.crio.io",
      ' ');
  for (const TextCase& text : kTexts)
    keys.push_back(text.key);
  for (const SumCase& sum : kSums)
    keys.push_back(sum.cri);
  for (const std::string& key : keys) {
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

TEST(PodmanPodId, IsInTheCgroupAboveItsContainers) {
  EXPECT_EQ(podman_pod_id("/machine.slice/machine-libpod_pod_2f61.slice/libpod-c1.scope"), "2f61");
  EXPECT_EQ(podman_pod_id("/libpod_parent/2f61/libpod-c1"), "2f61");
  EXPECT_EQ(podman_pod_id("/user.slice/user-libpod_pod_2f61.slice/libpod-c1.scope"), "2f61");
  EXPECT_EQ(podman_pod_id("/libpod_parent/libpod-c1"), "");
  EXPECT_EQ(podman_pod_id("/machine.slice/libpod-c1.scope"), "");
  EXPECT_EQ(podman_pod_id("/libpod_parent"), "");
  EXPECT_EQ(podman_pod_id(""), "");
}

struct NamedEngine {
  std::string what;
  Annotations annotations;
  EngineEvidence evidence;
  std::optional<core::Engine> engine;
  std::optional<std::string> pod_id = std::nullopt;
};

/// As measured in Debian 13 with Podman 5.4.2, Docker 26.1.5 and containerd 1.7.24; ids shortened.
TEST(ParseEngineAnnotations, TellsTheEngine) {
  using enum core::Engine;
  const std::vector<NamedEngine> cases = {
      {"podman run",
       {{"io.container.manager", "libpod"}},
       {.id = "d4e6", .cgroup = "/machine.slice/libpod-d4e6.scope"},
       kPodman},
      {"podman run --pod",
       {{"io.container.manager", "libpod"}, {"io.kubernetes.cri-o.SandboxID", "9a97"}},
       {.id = "418b", .cgroup = "/machine.slice/machine-libpod_pod_2f61.slice/libpod-418b.scope"},
       kPodman,
       "2f61"},
      {"podman --cgroup-manager cgroupfs run --pod",
       {{"io.container.manager", "libpod"}, {"io.kubernetes.cri-o.SandboxID", "9a97"}},
       {.id = "418b", .cgroup = "/libpod_parent/2f61/libpod-418b"},
       kPodman,
       "2f61"},
      {"after podqos has placed it",
       {{"io.container.manager", "libpod"}},
       {.id = "418b", .cgroup = "/podqos.slice/podqos-kubepods.slice/podx.slice/libpod-418b.scope"},
       kPodman},
      {"docker run",
       {},
       {.id = "5b83",
        .cgroup = "/system.slice/docker-5b83.scope",
        .bundle = "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/5b83"},
       kDocker},
      {"docker with cgroupfs", {}, {.id = "5b83", .cgroup = "/docker/5b83"}, kDocker},
      {"docker run --cgroup-parent /own",
       {},
       {.id = "5b83",
        .cgroup = "/own/5b83",
        .bundle = "/run/containerd/io.containerd.runtime.v2.task/moby/5b83"},
       kDocker},
      {"docker run --annotation",
       {{"io.container.manager", "libpod"}, {"io.kubernetes.cri.sandbox-id", "x"}},
       {.id = "5b83", .cgroup = "/system.slice/docker-5b83.scope"},
       kDocker},
      {"ctr run",
       {},
       {.id = "c1",
        .cgroup = "/default/c1",
        .bundle = "/run/containerd/io.containerd.runtime.v2.task/default/c1"},
       kContainerd},
      {"runc run", {}, {.id = "c1", .cgroup = "/c1", .bundle = "/bundles/web"}, std::nullopt},
      {"another's docker-", {}, {.id = "c1", .cgroup = "/x/docker-c2.scope"}, std::nullopt},
      {"no id", {}, {.id = "", .cgroup = "/docker/"}, std::nullopt},
  };
  for (const auto& [what, annotations, evidence, engine, pod_id] : cases) {
    const auto parsed = parse_engine_annotations(annotations, evidence);
    ASSERT_TRUE(parsed) << what << ": " << parsed.error().message;
    EXPECT_EQ(parsed->engine, engine) << what;
    EXPECT_EQ(parsed->pod_id, pod_id) << what;
  }
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

/// What an engine itself writes, in the end, and where it puts the container.
struct Engine {
  std::string name;  ///< CRI engines tell the pod's uid and namespace, Podman does not
  Annotations own;
  std::string id;
  std::string cgroup;
};

/// By source: containerd 1.7.24 and 2.1.1 (internal/cri/server/container_create.go and
/// podsandbox/sandbox_run_linux.go: pod_annotations and container_annotations, then
/// DefaultCRIAnnotations), CRI-O 1.36 (internal/factory/container/container.go: the sandbox's
/// annotations, then its own, then the container's annotations and labels;
/// server/sandbox_run_linux.go: its own, then the pod's annotations, then the labels, then
/// HostnamePath), Podman 5.4 (libpod/container_internal_common.go: io.container.manager only where
/// the user has set none).
const std::vector<Engine>& engines() {
  static const std::vector<Engine> kAll = {
      {"ContainerdContainer",
       {{"io.kubernetes.cri.container-type", "container"},
        {"io.kubernetes.cri.sandbox-id", "own-sandbox"},
        {"io.kubernetes.cri.sandbox-uid", "own-uid"},
        {"io.kubernetes.cri.sandbox-name", "own"},
        {"io.kubernetes.cri.sandbox-namespace", "own-ns"},
        {"io.kubernetes.cri.container-name", "app"}},
       "c1",
       "/k8s.io/c1"},
      {"ContainerdSandbox",
       {{"io.kubernetes.cri.container-type", "sandbox"},
        {"io.kubernetes.cri.sandbox-id", "own-sandbox"},
        {"io.kubernetes.cri.sandbox-uid", "own-uid"},
        {"io.kubernetes.cri.sandbox-name", "own"},
        {"io.kubernetes.cri.sandbox-namespace", "own-ns"}},
       "own-sandbox",
       "/k8s.io/own-sandbox"},
      {"CrioContainer",
       {{"io.container.manager", "cri-o"},
        {"io.kubernetes.cri-o.ContainerType", "container"},
        {"io.kubernetes.cri-o.ContainerID", "c1"},
        {"io.kubernetes.cri-o.SandboxID", "own-sandbox"},
        {"io.kubernetes.cri-o.SandboxName", "k8s_own_own-ns_own-uid_0"},
        {"io.kubernetes.cri-o.Name", "k8s_app_own_own-ns_own-uid_0"},
        {"io.kubernetes.cri-o.Labels",
         R"({"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"own",)"
         R"("io.kubernetes.pod.namespace":"own-ns","io.kubernetes.pod.uid":"own-uid"})"},
        {"io.kubernetes.container.name", "app"},
        {"io.kubernetes.pod.name", "own"},
        {"io.kubernetes.pod.namespace", "own-ns"},
        {"io.kubernetes.pod.uid", "own-uid"}},
       "c1",
       "/crio/crio-c1"},
      // As crictl makes it, without a kubelet's labels.
      {"CrioContainerWithoutLabels",
       {{"io.container.manager", "cri-o"},
        {"io.kubernetes.cri-o.ContainerType", "container"},
        {"io.kubernetes.cri-o.ContainerID", "c1"},
        {"io.kubernetes.cri-o.SandboxID", "own-sandbox"},
        {"io.kubernetes.cri-o.SandboxName", "k8s_own_own-ns_own-uid_0"},
        {"io.kubernetes.cri-o.Name", "k8s_app_own_own-ns_own-uid_0"},
        {"io.kubernetes.cri-o.Labels", "null"}},
       "c1",
       "/crio/crio-c1"},
      {"CrioSandbox",
       {{"io.kubernetes.container.name", "POD"},
        {"io.kubernetes.pod.name", "own"},
        {"io.kubernetes.pod.namespace", "own-ns"},
        {"io.kubernetes.pod.uid", "own-uid"},
        {"io.kubernetes.cri-o.HostnamePath",
         "/run/containers/storage/overlay-containers/own-sandbox/userdata/hostname"}},
       "own-sandbox",
       ""},
      {"PodmanContainer",
       {{"io.kubernetes.cri-o.SandboxID", "own-sandbox"}},
       "c1",
       "/libpod_parent/p1/libpod-c1"},
      {"PodmanContainerUnderSystemd",
       {{"io.kubernetes.cri-o.SandboxID", "own-sandbox"}},
       "c1",
       "/machine.slice/machine-libpod_pod_p1.slice/libpod-c1.scope"},
  };
  return kAll;
}

/// All that an author can write, as far as the engine lets it stand.
const Annotations& planted() {
  static const Annotations kAll = {
      {"io.kubernetes.cri.container-type", "sandbox"},
      {"io.kubernetes.cri.sandbox-id", "victim-sandbox"},
      {"io.kubernetes.cri.sandbox-uid", "victim"},
      {"io.kubernetes.cri.sandbox-name", "victim"},
      {"io.kubernetes.cri.sandbox-namespace", "victim-ns"},
      {"io.kubernetes.cri-o.ContainerType", "container"},
      {"io.kubernetes.cri-o.ContainerID", "victim-c1"},
      {"io.kubernetes.cri-o.SandboxID", "victim-sandbox"},
      {"io.kubernetes.cri-o.SandboxName", "k8s_victim_victim-ns_victim_0"},
      {"io.kubernetes.cri-o.Name", "k8s_app_victim_victim-ns_victim_0"},
      {"io.kubernetes.cri-o.HostnamePath", "/run/overlay-containers/victim/userdata/hostname"},
      {"io.kubernetes.cri-o.KubeName", "victim"},
      {"io.kubernetes.cri-o.Namespace", "victim-ns"},
      {"io.kubernetes.cri-o.Labels",
       R"({"io.kubernetes.pod.uid":"victim","io.kubernetes.pod.namespace":"victim-ns"})"},
      {"io.kubernetes.pod.uid", "victim"},
      {"io.kubernetes.pod.name", "victim"},
      {"io.kubernetes.pod.namespace", "victim-ns"},
      {"io.kubernetes.container.name", "victim"},
  };
  return kAll;
}

class EngineConflict : public testing::TestWithParam<Engine> {
 protected:
  static void expect_own(const Annotations& annotations, const std::string& what) {
    const Engine& engine = GetParam();
    const auto parsed =
        parse_engine_annotations(annotations, {.id = engine.id, .cgroup = engine.cgroup});
    ASSERT_TRUE(parsed) << what << ": " << parsed.error().message;
    const bool cri = !engine.name.starts_with("Podman");
    EXPECT_EQ(parsed->engine, engine.name.starts_with("Crio") ? core::Engine::kCrio
                              : cri                           ? core::Engine::kContainerd
                                                              : core::Engine::kPodman)
        << what;
    EXPECT_EQ(parsed->pod_uid, cri ? std::optional{"own-uid"} : std::nullopt) << what;
    EXPECT_EQ(parsed->sandbox_id, "own-sandbox") << what;
    EXPECT_EQ(parsed->pod_namespace, cri ? std::optional{"own-ns"} : std::nullopt) << what;
    EXPECT_EQ(parsed->is_sandbox, engine.name.ends_with("Sandbox")) << what;
    EXPECT_EQ(parsed->pod_sums, std::nullopt) << what;
    // Or an author's claims would count as the operator's.
    EXPECT_EQ(parsed->cri, cri) << what;
  }
};

TEST_P(EngineConflict, TheEnginesOwnKeysTellThePod) {
  expect_own(GetParam().own, "its own keys");
}

TEST_P(EngineConflict, NoKeyOfAnAuthorOverridesTheEngine) {
  for (const auto& [key, value] : planted()) {
    Annotations annotations = GetParam().own;
    annotations.emplace(key, value);
    expect_own(annotations, key);
  }
}

TEST_P(EngineConflict, NoSetOfKeysMakesItAnotherEnginesContainer) {
  for (const std::string manager : {"", "cri-o", "libpod", "containerd"}) {
    Annotations annotations = GetParam().own;
    if (!manager.empty()) annotations.emplace("io.container.manager", manager);
    annotations.insert(planted().begin(), planted().end());
    expect_own(annotations, "manager \"" + manager + "\" and all the rest");
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineConflict, testing::ValuesIn(engines()),
                         [](const auto& row) { return row.param.name; });

TEST(EngineConflictOfNames, AUidIsReadFromNamesOfFivePartsOnly) {
  // Metadata with "_" could shift the parts.
  for (const std::string name :
       {"k8s_a_ns_victim_0_x", "k8s_a_b_ns_victim_0", "k8s_a_victim_0", "x_a_ns_victim_0", ""}) {
    const auto parsed =
        parse_engine_annotations({{"io.container.manager", "cri-o"},
                                  {"io.kubernetes.cri-o.ContainerType", "container"},
                                  {"io.kubernetes.cri-o.ContainerID", "c1"},
                                  {"io.kubernetes.cri-o.SandboxID", "s1"},
                                  {"io.kubernetes.cri-o.SandboxName", name}},
                                 {.id = "c1"});
    ASSERT_TRUE(parsed) << name << parsed.error().message;
    EXPECT_EQ(parsed->pod_uid, std::nullopt) << name;
    EXPECT_EQ(parsed->sandbox_id, "s1") << name;
  }
}

}  // namespace
}  // namespace podqos::codec

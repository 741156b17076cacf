#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/codec/annotations.h"

namespace podqos::codec {
namespace {

using core::Annotations;

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

#include <cstdint>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/place.h"
#include "common/base/text.h"
#include "hook/lifecycle.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

/// What CRI-O 1.36 tells of a pod (server/nri-api.go: uid, name and namespace are the metadata's,
/// the cgroups path is the one of the container's spec).
namespace podqos::nri {
namespace {

using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PluginAtCrio : public PluginTest {
 protected:
  /// As CRI-O places it where the pod has no cgroup parent (internal/config/cgmgr).
  [[nodiscard]] static api::Container parentless(const api::PodSandbox& pod) {
    api::Container app = container(pod, "app", kSmall);
    app.mutable_linux()->set_cgroups_path("/crio/crio-" + app.id());
    return app;
  }
  void SetUp() override {
    PluginTest::SetUp();
    if (!IsSkipped()) runtime_ = start_process();
  }
  /// As CRI-O writes it for a client that sends no labels
  /// (internal/factory/sandbox/sandbox_linux.go, internal/factory/container/container.go).
  [[nodiscard]] static std::string config_of(std::string_view sandbox, std::string_view id,
                                             std::string_view type, std::string_view on_linux) {
    return cat(R"({"linux": {)", on_linux,
               R"(}, "annotations": {"io.container.manager": "cri-o", )",
               R"("io.kubernetes.cri-o.ContainerID": ")", id,
               R"(", "io.kubernetes.cri-o.ContainerType": ")", type,
               R"(", "io.kubernetes.cri-o.Labels": "null", "io.kubernetes.cri-o.SandboxID": ")",
               sandbox, R"("}})");
  }
  [[nodiscard]] static std::string sandbox_config(const api::PodSandbox& pod) {
    return config_of(
        pod.id(), pod.id(), "sandbox",
        cat(R"("cgroupsPath": "/engine/)", pod.id(), R"(", "resources": {"cpu": {"shares": 2}})"));
  }
  /// Of a container with what kSmall says.
  [[nodiscard]] static std::string app_config(const api::Container& app, std::string_view path) {
    return config_of(app.pod_sandbox_id(), app.id(), "container",
                     cat(R"("cgroupsPath": ")", path,
                         R"(", "resources": {"cpu": {"shares": 102, "quota": 20000, )",
                         R"("period": 100000}, "memory": {"limit": 134217728}})"));
  }
  /// By the wrapper.
  void place(const std::string& id, std::string_view config) {
    const auto placed = app::place(configuration().settings(), configuration().log(),
                                   {.id = id,
                                    .bundle = id == "app-of-1" ? temporary().path() : "/b",
                                    .config = config,
                                    .creator = runtime_,
                                    .driver = core::Driver::kCgroupfs,
                                    .hooks = {}});
    ASSERT_TRUE(placed) << placed.error().message;
  }
  /// One pod that requests 100m, as kSmall says, and so many bytes.
  void expect_counted_once(std::string_view memory) {
    EXPECT_THAT(
        temporary().read("state/tiers.json"),
        HasSubstr(cat(R"("guaranteed":{"pods":0,"cpuMilli":0,"memoryBytes":0},)"
                      R"("burstable":{"pods":1,"cpuMilli":100,"memoryBytes":)",
                      memory, R"(},"besteffort":{"pods":0,"cpuMilli":0,"memoryBytes":0})")));
  }

  Pid runtime_;
};

TEST_F(PluginAtCrio, LeavesAContainerWithoutCgroupParentWhereItIs) {
  const auto sandbox = pod("1");
  const auto adjustment = create(sandbox, parentless(sandbox));
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->linux().cgroups_path(), IsEmpty());
  EXPECT_TRUE(adjustment->linux().has_oom_score_adj());
  EXPECT_TRUE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("the cgroup parent " + pod_path("burstable", "1")));
}

TEST_F(PluginAtCrio, PlacesItWhereThatIsWanted) {
  reconfigure(R"(, "placement": {"withoutParent": "place"})");
  const auto sandbox = pod("1");
  const auto adjustment = create(sandbox, parentless(sandbox));
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->linux().cgroups_path(), HasSubstr(pod_path("burstable", "1")));
}

/// The wrapper behind the plugin sees CRI-O's annotations, without a kubelet's labels.
TEST_F(PluginAtCrio, AWrapperBehindItFindsTheSamePod) {
  const auto sandbox = pod("1", start_process(), kSmall);
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  const auto app = container(sandbox, "app", kSmall);
  const auto adjustment = create(sandbox, app);
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  place(app.id(), app_config(app, adjustment->linux().cgroups_path()));
  EXPECT_TRUE(is_known("1"));
  EXPECT_FALSE(is_known(sandbox.id()));
}

/// Plugin, wrapper and hook each register sandbox and container, in the order in which CRI-O comes
/// to them.
TEST_F(PluginAtCrio, CountsTheRequestsOfAPodOnceThatWrapperAndHookRegisterToo) {
  auto sandbox = pod("1", {}, kSmall);
  const Pid pause = start_process();
  place(sandbox.id(), sandbox_config(sandbox));
  sandbox.set_pid(static_cast<std::uint32_t>(pause.value()));
  ASSERT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  expect_counted_once("0");
  // Its limit, once a container has it: Kubernetes' default for a request.
  auto app = container(sandbox, "app", kSmall);
  const auto adjustment = create(sandbox, app);
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  const std::string path = adjustment->linux().cgroups_path();
  app.mutable_linux()->set_cgroups_path(path);
  const std::string config = app_config(app, path);
  place(app.id(), config);
  expect_counted_once("134217728");
  const Pid init = start_process();
  put(init, path);
  temporary().write("config.json", config);
  const auto hooked = hook::create_runtime(
      configuration().settings(), configuration().log(),
      cat(R"({"ociVersion": "1.0.2", "id": ")", app.id(), R"(", "status": "creating", "pid": )",
          init.value(), R"(, "bundle": ")", temporary().path(), R"("})"),
      runtime_, {});
  ASSERT_TRUE(hooked) << hooked.error().message;
  expect_counted_once("134217728");
  app.set_pid(static_cast<std::uint32_t>(init.value()));
  ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
  expect_counted_once("134217728");
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_FALSE(is_known(sandbox.id()));
}

}  // namespace
}  // namespace podqos::nri

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/place.h"
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
  const std::string config =
      cat(R"({"linux": {"cgroupsPath": ")", adjustment->linux().cgroups_path(),
          R"("}, "annotations": {"io.container.manager": "cri-o", )",
          R"("io.kubernetes.cri-o.ContainerID": ")", app.id(),
          R"(", "io.kubernetes.cri-o.ContainerType": "container", )",
          R"("io.kubernetes.cri-o.Labels": "null", "io.kubernetes.cri-o.SandboxID": ")",
          sandbox.id(), R"("}})");
  const auto placed = app::place(configuration().settings(), configuration().log(),
                                 {.id = app.id(),
                                  .bundle = "/b",
                                  .config = config,
                                  .creator = start_process(),
                                  .driver = core::Driver::kCgroupfs,
                                  .hooks = {}});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_TRUE(is_known("1"));
  EXPECT_FALSE(is_known(sandbox.id()));
}

}  // namespace
}  // namespace podqos::nri

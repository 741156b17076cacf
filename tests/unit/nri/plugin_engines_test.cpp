// What a kubelet and CRI-O tell of their pods.

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/place.h"
#include "common/base/text.h"
#include "common/sys/process.h"
#include "hook/lifecycle.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kLarge;
using test::kSmall;
using test::PluginTest;
using test::tell;
using test::Told;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::TestParamInfo;
using ::testing::ValuesIn;

/// All that podqos sets in a cgroup, by either version's name.
constexpr std::array kFiles = {"cpu.max",
                               "cpu.weight",
                               "memory.max",
                               "memory.swap.max",
                               "memory.oom.group",
                               "pids.max",
                               "cpu.shares",
                               "cpu.cfs_quota_us",
                               "memory.limit_in_bytes",
                               "memory.memsw.limit_in_bytes",
                               "hugetlb.2MB.max",
                               "hugetlb.2MB.limit_in_bytes"};

/// A kubelet's pod "1", in a cgroup that is not podqos's.
class KubeletPodTest : public PluginTest {
 protected:
  [[nodiscard]] std::string parent() const { return below("kubelet/kubepods/burstable/pod1"); }
  /// With the sandbox's process in its place.
  [[nodiscard]] api::PodSandbox kubelet_pod(const Told& sums) {
    const Pid init = start_process();
    put(init, parent() + "/sandbox-1");
    auto sandbox = pod("1", init, sums);
    sandbox.mutable_linux()->set_cgroups_path(parent() + "/sandbox-1");
    return sandbox;
  }
  [[nodiscard]] api::Container kubelets(const std::string& name, const Told& told = {}) const {
    return at(cat(parent(), "/", name), app(told, name));
  }
  /// As it is once the runtime has started it.
  [[nodiscard]] api::Container running(api::Container container) {
    run(container);
    EXPECT_TRUE(ask(kStartContainer, container));
    return container;
  }
  static void end(const api::Container& container) {
    ::kill(static_cast<pid_t>(container.pid()), SIGKILL);
    ::waitpid(static_cast<pid_t>(container.pid()), nullptr, 0);
  }
  /// File → content of the pod's tree, and each process's score.
  [[nodiscard]] std::map<std::string, std::string> tree(const std::vector<api::Container>& inits) {
    std::map<std::string, std::string> found;
    std::vector<std::string> cgroups{parent()};
    for (const api::Container& container : inits)
      cgroups.push_back(container.linux().cgroups_path());
    for (const cgroup::Hierarchy& hierarchy : hierarchies()) {
      for (const std::string& path : cgroups) {
        for (const char* name : kFiles) {
          const std::string file = cat(hierarchy.mount_point, path, "/", name);
          found[file] = content(file);
        }
      }
    }
    for (const api::Container& container : inits) {
      const auto score = sys::oom_score_adj_of(Pid{static_cast<pid_t>(container.pid())});
      found[container.id()] = score ? cat(*score) : "gone";
    }
    return found;
  }
  /// @param memory  in MiB; nullopt: whatever it is
  void expect_requests(int cpu, std::optional<std::int64_t> memory = std::nullopt) const {
    const std::string bytes = memory ? cat(*memory * 1024 * 1024, "}") : "";
    EXPECT_THAT(record(), HasSubstr(cat(R"("cappedRequest":{"pods":1,"cpuMilli":)", cpu,
                                        R"(,"memoryBytes":)", bytes)));
  }
};

struct Annotated {
  const char* name;
  const char* key;
  const char* value;
};
class KubeletPodAnnotated : public KubeletPodTest, public ::testing::WithParamInterface<Annotated> {
 protected:
  void SetUp() override {
    KubeletPodTest::SetUp();
    if (!IsSkipped()) pod_ = annotated(kubelet_pod(kSmall), GetParam().value, GetParam().key);
  }
};

/// What a kubelet sets is the kubelet's, whatever the pod's author, the sandbox's sums or the
/// settings say.
TEST_P(KubeletPodAnnotated, GetsNoAdjustment) {
  reconfigure(R"(, "podPidsLimit": 77, "memorySwap": {"swapBehavior": "LimitedSwap"})");
  static_cast<void>(ran(pod_));
  for (const auto& [name, told] : {std::pair{"app", kSmall}, std::pair{"main", Told{}}})
    EXPECT_EQ(adjusted(kubelets(name, told)).ByteSizeLong(), 0U) << name;
  EXPECT_FALSE(has_cgroup(base() + "/kubepods"));
}

/// The first that the plugin hears of the pod.
TEST_P(KubeletPodAnnotated, GetsNoAdjustmentBeforeItsSandboxIsKnown) {
  EXPECT_EQ(adjusted(kubelets("main")).ByteSizeLong(), 0U);
}

TEST_P(KubeletPodAnnotated, KeepsEachFileAndScore) {
  reconfigure(R"(, "podPidsLimit": 77, "placement": {"onMisplaced": "fail"})");
  static_cast<void>(ran(pod_));
  const auto helper = running(kubelets("app", kSmall));
  const auto first = tree({helper});
  const auto main = running(kubelets("main"));
  const auto before = tree({helper, main});
  for (const auto& [file, content] : first)
    EXPECT_EQ(before.at(file), content) << file;
  ASSERT_TRUE(update(main, kLarge));
  EXPECT_EQ(tree({helper, main}), before);
  ASSERT_TRUE(ask(kStopContainer, main));
  housekeep();
  EXPECT_EQ(tree({helper, main}), before);
}

INSTANTIATE_TEST_SUITE_P(
    Table, KubeletPodAnnotated,
    ValuesIn<Annotated>({
        {"Nothing", "other", ""},
        {"Spec", "podqos.io/pod",
         R"({"containers": [{"name": "app", "resources": {"limits": {"cpu": "200m", "memory": "128Mi"}}},
                            {"name": "main"}]})"},
        {"SpecThatLacksThem", "podqos.io/pod", R"({"containers": [{"name": "other"}]})"},
        {"Limits", "podqos.io/limits", "cpu=200m,memory=128Mi,hugepages-2Mi=2Mi"},
        {"LimitsOfOne", "podqos.io/limits.main", "cpu=200m,memory=128Mi"},
        {"Requests", "podqos.io/requests", "cpu=1"},
        {"Class", "podqos.io/qos-class", "BestEffort"},
        {"Uid", "podqos.io/pod-uid", "1"},
        {"Container", "podqos.io/container", "app"},
    }),
    [](const TestParamInfo<Annotated>& row) { return std::string{row.param.name}; });

/// The pod's author claims nothing that the kubelet has not admitted.
TEST_F(KubeletPodTest, RequestsWhatItsKubeletSays) {
  pod_ = ran(annotated(kubelet_pod({.shares = 102}), "cpu=50,memory=2Gi", "podqos.io/requests"));
  static_cast<void>(running(kubelets("app", {.shares = 102})));
  expect_requests(100, 0);
}

/// A pod with requests of 150m and a limit of 260m of its own: its containers without values have
/// the shares of the limit (1.36, calculateLinuxResources), together 520m.
TEST_F(KubeletPodTest, RequestsItsPodLevelResources) {
  pod_ = ran(kubelet_pod({.shares = 153, .quota = 26'000}));
  const auto app = running(kubelets("app", {.shares = 266, .quota = 26'000}));
  static_cast<void>(running(kubelets("log", {.shares = 266, .quota = 26'000})));
  expect_requests(150);
  ASSERT_TRUE(update(app, kSmall));
  expect_requests(150);
}

/// NRI before 0.10 has no UpdatePodSandbox. A kubelet that lowers a pod updates its containers, and
/// then the pod's cgroup, of which nobody is told.
TEST_F(KubeletPodTest, RequestsTheCpuThatItsCgroupHasAfterAResize) {
  if (is_v2(core::Controller::kCpu))
    GTEST_SKIP() << "the cgroups that this test makes on cgroup v2 have no cpu controller";
  const auto resize_cgroup = [this](std::string_view shares) {
    std::ofstream{cat(hierarchy_with("cpu").mount_point, parent(), "/cpu.shares")} << shares;
  };
  pod_ = ran(kubelet_pod({.shares = 256}));
  resize_cgroup("256");
  const auto app = running(kubelets("app", {.shares = 256}));
  housekeep();
  expect_requests(250);
  ASSERT_TRUE(update(app, {.shares = 102}));
  housekeep();
  expect_requests(250);
  resize_cgroup("102");
  pass(std::chrono::seconds{5});
  housekeep();
  expect_requests(100);
  EXPECT_THAT(log(), HasSubstr("pod 1 (web/front): cpu 100m, memory 0 requested, as its kubelet "
                               "has resized it"));
}

TEST_F(KubeletPodTest, EndsWithoutReturningAnything) {
  pod_ = ran(kubelet_pod(kSmall));
  EXPECT_TRUE(is_known("1"));
  end_processes();
  ASSERT_TRUE(ask(kStopPodSandbox));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("pod 1 (web/front): a kubelet's pod has ended"));
  EXPECT_THAT(log(), Not(HasSubstr("returned to the tiers")));
}

TEST_F(KubeletPodTest, RequestsItsOverhead) {
  pod_ = kubelet_pod({.shares = 337});
  tell(*pod_.mutable_linux()->mutable_pod_overhead(), {.shares = 20, .quota = 2'000});
  ASSERT_TRUE(ask(kRunPodSandbox));
  expect_requests(350);
}

/// A pod with a sidecar, and an init container that has ended when the main one starts. Of memory a
/// kubelet tells requests by the OOM scores alone (GetContainerOOMScoreAdjust, qos/policy.go), here
/// in thousandths of 2000Mi.
class KubeletPodWithInit : public KubeletPodTest {
 protected:
  void SetUp() override {
    KubeletPodTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directory(temporary().path("d"));
    temporary().write("d/node.json", R"({"nodeMemory": "2000Mi"})");
    reconfigure("");
    pod_ = kubelet_pod({});
  }
  [[nodiscard]] api::Container scored(const std::string& name, std::uint64_t shares,
                                      std::int64_t score) const {
    auto created = kubelets(name, {.shares = shares});
    created.mutable_linux()->mutable_oom_score_adj()->set_value(score);
    return created;
  }
  /// 100m, 32Mi.
  [[nodiscard]] api::Container sidecar() const { return scored("sidecar", 102, 984); }
  /// 150m, 44Mi.
  [[nodiscard]] api::Container main() const { return scored("main", 153, 978); }
};

TEST_F(KubeletPodWithInit, RequestsTheMostThatRanAtOnce) {
  ASSERT_TRUE(ask(kRunPodSandbox));
  static_cast<void>(running(sidecar()));
  const auto init = running(scored("init", 307, 950));  // 300m, 100Mi
  expect_requests(400, 132);
  end(init);
  ASSERT_TRUE(ask(kStopContainer, init));
  static_cast<void>(running(main()));
  // And not the 550m and 176Mi of all three.
  expect_requests(400, 132);
}

/// Runtimes list no container that has ended (ListContainers of containerd and CRI-O). The sums of
/// the sandbox, where a runtime passes them on, tell the CPU of all, and no memory request.
TEST_F(KubeletPodWithInit, RequestsTheMemoryOfWhatRunsWhenItIsFound) {
  pod_ = kubelet_pod({.shares = 409});
  std::vector<api::Container> listed{sidecar(), main()};
  for (auto& container : listed)
    run(container);
  ASSERT_TRUE(plugin().synchronize(state_of({pod_}, listed)));
  housekeep();
  expect_requests(400, 76);
}

/// The same where the plugin hears nothing of the end.
TEST_F(KubeletPodTest, RequestsTheMostThatRanAtOnceWithoutAWord) {
  pod_ = ran(kubelet_pod({}));
  end(running(kubelets("init", {.shares = 307})));
  static_cast<void>(running(kubelets("main", {.shares = 153})));
  expect_requests(300);
}

TEST_F(KubeletPodTest, FollowsAResizeInItsRequestAlone) {
  pod_ = ran(kubelet_pod({}));
  const auto app = running(kubelets("app", {.shares = 102}));
  const auto before = tree({app});
  ASSERT_TRUE(update(app, kLarge));
  expect_requests(300);
  EXPECT_EQ(tree({app}), before);
}

TEST_F(PluginTest, GivesNoContainerALimitOfItsSiblings) {
  run_pod(kSmall);
  expect_pod(kSmall);
  for (const auto& [name, told] : {std::pair{"helper", kSmall}, std::pair{"main", Told{}}}) {
    const auto adjustment = adjusted(app(told, name));
    EXPECT_FALSE(adjustment.linux().resources().has_memory()) << name;
    EXPECT_FALSE(adjustment.linux().resources().cpu().has_quota()) << name;
  }
  // "main" has no limit, so that the pod has none.
  EXPECT_THAT(memory(pod_path("burstable", "1")), AnyOf("max", "9223372036854771712"));
}

class PluginAtCrio : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (!IsSkipped()) runtime_ = start_process();
  }
  /// As CRI-O writes it for a client that sends no labels
  /// (internal/factory/sandbox/sandbox_linux.go, internal/factory/container/container.go).
  [[nodiscard]] static std::string config_of(std::string_view id, std::string_view type,
                                             std::string_view path, std::string_view resources) {
    return cat(R"({"linux": {"cgroupsPath": ")", path, R"(", "resources": {)", resources,
               R"(}}, "annotations": {"io.container.manager": "cri-o", )",
               R"("io.kubernetes.cri-o.ContainerID": ")", id,
               R"(", "io.kubernetes.cri-o.ContainerType": ")", type,
               R"(", "io.kubernetes.cri-o.Labels": "null", )",
               R"("io.kubernetes.cri-o.SandboxID": "sandbox-1"}})");
  }
  /// Of a container with what kSmall says.
  [[nodiscard]] static std::string app_config(const api::Container& app) {
    return config_of(app.id(), "container", app.linux().cgroups_path(),
                     R"("cpu": {"shares": 102, "quota": 20000, "period": 100000}, )"
                     R"("memory": {"limit": 134217728})");
  }
  /// By the wrapper.
  void place(const std::string& id, std::string_view config) {
    const auto placed = app::place(configuration().settings(), configuration().log(),
                                   {.id = id,
                                    .bundle = id == "app-of-1" ? temporary().path() : "/b",
                                    .config = config,
                                    .creator = runtime_,
                                    .driver = core::Driver::kCgroupfs,
                                    .hooks = {.path = "/podqos-hook", .args = {}}});
    ASSERT_TRUE(placed) << placed.error().message;
  }
  /// The hook of a container in the test's own bundle.
  Status create_runtime(const api::Container& running, std::string_view annotations) {
    return hook::create_runtime(
        configuration().settings(), configuration().log(),
        cat(R"({"ociVersion": "1.0.2", "id": ")", running.id(), R"(", "status": "creating", )",
            R"("pid": )", running.pid(), R"(, "bundle": ")", temporary().path(),
            R"(", "annotations": )", annotations, "}"),
        runtime_, {});
  }
  /// One pod that requests 100m, as kSmall says, and so many bytes.
  void expect_counted_once(Bytes memory) {
    core::TierSums sums;
    sums.burstable = {.pods = 1, .cpu = MilliCpu{100}, .memory = memory};
    sums.requested = sums.burstable;
    EXPECT_EQ(state().node().sums, sums);
  }

  Pid runtime_;
};

/// As CRI-O places it where the pod has no cgroup parent (internal/config/cgmgr).
TEST_F(PluginAtCrio, LeavesAContainerWithoutCgroupParentWhereItIsUnlessToldToPlaceIt) {
  const auto parentless = at("/crio/crio-app-of-1", app(kSmall));
  const auto left = adjusted(parentless);
  EXPECT_THAT(left.linux().cgroups_path(), IsEmpty());
  EXPECT_TRUE(left.linux().has_oom_score_adj());
  EXPECT_TRUE(is_known("1"));
  EXPECT_THAT(log(), HasSubstr("the cgroup parent " + pod_path("burstable", "1")));
  reconfigure(R"(, "placement": {"withoutParent": "place"})");
  EXPECT_THAT(adjusted(parentless).linux().cgroups_path(), HasSubstr(pod_path("burstable", "1")));
}

TEST_F(PluginAtCrio, AWrapperBehindItFindsTheSamePod) {
  run_pod(kSmall);
  const auto created = placed(app(kSmall));
  place(created.id(), app_config(created));
  EXPECT_TRUE(is_known("1"));
  EXPECT_FALSE(is_known(pod_.id()));
}

/// Plugin, wrapper and hook each register sandbox and container, in the order in which CRI-O comes
/// to them; wrapper and hook see CRI-O's annotations, without a kubelet's labels.
TEST_F(PluginAtCrio, CountsTheRequestsOfAPodOnceThatWrapperAndHookRegisterToo) {
  pod_ = pod("1", {}, kSmall);
  place(pod_.id(),
        config_of(pod_.id(), "sandbox", "/engine/" + pod_.id(), R"("cpu": {"shares": 2})"));
  pod_.set_pid(static_cast<std::uint32_t>(start_process().value()));
  ASSERT_TRUE(ask(kRunPodSandbox));
  expect_counted_once(Bytes{0});
  // Its limit, once a container has it: Kubernetes' default for a request.
  auto running = placed(app(kSmall));
  const std::string config = app_config(running);
  place(running.id(), config);
  EXPECT_TRUE(is_known("1"));
  expect_counted_once(Bytes{134217728});
  run(running);
  temporary().write("config.json", config);
  const auto hooked = create_runtime(running, "{}");
  ASSERT_TRUE(hooked) << hooked.error().message;
  expect_counted_once(Bytes{134217728});
  ASSERT_TRUE(ask(kStartContainer, running));
  expect_counted_once(Bytes{134217728});
  expect_pod(kSmall);
  EXPECT_FALSE(is_known(pod_.id()));
}

/// Its annotations were judged when it was created.
TEST_F(PluginAtCrio, ParsesNoAnnotationsOfAContainerThatIsKnown) {
  run_pod(kSmall);
  auto container = placed(app(kSmall));
  run(container);
  const auto hooked = create_runtime(container, R"({"podqos.io/pod": "{"})");
  EXPECT_TRUE(hooked) << hooked.error().message;
  (*container.mutable_annotations())["podqos.io/pod"] = "{";
  ASSERT_TRUE(ask(kStartContainer, container));
  EXPECT_THAT(log(), Not(HasSubstr("podqos.io/pod")));
  container.set_id("unknown");
  EXPECT_FALSE(create_runtime(container, R"({"podqos.io/pod": "{"})"));
}

}  // namespace
}  // namespace podqos::nri

#pragma once

#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/store/store.h"
#include "nri/plugin.h"
#include "nri/plugin_configuration.h"
#include "nri/plugin_metrics.h"
#include "tests/unit/cgroup/own_cgroup.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri::test {

/// What a runtime says of a pod or container in LinuxResources; 0 is left out.
struct Told {
  std::uint64_t shares = 0;
  std::int64_t quota = 0;
  std::int64_t memory = 0;
};

inline constexpr std::optional<std::chrono::nanoseconds> kNoBudget = std::nullopt;
// 100m of at most 200m, 128 MiB; a quota of 100 ms, and shares of 1024 for a CPU.
inline constexpr Told kSmall{.shares = 102, .quota = 20'000, .memory = 134'217'728};
inline constexpr Told kLarge{.shares = 307, .quota = 60'000, .memory = 201'326'592};

inline void tell(api::LinuxResources& resources, const Told& told) {
  if (told.shares != 0) resources.mutable_cpu()->mutable_shares()->set_value(told.shares);
  if (told.quota != 0) {
    resources.mutable_cpu()->mutable_quota()->set_value(told.quota);
    resources.mutable_cpu()->mutable_period()->set_value(100'000);
  }
  if (told.memory != 0) resources.mutable_memory()->mutable_limit()->set_value(told.memory);
}

/// The plugin with a state of its own, on the machine's cgroups below one of its own. What is
/// asserted of cgroups is read from the kernel.
class PluginTest : public cgroup::OwnCgroup {
 protected:
  using enum Request;

  void SetUp() override {
    OwnCgroup::SetUp();
    if (IsSkipped()) return;
    configure("");
    auto loaded = Configuration::load(
        std::nullopt, {.file = temporary_.path("podqos.json"), .directory = temporary_.path("d")});
    ASSERT_TRUE(loaded) << loaded.error().message;
    configuration_.emplace(std::move(*loaded));
    plugin_.emplace(*configuration_, metrics_, clock_);
  }

  /// @param more  fields of podqos.json, each with a comma before it
  void configure(std::string_view more) {
    temporary_.write(
        "podqos.json",
        cat(R"({"nodeMemory": "2Gi", "nodeCpu": "4", "weightFormula": "linear", )",
            R"("cgroupDriver": "cgroupfs", "releaseDelay": "0s", "stateDir": ")",
            temporary_.path("state"), R"(", "cgroupRoot": ")", base(), R"(", "log": {"sink": ")",
            temporary_.path("log"), R"(", "level": "debug"})", more, "}"));
  }
  void reconfigure(std::string_view more) {
    configure(more);
    configuration_->reload();
  }

  [[nodiscard]] Plugin& plugin() { return *plugin_; }
  [[nodiscard]] Metrics& metrics() { return metrics_; }
  [[nodiscard]] Configuration& configuration() { return *configuration_; }
  [[nodiscard]] const TemporaryDirectory& temporary() const { return temporary_; }
  /// What is stored by now.
  [[nodiscard]] store::Store state() const {
    auto store =
        store::Store::open({.path = temporary_.path("state")}, store::Opening::kReadUnlocked);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }
  [[nodiscard]] std::string log() const { return temporary_.read("log"); }

  // What the runtime tells.

  [[nodiscard]] static api::PodSandbox pod(const std::string& uid, std::optional<Pid> init = {},
                                           const Told& sums = {}) {
    api::PodSandbox pod;
    pod.set_id("sandbox-" + uid);
    pod.set_uid(uid);
    pod.set_name("front");
    pod.set_namespace_("web");
    if (init) pod.set_pid(static_cast<std::uint32_t>(init->value()));
    tell(*pod.mutable_linux()->mutable_pod_resources(), sums);
    return pod;
  }
  [[nodiscard]] static api::Container container(const api::PodSandbox& pod, const std::string& name,
                                                const Told& told = {}) {
    api::Container container;
    container.set_id(name + "-of-" + pod.uid());
    container.set_pod_sandbox_id(pod.id());
    container.set_name(name);
    container.mutable_linux()->set_cgroups_path("/engine/" + container.id());
    tell(*container.mutable_linux()->mutable_resources(), told);
    return container;
  }
  /// A container of pod_.
  [[nodiscard]] api::Container app(const Told& told = {}, const std::string& name = "app") const {
    return container(pod_, name, told);
  }
  [[nodiscard]] static api::PodSandbox annotated(api::PodSandbox pod, const std::string& value,
                                                 const std::string& key = "podqos.io/pod") {
    (*pod.mutable_annotations())[key] = value;
    return pod;
  }
  /// The container in this cgroup.
  [[nodiscard]] static api::Container at(const std::string& path, api::Container container) {
    container.mutable_linux()->set_cgroups_path(path);
    return container;
  }
  [[nodiscard]] static NodeState state_of(const std::vector<api::PodSandbox>& pods,
                                          const std::vector<api::Container>& containers = {}) {
    api::SynchronizeRequest all;
    all.mutable_pods()->Assign(pods.begin(), pods.end());
    all.mutable_containers()->Assign(containers.begin(), containers.end());
    NodeState state;
    EXPECT_TRUE(state.add(all.SerializeAsString()));
    return state;
  }

  /// The runtime reports an event; where no pod is named, of pod_, here and below.
  [[nodiscard]] Result<std::string> ask(Request request, const api::PodSandbox& pod,
                                        const api::Container& container = {}) {
    return plugin().handle(request, event_of(pod, container), std::nullopt);
  }
  [[nodiscard]] Result<std::string> ask(Request request, const api::Container& container = {}) {
    return ask(request, pod_, container);
  }

  /// The pod, whose sandbox has run.
  [[nodiscard]] api::PodSandbox ran(api::PodSandbox pod) {
    const auto done = ask(kRunPodSandbox, pod);
    EXPECT_TRUE(done) << done.error().message;
    return pod;
  }
  /// Runs the sandbox of pod_, in a process of its own.
  void run_pod(const Told& sums = {}) { pod_ = ran(pod("1", start_process(), sums)); }
  void run_pod(const std::string& spec) { pod_ = ran(annotated(pod("1", start_process()), spec)); }

  // What a runtime does beside.

  [[nodiscard]] Result<api::ContainerAdjustment> create(const api::PodSandbox& pod,
                                                        const api::Container& container) {
    PODQOS_ASSIGN(const auto answer, ask(kCreateContainer, pod, container));
    api::CreateContainerResponse response;
    EXPECT_TRUE(response.ParseFromString(answer));
    return response.adjust();
  }
  /// What the plugin changes of the container.
  [[nodiscard]] api::ContainerAdjustment adjusted(const api::PodSandbox& pod,
                                                  const api::Container& container) {
    const auto adjustment = create(pod, container);
    EXPECT_TRUE(adjustment) << adjustment.error().message;
    return adjustment.value_or(api::ContainerAdjustment{});
  }
  [[nodiscard]] api::ContainerAdjustment adjusted(const api::Container& container) {
    return adjusted(pod_, container);
  }
  [[nodiscard]] Result<std::string> update(const api::Container& container, const Told& told) {
    api::UpdateContainerRequest request;
    *request.mutable_pod() = pod_;
    *request.mutable_container() = container;
    tell(*request.mutable_linux_resources(), told);
    return plugin().handle(kUpdateContainer, event_of(kUpdateContainer, request), std::nullopt);
  }

  /// Lets so much time pass for the plugin.
  void pass(std::chrono::seconds time) { clock_.pass(time); }
  [[nodiscard]] const LeapingClock& clock() const { return clock_; }
  /// All that there is to do between two requests.
  static void housekeep(Plugin& plugin) {
    while (plugin.housekeep()) {
    }
  }
  void housekeep() { housekeep(plugin()); }
  /// As a runtime places it.
  void put(Pid process, const std::string& path) {
    for (const cgroup::Hierarchy& hierarchy : hierarchies()) {
      std::error_code ignored;
      std::filesystem::create_directories(hierarchy.mount_point + path, ignored);
      std::ofstream{hierarchy.mount_point + path + "/cgroup.procs"} << process.value();
    }
  }
  /// The container as it is created where the plugin places it, without a process.
  [[nodiscard]] api::Container placed(const api::PodSandbox& pod, const api::Container& container) {
    return at(adjusted(pod, container).linux().cgroups_path(), container);
  }
  [[nodiscard]] api::Container placed(const api::Container& container) {
    return placed(pod_, container);
  }
  /// Gives the container a process in that cgroup; returns it.
  Pid run_in(const std::string& cgroup, api::Container& container) {
    const Pid init = start_process();
    put(init, cgroup);
    container.set_pid(static_cast<std::uint32_t>(init.value()));
    return init;
  }
  /// The same in the container's own cgroup.
  Pid run(api::Container& container) { return run_in(container.linux().cgroups_path(), container); }
  /// The container as it is once it has started where the plugin has placed it.
  [[nodiscard]] api::Container started(const api::PodSandbox& pod, api::Container container) {
    container = placed(pod, container);
    run(container);
    const auto done = ask(kStartContainer, pod, container);
    EXPECT_TRUE(done) << done.error().message;
    return container;
  }
  [[nodiscard]] api::Container started(const api::Container& container) {
    return started(pod_, container);
  }

  /// As a runtime bounds it.
  void set_quota(const api::Container& container, std::string_view microseconds) {
    const bool newer = is_v2(core::Controller::kCpu);
    std::ofstream{cat(hierarchy_with("cpu").mount_point, container.linux().cgroups_path(), "/",
                      newer ? "cpu.max" : "cpu.cfs_quota_us")}
        << microseconds;
  }

  // What holds.

  [[nodiscard]] std::string pod_path(std::string_view tier, std::string_view uid) const {
    return cat(base(), "/kubepods/", tier, tier.empty() ? "" : "/", "pod", uid);
  }
  [[nodiscard]] bool is_known(const std::string& uid) const {
    return temporary_.has("state/pods/" + uid + ".json");
  }
  [[nodiscard]] std::string record(const std::string& uid = "1") const {
    return temporary_.read("state/pods/" + uid + ".json");
  }
  [[nodiscard]] std::string value(const std::string& path, core::Controller controller,
                                  const char* v1, const char* v2) {
    const bool newer = is_v2(controller);
    const char* name = controller == core::Controller::kCpu ? "cpu" : "memory";
    return content(cat(hierarchy_with(name).mount_point, path, "/", newer ? v2 : v1));
  }
  [[nodiscard]] std::string memory(const std::string& path) {
    return value(path, core::Controller::kMemory, "memory.limit_in_bytes", "memory.max");
  }
  /// "20000 100000" or, on v1, "20000".
  [[nodiscard]] std::string quota(const std::string& path) {
    const std::string text = value(path, core::Controller::kCpu, "cpu.cfs_quota_us", "cpu.max");
    return text.substr(0, text.find(' '));
  }
  [[nodiscard]] std::string burst(const std::string& path) {
    return value(path, core::Controller::kCpu, "cpu.cfs_burst_us", "cpu.max.burst");
  }
  void expect_limits(const std::string& path, const Told& want) {
    EXPECT_EQ(quota(path), cat(want.quota)) << path;
    EXPECT_EQ(memory(path), cat(want.memory)) << path;
  }
  /// The limits of a pod of podqos's.
  void expect_pod(const Told& want, std::string_view uid = "1",
                  std::string_view tier = "burstable") {
    expect_limits(pod_path(tier, uid), want);
  }
  [[nodiscard]] bool has_cgroup(const std::string& path) {
    return is_directory(hierarchy_with("memory").mount_point + path);
  }

  api::PodSandbox pod_ = pod("1");

 private:
  TemporaryDirectory temporary_;
  std::optional<Configuration> configuration_;
  Metrics metrics_;
  LeapingClock clock_;
  std::optional<Plugin> plugin_;
};

}  // namespace podqos::nri::test

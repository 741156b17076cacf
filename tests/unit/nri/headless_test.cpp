// A container whose first thread has ended while another one lives.

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/place.h"
#include "common/base/text.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;

class HeadlessPluginTest : public PluginTest {
 protected:
  /// Pod "1" with such a container, and without a process of its sandbox, as CRI-O may run it.
  void run_headless_pod() {
    const auto sandbox = pod("1");
    auto app = container(sandbox, "app", kSmall);
    const auto adjustment = create(sandbox, app);
    ASSERT_TRUE(adjustment) << adjustment.error().message;
    const Pid init = start_process([] {
      ::raise(SIGSTOP);
      std::thread{[] { ::pause(); }}.detach();
      ::syscall(SYS_exit, 0);
    });
    wait_for_state(init, "T");
    put(init, adjustment->linux().cgroups_path());
    app.mutable_linux()->set_cgroups_path(adjustment->linux().cgroups_path());
    app.set_pid(static_cast<std::uint32_t>(init.value()));
    ASSERT_TRUE(plugin().start_container(event(sandbox, app), kNoBudget));
    ::kill(static_cast<pid_t>(init.value()), SIGCONT);
    wait_for_state(init, "Z");
  }
  static void wait_for_state(Pid pid, std::string_view state) {
    while (!content(cat("/proc/", pid.value(), "/stat")).contains(cat(") ", state, " ")))
      std::this_thread::yield();
  }
  /// The wrapper places a container of another sandbox, which claims the uid of pod "1" by an
  /// annotation. @return whether that is refused
  [[nodiscard]] bool is_refused_to_claimant() {
    const auto placed =
        app::place(configuration().settings(), configuration().log(),
                   {.id = "claimant",
                    .bundle = "/b",
                    .config = R"({"linux": {"cgroupsPath": "/engine/claimant"}, "annotations": {
                                  "io.container.manager": "libpod", "podqos.io/pod-uid": "1",
                                  "io.kubernetes.cri-o.SandboxID": "another"}})",
                    .creator = start_process(),
                    .driver = core::Driver::kCgroupfs,
                    .hooks = {}});
    if (placed) return false;
    EXPECT_EQ(placed.error().code, ErrorCode::kConflict) << placed.error().message;
    EXPECT_THAT(placed.error().message, HasSubstr("names a pod of sandbox \"sandbox-1\""));
    return true;
  }
  [[nodiscard]] std::string record() const { return temporary().read("state/pods/1.json"); }
};

TEST_F(HeadlessPluginTest, KeepsItsPodFromAnotherSandbox) {
  run_headless_pod();
  const std::string before = record();
  EXPECT_TRUE(is_refused_to_claimant());
  EXPECT_EQ(record(), before);
}

TEST_F(HeadlessPluginTest, LeavesItsPodToOthersOnceItsLastThreadHasEnded) {
  run_headless_pod();
  end_processes();
  EXPECT_FALSE(is_refused_to_claimant());
  EXPECT_THAT(record(), HasSubstr("claimant"));
}

}  // namespace
}  // namespace podqos::nri

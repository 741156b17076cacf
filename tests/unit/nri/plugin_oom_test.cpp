// What is said of OOM kills in a container that lives on, as the kernel makes them.
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri::test {
namespace {

constexpr std::int64_t kLimit = 16 << 20;

/// Waits until it is continued, then takes twice the limit.
void take_memory() {
  constexpr std::size_t kSize = 2 * kLimit;
  ::raise(SIGSTOP);
  void* const taken =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken != MAP_FAILED) std::memset(taken, 1, kSize);
}

class OomTest : public PluginTest {
 protected:
  /// How often the text is in this file.
  [[nodiscard]] std::size_t count(const char* file, std::string_view text) const {
    const std::string all = temporary().read(file);
    std::size_t found = 0;
    for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
      ++found;
    return found;
  }

  /// As its runtime bounds it.
  void set_limit(const std::string& path) {
    const bool newer = is_v2(core::Controller::kMemory);
    std::ofstream{cat(hierarchy_with("memory").mount_point, path, "/",
                      newer ? "memory.max" : "memory.limit_in_bytes")}
        << kLimit;
  }

  /// Has a process beside the container's init killed.
  void kill_one(const std::string& path) {
    const Pid hog = start_process(take_memory);
    siginfo_t state{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(hog.value()), &state, WSTOPPED), 0);
    put(hog, path);
    ::kill(static_cast<pid_t>(hog.value()), SIGCONT);
    // Left to be reaped with the others.
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(hog.value()), &state, WEXITED | WNOWAIT), 0);
    ASSERT_EQ(state.si_code, CLD_KILLED) << "the kernel has not killed it";
  }
};

TEST_F(OomTest, KillsInAContainerThatRunsAreReportedOnce) {
  reconfigure(R"(, "singleProcessOOMKill": true)");
  run_pod();
  const auto container = started(app());
  const std::string& path = container.linux().cgroups_path();
  set_limit(path);
  housekeep();
  ASSERT_NO_FATAL_FAILURE(kill_one(path));
  housekeep();
  EXPECT_EQ(count("log", "container app (app-of-1): OOM-killed by its own limit"), 1U) << log();
  housekeep();
  EXPECT_EQ(count("state/events", R"("event":"oom-killed")"), 1U) << log();
  ASSERT_NO_FATAL_FAILURE(kill_one(path));
  housekeep();
  EXPECT_EQ(count("state/events", R"("event":"oom-killed")"), 2U) << log();
  end_processes();
  ASSERT_TRUE(ask(kStopContainer, container));
  EXPECT_FALSE(is_known("1")) << log();
  EXPECT_EQ(count("state/events", R"("event":"oom-killed")"), 2U) << log();
}

}  // namespace
}  // namespace podqos::nri::test

#include "common/sys/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/child_process.h"
#include "tests/unit/emulation.h"

namespace podqos::sys {
namespace {

/// A child that waits, under a name that tries to be mistaken for fields of the stat line.
class WaitingChild {
 public:
  WaitingChild()
      : WaitingChild([] {
          ::prctl(PR_SET_NAME, "a) Z 1 (b c");
          ::pause();
        }) {}
  WaitingChild(const WaitingChild&) = delete;
  WaitingChild& operator=(const WaitingChild&) = delete;
  ~WaitingChild() { reap(); }

  [[nodiscard]] Pid pid() const { return Pid{pid_}; }
  [[nodiscard]] StartTime start_time() const {
    return start_time_of(pid()).value().value_or(StartTime{-1});
  }
  /// Ends the child but leaves its zombie.
  void end() const {
    ::kill(pid_, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }
  void reap() {
    if (pid_ == 0) return;
    end();
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 protected:
  explicit WaitingChild(void (*body)()) : pid_(start_child(body)) {}

 private:
  pid_t pid_;
};

/// A child whose first thread has ended while another waits.
class HeadlessChild : public WaitingChild {
 public:
  HeadlessChild()
      : WaitingChild([] {
          std::thread{[] { ::pause(); }}.detach();
          ::syscall(SYS_exit, 0);
        }) {
    while (stat_of(pid()).value()->state != 'Z')
      std::this_thread::yield();
  }
};

TEST(ParseProcStat, FindsTheFieldsBehindAnyName) {
  struct Case {
    std::string name;
    char state;
    int flags = 4'194'560;
    bool exiting = false;
    bool killed = false;
  };
  for (const auto& [name, state, flags, exiting, killed] :
       {Case{"sleep", 'S'}, Case{"tmux: server", 'R'}, Case{"a) Z 1 2) (b", 'D'}, Case{"a\nb", 'S'},
        Case{"x", 'Z'},
        // PF_EXITING, as it stands in field 9 for some milliseconds.
        Case{"x", 'R', 4'194'560 | 4, true, false},
        // PF_SIGNALED, until it exits.
        Case{"x", 't', 4'194'560 | 0x400, false, true}}) {
    const std::string line = cat("42 (", name, ") ", std::string(1, state), " 1 7 7 0 -1 ", flags,
                                 " 1 2 3 4 5 6 7 8 20 0 1 0 4711 9999 12 18446744073709551615\n");
    EXPECT_EQ(parse_proc_stat(line),
              (ProcStat{name, state, Pid{1}, StartTime{4711}, exiting, killed}))
        << line;
  }
  for (const char* text : {") S 1 7 (", "", "42 sleep S 1 2", "42 (sleep) S 1 2 3",
                           "42 (sleep) SS 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9"})
    EXPECT_EQ(parse_proc_stat(text), std::nullopt) << text;
}

TEST(StartTimeOf, IsThatOfALivingProcess) {
  const WaitingChild child;
  const StartTime start = child.start_time();
  EXPECT_GT(start.value(), 0);
  EXPECT_TRUE(is_alive(child.pid(), start));
  // Another start time is another process.
  EXPECT_FALSE(is_alive(child.pid(), start + StartTime{1}));
  child.end();
  // A zombie has none.
  EXPECT_EQ(start_time_of(child.pid()).value(), std::nullopt);
  EXPECT_FALSE(is_alive(child.pid(), start));
}

TEST(StartTimeOf, ProcessesThatCannotBeHaveNone) {
  for (const std::int64_t pid : {-1, 0, 999'999'999})
    EXPECT_EQ(start_time_of(Pid{pid}).value(), std::nullopt) << pid;
}

TEST(StartTimeOf, IsThatOfAProcessWhoseFirstThreadHasEnded) {
  const HeadlessChild child;
  const StartTime start = child.start_time();
  EXPECT_EQ(start, stat_of(child.pid()).value()->start_time);
  EXPECT_TRUE(is_alive(child.pid(), start));
  EXPECT_FALSE(is_alive(child.pid(), start + StartTime{1}));
  child.end();
  EXPECT_EQ(start_time_of(child.pid()).value(), std::nullopt);
  EXPECT_FALSE(is_alive(child.pid(), start));
}

TEST(LivingThreadOf, IsTheFirstOrAnotherWhereThatHasEnded) {
  const HeadlessChild headless;
  const auto thread = living_thread_of(headless.pid());
  ASSERT_TRUE(thread && thread->has_value());
  EXPECT_NE(**thread, headless.pid());
  EXPECT_EQ(cgroups_of(**thread).value(), cgroups_of(Pid{::getpid()}).value());
  WaitingChild child;
  const Pid pid = child.pid();
  EXPECT_EQ(living_thread_of(pid).value(), pid);
  const StartTime started = start_time_of(pid).value().value();
  EXPECT_EQ(living_thread_of(pid, started).value(), pid);
  EXPECT_EQ(living_thread_of(pid, started + StartTime{1}).value(), std::nullopt);
  child.reap();
  EXPECT_EQ(living_thread_of(pid).value(), std::nullopt);
}

TEST(IsEnding, AProcessIsFromItsEndOn) {
  EXPECT_FALSE(is_ending(Pid{::getpid()}));
  WaitingChild child;
  const HeadlessChild headless;
  const Pid pid = child.pid();
  for (const WaitingChild* each : std::initializer_list<const WaitingChild*>{&child, &headless}) {
    EXPECT_FALSE(is_ending(each->pid()));
    each->end();
    EXPECT_TRUE(is_ending(each->pid()));
  }
  child.reap();
  EXPECT_TRUE(is_ending(pid));
}

TEST(IsEnding, OneThatASignalEndsIs) {
  if (!has_ptrace()) GTEST_SKIP() << "this kernel, or what emulates it, has no ptrace";
  const WaitingChild child;
  // Held where it has its signal and is not marked as exiting yet.
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child.pid().value(), nullptr, PTRACE_O_TRACEEXIT), 0);
  ::kill(static_cast<pid_t>(child.pid().value()), SIGKILL);
  int status = 0;
  ::waitpid(static_cast<pid_t>(child.pid().value()), &status, __WALL);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  EXPECT_NE(start_time_of(child.pid()).value(), std::nullopt);
  EXPECT_TRUE(is_ending(child.pid()));
  ::ptrace(PTRACE_CONT, child.pid().value(), nullptr, nullptr);
}

TEST(HasPendingKill, FindsSignal9) {
  constexpr const char* kNone = "0000000000000000";
  for (const auto& [own, shared, want] : {std::tuple{kNone, kNone, false},
                                          {"0000000000004000", "0000000000000201", false},
                                          {"0000000000000100", kNone, true},
                                          {kNone, "8000000000004100", true}}) {
    EXPECT_EQ(has_pending_kill(cat("Name:\tx\nSigPnd:\t", own, "\nShdPnd:\t", shared, "\n")), want)
        << own << " " << shared;
  }
  EXPECT_FALSE(has_pending_kill("Name:\tx\nSigPnd:\t0\nShdPnd:\t0\nSigIgn:\t0000000000000100\n"));
  EXPECT_FALSE(has_pending_kill(""));
}

TEST(SharesPidNamespace, OneInANamespaceBelowDoesNot) {
  EXPECT_TRUE(shares_pid_namespace(Pid{::getpid()}));
  EXPECT_TRUE(shares_pid_namespace(Pid{::getppid()}));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a pid namespace";
  expect_in_child([] {
    // The next child is the first in it.
    ASSERT_EQ(::unshare(CLONE_NEWPID), 0);
    const pid_t below = start_child([] { ::pause(); });
    EXPECT_FALSE(shares_pid_namespace(Pid{below}));
    EXPECT_TRUE(shares_pid_namespace(Pid{::getpid()}));
    ::kill(below, SIGKILL);
    static_cast<void>(wait_for(below));
    EXPECT_TRUE(shares_pid_namespace(Pid{below}));
  });
}

TEST(IsRoots, NeitherAnotherUsersProcessNorASetUserIdProgram) {
  EXPECT_FALSE(is_roots(Pid{0}));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  for (const uid_t effective : {uid_t{0}, kNobody}) {
    expect_in_child([effective] {
      ASSERT_TRUE(is_roots(Pid{::getpid()}));
      ASSERT_EQ(::setresuid(kNobody, effective, effective), 0);
      EXPECT_FALSE(is_roots(Pid{::getpid()}));
    });
  }
}

TEST(ParseProcCgroup, ReadsV1AndV2LinesButNoMalformedOnes) {
  const std::vector<ProcCgroup> want = {
      {.controllers = {"cpu", "cpuacct"}, .path = "/kubepods/pod1"},
      {.controllers = {"name=systemd"}, .path = "/a:b:c"},
      {.controllers = {}, .path = "/init (deleted)"}};
  EXPECT_EQ(parse_proc_cgroup("9:cpu,cpuacct:/kubepods/pod1\n"
                              "1:name=systemd:/a:b:c\n"
                              "0::/init (deleted)\n"),
            want);
  for (const char* text : {"", "\n\n", "x:cpu:/a", "1", "1:cpu", "1:cpu:", "1:cpu:relative"}) {
    EXPECT_TRUE(parse_proc_cgroup(text).empty()) << text;
  }
}

TEST(CgroupsOf, FindsThoseOfAProcess) {
  const auto cgroups = cgroups_of(Pid{::getpid()});
  ASSERT_TRUE(cgroups) << cgroups.error().message;
  ASSERT_FALSE(cgroups->empty());
  EXPECT_EQ(cgroups->front().path.front(), '/');
  EXPECT_EQ(cgroups_of(Pid{999'999'999}).error(),
            (Error{ErrorCode::kNotFound, "process 999999999 is gone"}));
}

TEST(SetOomScoreAdj, WritesTheScore) {
  const WaitingChild child;
  const HeadlessChild headless;
  for (const WaitingChild* each : std::initializer_list<const WaitingChild*>{&child, &headless}) {
    const Status set = set_oom_score_adj(each->pid(), each->start_time(), 987);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(oom_score_adj_of(each->pid()), 987);
  }
}

TEST(SetOomScoreAdj, LeavesAProcessThatReusesThePidAlone) {
  const WaitingChild child;
  const StartTime start = child.start_time();
  const auto before = oom_score_adj_of(child.pid());
  const Status reused = set_oom_score_adj(child.pid(), start - StartTime{1}, 987);
  ASSERT_FALSE(reused);
  EXPECT_EQ(reused.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(oom_score_adj_of(child.pid()), before);
  child.end();
  const Status zombie = set_oom_score_adj(child.pid(), start, 987);
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().code, ErrorCode::kNotFound);
}

TEST(SetOomScoreAdj, RefusesScoresOutOfRange) {
  for (const int score : {-1001, 1001}) {
    const Status set = set_oom_score_adj(Pid{::getpid()}, std::nullopt, score);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(MeminfoField, IsAnAmountInKibibytes) {
  const std::string text =
      "MemTotal:         524288 kB\nMemFree:          100 kB\nSwapTotal:             0 kB\n"
      "HugePages_Total:       8\n";
  EXPECT_EQ(meminfo_field(text, "MemTotal"), Bytes{536'870'912});
  EXPECT_EQ(meminfo_field(text, "MemFree"), Bytes{102'400});
  EXPECT_EQ(meminfo_field(text, "SwapTotal"), Bytes{0});
  EXPECT_EQ(meminfo_field(text, "HugePages_Total"), std::nullopt);
  EXPECT_EQ(meminfo_field(text, "Mem"), std::nullopt);
  EXPECT_EQ(meminfo_field("MemTotal: many kB\n", "MemTotal"), std::nullopt);
}

TEST(Node, HasAtLeastWhatATestNeeds) {
  const auto memory = installed_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->memory.value(), 64 * 1024 * 1024);
  EXPECT_GE(online_cpu().value(), 1000);
  EXPECT_EQ(online_cpu().value() % 1000, 0);
}

}  // namespace
}  // namespace podqos::sys

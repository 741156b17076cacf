#include "common/sys/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

struct StatCase {
  const char* name;
  std::string text;
  std::optional<ProcStat> want;
};

constexpr const char* kFields =
    " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9999 12 18446744073709551615\n";

class ParseProcStat : public ::testing::TestWithParam<StatCase> {};

TEST_P(ParseProcStat, FindsStateAndStartTime) {
  EXPECT_EQ(parse_proc_stat(GetParam().text), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ParseProcStat,
    ::testing::Values(
        StatCase{"Plain", std::string{"42 (sleep) S"} + kFields,
                 ProcStat{"sleep", 'S', Pid{1}, StartTime{4711}}},
        StatCase{"NameWithSpaces", std::string{"42 (tmux: server) R"} + kFields,
                 ProcStat{"tmux: server", 'R', Pid{1}, StartTime{4711}}},
        StatCase{"NameWithParentheses", std::string{"42 (a) Z 1 2) (b) D"} + kFields,
                 ProcStat{"a) Z 1 2) (b", 'D', Pid{1}, StartTime{4711}}},
        StatCase{"NameWithNewline", std::string{"42 (a\nb) S"} + kFields,
                 ProcStat{"a\nb", 'S', Pid{1}, StartTime{4711}}},
        StatCase{"Zombie", std::string{"42 (x) Z"} + kFields,
                 ProcStat{"x", 'Z', Pid{1}, StartTime{4711}}},
        // 4194560 | 4, PF_EXITING, as it stands in field 9 for some milliseconds.
        StatCase{"Exiting", "42 (x) R 1 42 42 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9",
                 ProcStat{"x", 'R', Pid{1}, StartTime{4711}, true}},
        // 4194560 | 0x400, PF_SIGNALED, until it exits.
        StatCase{"Killed", "42 (x) t 1 42 42 0 -1 4195584 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9",
                 ProcStat{"x", 't', Pid{1}, StartTime{4711}, false, true}},
        StatCase{"NameBehindItsEnd", ") S 1 7 (", std::nullopt},
        StatCase{"Empty", "", std::nullopt}, StatCase{"NoName", "42 sleep S 1 2", std::nullopt},
        StatCase{"TooShort", "42 (sleep) S 1 2 3", std::nullopt},
        StatCase{"LongState", std::string{"42 (sleep) SS"} + kFields, std::nullopt}),
    [](const auto& c) { return c.param.name; });

TEST(StartTimeOf, IsThatOfALivingProcess) {
  const auto start = start_time_of(Pid{::getpid()});
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(start->has_value());
  EXPECT_GT((*start)->value(), 0);
  EXPECT_TRUE(is_alive(Pid{::getpid()}, **start));
}

TEST(StartTimeOf, SurvivesAMisleadingName) {
  const WaitingChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start);
  ASSERT_TRUE(start->has_value());
  EXPECT_TRUE(is_alive(child.pid(), **start));
}

TEST(StartTimeOf, AZombieHasNone) {
  const WaitingChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start && start->has_value());
  child.end();
  EXPECT_EQ(start_time_of(child.pid()).value(), std::nullopt);
  EXPECT_FALSE(is_alive(child.pid(), **start));
}

TEST(StartTimeOf, ProcessesThatCannotBeHaveNone) {
  for (const std::int64_t pid : {-1, 0, 999'999'999}) {
    EXPECT_EQ(start_time_of(Pid{pid}).value(), std::nullopt) << pid;
  }
}

TEST(StartTimeOf, IsThatOfAProcessWhoseFirstThreadHasEnded) {
  const HeadlessChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start);
  ASSERT_TRUE(start->has_value());
  EXPECT_EQ(**start, stat_of(child.pid()).value()->start_time);
  EXPECT_TRUE(is_alive(child.pid(), **start));
  EXPECT_FALSE(is_alive(child.pid(), StartTime{(*start)->value() + 1}));
  child.end();
  EXPECT_EQ(start_time_of(child.pid()).value(), std::nullopt);
  EXPECT_FALSE(is_alive(child.pid(), **start));
}

TEST(LivingThreadOf, IsTheFirstAsLongAsThatLives) {
  WaitingChild child;
  const Pid pid = child.pid();
  EXPECT_EQ(living_thread_of(pid).value(), pid);
  child.reap();
  EXPECT_EQ(living_thread_of(pid).value(), std::nullopt);
}

TEST(LivingThreadOf, IsAnotherWhereTheFirstHasEnded) {
  const HeadlessChild child;
  const auto thread = living_thread_of(child.pid());
  ASSERT_TRUE(thread && thread->has_value());
  EXPECT_NE(**thread, child.pid());
  EXPECT_EQ(cgroups_of(**thread).value(), cgroups_of(Pid{::getpid()}).value());
}

TEST(IsAlive, AnotherStartTimeIsAnotherProcess) {
  const auto start = start_time_of(Pid{::getpid()});
  ASSERT_TRUE(start && start->has_value());
  EXPECT_FALSE(is_alive(Pid{::getpid()}, StartTime{(*start)->value() + 1}));
}

TEST(IsEnding, ALivingProcessIsNot) {
  const WaitingChild child;
  EXPECT_FALSE(is_ending(child.pid()));
  EXPECT_FALSE(is_ending(Pid{::getpid()}));
}

TEST(IsEnding, AZombieIsAndSoIsOneThatHasGone) {
  WaitingChild child;
  const Pid pid = child.pid();
  child.end();
  EXPECT_TRUE(is_ending(pid));
  child.reap();
  EXPECT_TRUE(is_ending(pid));
}

TEST(IsEnding, OneWhoseFirstThreadHasEndedIsNot) {
  const HeadlessChild child;
  EXPECT_FALSE(is_ending(child.pid()));
  child.end();
  EXPECT_TRUE(is_ending(child.pid()));
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

struct PendingCase {
  const char* name;
  std::string_view status;
  bool want;
};

class HasPendingKill : public ::testing::TestWithParam<PendingCase> {};

TEST_P(HasPendingKill, FindsSignal9) {
  EXPECT_EQ(has_pending_kill(GetParam().status), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, HasPendingKill,
    ::testing::Values(
        PendingCase{"None", "Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n",
                    false},
        PendingCase{"Other", "Name:\tx\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000201\n",
                    false},
        PendingCase{"Own", "Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n",
                    true},
        PendingCase{"Shared", "Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t8000000000004100\n",
                    true},
        PendingCase{"OnlyIgnored", "Name:\tx\nSigPnd:\t0\nShdPnd:\t0\nSigIgn:\t0000000000000100\n",
                    false},
        PendingCase{"Empty", "", false}),
    [](const auto& c) { return c.param.name; });

TEST(SharesPidNamespace, AProcessBesideThisOneDoes) {
  EXPECT_TRUE(shares_pid_namespace(Pid{::getpid()}));
  EXPECT_TRUE(shares_pid_namespace(Pid{::getppid()}));
}

TEST(SharesPidNamespace, OneInANamespaceBelowDoesNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a pid namespace";
  EXPECT_EQ(run_in_child([] {
              // The next child is the first in it.
              ASSERT_EQ(::unshare(CLONE_NEWPID), 0);
              const pid_t below = start_child([] { ::pause(); });
              EXPECT_FALSE(shares_pid_namespace(Pid{below}));
              EXPECT_TRUE(shares_pid_namespace(Pid{::getpid()}));
              ::kill(below, SIGKILL);
              static_cast<void>(wait_for(below));
              EXPECT_TRUE(shares_pid_namespace(Pid{below}));
            }),
            0);
}

TEST(ParseProcCgroup, ReadsV1AndV2Lines) {
  const std::vector<ProcCgroup> want = {
      {.controllers = {"cpu", "cpuacct"}, .path = "/kubepods/pod1"},
      {.controllers = {"name=systemd"}, .path = "/a:b:c"},
      {.controllers = {}, .path = "/init (deleted)"}};
  EXPECT_EQ(parse_proc_cgroup("9:cpu,cpuacct:/kubepods/pod1\n"
                              "1:name=systemd:/a:b:c\n"
                              "0::/init (deleted)\n"),
            want);
}

TEST(ParseProcCgroup, LeavesMalformedLinesOut) {
  for (const char* text : {"", "\n\n", "x:cpu:/a", "1", "1:cpu", "1:cpu:", "1:cpu:relative"}) {
    EXPECT_TRUE(parse_proc_cgroup(text).empty()) << text;
  }
}

TEST(CgroupsOf, FindsOurOwn) {
  const auto cgroups = cgroups_of(Pid{::getpid()});
  ASSERT_TRUE(cgroups) << cgroups.error().message;
  ASSERT_FALSE(cgroups->empty());
  EXPECT_EQ(cgroups->front().path.front(), '/');
}

TEST(CgroupsOf, NoProcessIsNotFound) {
  const auto cgroups = cgroups_of(Pid{999'999'999});
  ASSERT_FALSE(cgroups);
  EXPECT_EQ(cgroups.error(), (Error{ErrorCode::kNotFound, "process 999999999 is gone"}));
}

TEST(SetOomScoreAdj, WritesTheScore) {
  const WaitingChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start && start->has_value());
  const Status set = set_oom_score_adj(child.pid(), **start, 987);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(oom_score_adj_of(child.pid()), 987);
}

TEST(SetOomScoreAdj, LeavesAProcessThatReusesThePidAlone) {
  const WaitingChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start && start->has_value());
  const auto before = oom_score_adj_of(child.pid());
  const Status set = set_oom_score_adj(child.pid(), StartTime{(*start)->value() - 1}, 987);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(oom_score_adj_of(child.pid()), before);
}

TEST(SetOomScoreAdj, ReachesAProcessWhoseFirstThreadHasEnded) {
  const HeadlessChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start && start->has_value());
  const Status set = set_oom_score_adj(child.pid(), **start, 987);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(oom_score_adj_of(child.pid()), 987);
}

TEST(SetOomScoreAdj, AZombieIsGone) {
  const WaitingChild child;
  const auto start = start_time_of(child.pid());
  ASSERT_TRUE(start && start->has_value());
  child.end();
  const Status set = set_oom_score_adj(child.pid(), **start, 987);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kNotFound);
}

TEST(SetOomScoreAdj, RefusesScoresOutOfRange) {
  for (const int score : {-1001, 1001}) {
    const Status set = set_oom_score_adj(Pid{::getpid()}, StartTime{1}, score);
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

TEST(InstalledMemory, IsAtLeastWhatATestNeeds) {
  const auto memory = installed_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->memory.value(), 64 * 1024 * 1024);
}

TEST(OnlineCpu, IsWholeCpus) {
  const MilliCpu cpu = online_cpu();
  EXPECT_GE(cpu.value(), 1000);
  EXPECT_EQ(cpu.value() % 1000, 0);
}

}  // namespace
}  // namespace podqos::sys

#include "common/sys/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"
#include "common/sys/process.h"
#include "tests/unit/child_process.h"
#include "tests/unit/emulation.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

using ::testing::HasSubstr;

/// The value of one line of /proc/self/status.
std::string own_status(std::string_view key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key) && line.at(key.size()) == ':') return line.substr(key.size() + 2);
  }
  return "";
}

class KeepCapabilities : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string permitted = own_status("CapPrm");
    if (::geteuid() != 0 || permitted == "0000000000000000")
      GTEST_SKIP() << "needs root's capabilities";
  }
};

TEST_F(KeepCapabilities, LeavesExactlyThose) {
  const std::vector<std::pair<std::vector<int>, std::string>> cases = {
      {{}, "0000000000000000"},
      {{CAP_CHOWN, CAP_DAC_OVERRIDE}, "0000000000000003"},
      {{CAP_AUDIT_READ}, "0000002000000000"}};  // in the upper word
  for (const auto& [kept, want] : cases) {
    if (!kept.empty() && ::prctl(PR_CAPBSET_READ, kept.front(), 0, 0, 0) != 1) continue;
    const int status = run_in_child([&] {
      const std::string bounding = own_status("CapBnd");
      const auto done = keep_capabilities(kept);
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(own_status("CapPrm"), want);
      EXPECT_EQ(own_status("CapEff"), want);
      // It only matters to what is executed, and nothing is.
      EXPECT_EQ(own_status("CapBnd"), bounding);
      EXPECT_EQ(own_status("CapInh"), "0000000000000000");
      EXPECT_EQ(own_status("CapAmb"), "0000000000000000");
      EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), -1);
    });
    EXPECT_EQ(status, 0) << want;
  }
}

TEST_F(KeepCapabilities, CanKeepEverFewerAndGivesNoneBack) {
  expect_in_child([] {
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN, CAP_KILL}));
    EXPECT_TRUE(has_capability(CAP_KILL));
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN, CAP_SYS_ADMIN}));
    EXPECT_EQ(own_status("CapPrm"), "0000000000000001");
    EXPECT_EQ(own_status("CapEff"), "0000000000000001");
    EXPECT_FALSE(has_capability(CAP_KILL));
    EXPECT_TRUE(has_capability(CAP_CHOWN));
  });
}

struct Call {
  const char* name;
  void (*make)();
};

class InstallFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the sanitizer's own syscalls are not on the list";
    if (!has_seccomp()) GTEST_SKIP() << "this kernel, or what emulates it, has no seccomp";
  }
};

void install(Filter filter) {
  const auto installed = install_filter(filter);
  ASSERT_TRUE(installed) << installed.error().message;
}

/// syscall(2) for calls whose result does not matter: the filter decides first.
template <class... Arguments>
void raw(long number, Arguments... arguments) {
  static_cast<void>(::syscall(number, arguments...));
}

/// Beside those of seccomp_compile_test.cpp.
constexpr auto kForbidden = std::to_array<Call>({
    {"execve", [] { raw(SYS_execve, "/bin/true", nullptr, nullptr); }},
    {"fork", [] { raw(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); }},
    {"process_vm_writev", [] { raw(SYS_process_vm_writev, 1, nullptr, 0, nullptr, 0, 0); }},
    {"kill", [] { raw(SYS_kill, ::getpid(), 0); }},
    {"kill another process", [] { raw(SYS_kill, 0x7fff'ffff, SIGUSR1); }},  // there is none
    {"tgkill with another signal than SIGABRT",
     [] { raw(SYS_tgkill, ::getpid(), ::gettid(), SIGKILL); }},
    {"umount2", [] { raw(SYS_umount2, "/nowhere", 0); }},
    {"open_tree", [] { raw(SYS_open_tree, -1, "", 0); }},
    {"unshare", [] { raw(SYS_unshare, 0); }},
    {"chroot", [] { raw(SYS_chroot, "/"); }},
    {"open_by_handle_at", [] { raw(SYS_open_by_handle_at, -1, nullptr, 0); }},
    {"io_uring_setup", [] { raw(SYS_io_uring_setup, 1, nullptr); }},
    {"memfd_create", [] { raw(SYS_memfd_create, "x", 0); }},
    {"init_module", [] { raw(SYS_init_module, nullptr, 0, ""); }},
    {"prctl", [] { raw(SYS_prctl, 0, 0, 0, 0, 0); }},
    {"capset", [] { raw(SYS_capset, nullptr, nullptr); }},
    {"setuid", [] { raw(SYS_setuid, 0); }},
    {"linkat", [] { raw(SYS_linkat, -1, "a", -1, "b", 0); }},
    {"mknodat", [] { raw(SYS_mknodat, -1, "a", 0, 0); }},
    {"socket AF_INET", [] { raw(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
    {"socket AF_NETLINK", [] { raw(SYS_socket, AF_NETLINK, SOCK_RAW, 0); }},
    {"bind", [] { raw(SYS_bind, -1, nullptr, 0); }},
    {"executable mprotect", [] { raw(SYS_mprotect, nullptr, 4096, PROT_READ | PROT_EXEC); }},
    {"fcntl F_SETOWN", [] { raw(SYS_fcntl, 0, F_SETOWN, 1); }},
    // The kernel looks at the lower half of an int argument only, so must the filter.
    {"ioctl TIOCSTI with an upper half", [] { raw(SYS_ioctl, 0, TIOCSTI | (1L << 40), "x"); }},
    {"sendmsg that may raise SIGPIPE", [] { raw(SYS_sendmsg, -1, nullptr, 0); }},
    {"recvmsg of inheritable descriptors", [] { raw(SYS_recvmsg, -1, nullptr, 0); }},
    {"setitimer of CPU time", [] { raw(SYS_setitimer, ITIMER_PROF, nullptr, nullptr); }},
    {"prlimit64 that sets",
     [] {
       rlimit none{};
       raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &none, nullptr);
     }},
    {"reboot", [] { raw(SYS_reboot, 0, 0, 0, nullptr); }},
});

TEST_F(InstallFilter, KillsTheProcessForAnyOtherCall) {
  for (const Filter filter : {Filter::kHook, Filter::kPlugin, Filter::kTop}) {
    for (const Call& call : kForbidden) {
      const int status = run_in_child([&] {
        install(filter);
        call.make();
      });
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
          << call.name << " under filter " << static_cast<int>(filter) << ": status " << status;
    }
  }
}

TEST_F(InstallFilter, AllowsThePluginMoreThanTheHook) {
  const auto asks = [](Filter filter, int level) {
    return run_in_child([&] {
      install(filter);
      raw(SYS_getsockopt, -1, level, SO_PEERCRED, nullptr, nullptr);
    });
  };
  EXPECT_EQ(asks(Filter::kPlugin, SOL_SOCKET), 0);
  for (const int killed : {asks(Filter::kPlugin, IPPROTO_IP), asks(Filter::kHook, SOL_SOCKET)})
    EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGSYS) << killed;
}

TEST_F(InstallFilter, AllowsTopToUseItsTerminal) {
  constexpr auto kCalls = std::to_array<Call>({
      {"pread64", [] { raw(SYS_pread64, -1, nullptr, 0, 0); }},
      {"ioctl TCSETSF", [] { raw(SYS_ioctl, -1, TCSETSF, nullptr); }},
      {"ioctl TIOCGWINSZ", [] { raw(SYS_ioctl, -1, TIOCGWINSZ, nullptr); }},
  });
  for (const Call& call : kCalls) {
    const auto makes = [&](Filter filter) {
      return run_in_child([&] {
        install(filter);
        call.make();
      });
    };
    EXPECT_EQ(makes(Filter::kTop), 0) << call.name;
    const int killed = makes(Filter::kHook);
    EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGSYS) << call.name << ": " << killed;
  }
}

TEST_F(InstallFilter, LetsAWaitGoOnAfterAStop) {
  const Pipe ready;
  const pid_t child = start_child([&] {
    install(Filter::kHook);
    ready.tell();
    pollfd nothing{.fd = -1, .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&nothing, 1, 300), 0);
  });
  ready.await();
  // It has to be in the call by then; if it is not, nothing is shown, and nothing fails.
  ::usleep(50'000);
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  ::kill(child, SIGCONT);
  EXPECT_EQ(wait_for(child), 0);
}

TEST_F(InstallFilter, LetsTheHookWorkOnFiles) {
  const TemporaryDirectory temporary;
  expect_in_child([&] {
    install(Filter::kHook);
    const auto directory = Directory::open(temporary.path());
    ASSERT_TRUE(directory);
    const auto lock = FileLock::acquire(*directory, "lock", std::chrono::milliseconds{10});
    ASSERT_TRUE(lock);
    EXPECT_FALSE(FileLock::acquire(*directory, "lock", std::chrono::milliseconds{2}));
    EXPECT_TRUE(*directory->make_directory("pods", 0700));
    const auto pods = directory->open_directory("pods");
    ASSERT_TRUE(pods);
    EXPECT_TRUE(Directory::open(temporary.path(), Resolve::kComponentwise)->open_directory("pods"));
    const FileOwner owner{.uid = ::geteuid() + 1, .gid = ::getegid(), .mode = 0644};
    EXPECT_EQ(replace_file(*pods, "a.json", "{}", owner).has_value(), ::geteuid() == 0);
    EXPECT_TRUE(replace_file(*pods, "b.json", "{}"));
    EXPECT_EQ(*pods->read_file("b.json", 10), "{}");
    const auto rows = pods->open_file("rows", O_RDWR | O_CREAT);
    ASSERT_TRUE(rows);
    EXPECT_EQ(::pwrite(rows->fd.get(), "row", 3, 256), 3);
    EXPECT_TRUE(*pods->remove_file("rows"));
    EXPECT_TRUE(pods->entries());
    const std::string path = temporary.path("pods");
    static_cast<void>(::lgetxattr(path.c_str(), "trusted.podqos", nullptr, 0));
    static_cast<void>(::lsetxattr(path.c_str(), "user.podqos", "1", 1, 0));
    EXPECT_EQ(::renameat2(pods->fd(), "b.json", pods->fd(), "c.json", RENAME_NOREPLACE), 0);
    EXPECT_TRUE(*pods->remove_file("c.json"));
    static_cast<void>(pods->remove_file("a.json"));
    EXPECT_TRUE(*directory->remove_directory("pods"));
  });
}

TEST_F(InstallFilter, LetsTheHookLookAtProcesses) {
  expect_in_child([] {
    install(Filter::kHook);
    EXPECT_EQ(own_status("NoNewPrivs"), "1");
    EXPECT_EQ(own_status("Seccomp"), "2");
    EXPECT_TRUE(start_time_of(Pid{::getpid()}));
    EXPECT_TRUE(cgroups_of(Pid{::getpid()}));
    EXPECT_TRUE(oom_score_adj_of(Pid{::getpid()}));
    EXPECT_TRUE(installed_memory());
    EXPECT_GE(online_cpu().value(), 1000);
  });
}

/// What releases of glibc other than this machine's do in functions that podqos calls, by number: a
/// dynamically linked program, or one that was linked against another release, does the same.
constexpr auto kOtherReleases = std::to_array<Call>({
    // isatty(3), and stdio before it buffers a terminal: TCGETS, and from 2.42 on TCGETS2.
    {"ioctl TCGETS", [] { raw(SYS_ioctl, 1, 0x5401, nullptr); }},
    {"ioctl TCGETS2", [] { raw(SYS_ioctl, 1, 0x802C542A, nullptr); }},
    // malloc from 2.39 on with glibc.mem.decorate_maps: PR_SET_VMA, PR_SET_VMA_ANON_NAME.
    {"prctl PR_SET_VMA", [] { raw(SYS_prctl, 0x53564d41, 0, 0, 0, nullptr); }},
    // fstat(3) is newfstatat from 2.33 to 2.38, fstat before and after.
    {"fstat", [] { raw(SYS_fstat, 0, nullptr); }},
    {"newfstatat", [] { raw(SYS_newfstatat, 0, "", nullptr, AT_EMPTY_PATH); }},
// access(3), of an architecture that lacks access(2) faccessat.
#ifdef SYS_access
    {"access", [] { raw(SYS_access, "/", F_OK); }},
#endif
    {"faccessat", [] { raw(SYS_faccessat, AT_FDCWD, "/", F_OK); }},
    {"faccessat2", [] { raw(SYS_faccessat2, AT_FDCWD, "/", F_OK, 0); }},
    // realpath(3).
    {"readlinkat", [] { raw(SYS_readlinkat, AT_FDCWD, "/nowhere", nullptr, 0); }},
#ifdef SYS_readlink
    {"readlink", [] { raw(SYS_readlink, "/nowhere", nullptr, 0); }},
#endif
    // malloc's trimming and growth; the count of CPUs before a new arena.
    {"madvise", [] { raw(SYS_madvise, nullptr, 0, MADV_DONTNEED); }},
    {"mremap", [] { raw(SYS_mremap, nullptr, 0, 0, 0); }},
    {"sched_getaffinity", [] { raw(SYS_sched_getaffinity, 0, 0, nullptr); }},
    // qsort(3) before 2.37 asks how much memory there is.
    {"sysinfo", [] { raw(SYS_sysinfo, nullptr); }},
    {"getrandom", [] { raw(SYS_getrandom, nullptr, 0, 1); }},
    // Clocks without the vDSO; nanosleep(3) and usleep(3).
    {"clock_gettime", [] { raw(SYS_clock_gettime, CLOCK_REALTIME, nullptr); }},
    {"gettimeofday", [] { raw(SYS_gettimeofday, nullptr, nullptr); }},
    {"clock_nanosleep", [] { raw(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, nullptr, nullptr); }},
    {"futex", [] { raw(SYS_futex, nullptr, -1, 0, nullptr, nullptr, 0); }},
    // Messages of the library before abort(3).
    {"writev", [] { raw(SYS_writev, -1, nullptr, 0); }},
    {"gettid", [] { raw(SYS_gettid); }},
    {"rt_sigprocmask", [] { raw(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, nullptr, 8); }},
});

TEST_F(InstallFilter, AllowsWhatOtherReleasesOfTheCLibraryDo) {
  for (const Filter filter : {Filter::kHook, Filter::kPlugin, Filter::kTop}) {
    for (const Call& call : kOtherReleases) {
      const int status = run_in_child([&] {
        install(filter);
        call.make();
      });
      EXPECT_EQ(status, 0) << call.name << " under filter " << static_cast<int>(filter);
    }
  }
}

TEST_F(InstallFilter, LetsMemoryGrowAndRunOut) {
  expect_in_child([] {
    const rlimit limit{.rlim_cur = 256U << 20U, .rlim_max = 256U << 20U};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    install(Filter::kHook);
    std::vector<char> grown;
    for (int i = 0; i < 1'000'000; ++i)
      grown.push_back('x');
    std::vector<void*> blocks;
    for (const std::size_t size : {std::size_t{100'000}, std::size_t{1000}}) {
      while (void* block = std::malloc(size))
        blocks.push_back(block);
    }
    for (void* block : blocks)
      std::free(block);
    EXPECT_GT(blocks.size(), 1000U);
  });
}

TEST_F(InstallFilter, LetsTheHookLogToSyslogWhetherOrNotItRuns) {
  expect_in_child([] {
    install(Filter::kHook);
    ::syslog(LOG_INFO, "podqos unit test");
  });
  if (::geteuid() != 0) GTEST_SKIP() << "only root can put a /dev/log of its own in place";
  expect_in_child([] {
    ASSERT_TRUE(mount_private_tmpfs("/dev", "size=64k"));
    const int log = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    ASSERT_EQ(::bind(log, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    install(Filter::kHook);
    ::openlog("podqos-hook", LOG_PID, LOG_DAEMON);
    ::syslog(LOG_INFO, "pod %d placed", 42);
    ::closelog();
    std::array<char, 256> line{};
    ASSERT_GT(::read(log, line.data(), line.size() - 1), 0);
    EXPECT_THAT(line.data(), HasSubstr("podqos-hook["));
    EXPECT_THAT(line.data(), HasSubstr("pod 42 placed"));
  });
}

TEST_F(InstallFilter, LetsAbortEndInSigabrt) {
  const int status = run_in_child([] {
    install(Filter::kHook);
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
}

TEST_F(InstallFilter, LetsTheHookReadClocksAndExit) {
  const int status = run_in_child([] {
    install(Filter::kHook);
    timespec now{};
    raw(SYS_clock_gettime, CLOCK_REALTIME, &now);
    EXPECT_GT(now.tv_sec, 0);
    EXPECT_GT(::time(nullptr), 0);
    std::exit(7);  // runs the destructors of the whole program
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

}  // namespace
}  // namespace podqos::sys

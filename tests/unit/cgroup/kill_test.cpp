#include <cerrno>

#include "tests/unit/cgroup/own_cgroup.h"

namespace podqos::cgroup {
namespace {

using core::EnsureCgroup;
using core::KillProcesses;
using core::MoveProcess;

class Kill : public OwnCgroup {
 protected:
  /// A process in a cgroup of its own, which ignores what it can.
  [[nodiscard]] Pid start_in(const std::string& path) {
    const Pid pid = start_process([] {
      static_cast<void>(std::signal(SIGTERM, SIG_IGN));
      ::pause();
    });
    execute({EnsureCgroup{path}, MoveProcess{.path = path, .pid = pid}});
    // Where the freezer has a hierarchy of its own, runtimes put processes there too.
    const Hierarchy freezer = hierarchy_with("freezer");
    if (!freezer.mount_point.empty())
      std::ofstream{freezer.mount_point + path + "/cgroup.procs"} << pid.value();
    return pid;
  }
  /// The signal that has ended a child; 0 if none has, in the time that a busy machine may take.
  static int signal_that_ended(Pid pid) {
    constexpr int kAttempts = 1000;
    for (int i = 0; i < kAttempts; ++i) {
      siginfo_t ended{};
      if (::waitid(P_PID, static_cast<id_t>(pid.value()), &ended, WEXITED | WNOHANG | WNOWAIT) ==
              0 &&
          ended.si_pid != 0)
        return ended.si_code == CLD_KILLED ? ended.si_status : 0;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return 0;
  }
};

TEST_F(Kill, EndsWhatIsInTheCgroupAndBelow) {
  const Pid below = start_in(base() + "/pod/c/nested");
  const Pid beside = start_in(base() + "/pod/other");
  execute({KillProcesses{.path = base() + "/pod/c"}});
  EXPECT_EQ(signal_that_ended(below), SIGKILL);
  EXPECT_EQ(::kill(static_cast<pid_t>(beside.value()), 0), 0);
  EXPECT_EQ(cgroupfs().processes(base() + "/pod/other").value_or(std::vector<Pid>{}),
            std::vector{beside});
}

TEST_F(Kill, LeavesTheCgroupThawed) {
  const Pid first = start_in(base() + "/c");
  execute({KillProcesses{.path = base() + "/c"}});
  EXPECT_EQ(signal_that_ended(first), SIGKILL);
  const Pid later = start_in(base() + "/c");
  execute({KillProcesses{.path = base() + "/c"}});
  EXPECT_EQ(signal_that_ended(later), SIGKILL);
}

TEST_F(Kill, DoesNotMindACgroupThatIsGone) {
  execute({KillProcesses{.path = base() + "/gone"}});
}

}  // namespace
}  // namespace podqos::cgroup

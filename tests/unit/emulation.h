#pragma once

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "common/sys/process.h"

/// What emulates a whole architecture for one program (qemu-user) has no seccomp and no ptrace.
namespace podqos {

/// Does this kernel know seccomp(2)? A kernel that refuses it for another reason does.
inline bool has_seccomp() {
  const unsigned action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 || errno != ENOSYS;
}

/// Does this kernel know ptrace(2)? It is asked about a process that there is none of.
inline bool has_ptrace() {
  return ::ptrace(PTRACE_DETACH, -1, nullptr, nullptr) == 0 || errno != ENOSYS;
}

/// Does /proc give this process the name that the kernel knows? qemu-user answers for the files of
/// its own process itself, so that two processes of one program have different names there.
inline bool has_own_name() {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  const auto stat = sys::stat_of(Pid{::getpid()});
  return stat && *stat && (*stat)->name == std::string_view{name.data()};
}

}  // namespace podqos

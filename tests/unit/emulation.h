#pragma once

#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace podqos

#pragma once

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"

/// The allow-lists of podqos's programs, as data, and their compiler. They apply from the moment a
/// program starts to parse untrusted input; system calls of program start (execve, arch_prctl, rseq
/// …) are not needed any more. A missing entry kills the process, so the lists include what glibc
/// calls on rare paths (out of memory, a clock without vDSO) and in any of its releases: each is
/// linked in somewhere.
namespace podqos::seccomp_gen {

/// Allows a call only if (argument & mask) == value. The mask has 32 bits if the kernel takes an
/// int.
struct Condition {
  unsigned argument = 0;
  std::uint64_t mask = 0;
  std::uint64_t value = 0;
};

/// System calls that are allowed, always or under a condition.
struct Rule {
  std::string_view syscalls;  ///< separated by spaces
  std::optional<Condition> only_if;
};

constexpr std::uint64_t kInt = 0xffff'ffff;
constexpr std::uint64_t kWhole = ~std::uint64_t{0};

/// podqos-hook, the wrapper's child and podqosctl: statically linked, one thread.
inline constexpr std::array kHookRules{
    // Files below the state directory, the bundle, /proc and the cgroup hierarchies.
    Rule{"openat openat2 close read write pwrite64 lseek fstat newfstatat getdents64 readlink "
         "readlinkat mkdirat unlinkat symlinkat renameat renameat2 fchown fchmod "
         "flock",
         {}},
    // Checks whether cgroups are writable; directory in which Podman runs the hook.
    Rule{"access faccessat faccessat2 getcwd", {}},
    // Type of the file system, and podqos's mark of ownership on a cgroup.
    Rule{"statfs fstatfs lgetxattr lsetxattr", {}},
    // Descriptor flags only: no locks, signal owners or leases.
    Rule{"fcntl", Condition{1, kInt, F_GETFD}},
    Rule{"fcntl", Condition{1, kInt, F_SETFD}},
    Rule{"fcntl", Condition{1, kInt, F_GETFL}},
    Rule{"fcntl", Condition{1, kInt, F_SETFL}},
    Rule{"fcntl", Condition{1, kInt, F_DUPFD_CLOEXEC}},
    // Memory, never executable. malloc counts the CPUs when it is out of memory and tries another
    // arena.
    Rule{"brk", {}},
    Rule{"mmap", Condition{2, PROT_EXEC, 0}},
    Rule{"mprotect", Condition{2, PROT_EXEC, 0}},
    Rule{"munmap mremap madvise sched_getaffinity getrandom", {}},
    // malloc names its mappings if glibc.mem.decorate_maps is set (glibc 2.39).
    Rule{"prctl", Condition{0, kInt, PR_SET_VMA}},
    // Waiting for the lock, deadlines, log times. The clock calls enter the kernel where the vDSO
    // does not provide the clock.
    Rule{"clock_gettime clock_nanosleep gettimeofday time futex", {}},
    // The kernel resumes a wait with this call after the process or its cgroup was stopped.
    Rule{"restart_syscall", {}},
    // futimens(3) on an open descriptor; not by path.
    Rule{"utimensat", Condition{1, kWhole, 0}},
    // Own ids, and the size of the memory.
    Rule{"getpid getppid gettid getuid geteuid getgid getegid sysinfo", {}},
    // Whether a process exists that /proc does not show.
    Rule{"pidfd_open", {}},
    // Whose limit an OOM kill was by: the kernel's log, to be read only.
    Rule{"syslog", Condition{0, kInt, 3}},  // SYSLOG_ACTION_READ_ALL
    // Whether lowering an OOM score is permitted.
    Rule{"capget", {}},
    // syslog(3) to /dev/log; plain mkdir(2) for the state directory; stdio checks whether the file
    // it opened is a terminal.
    Rule{"socket", Condition{0, kInt, AF_UNIX}},
    Rule{"connect sendto mkdir", {}},
    Rule{"ioctl", Condition{1, kInt, TCGETS}},
#ifdef TCGETS2
    Rule{"ioctl", Condition{1, kInt, TCGETS2}},  // isatty(3) of glibc 2.42 and later
#endif
    Rule{"writev", {}},
    // systemd through libdbus: authentication with read and sendto, messages with recvmsg and
    // sendmsg and libdbus's flags, poll with the remaining time; a timer bounds its connect.
    // libdbus queries the socket's family, the monotonic clock, and whether the program is set-uid.
    // Newer architectures only have ppoll.
    Rule{"poll ppoll", {}},
    Rule{"recvmsg", Condition{2, kInt, MSG_CMSG_CLOEXEC}},
    Rule{"sendmsg", Condition{2, kInt, MSG_NOSIGNAL}},
    Rule{"getsockname", {}},
    Rule{"setitimer", Condition{0, kInt, ITIMER_REAL}},
    Rule{"clock_getres getresuid getresgid", {}},
    // Exit, abort(3) included.
    Rule{"rt_sigprocmask rt_sigaction rt_sigreturn", {}},
    Rule{"tgkill", Condition{2, kInt, SIGABRT}},
    Rule{"exit exit_group", {}},
};

/// podqos-nri, in addition to the hook's rules: one thread in one poll loop. The signal descriptor,
/// systemd's socket and the metrics socket are opened before; connections are accepted and made
/// later.
constexpr std::array kPluginRules{
    // Messages of the runtime are peeked at before they are read.
    Rule{"recvfrom", Condition{3, kInt, MSG_PEEK}},
    // Process and user at the other end of a runtime's socket (SO_PEERCRED).
    Rule{"getsockopt", Condition{1, kInt, SOL_SOCKET}},
    // Metrics clients; the end of a response.
    Rule{"accept4", Condition{3, kInt, SOCK_NONBLOCK | SOCK_CLOEXEC}},
    Rule{"shutdown", Condition{1, kInt, SHUT_WR}},
    // Ends an evicted pod where the kernel has no cgroup.kill.
    Rule{"kill", Condition{1, kInt, SIGKILL}},
};

/// podqosctl top, in addition to the hook's rules. Its signal descriptor is opened before.
constexpr std::array kTopRules{
    // Files of cgroups that stay open.
    Rule{"pread64", {}},
    // Keys without Enter; the size after each change.
    Rule{"ioctl", Condition{1, kInt, TCSETSF}},
#ifdef TCSETSF2
    Rule{"ioctl", Condition{1, kInt, TCSETSF2}},  // tcsetattr(3) of glibc 2.42 and later
#endif
    Rule{"ioctl", Condition{1, kInt, TIOCGWINSZ}},
};

/// An array to generate and its rules.
struct FilterSource {
  const char* name = nullptr;  ///< name of the generated array
  std::span<const Rule> more;  ///< rules in addition to kHookRules
};

inline constexpr std::array kFilters{
    FilterSource{.name = "kHookFilter", .more = {}},
    FilterSource{.name = "kPluginFilter", .more = kPluginRules},
    FilterSource{.name = "kTopFilter", .more = kTopRules},
};

/// Compiles an allow-list, that of the hook included, to BPF. System calls that the architecture
/// does not have get no rule; calls of any other architecture (32 bit, x32) kill the process. The
/// result does not depend on the kernel that it is compiled on.
/// @param architecture  libseccomp's SCMP_ARCH_*, SCMP_ARCH_NATIVE for that of this program
/// @return kInvalidArgument for a system call that libseccomp does not know; kIo if it fails
[[nodiscard]] Result<std::vector<sock_filter>> compile(const FilterSource& source,
                                                       std::uint32_t architecture);

}  // namespace podqos::seccomp_gen

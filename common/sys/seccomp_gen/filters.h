#pragma once

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/bpf.h>
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

/// The allow-lists of podqos's programs, as data. Both are in force from the moment a program
/// starts to read what others wrote; what start-up needs (execve, arch_prctl, rseq …) is over by
/// then. A missing entry kills the process, so the lists hold what glibc may do on rare paths too
/// (memory exhausted, a clock without vDSO), and what any release of it does: a dynamically linked
/// program meets the glibc of the machine that it is installed on, not that of the build.
namespace podqos::seccomp_gen {

/// Allows a call only if (argument & mask) == value. Masks are 32 bit wide where the kernel takes
/// an int.
struct Condition {
  unsigned argument = 0;
  std::uint64_t mask = 0;
  std::uint64_t value = 0;
};

struct Rule {
  const char* syscall = nullptr;
  std::optional<Condition> only_if;
};

constexpr std::uint64_t kInt = 0xffff'ffff;
constexpr std::uint64_t kWhole = ~std::uint64_t{0};

/// podqos-hook and the parsing child of the wrapper: statically linked, one thread, no terminal.
constexpr std::array kHookRules{
    // Files below the state directory, the bundle, /proc and the cgroup hierarchies.
    Rule{"openat", {}},
    Rule{"openat2", {}},
    Rule{"close", {}},
    Rule{"read", {}},
    Rule{"write", {}},
    Rule{"pread64", {}},
    Rule{"pwrite64", {}},
    Rule{"lseek", {}},
    Rule{"fstat", {}},
    Rule{"newfstatat", {}},
    Rule{"getdents64", {}},
    Rule{"readlink", {}},
    Rule{"readlinkat", {}},
    Rule{"mkdirat", {}},
    Rule{"unlinkat", {}},
    Rule{"renameat", {}},
    Rule{"renameat2", {}},
    Rule{"fchown", {}},
    Rule{"fchmod", {}},
    Rule{"flock", {}},
    // May cgroups be written here, is a kubelet configured, where does Podman run us?
    Rule{"faccessat", {}},
    Rule{"faccessat2", {}},
    Rule{"getcwd", {}},
    // Is it a cgroup file system, and did we make this root?
    Rule{"statfs", {}},
    Rule{"fstatfs", {}},
    Rule{"fgetxattr", {}},
    Rule{"fsetxattr", {}},
    // Descriptor flags; no locks, no owner of signals, no leases.
    Rule{"fcntl", Condition{1, kInt, F_GETFD}},
    Rule{"fcntl", Condition{1, kInt, F_SETFD}},
    Rule{"fcntl", Condition{1, kInt, F_GETFL}},
    Rule{"fcntl", Condition{1, kInt, F_SETFL}},
    Rule{"fcntl", Condition{1, kInt, F_DUPFD_CLOEXEC}},
    // Memory, never executable. malloc counts the CPUs when it is refused memory and tries another
    // arena.
    Rule{"brk", {}},
    Rule{"mmap", Condition{2, PROT_EXEC, 0}},
    Rule{"mprotect", Condition{2, PROT_EXEC, 0}},
    Rule{"munmap", {}},
    Rule{"mremap", {}},
    Rule{"madvise", {}},
    Rule{"sched_getaffinity", {}},
    Rule{"getrandom", {}},
    // malloc names its mappings where glibc.mem.decorate_maps asks for it (glibc 2.39).
    Rule{"prctl", Condition{0, kInt, PR_SET_VMA}},
    // Waiting for the lock, deadlines, log times. The clock calls are real where the vDSO cannot
    // answer.
    Rule{"clock_gettime", {}},
    Rule{"clock_nanosleep", {}},
    Rule{"gettimeofday", {}},
    Rule{"time", {}},
    Rule{"futex", {}},
    // The kernel's own way back into a wait after the process, or its cgroup, was stopped.
    Rule{"restart_syscall", {}},
    // futimens(3): what is open already, by no path.
    Rule{"utimensat", Condition{1, kWhole, 0}},
    // Who am I; how much memory is there.
    Rule{"getpid", {}},
    Rule{"getppid", {}},
    Rule{"gettid", {}},
    Rule{"getuid", {}},
    Rule{"geteuid", {}},
    Rule{"getgid", {}},
    Rule{"getegid", {}},
    Rule{"sysinfo", {}},
    // May an OOM score be lowered?
    Rule{"capget", {}},
    // syslog(3) to /dev/log; the log file's directory, which spdlog makes with plain mkdir; stdio
    // asks whether what it
    // opened is a terminal.
    Rule{"socket", Condition{0, kInt, AF_UNIX}},
    Rule{"connect", {}},
    Rule{"sendto", {}},
    Rule{"mkdir", {}},
    Rule{"ioctl", Condition{1, kInt, TCGETS}},
#ifdef TCGETS2
    Rule{"ioctl", Condition{1, kInt, TCGETS2}},  // isatty(3) of glibc 2.42 and later
#endif
    Rule{"writev", {}},
    // systemd over libdbus: authentication by read and sendto, messages by recvmsg and sendmsg with
    // the flags that libdbus gives them, poll with the time that is left; a timer bounds its
    // connect. It looks for the socket's family, for a clock that never steps, and whether the
    // program is set-uid. Newer architectures have ppoll only.
    Rule{"poll", {}},
    Rule{"ppoll", {}},
    Rule{"recvmsg", Condition{2, kInt, MSG_CMSG_CLOEXEC}},
    Rule{"sendmsg", Condition{2, kInt, MSG_NOSIGNAL}},
    Rule{"getsockname", {}},
    Rule{"setitimer", Condition{0, kInt, ITIMER_REAL}},
    Rule{"clock_getres", {}},
    Rule{"getresuid", {}},
    Rule{"getresgid", {}},
    // The device rules of a container that is moved: to see them, and to attach them elsewhere; no
    // program is loaded, no map made.
    Rule{"bpf", Condition{0, kInt, BPF_PROG_QUERY}},
    Rule{"bpf", Condition{0, kInt, BPF_PROG_GET_FD_BY_ID}},
    Rule{"bpf", Condition{0, kInt, BPF_PROG_ATTACH}},
    // The end, abort(3) included.
    Rule{"rt_sigprocmask", {}},
    Rule{"rt_sigaction", {}},
    Rule{"rt_sigreturn", {}},
    Rule{"tgkill", Condition{2, kInt, SIGABRT}},
    Rule{"exit", {}},
    Rule{"exit_group", {}},
};

/// podqosctl, on top of the hook's: dynamically linked, with iostreams, std::filesystem and a
/// terminal.
constexpr std::array kToolRules{
    // Files and directories as the C++ library looks at them.
    Rule{"stat", {}},
    Rule{"lstat", {}},
    Rule{"statx", {}},
    Rule{"access", {}},
    Rule{"readv", {}},
    // Width of the terminal.
    Rule{"ioctl", Condition{1, kInt, TIOCGWINSZ}},
    // What sysconf(3) and uname(3) ask; limits are read, not set.
    Rule{"prlimit64", Condition{2, kWhole, 0}},
    Rule{"uname", {}},
    Rule{"umask", {}},
};

/// podqos-nri, on top of the hook's: one thread in one poll loop. Signals, systemd's socket and the
/// one that metrics are asked for at are open before; connections come and go.
constexpr std::array kPluginRules{
    // What a runtime has sent is looked at before it is taken.
    Rule{"recvfrom", Condition{3, kInt, MSG_PEEK}},
    // Who listens there?
    Rule{"getsockopt", Condition{1, kInt, SOL_SOCKET}},
    // Whoever asks for metrics; the end of an answer.
    Rule{"accept4", Condition{3, kInt, SOCK_NONBLOCK | SOCK_CLOEXEC}},
    Rule{"shutdown", Condition{1, kInt, SHUT_WR}},
};

struct FilterSource {
  const char* name = nullptr;  ///< of the generated array
  std::span<const Rule> more;  ///< than the hook's
};

constexpr std::array kFilters{
    FilterSource{.name = "kHookFilter", .more = {}},
    FilterSource{.name = "kToolFilter", .more = kToolRules},
    FilterSource{.name = "kPluginFilter", .more = kPluginRules},
};

}  // namespace podqos::seccomp_gen

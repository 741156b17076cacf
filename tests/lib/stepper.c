/* Runs a program and kills it at its N-th system call, or lets that call fail.
 *
 * usage: stepper all|one|fail=K every|effects N COUNT-FILE PROGRAM [ARG...]
 *
 * Counted are the system calls of the program and of its children, in the order in which they
 * begin: every one, or only those that may change something outside the process. The N-th is not
 * carried out any more: "all" kills every process then, "one" only the process that made it;
 * "fail=K" counts the calls that have a K-th error in kErrors, and lets the N-th fail with it. With
 * N = 0 nothing is done. Once the program executes another one it is let go, so that a wrapper's
 * runtime runs as always. COUNT-FILE ("-": none) receives "COUNT STRUCK CALL ERRNO", at
 * once when it is struck, or at the end. The exit status is the program's, 137 if it was killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxProcesses = 64, kFailed = 125, kMaxErrors = 8 };

/* What calls may fail with, by their manual pages and by the kernel's cgroups. */
static const struct {
  const char* name;
  unsigned long long number;
  int errors[kMaxErrors];
} kErrors[] = {
#define CALL(name, ...)  \
  {                      \
    #name, SYS_##name, { \
      __VA_ARGS__        \
    }                    \
  }
    CALL(open, EIO, EMFILE, EACCES, ENOMEM, EINTR, ENOSPC, EROFS),
    CALL(openat, EIO, EMFILE, EACCES, ENOMEM, EINTR, ENOSPC, EROFS),
    CALL(openat2, EIO, EMFILE, EACCES, ENOMEM, EINTR, ENOSPC, EROFS, EAGAIN),
    CALL(read, EIO, ENODEV, EINTR, ENOMEM),
    CALL(pread64, EIO, ENODEV, EINTR, ENOMEM),
    CALL(write, ENOSPC, EIO, ENODEV, EBUSY, EINVAL, EINTR, EAGAIN),
    CALL(pwrite64, ENOSPC, EIO, EINTR),
    CALL(writev, ENOSPC, EIO, EINTR, EAGAIN),
    CALL(close, EIO, EINTR),
    CALL(faccessat, EIO, EACCES, ENOMEM),
    CALL(faccessat2, EIO, EACCES, ENOMEM),
    CALL(stat, EIO, EACCES, ENOMEM),
    CALL(fstat, EIO, ENOMEM),
    CALL(newfstatat, EIO, EACCES, ENOMEM),
    CALL(statx, EIO, EACCES, ENOMEM),
    CALL(statfs, EIO, EINTR, ENOMEM),
    CALL(fstatfs, EIO, EINTR, ENOMEM),
    CALL(getdents64, EIO, ENOENT, ENOMEM),
    CALL(readlink, EIO, EACCES, ENOMEM),
    CALL(readlinkat, EIO, EACCES, ENOMEM),
    CALL(lseek, EINVAL),
    CALL(fsync, EIO, ENOSPC),
    CALL(fdatasync, EIO, ENOSPC),
    CALL(ftruncate, EIO, EINTR),
    CALL(fallocate, ENOSPC, EOPNOTSUPP, EINTR),
    CALL(fchmod, EIO, EROFS),
    CALL(fchown, EIO, EROFS, EPERM),
    CALL(mkdirat, ENOSPC, ENOMEM, EACCES, EROFS),
    CALL(mkdir, ENOSPC, ENOMEM, EACCES, EROFS),
    CALL(unlinkat, EBUSY, EIO, EACCES, EROFS),
    CALL(rmdir, EBUSY, EIO, EACCES),
    CALL(renameat, ENOSPC, EIO, EBUSY, EROFS),
    CALL(renameat2, ENOSPC, EIO, EBUSY, EROFS),
    CALL(rename, ENOSPC, EIO, EBUSY, EROFS),
    CALL(symlinkat, ENOSPC, EIO, EROFS),
    CALL(linkat, ENOSPC, EIO, EROFS),
    CALL(lsetxattr, ENOSPC, EPERM, EOPNOTSUPP, ENOMEM),
    CALL(fsetxattr, ENOSPC, EPERM, EOPNOTSUPP, ENOMEM),
    CALL(lgetxattr, EIO, EPERM, ENOMEM),
    CALL(fgetxattr, EIO, EPERM, ENOMEM),
    CALL(flock, EINTR, ENOLCK),
    CALL(clone, EAGAIN, ENOMEM),
    CALL(clone3, EAGAIN, ENOMEM),
    CALL(fork, EAGAIN, ENOMEM),
    CALL(vfork, EAGAIN, ENOMEM),
    CALL(execve, EIO, ENOMEM, EACCES, ETXTBSY),
    CALL(pipe2, EMFILE, ENFILE),
    CALL(eventfd2, EMFILE, ENOMEM),
    CALL(memfd_create, EMFILE, ENOMEM),
    CALL(timerfd_create, EMFILE, ENOMEM),
    CALL(pidfd_open, EMFILE, ENOMEM),
    CALL(inotify_init1, EMFILE, ENOMEM),
    CALL(inotify_add_watch, ENOSPC, ENOMEM),
    CALL(fcntl, EINVAL, EMFILE),
    CALL(dup, EMFILE),
    CALL(timer_create, EAGAIN, ENOMEM),
    CALL(timer_settime, EINVAL),
    CALL(prctl, EINVAL, EPERM),
    CALL(seccomp, EINVAL, ENOMEM),
    CALL(capget, EINVAL),
    CALL(capset, EPERM),
    CALL(landlock_create_ruleset, EOPNOTSUPP, EMFILE, ENOMEM),
    CALL(landlock_add_rule, ENOMEM),
    CALL(landlock_restrict_self, E2BIG, EPERM),
    CALL(prlimit64, EPERM),
    CALL(setrlimit, EPERM),
    CALL(mmap, ENOMEM),
    CALL(mremap, ENOMEM),
    CALL(poll, EINTR),
    CALL(ppoll, EINTR),
    CALL(wait4, EINTR),
    CALL(waitid, EINTR),
    CALL(clock_nanosleep, EINTR),
    CALL(nanosleep, EINTR),
    CALL(getrandom, EINTR),
    CALL(getcwd, ENOENT, ENOMEM),
    CALL(socket, EMFILE, ENOBUFS),
    CALL(connect, ECONNREFUSED, EAGAIN, EINTR),
    CALL(accept4, EMFILE, ENOMEM, EINTR, ECONNABORTED),
    CALL(sendmsg, EPIPE, ENOBUFS, EINTR, EAGAIN),
    CALL(sendto, EPIPE, ENOBUFS, EINTR, EAGAIN),
    CALL(recvmsg, ECONNRESET, EINTR, EAGAIN, ENOMEM),
    CALL(recvfrom, ECONNRESET, EINTR, EAGAIN, ENOMEM),
    CALL(getsockopt, EINVAL),
    CALL(setsockopt, EINVAL),
    CALL(kill, EPERM),
    CALL(ioctl, ENOTTY),
#undef CALL
};

static pid_t processes[kMaxProcesses];
static size_t process_count;

static void add_process(pid_t pid) {
  for (size_t i = 0; i < process_count; ++i) {
    if (processes[i] == pid) return;
  }
  if (process_count < kMaxProcesses) processes[process_count++] = pid;
}

static void remove_process(pid_t pid) {
  for (size_t i = 0; i < process_count; ++i) {
    if (processes[i] == pid) processes[i] = processes[--process_count];
  }
}

static _Noreturn void give_up(const char* what) {
  fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
  exit(kFailed);
}

/* The program, stopped behind its own execve. */
static pid_t launch(char** argv) {
  const pid_t child = fork();
  if (child < 0) give_up("fork");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) give_up("PTRACE_TRACEME");
    raise(SIGSTOP);
    execv(argv[0], argv);
    give_up(argv[0]);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) give_up("wait for the program");
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) give_up("PTRACE_SETOPTIONS");
  if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0) give_up("PTRACE_CONT");
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
      status >> 16 != PTRACE_EVENT_EXEC)
    give_up("execute the program");
  return child;
}

/* Calls after which nothing outside the process is other than before. */
static bool is_quiet(pid_t process, const struct __ptrace_syscall_info* info) {
  switch (info->entry.nr) {
    case SYS_openat: return (info->entry.args[2] & (O_CREAT | O_TRUNC)) == 0;
    case SYS_openat2: {  // the flags are the first member of struct open_how
      const long flags = ptrace(PTRACE_PEEKDATA, process, info->entry.args[2], NULL);
      return (flags & (O_CREAT | O_TRUNC)) == 0;
    }
    case SYS_access:
    case SYS_arch_prctl:
    case SYS_brk:
    case SYS_capget:
    case SYS_capset:
    case SYS_clock_gettime:
    case SYS_close:
    case SYS_dup:
    case SYS_faccessat:
    case SYS_fcntl:
    case SYS_fstat:
    case SYS_fstatfs:
    case SYS_futex:
    case SYS_getcwd:
    case SYS_getdents64:
    case SYS_getegid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getpid:
    case SYS_getppid:
    case SYS_getrandom:
    case SYS_getuid:
    case SYS_lgetxattr:
    case SYS_lseek:
    case SYS_madvise:
    case SYS_mmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_munmap:
    case SYS_newfstatat:
    case SYS_pipe2:
    case SYS_poll:
    case SYS_prctl:
    case SYS_pread64:
    case SYS_prlimit64:
    case SYS_read:
    case SYS_readlink:
    case SYS_readlinkat:
    case SYS_rseq:
    case SYS_rt_sigaction:
    case SYS_rt_sigprocmask:
    case SYS_seccomp:
    case SYS_set_robust_list:
    case SYS_set_tid_address:
    case SYS_statx:
    case SYS_sysinfo:
    case SYS_umask:
    case SYS_uname:
    case SYS_wait4: return true;
    default: return false;
  }
}

#ifdef __x86_64__
/* From the registers: at its entry a call's result is -ENOSYS. (A call that the kernel does not
 * know counts twice that way.) */
static bool read_registers(pid_t pid, struct __ptrace_syscall_info* info) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return false;
  info->op = (long)registers.rax == -ENOSYS ? PTRACE_SYSCALL_INFO_ENTRY : PTRACE_SYSCALL_INFO_EXIT;
  info->entry.nr = registers.orig_rax;
  info->entry.args[2] = registers.rdx;
  return true;
}
#else
static bool read_registers(pid_t pid, struct __ptrace_syscall_info* info) {
  (void)pid, (void)info;
  return false;
}
#endif

/* The row of a system call in kErrors that has a `kind`-th error, or NULL. */
static const int* find_error(unsigned long long number, int kind) {
  for (size_t i = 0; i < sizeof kErrors / sizeof kErrors[0]; ++i) {
    if (kErrors[i].number == number && kind < kMaxErrors && kErrors[i].errors[kind] != 0)
      return &kErrors[i].errors[kind];
  }
  return NULL;
}

static const char* name_of(unsigned long long number) {
  for (size_t i = 0; i < sizeof kErrors / sizeof kErrors[0]; ++i) {
    if (kErrors[i].number == number) return kErrors[i].name;
  }
  return "-";
}

/* Is this process about to begin a system call that counts? `number`: of the call. */
static bool begins(pid_t pid, bool every, int kind, unsigned long long* number) {
  struct __ptrace_syscall_info info;
  memset(&info, 0, sizeof info);
  /* user-mode-linux does not know the request. */
  if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 && errno != ESRCH &&
      !read_registers(pid, &info) && errno != ESRCH)
    give_up("read a system call");
  *number = info.entry.nr;
  return info.op == PTRACE_SYSCALL_INFO_ENTRY && (every || !is_quiet(pid, &info)) &&
         (kind < 0 || find_error(info.entry.nr, kind) != NULL);
}

#ifdef __x86_64__
/* At its entry: it is not carried out, and getpid, which all filters allow, in its place. A close
 * is carried out, for it closes whatever it returns. */
static void replace_call(pid_t pid) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) give_up("read the registers");
  if (registers.orig_rax == SYS_close) return;
  registers.orig_rax = SYS_getpid;
  if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) != 0) give_up("replace a system call");
}

/* At its exit. */
static void replace_result(pid_t pid, int error) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) give_up("read the registers");
  registers.rax = (unsigned long long)-error;
  if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) != 0) give_up("replace a result");
}
#else
static void replace_call(pid_t pid) {
  (void)pid;
  errno = ENOSYS;
  give_up("let a system call fail on this architecture");
}

static void replace_result(pid_t pid, int error) {
  (void)pid, (void)error;
}
#endif

/* What a stopped process is to go on with: the number of a signal that it received, or 0. */
static int pending_signal(int status, bool is_new) {
  const int number = WSTOPSIG(status);
  if (status >> 16 != 0 || number == (SIGTRAP | 0x80)) return 0;
  /* A new process begins with a SIGSTOP of ptrace's own. */
  return is_new && number == SIGSTOP ? 0 : number;
}

static void report(const char* file_name, long count, bool struck, unsigned long long number,
                   int error) {
  if (strcmp(file_name, "-") == 0) return;
  FILE* file = fopen(file_name, "w");
  if (file == NULL ||
      fprintf(file, "%ld %d %s %d\n", count, struck, struck ? name_of(number) : "-", error) < 0 ||
      fclose(file) != 0)
    give_up(file_name);
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fputs("usage: stepper all|one|fail=K every|effects N COUNT-FILE PROGRAM [ARG...]\n", stderr);
    return kFailed;
  }
  const bool everybody = strcmp(argv[1], "all") == 0;
  const int kind = strncmp(argv[1], "fail=", 5) == 0 ? atoi(argv[1] + 5) : -1;
  const bool every = strcmp(argv[2], "every") == 0;
  const long deadline = atol(argv[3]);
  const pid_t program = launch(argv + 5);
  add_process(program);
  ptrace(PTRACE_SYSCALL, program, NULL, NULL);

  long count = 0;
  bool struck = false;
  pid_t failing = 0; /* the process whose call is to fail, until it does */
  int error = 0;
  int result = kFailed;
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
    if (pid < 0) continue;
    if (!WIFSTOPPED(status)) {
      remove_process(pid);
      if (pid == program) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    const size_t before = process_count;
    add_process(pid);
    if (status >> 16 == PTRACE_EVENT_EXEC) {
      ptrace(PTRACE_DETACH, pid, NULL, NULL);
      continue;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      unsigned long long number = 0;
      const bool counts = begins(pid, every, kind, &number);
      if (pid == failing) {
        replace_result(pid, error);
        failing = 0;
      } else if (counts && ++count == deadline) {
        struck = true;
        error = kind < 0 ? 0 : *find_error(number, kind);
        report(argv[4], count, true, number, error);
        if (kind >= 0) {
          replace_call(pid);
          failing = pid;
        } else {
          for (size_t i = 0; i < process_count; ++i) {
            if (everybody || processes[i] == pid) kill(processes[i], SIGKILL);
          }
          continue;
        }
      }
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, pending_signal(status, process_count > before));
  }
  if (!struck) report(argv[4], count, false, 0, 0);
  return result;
}

/* Runs a program and kills it at its N-th system call.
 *
 * usage: stepper all|one every|effects N COUNT-FILE PROGRAM [ARG...]
 *
 * Counted are the system calls of the program and of its children, in the order in which they
 * begin: every one, or only those that may change something outside the process. The N-th is not
 * carried out any more: "all" kills every process then, "one" only the process that made it. With
 * N = 0 nothing is killed. Once the program executes another one it is let go, so that a wrapper's
 * runtime runs as always. COUNT-FILE ("-": none) receives "COUNT KILLED". The exit status is the
 * program's, 137 if it was killed.
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

enum { kMaxProcesses = 64, kFailed = 125 };

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
/* From the registers: at its entry a call's result is -ENOSYS. (A call that the kernel does not know
 * counts twice that way.) */
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

/* Is this process about to begin a system call that counts? */
static bool begins(pid_t pid, bool every) {
  struct __ptrace_syscall_info info;
  memset(&info, 0, sizeof info);
  /* user-mode-linux does not know the request. */
  if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 && errno != ESRCH &&
      !read_registers(pid, &info) && errno != ESRCH)
    give_up("read a system call");
  return info.op == PTRACE_SYSCALL_INFO_ENTRY && (every || !is_quiet(pid, &info));
}

/* What a stopped process is to go on with: the number of a signal that it received, or 0. */
static int pending_signal(int status, bool is_new) {
  const int number = WSTOPSIG(status);
  if (status >> 16 != 0 || number == (SIGTRAP | 0x80)) return 0;
  /* A new process begins with a SIGSTOP of ptrace's own. */
  return is_new && number == SIGSTOP ? 0 : number;
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fputs("usage: stepper all|one every|effects N COUNT-FILE PROGRAM [ARG...]\n", stderr);
    return kFailed;
  }
  const bool everybody = strcmp(argv[1], "all") == 0;
  const bool every = strcmp(argv[2], "every") == 0;
  const long deadline = atol(argv[3]);
  const pid_t program = launch(argv + 5);
  add_process(program);
  ptrace(PTRACE_SYSCALL, program, NULL, NULL);

  long count = 0;
  bool killed = false;
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
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) && begins(pid, every) && ++count == deadline) {
      killed = true;
      for (size_t i = 0; i < process_count; ++i) {
        if (everybody || processes[i] == pid) kill(processes[i], SIGKILL);
      }
      continue;
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, pending_signal(status, process_count > before));
  }

  if (strcmp(argv[4], "-") != 0) {
    FILE* file = fopen(argv[4], "w");
    if (file == NULL || fprintf(file, "%ld %d\n", count, killed) < 0 || fclose(file) != 0)
      give_up(argv[4]);
  }
  return result;
}

/* Starts programs as a container runtime starts a hook, and measures them.
 *
 *   driver time N PROGRAMS RESTORE   N rounds of all programs in turn; prints "NAME<TAB>NS<TAB>MAXRSS_KB" for each run
 *   driver once J PROGRAMS           every program once, J at a time; prints the total time in nanoseconds
 *   driver steps PROGRAMS            the first program, one machine instruction after the other; prints their number
 *
 * PROGRAMS has one line each: NAME, file for standard input, working directory, argv; separated by tabs. Standard input
 * is a pipe that holds the file's bytes, standard output a pipe. RESTORE is what puts the state back after each timed
 * run, outside the measured time: "f PATH HEX" (re)writes a file, "w PATH HEX" writes to a control file, "u PATH"
 * unlinks, "l PATH HEX" makes a symbolic link, "x PATH HEX" sets the record's attribute; separated by tabs too.
 *
 * A static program with little memory of its own: what the kernel reports as a child's peak includes the moment before
 * its execve.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGS = 32, PIPE_SIZE = 1 << 20 };

struct bytes {
  char *data;
  size_t size;
};

struct program {
  char *name;
  struct bytes input;
  char *cwd;
  char *argv[MAX_ARGS];
};

struct action {
  char kind;
  char *path;
  struct bytes content;
};

struct programs {
  struct program *list;
  size_t count;
};

struct actions {
  struct action *list;
  size_t count;
};

extern char **environ;

static void die(const char *what) {
  fprintf(stderr, "driver: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct bytes read_file(const char *path) {
  struct bytes out = {NULL, 0};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat file;
  if (fd < 0 || fstat(fd, &file) != 0) die(path);
  out.data = malloc((size_t)file.st_size + 1);
  while (out.size < (size_t)file.st_size) {
    const ssize_t n = read(fd, out.data + out.size, (size_t)file.st_size - out.size);
    if (n <= 0) die(path);
    out.size += (size_t)n;
  }
  out.data[out.size] = '\0';
  close(fd);
  return out;
}

static struct bytes from_hex(const char *text) {
  struct bytes out = {malloc(strlen(text) / 2 + 1), 0};
  for (unsigned value; sscanf(text + 2 * out.size, "%2x", &value) == 1;) out.data[out.size++] = (char)value;
  out.data[out.size] = '\0'; /* of a link's target */
  return out;
}

static struct programs read_programs(const char *path) {
  struct programs out = {NULL, 0};
  char *rest = read_file(path).data;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (*line == '\0') continue;
    out.list = realloc(out.list, (out.count + 1) * sizeof *out.list);
    struct program *program = &out.list[out.count++];
    memset(program, 0, sizeof *program);
    program->name = strsep(&line, "\t");
    program->input = read_file(strsep(&line, "\t"));
    program->cwd = strsep(&line, "\t");
    for (size_t i = 0; line != NULL && i + 1 < MAX_ARGS; ++i) program->argv[i] = strsep(&line, "\t");
  }
  return out;
}

static struct actions read_actions(const char *path) {
  struct actions out = {NULL, 0};
  char *rest = read_file(path).data;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (*line == '\0') continue;
    out.list = realloc(out.list, (out.count + 1) * sizeof *out.list);
    struct action *action = &out.list[out.count++];
    action->kind = *strsep(&line, "\t");
    action->path = strsep(&line, "\t");
    action->content = from_hex(line != NULL ? line : "");
  }
  return out;
}

static void write_bytes(const char *path, int flags, struct bytes content) {
  const int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, content.data, content.size) != (ssize_t)content.size) die(path);
  close(fd);
}

static void restore(const struct actions *actions) {
  for (size_t i = 0; i < actions->count; ++i) {
    const struct action *a = &actions->list[i];
    switch (a->kind) {
      case 'f': write_bytes(a->path, O_CREAT | O_TRUNC, a->content); break;
      case 'w': write_bytes(a->path, 0, a->content); break;
      case 'l':
        unlink(a->path);
        if (symlink(a->content.data, a->path) != 0) die(a->path);
        break;
      case 'u': unlink(a->path); break; /* a program that only reads has not made it */
      case 'x':
        if (setxattr(a->path, "trusted.podqos.record", a->content.data, a->content.size, 0) != 0) die(a->path);
        break;
      default: errno = EINVAL; die("restore");
    }
  }
}

/* A pipe that holds `input`; its write end is closed. */
static int filled_pipe(struct bytes input) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) die("pipe");
  if (input.size > 65536) fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
  if (input.size > 0 && write(ends[1], input.data, input.size) != (ssize_t)input.size) die("fill pipe");
  close(ends[1]);
  return ends[0];
}

/* Starts a program whose output nobody reads before its end; the pipe is large enough. */
static pid_t start(const struct program *program, int input, int output) {
  posix_spawn_file_actions_t files;
  pid_t pid;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addchdir_np(&files, program->cwd);
  errno = posix_spawn(&pid, program->argv[0], &files, NULL, program->argv, environ);
  if (errno != 0) die(program->argv[0]);
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check_status(const char *name, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  fprintf(stderr, "driver: %s: wait status %#x\n", name, (unsigned)status);
  exit(1);
}

static void run_timed(const struct program *program) {
  const int input = filled_pipe(program->input);
  int output[2];
  int status;
  struct rusage usage;
  if (pipe2(output, O_CLOEXEC) != 0) die("pipe");
  fcntl(output[1], F_SETPIPE_SZ, PIPE_SIZE);
  const long long begin = now();
  const pid_t pid = start(program, input, output[1]);
  if (wait4(pid, &status, 0, &usage) != pid) die("wait");
  const long long end = now();
  close(input);
  close(output[0]);
  close(output[1]);
  check_status(program->name, status);
  printf("%s\t%lld\t%ld\n", program->name, end - begin, usage.ru_maxrss);
}

/* Real-time priority where it is allowed: other work on the machine is not what is measured. */
static void settle(void) {
  const struct sched_param priority = {.sched_priority = 1};
  const int real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  fprintf(stderr, "%s\n", real_time ? "SCHED_FIFO" : "no real-time priority");
}

static int run_rounds(size_t rounds, const char *programs_file, const char *restore_file) {
  const struct programs programs = read_programs(programs_file);
  const struct actions actions = read_actions(restore_file);
  settle();
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < programs.count; ++i) {
      /* Each program follows each other one as often. */
      run_timed(&programs.list[(i + round) % programs.count]);
      restore(&actions);
      /* The kernel stops real-time programs that leave nothing to others. */
      usleep(300);
    }
  }
  return 0;
}

static int run_once(size_t at_a_time, const char *programs_file) {
  const struct programs programs = read_programs(programs_file);
  int *inputs = calloc(programs.count, sizeof *inputs);
  const int output = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (size_t i = 0; i < programs.count; ++i) inputs[i] = filled_pipe(programs.list[i].input);
  size_t running = 0;
  settle();
  const long long begin = now();
  for (size_t i = 0; i < programs.count || running > 0;) {
    int status;
    while (running < at_a_time && i < programs.count) {
      start(&programs.list[i], inputs[i], output);
      ++i;
      ++running;
    }
    if (wait(&status) < 0) die("wait");
    check_status("one of many", status);
    --running;
  }
  printf("%lld\n", now() - begin);
  return 0;
}

/* Tracer and traced take turns: on one CPU that is faster. */
static void stay_on_one_cpu(void) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((unsigned)sched_getcpu(), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

static pid_t start_traced(const struct program *program) {
  const int input = filled_pipe(program->input);
  const int output = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = fork();
  if (pid == 0) {
    if (chdir(program->cwd) != 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(1);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(1);
    execve(program->argv[0], program->argv, environ);
    _exit(127);
  }
  close(input);
  close(output);
  return pid;
}

static int count_steps(const char *programs_file) {
  const struct programs programs = read_programs(programs_file);
  settle();
  stay_on_one_cpu();
  const pid_t pid = start_traced(&programs.list[0]);
  int status;
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) die("trace");
  long long steps = 0;
  while (WIFSTOPPED(status)) {
    const int sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)sig) != 0) die("step");
    if (waitpid(pid, &status, 0) != pid) die("wait");
    ++steps;
  }
  check_status(programs.list[0].name, status);
  printf("%lld\n", steps);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "time") == 0) return run_rounds((size_t)atol(argv[2]), argv[3], argv[4]);
  if (argc == 4 && strcmp(argv[1], "once") == 0) return run_once((size_t)atol(argv[2]), argv[3]);
  if (argc == 3 && strcmp(argv[1], "steps") == 0) return count_steps(argv[2]);
  fprintf(stderr, "usage: see the head of driver.c\n");
  return 2;
}

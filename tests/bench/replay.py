"""A bare static C program that makes the syscalls of a traced hook again: the floor below which the hook cannot go.

The program is generated from strace's output: same names, same order, same arguments, paths, sizes and bytes written.
The calls that the C library itself makes at the start of any static program are left out once, for the generated
program makes them too. Descriptors have the same numbers, since both programs start with the same ones.
"""

import collections
import re

import scenario
from syscalls import Program, field, text_of, trace

# What each argument is: i integer, s bytes given, b buffer that the kernel fills; a final * repeats. Calls that need
# more than that are methods of Generator.
ARGUMENTS = {
    "openat": "isi*", "open": "si*", "openat2": "ishi", "close": "i", "close_range": "iii",
    "read": "ibi", "pread64": "ibii", "write": "isi", "pwrite64": "isii", "lseek": "iii", "ftruncate": "ii",
    "flock": "ii", "fcntl": "ii*", "umask": "i", "prctl": "i*", "getpid": "", "getppid": "", "gettid": "",
    "getuid": "", "geteuid": "", "getgid": "", "getegid": "", "newfstatat": "isbi", "fstat": "ib", "stat": "sb",
    "lstat": "sb", "statx": "isiib", "fstatfs": "ib", "statfs": "sb", "sysinfo": "b", "getdents64": "ibi",
    "readlink": "sbi", "readlinkat": "isbi", "getcwd": "bi", "getrandom": "bii", "faccessat": "isi",
    "faccessat2": "isii", "access": "si", "renameat": "isis", "renameat2": "isisi", "rename": "ss",
    "unlinkat": "isi", "unlink": "s", "mkdirat": "isi", "mkdir": "si", "rmdir": "s", "fchmod": "ii", "fchown": "iii",
    "fsetxattr": "issii", "fgetxattr": "isbi", "fremovexattr": "is", "uname": "b", "sched_yield": "",
    "utimensat": "iiii",
}
MAKERS = ("brk", "mprotect", "mmap", "munmap", "capget", "capset", "seccomp", "timer_create", "timer_settime",
          "exit_group")
CODE = re.compile(r"\{\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+)U?\}")


def filter_of(header, name="kHookFilter"):
    """The instructions of a generated filter as C text."""
    text = header.read_text(encoding="utf-8")
    body = text[text.index(name):]
    rows = CODE.findall(body[:body.index("}};")])
    return "static struct sock_filter filter[] = {\n" + ",\n".join(f"  {{{', '.join(row)}}}" for row in rows) + "};\n"


class Generator:
    """Turns calls into C statements."""

    def __init__(self, calls):
        self.calls = calls
        parents = [str(int(call.result, 0)) for call in calls if call.name == "getppid"]
        # In the trace the parent is strace; the replay looks at itself instead of these two.
        self.passing = {f"/proc/{pid}/".encode() for pid in (calls[0].pid, *parents)}
        self.top = None  # of the heap, in the traced program

    def source(self):
        body = "\n".join(f"  {self._statement(call)};" for call in self.calls if call.name != "exit_group")
        return (
            "#define _GNU_SOURCE\n#include <linux/capability.h>\n#include <linux/filter.h>\n"
            "#include <linux/openat2.h>\n#include <linux/seccomp.h>\n#include <signal.h>\n#include <sys/mman.h>\n"
            "#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
            '#include "filter.h"\nstatic char buffer[1 << 20];\n'
            "static char page[8192] __attribute__((aligned(4096)));\n"
            "int main(void) {\n  (void)page;\n  long top = (long)sbrk(0), map = 0;\n  (void)top, (void)map;\n"
            f"{body}\n  _exit(0);\n}}\n")

    def _statement(self, call):
        if call.name in MAKERS:
            return getattr(self, f"_{call.name}")(call)
        if call.name not in ARGUMENTS:
            raise RuntimeError(f"replay.py does not know the syscall {call.name}({', '.join(call.arguments)})")
        kinds = ARGUMENTS[call.name]
        if kinds.endswith("*"):
            kinds = kinds[:-1].ljust(len(call.arguments), kinds[-2])
        given = [self._argument(kind, call.arguments[i]) for i, kind in enumerate(kinds)]
        return f"syscall({', '.join([f'SYS_{call.name}', *given])})"

    def _argument(self, kind, text):
        if kind == "i":
            return text if text != "NULL" else "0"
        if kind == "b":
            return "buffer"
        if kind == "h":
            names = ("flags", "mode", "resolve")
            fields = ", ".join(f".{name} = {field(text, name)}" for name in names)
            return f"&(struct open_how){{{fields}}}"
        given = text_of(text)
        if given is None:
            return "buffer"
        for directory in self.passing:
            given = given.replace(directory, b"/proc/self/")
        return '"' + "".join(f"\\{byte:03o}" for byte in given) + '"'

    def _brk(self, call):
        asked, got = call.arguments[0], int(call.result, 16)
        grown = 0 if asked in ("NULL", "0") or self.top is None else got - self.top
        self.top = got
        return f"top = syscall(SYS_brk, top + {grown})" if grown else "syscall(SYS_brk, 0)"

    def _mprotect(self, _):
        return "syscall(SYS_mprotect, page, 4096, PROT_READ)"

    def _mmap(self, call):
        return f"map = syscall(SYS_mmap, 0, {call.arguments[1]}, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"

    def _munmap(self, call):
        return f"syscall(SYS_munmap, map, {call.arguments[1]})"

    def _capget(self, _):
        return "syscall(SYS_capget, &(struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0}, buffer)"

    def _capset(self, call):
        sets = [int(field(call.arguments[1], name), 0) for name in ("effective", "permitted", "inheritable")]
        words = ", ".join("{" + ", ".join(hex(s >> shift & 0xffffffff) for s in sets) + "}" for shift in (0, 32))
        return ("syscall(SYS_capset, &(struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0}, "
                f"(struct __user_cap_data_struct[2]){{{words}}})")

    def _timer_create(self, _):
        return ("{ struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL}; int timer; "
                "syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer); }")

    def _timer_settime(self, _):
        return "{ struct itimerspec time = {{0, 0}, {30, 0}}; syscall(SYS_timer_settime, 0, 0, &time, 0); }"

    def _seccomp(self, _):
        return ("syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, "
                "&(struct sock_fprog){sizeof filter / sizeof *filter, filter})")


def without_start(calls, start):
    """`calls` without the first of each call that the C library makes at the start of a static program."""
    left = collections.Counter(call.name for call in start if call.name != "exit_group")
    kept = []
    for call in calls:
        if left[call.name] > 0:
            left[call.name] -= 1
        else:
            kept.append(call)
    return kept


def build(program, directory, restore):
    """The replay of a Program. Calls restore() after each traced run.

    Returns (executable, calls of the program, calls of the replay)."""
    calls = trace(program, directory / "strace.hook")
    restore()
    start = trace(Program([directory / "noop"], b"", "/"), directory / "strace.start")
    source, target = directory / "replay.c", directory / "replay"
    source.write_text(Generator(without_start(calls, start)).source(), encoding="ascii")
    (directory / "filter.h").write_text(filter_of(scenario.GENERATED / "podqos_seccomp.h"), encoding="ascii")
    scenario.compile_c(source, target, "-Wno-unused-result", "-Wno-unused-variable", f"-I{directory}")
    again = trace(Program([target], program.given, program.cwd), directory / "strace.replay")
    restore()
    return target, calls, again


def differences(calls, again, tolerance=2):
    """What makes the replay no replay: counts by name that differ by more than `tolerance`, outcomes that differ."""
    one, two = (collections.Counter(call.name for call in c) for c in (calls, again))
    found = [f"{name}: {one[name]} in the hook, {two[name]} in the replay"
             for name in sorted(set(one) | set(two)) if abs(one[name] - two[name]) > tolerance]
    failed = [collections.Counter(c.name for c in list_ if c.result.startswith("-1")) for list_ in (calls, again)]
    return found + [f"{name}: fails {failed[0][name]} times in the hook, {failed[1][name]} in the replay"
                    for name in sorted(set(failed[0]) | set(failed[1])) if failed[0][name] != failed[1][name]]

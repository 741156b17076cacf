"""Programs started with as little of Python as can be, and what they cost."""

import collections
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile
import time

Program = collections.namedtuple("Program", "argv given cwd")  # given: bytes for standard input
Spent = collections.namedtuple("Spent", "cpu time")  # milliseconds; CPU with all processes that the program waited for

PTRACE_TRACEME, PTRACE_CONT, PTRACE_SETOPTIONS = 0, 7, 0x4200
PTRACE_O_EXITKILL, PTRACE_O_TRACEEXIT = 0x100000, 0x40
PTRACE_EVENT_EXIT = 6
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


@contextlib.contextmanager
def _input(program):
    """A file with what the program is given."""
    with tempfile.NamedTemporaryFile() as given:
        given.write(program.given)
        given.flush()
        yield given.name


def _begin(program, given, said):
    argv = [str(word) for word in program.argv]
    files = [(os.POSIX_SPAWN_OPEN, 0, given, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, said, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=files)


def _check(program, status, said):
    """A program must succeed without a word."""
    said.seek(0)
    text = said.read().decode("utf-8", "replace")
    if status != 0 or text:
        raise RuntimeError(f"{' '.join(map(str, program.argv))}: wait status {status:#x}\n{text}")


def run(program):
    """What a program costs from its start to its end. It runs in the caller's directory."""
    with _input(program) as given, tempfile.TemporaryFile() as said:
        begin = time.monotonic_ns()
        pid = _begin(program, given, said.fileno())
        _, status, usage = os.wait4(pid, 0)
        spent = (time.monotonic_ns() - begin) / 1e6
        _check(program, status, said)
    return Spent((usage.ru_utime + usage.ru_stime) * 1e3, spent)


def run_all(programs, at_a_time):
    """Seconds that all programs take, so many at a time; the caller has no other children that end."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        for number, program in enumerate(programs):
            pathlib.Path(folder, str(number)).write_bytes(program.given)
        begin, waiting, running = time.monotonic(), list(enumerate(programs)), {}
        while waiting or running:
            while waiting and len(running) < at_a_time:
                number, program = waiting.pop()
                running[_begin(program, f"{folder}/{number}", said.fileno())] = program
            pid, status = os.wait()
            _check(running.pop(pid), status, said)
        return time.monotonic() - begin


def _ptrace(request, pid, value=None):
    if _libc.ptrace(request, pid, None, value) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")


@contextlib.contextmanager
def _traced(program):
    """The pid of a program that has just been started and is stopped."""
    with _input(program) as given:
        pid = os.fork()
        if pid == 0:
            for number, (name, flags) in enumerate(((given, os.O_RDONLY), (os.devnull, os.O_WRONLY))):
                os.dup2(os.open(name, flags), number)
            os.chdir(program.cwd)
            _ptrace(PTRACE_TRACEME, 0)
            os.execv(program.argv[0], list(map(str, program.argv)))
        os.waitpid(pid, 0)
        _ptrace(PTRACE_SETOPTIONS, pid, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT)
        yield pid


def _go_on(pid, status, request):
    """Passes on the signal that a program was stopped by, and returns its next wait status."""
    by = os.WSTOPSIG(status)
    _ptrace(request, pid, None if by == signal.SIGTRAP else by)
    return os.waitpid(pid, 0)[1]


def instructions(program):
    """How many a program executes outside of the kernel, as valgrind counts them: the same on any machine."""
    with _input(program) as given, tempfile.TemporaryDirectory() as folder:
        counted = pathlib.Path(folder, "counted")
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counted}", *map(str, program.argv)]
        with open(given, "rb") as source:
            done = subprocess.run(command, stdin=source, capture_output=True, check=False, cwd=program.cwd)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stderr.decode('utf-8', 'replace')}")
        lines = counted.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("totals: "))


def peak_memory(program):
    """The most that a program has resident, in bytes."""
    with _traced(program) as pid:
        status = _go_on(pid, signal.SIGTRAP << 8, PTRACE_CONT)
        while status >> 8 != signal.SIGTRAP | PTRACE_EVENT_EXIT << 8:
            status = _go_on(pid, status, PTRACE_CONT)
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        _go_on(pid, status, PTRACE_CONT)
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))

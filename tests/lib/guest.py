"""A second machine for tests: commands and test files in the guest that tests/guest/boot boots.

    machine = guest.Guest("v1")                    # this machine's own root, copy-on-write
    machine = guest.Guest("v2", kernel=("cgroup_disable=memory",))  # with these words for its kernel
    machine = guest.Guest("systemd", root="trixie")  # Debian 13, made once by tests/guest/mkroot
    machine.require()                              # raises unittest.SkipTest with the reason where it cannot run
    done = machine.run("sh", "-c", "uname -r")     # CompletedProcess: status, and output as text
    done = machine.run_test("tests/integration/event/hooks_test.py", "Move_crun")

The tree stands in the guest where it stands here: on this machine's root by itself, elsewhere read-only. Test files run
the programs of the Debian package, which is made of those of PODQOS_BIN and installed first; the PODQOS_ variables go
along. As a program it runs one test file or test program, for ctest:

    guest.py [--root NAME] [--mem SIZE] FLAVOUR TEST [ARGUMENT...]

FLAVOUR is v1, hybrid, v2 (all three with a shell as PID 1), systemd (v2), or emulated: v2 with a shell as PID 1 and all
that user-mode-linux lacks (PSI, cpuset, huge pages, two CPUs), for the tests that need it. In counted, one more of that
kind, CPU time is the number of instructions.
"""

import argparse
import concurrent.futures
import fcntl
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BOOT, MKROOT, MKKERNEL, INSTALLED = (REPOSITORY / "tests/guest" / name
                                     for name in ("boot", "mkroot", "mkkernel", "installed"))
BIN = pathlib.Path(os.environ.get("PODQOS_BIN", REPOSITORY / "build/release/bin"))
FLAVOURS = {
    "v1": ("--cgroup", "v1"),
    "hybrid": ("--cgroup", "hybrid"),
    "v2": ("--cgroup", "v2"),
    "systemd": ("--systemd",),
    "emulated": ("--emulated", "--cpus", "2"),
    "counted": ("--emulated", "--count"),
}
# What PID 1 is, and the kinds of mounted hierarchies; of the other flavours OTHERS_HAVE.
HAS = {"v1": "sh cgroup", "hybrid": "sh cgroup cgroup2", "systemd": "systemd cgroup2"}
OTHERS_HAVE = "sh cgroup2"
# Before each test, for it asks the kernel what there is, and passes with that: words of sh(1), then HAS and a command.
IF_OF_FLAVOUR = ("sh", "-c", """found="$(cat /proc/1/comm) $(findmnt -rno FSTYPE -t cgroup,cgroup2 | sort -u | xargs)"
    [ "$found" = "$0" ] || { echo "the guest has $found, not $0"; exit 1; }
    exec "$@\"""")
MACHINE = "machine"  # the root of this machine; every other name is a release of Debian
SKIPPED, FAULT, TIMEOUT, DIED = 77, 123, 124, 125  # exit statuses of tests/guest/boot
BOOTS = 4  # of a guest whose kernel dies of a fault of its own: most often among hogs, twice in a row once
GRACE = 600  # seconds that a guest may live after PODQOS_END_BY
# What tests of a release that moves were written for, as the beginnings of versions; with others they are skipped.
WRITTEN_FOR = {"testing": {"containerd": "2.1.", "runc": "1.3.", "crun": "1.28", "podman": "5.8.", "docker.io": "28."}}


def inside():
    """Is this process in a guest?"""
    return pathlib.Path("/run/guest/settings").exists()


@functools.cache
def _reason_against(*options):
    """Why no guest with these options of boot can run, or None."""
    done = subprocess.run([BOOT, *options, "--check"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()


def _unexpected(suite, root):
    """How a release that moves differs from what the tests were written for, or None."""
    status = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    found = dict(re.findall(r"^Package: (.+)\n(?:.+\n)*?Version: (.+)$", status, re.MULTILINE))
    wanted = WRITTEN_FOR.get(suite, {})
    others = [f"{name} {found.get(name)}" for name, version in wanted.items()
              if not found.get(name, "").startswith(version)]
    return f"Debian {suite} has moved: it has {', '.join(others)}" if others else None


@functools.cache
def made_root(suite):
    """(directory, None), or (None, why there is none)."""
    command = [MKROOT, "--suite", suite]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == SKIPPED:
        return None, done.stderr.strip()
    if done.returncode != 0:
        raise RuntimeError(f"tests/guest/mkroot: exit {done.returncode}\n{done.stderr}")
    root = pathlib.Path(done.stdout.strip())
    reason = _unexpected(suite, root)
    return (None, reason) if reason else (root, None)


def _built_at():
    """When what goes into the package was changed last."""
    made = [path for path in BIN.iterdir() if path.name in ("podqos-hook", "podqosctl", "podqos-nri")]
    written = [path for path in (REPOSITORY / "packaging").rglob("*") if path.is_file()]
    return max(path.stat().st_mtime for path in made + written)


def require_tools(*tools):
    """Skips the calling test, with the reason, where a program is not installed; without names those that build packages."""
    if lacking := [tool for tool in tools or ("dpkg-buildpackage", "dh", "cmake", "ninja") if not shutil.which(tool)]:
        raise unittest.SkipTest(f"these are not installed: {', '.join(lacking)}")


@functools.cache
def packages():
    """A directory with the Debian packages of the programs of PODQOS_BIN, kept beside them. Who needs them first makes
    them."""
    require_tools()
    place = BIN.resolve().parent / "packages"
    place.mkdir(exist_ok=True)
    made = place / "podqos.deb"
    with (place / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and made.stat().st_mtime > _built_at():
            return place
        done = subprocess.run([REPOSITORY / "packaging/deb/build", place], capture_output=True, text=True, check=False,
                              env={**os.environ, "PODQOS_BUILT": str(place.parent)})
        if done.returncode != 0:
            raise RuntimeError(f"packaging/deb/build: exit {done.returncode}\n{done.stderr}")
        for line in done.stdout.splitlines():
            built = pathlib.Path(line)
            built.rename(place / f"{built.name.partition('_')[0]}.deb")
    return place


class Guest:
    """One kind of guest. Each run boots a new one, so that nothing of an earlier run is there."""

    def __init__(self, flavour, root=MACHINE, mem="1G", kernel=()):
        if flavour not in FLAVOURS:
            raise ValueError(f"no such flavour: {flavour}")
        self.flavour, self.root, self.mem, self.kernel = flavour, root, mem, kernel

    def require(self):
        """Skips the calling test, with the reason, where this guest cannot run."""
        reason = made_root(self.root)[1] if self.root != MACHINE else None
        reason = reason or _reason_against(*self._options())
        if reason is not None:
            raise unittest.SkipTest(reason)

    def _options(self):
        options = [*FLAVOURS[self.flavour], "--mem", self.mem]
        for word in self.kernel:
            options += ["--kernel-option", word]
        if self.root != MACHINE:
            options += ["--root", str(made_root(self.root)[0]), "--ro-bind", str(REPOSITORY)]
        return options

    def run(self, *argv, options=(), show=False):
        """Runs a command; `options` are further ones of boot. show: the output goes where ours goes, not into `stdout`.

        It ends with its command, or with us. Status 125 is a guest that ended without a status. One whose kernel has died
        of a fault of its own is booted again.
        """
        self.require()
        output = {} if show else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        sys.stdout.flush()
        if "PODQOS_END_BY" in os.environ:
            # A run that has to end in time (.ci/run): a test that hangs tells what it has said until then.
            options = ("--timeout", max(1, int(os.environ["PODQOS_END_BY"]) + GRACE - int(time.time())), *options)
        # The guest goes when we go, also if that is by SIGKILL.
        command = ["setpriv", "--pdeathsig", "TERM", BOOT, *self._options(), *options, "--", *argv]
        boot = functools.partial(subprocess.run, list(map(str, command)), stdin=subprocess.DEVNULL, check=False,
                                 text=True, errors="replace", **output)
        for _ in range(BOOTS - 1):
            done = boot()
            if done.returncode != FAULT:
                return done
            print(f"{done.stdout or ''}the guest's kernel has died of a fault of its own: booting another", flush=True)
        return boot()

    def run_test(self, file, *args, show=False, installed=True):
        """Runs a test file of the tree against the installed package, or a test program of the build tree.

        Not installed: the test file does that by itself, or has no need of it.
        """
        self.require()
        path = pathlib.Path(file).resolve()
        kept = {k: v for k, v in os.environ.items() if k.startswith("PODQOS_")}
        environment = {**kept, "PODQOS_BIN": str(BIN.resolve()), "PYTHONDONTWRITEBYTECODE": "1"}
        program = ["python3", path] if path.suffix == ".py" else [path]
        if path.suffix == ".py" and installed:
            program = [INSTALLED, packages(), *program]
        checked = [*IF_OF_FLAVOUR, HAS.get(self.flavour, OTHERS_HAVE), *program]
        return self.run("env", *_words(environment), *checked, *args, show=show)


def cases(machines, at_a_time=1, **options):
    """A test case that runs test files in guests: {name of a test: (Guest, file, names of the tests there)}.

    Of several at a time all run, whichever tests were chosen; `options` are run_test()'s.
    """
    class Guests(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            pool = concurrent.futures.ThreadPoolExecutor(at_a_time)
            cls.addClassCleanup(pool.shutdown)
            cls.begun = {name: pool.submit(machine.run_test, *words, **options)
                         for name, (machine, *words) in (machines.items() if at_a_time > 1 else ())}

    def case(name, machine, *words):
        def test(self):
            done = self.begun[name].result() if at_a_time > 1 else machine.run_test(*words, **options)
            print(done.stdout, flush=True)
            self.assertEqual(done.returncode, 0, f"in the guest {name}")
        setattr(Guests, f"test_{name}", test)

    for name, each in machines.items():
        case(name, *each)
    return Guests


def _words(environment):
    """For env(1)."""
    return [f"{name}={value}" for name, value in environment.items()]


def main():
    parser = argparse.ArgumentParser(description="Runs a test in a guest.")
    parser.add_argument("--root", default=MACHINE)
    parser.add_argument("--mem", default="1G")
    parser.add_argument("flavour", choices=FLAVOURS)
    parser.add_argument("test")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    try:
        machine = Guest(given.flavour, given.root, given.mem)
        done = machine.run_test(given.test, *given.arguments, show=True)
    except unittest.SkipTest as skip:
        print(f"skipped: {skip}")
        sys.exit(SKIPPED)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()

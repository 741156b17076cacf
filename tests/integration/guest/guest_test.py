"""The guest of tests/guest itself: what comes out of it, how it ends, and that it harms and leaves nothing."""

import concurrent.futures
import contextlib
import hashlib
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import patience  # noqa: E402

HAS_COME = "the guest is up"
END_TIMEOUT = 10  # seconds in which a guest has to be gone
BOOT_TIMEOUT = 60


def processes():
    """{pid: (parent, process group, argv)} of all processes of this machine."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
            argv = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat[0] != "Z":
            found[int(entry.name)] = (int(stat[1]), int(stat[2]), argv)
    return found


class GuestCase(unittest.TestCase):
    """Skips itself where no guest can run; has a directory of its own."""

    flavour, options = "v2", ()

    def setUp(self):
        if guest.inside():
            self.skipTest("this is a guest, and a guest boots no other")
        guest.Guest(self.flavour).require()
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-guest-"))
        self.addCleanup(shutil.rmtree, self.tmp)

    def boot(self, *args, env=None, timeout=120):
        """Runs boot with these arguments to its end."""
        return subprocess.run([guest.BOOT, *self.options, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False, timeout=timeout, env=env)


class Command(GuestCase):
    """A command in the guest does what it does here: words, output, status."""

    def test_words_output_and_status(self):
        words = ["a b", "it's", '"$HOME"', "back\\slash", "two\nlines", "", "*"]
        script = 'printf "<%s>" "$@"; read -r line || echo closed; echo error >&2; exit 42'
        done = self.boot("--", "sh", "-c", script, "sh", *words)
        self.assertEqual(done.returncode, 42, done.stderr)
        self.assertEqual(done.stdout, "".join(f"<{w}>" for w in words) + "closed\nerror\n")
        self.assertEqual(done.stderr, "")

    def test_two_at_once(self):
        """Both have to be up before either may end."""
        def meet(own, other):
            script = f"touch {self.tmp}/{own}; until [ -e {self.tmp}/{other} ]; do sleep 0.1; done; echo met"
            return self.boot("--bind", self.tmp, "--timeout", BOOT_TIMEOUT, "--", "sh", "-c", script)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            both = [pool.submit(meet, "one", "two"), pool.submit(meet, "two", "one")]
            for done in both:
                self.assertEqual((done.result().returncode, done.result().stdout), (0, "met\n"))


class EmulatedCommand(Command):
    """The same for the emulated guest."""

    flavour, options = "emulated", ("--emulated",)


class Output(GuestCase):
    """All output arrives, whatever becomes of the command."""

    def test_killed_command_with_much_output(self):
        """16 MB, read slowly."""
        script = 'i=0; while [ $i -lt 8 ]; do cat /bin/busybox; i=$((i+1)); done; kill -KILL $$'
        with subprocess.Popen([guest.BOOT, "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as process:
            digest, size = hashlib.sha256(), 0
            while block := process.stdout.read(1 << 20):
                time.sleep(0.2)
                digest.update(block)
                size += len(block)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        expected = pathlib.Path("/bin/busybox").read_bytes() * 8
        self.assertEqual((size, digest.hexdigest()), (len(expected), hashlib.sha256(expected).hexdigest()))


class Files(GuestCase):
    """The guest sees this machine's files and changes none but those below --bind."""

    def test_copy_on_write(self):
        (self.tmp / "precious").mkdir()
        (self.tmp / "precious/file").write_text("before", encoding="ascii")
        script = f"""cat {self.tmp}/precious/file
            echo after >{self.tmp}/precious/file && cat {self.tmp}/precious/file
            rm -rf {self.tmp}/precious /usr/bin/python3 && ls {self.tmp}
            touch /etc/podqos-test-made-in-the-guest && echo done"""
        done = self.boot("--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout), (0, "beforeafter\ndone\n"))
        self.assertEqual((self.tmp / "precious/file").read_text(encoding="ascii"), "before")
        self.assertTrue(os.access("/usr/bin/python3", os.X_OK))
        self.assertFalse(os.path.exists("/etc/podqos-test-made-in-the-guest"))

    def test_bound_directories(self):
        for name in ("shared", "read only"):
            (self.tmp / name).mkdir()
            (self.tmp / name / "given").write_text(name, encoding="ascii")
        script = f"""cat /else/where/given '{self.tmp}/read only/given'; echo
            echo written >/else/where/new
            touch '{self.tmp}/read only/new' || echo refused"""
        done = self.boot("--bind", f"{self.tmp}/shared:/else/where", "--ro-bind", f"{self.tmp}/read only", "--",
                         "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sharedread only\n", done.stdout)
        self.assertIn("refused\n", done.stdout)
        self.assertEqual((self.tmp / "shared/new").read_text(encoding="ascii"), "written\n")
        self.assertEqual(os.listdir(self.tmp / "read only"), ["given"])


class EmulatedFiles(Files):
    """The same for the emulated guest."""

    flavour, options = "emulated", ("--emulated",)


class End(GuestCase):
    """However a guest ends, it ends in time, says how, and nothing of it stays: no process and no file."""

    def start(self, *options, script="sleep 1000"):
        """A guest that is up; its run directory and process group go into self."""
        command = [guest.BOOT, *self.options, *options, "--", "sh", "-c", f"echo {HAS_COME}; {script}"]
        environment = {**os.environ, "TMPDIR": str(self.tmp)}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment)
        self.addCleanup(process.communicate, timeout=END_TIMEOUT)
        self.addCleanup(process.terminate)
        self.assertEqual(process.stdout.readline(), HAS_COME + "\n")
        keepers = [argv for parent, _, argv in processes().values()
                   if parent == process.pid and len(argv) > 2 and argv[-3].endswith("/keeper")]
        self.assertEqual(len(keepers), 1, "boot has no keeper, or several")
        self.directory = pathlib.Path(keepers[0][-2])
        self.group = int((self.directory / "group").read_text(encoding="ascii"))
        self.assertTrue(self.guest_processes(), "no process of the guest was found")
        return process

    def guest_processes(self):
        """The guest's own and its keeper."""
        mine = str(self.directory)
        return {pid: argv for pid, (_, group, argv) in processes().items() if group == self.group or mine in argv}

    def assert_gone(self):
        left = not patience.until(lambda: not self.guest_processes() and not self.directory.exists(), END_TIMEOUT)
        self.assertFalse(left, f"left: {self.guest_processes()}, {self.directory} exists: {self.directory.exists()}")
        self.assertEqual(os.listdir(self.tmp), [])
        # Where virtiofsd locks its sockets.
        self.assertEqual(list(pathlib.Path("/run/virtiofsd").glob(f"*{self.directory.name}*")), [])

    def test_with_a_panic(self):
        process = self.start(script="echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(process.wait(BOOT_TIMEOUT), guest.DIED)
        self.assertIn("sysrq triggered crash", process.stderr.read())
        self.assert_gone()

    def test_by_itself(self):
        process = self.start(script="sleep 1; exit 3")
        self.assertEqual(process.wait(BOOT_TIMEOUT), 3)
        self.assertEqual((self.guest_processes(), self.directory.exists()), ({}, False))

    def test_at_the_timeout(self):
        limit = 15
        started = time.monotonic()
        process = self.start("--timeout", str(limit))
        self.assertEqual(process.wait(BOOT_TIMEOUT), guest.TIMEOUT)
        self.assertLess(time.monotonic() - started, limit + END_TIMEOUT)
        self.assertIn(f"ended after {limit} s", process.stderr.read())
        self.assert_gone()

    def test_by_a_signal(self):
        process = self.start()
        process.terminate()
        self.assertEqual(process.wait(END_TIMEOUT), 128 + signal.SIGTERM)
        self.assert_gone()

    def test_when_boot_is_killed(self):
        process = self.start("--systemd")
        process.kill()
        process.wait(END_TIMEOUT)
        self.assert_gone()

    def test_with_a_fault_of_its_kernel(self):
        """Then, and only then, another is booted: here it dies likewise."""
        script = """echo '<2>Kernel panic - not syncing: Segfault without recovery target' >/dev/kmsg
            echo c >/proc/sysrq-trigger; sleep 1000"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = guest.Guest(self.flavour).run("sh", "-c", script)
        self.assertEqual(done.returncode, guest.FAULT, done.stdout)
        self.assertEqual(printed.getvalue().count("booting another"), 1)


class EmulatedEnd(End):
    """The same for the emulated guest, which is two programs: qemu, and the one that shows it our files."""

    flavour, options = "emulated", ("--emulated",)
    test_by_itself = test_by_a_signal = test_with_a_fault_of_its_kernel = None  # those of End

    def test_at_the_timeout(self):
        """While it boots."""
        done = self.boot("--timeout", 2, "--", "true", env={**os.environ, "TMPDIR": str(self.tmp)})
        self.assertEqual((done.returncode, done.stdout), (guest.TIMEOUT, ""), done.stderr)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_when_boot_is_killed(self):
        process = self.start()
        programs = {pathlib.Path(argv[0]).name for argv in self.guest_processes().values() if argv}
        self.assertLessEqual({"qemu-system-x86_64", "virtiofsd"}, programs)
        process.kill()
        process.wait(END_TIMEOUT)
        self.assert_gone()


class Flavours(GuestCase):
    """The guest has the hierarchies of the host that it stands for, and they work."""

    V1 = {"cpu,cpuacct", "blkio", "memory", "devices", "freezer", "pids", "name=systemd"}
    SCRIPT = "cat /proc/self/cgroup; awk '/ - cgroup/ {print $5}' /proc/self/mountinfo; stat -f -c %T /sys/fs/cgroup"

    def observe(self, *options, script=SCRIPT):
        done = self.boot(*options, "--", "sh", "-ec", script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def hierarchies(self, text):
        return dict(re.findall(r"^\d+:([^:]*):(.*)$", text, re.M))

    def test_v1(self):
        text = self.observe("--cgroup", "v1", script=self.SCRIPT + """
            cd /sys/fs/cgroup; mkdir cpu/x cpuacct/x/y memory/x pids/x; echo 77 >cpuacct/x/cpu.shares; cat cpu/x/cpu.shares
            echo 1M >memory/x/memory.limit_in_bytes; cat memory/x/memory.limit_in_bytes; cat pids/x/pids.max""")
        found = self.hierarchies(text)
        self.assertLessEqual(self.V1, set(found))
        self.assertNotIn("", found)
        self.assertIn("/sys/fs/cgroup/cpu,cpuacct\n", text)
        self.assertIn("tmpfs\n77\n1048576\nmax\n", text)

    def test_hybrid(self):
        text = self.observe("--cgroup", "hybrid", script=self.SCRIPT + """
            cat /sys/fs/cgroup/unified/cgroup.controllers; echo end; mkdir /sys/fs/cgroup/unified/x""")
        self.assertLessEqual(self.V1 | {""}, set(self.hierarchies(text)))
        self.assertIn("/sys/fs/cgroup/unified\n", text)
        self.assertIn("tmpfs\nend\n", text)

    def test_v2(self):
        text = self.observe("--cgroup", "v2", script=self.SCRIPT + """
            cd /sys/fs/cgroup; mkdir x; cat x/cgroup.controllers; echo 77 >x/cpu.weight; echo 1M >x/memory.max
            cat x/cpu.weight x/memory.max""")
        self.assertEqual(self.hierarchies(text), {"": "/init"})
        self.assertIn("/sys/fs/cgroup\ncgroup2fs\ncpu io memory pids\n77\n1048576\n", text)

    def test_systemd(self):
        text = self.observe("--systemd", script=self.SCRIPT + """
            cat /proc/1/comm; systemctl is-system-running
            systemctl daemon-reload; systemctl daemon-reexec
            busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \\
              StartTransientUnit 'ssa(sv)a(sa(sv))' podqos-x.slice fail 2 Description s x MemoryMax t 1048576 0
            until [ -e /sys/fs/cgroup/podqos.slice/podqos-x.slice/memory.max ]; do sleep 0.1; done
            cat /sys/fs/cgroup/podqos.slice/podqos-x.slice/memory.max""")
        self.assertEqual(self.hierarchies(text), {"": "/system.slice/guest-job.service"})
        self.assertIn("cgroup2fs\nsystemd\nrunning\no \"/org/freedesktop/systemd1/job/", text)
        self.assertIn("\n1048576\n", text)


class Refusals(GuestCase):
    """What cannot be is refused before anything boots, with the reason."""

    def test_usage(self):
        wrong = (["--cgroup", "v3", "--", "true"], ["--mem", "much", "--", "true"], ["--timeout", "0", "--", "true"],
                 ["--root", self.tmp / "none", "--", "true"], ["--wrong", "--", "true"], ["--"], ["--root"],
                 ["--bind", self.tmp / "none", "--", "true"], ["--cpus", "2", "--", "true"],
                 ["--emulated", "--cpus", "0", "--", "true"])
        for args in wrong:
            with self.subTest(args=args):
                done = self.boot(*args)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn("boot: ", done.stderr)

    def test_not_applicable(self):
        done = self.boot("--systemd", "--cgroup", "v1", "--", "true")
        self.assertEqual(done.returncode, guest.SKIPPED)
        self.assertIn("systemd with cgroup v1 is not applicable", done.stdout)

    def test_what_is_missing(self):
        """PATH leads to all programs but one; there is less memory than asked for."""
        cases = (("linux.uml", (), "user-mode-linux is not installed"),
                 ("qemu-system-x86_64", ("--emulated",), "qemu-system-x86 is not installed"))
        for missing, options, reason in cases:
            with self.subTest(missing):
                programs = self.tmp / missing
                programs.mkdir()
                for program in pathlib.Path("/usr/bin").iterdir():
                    if program.name != missing:
                        (programs / program.name).symlink_to(program)
                done = self.boot(*options, "--check", env={"PATH": str(programs)})
                self.assertEqual((done.returncode, done.stdout), (guest.SKIPPED, f"no guest can run here: {reason}\n"))
        done = self.boot("--mem", "900000G", "--", "true")
        self.assertEqual(done.returncode, guest.SKIPPED)
        self.assertIn("no temporary directory has 900000G free", done.stdout)


class Mkroot(GuestCase):
    """A root is complete, or it is not there."""

    def test_failure_leaves_no_root(self):
        guest.Guest("v2", root="trixie").require()
        done = subprocess.run([guest.MKROOT, "--cache", self.tmp / "cache", "--with", "podqos-no-such-package"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=guest.MKROOT_TIMEOUT)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("podqos-no-such-package", done.stderr)
        self.assertEqual([p.suffix for p in (self.tmp / "cache").iterdir()], [".lock"])


class Mkkernel(GuestCase):
    """A kernel is complete, or it is not there."""

    flavour = "emulated"

    def test_without_an_archive(self):
        config = self.tmp / "apt.conf"
        config.write_text("".join(f'Acquire::{way}::Proxy "http://127.0.0.1:9";' for way in ("http", "https"))
                          + 'Acquire::Retries "0";', encoding="ascii")
        done = subprocess.run([guest.MKKERNEL, "--cache", self.tmp / "cache"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=guest.CHECK_TIMEOUT,
                              env={**os.environ, "APT_CONFIG": str(config)})
        self.assertEqual((done.returncode, done.stdout), (guest.SKIPPED, ""), done.stderr)
        self.assertIn("cannot be fetched", done.stderr)
        self.assertEqual([p.suffix for p in (self.tmp / "cache").iterdir()], [".lock"])


if __name__ == "__main__":
    harness.main(kinds=())

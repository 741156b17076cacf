"""The guest of tests/guest itself: what comes out of it, how it ends, and that it harms and leaves nothing.

That it has the cgroups of its flavour is looked at before each test that runs in one (IF_OF_FLAVOUR in guest.py).
"""

import contextlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import patience  # noqa: E402

HAS_COME = "the guest is up"
LIMIT = 40  # seconds; a guest is up after three where nothing else runs


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

    def boot(self, *args, env=None):
        """Runs boot with these arguments to its end."""
        return subprocess.run([guest.BOOT, *self.options, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", check=False, env=env)


class Command(GuestCase):
    """A command in the guest does what it does here: words, output, status."""

    def test_words_output_and_status(self):
        words = ["a b", "it's", '"$HOME"', "back\\slash", "two\nlines", "", "*"]
        script = 'printf "<%s>" "$@"; read -r line || echo closed; echo error >&2; exit 42'
        done = self.boot("--", "sh", "-c", script, "sh", *words)
        self.assertEqual(done.returncode, 42, done.stderr)
        self.assertEqual(done.stdout, "".join(f"<{w}>" for w in words) + "closed\nerror\n")
        self.assertEqual(done.stderr, "")


class EmulatedCommand(Command):
    """The same for the emulated guest."""

    flavour, options = "emulated", ("--emulated",)


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
    """However a guest ends, it says how, and nothing of it stays: no process and no file."""

    def start(self, *options, script="sleep 1000"):
        """A guest that is up; its run directory and process group go into self."""
        command = [guest.BOOT, *self.options, *options, "--", "sh", "-c", f"echo {HAS_COME}; {script}"]
        environment = {**os.environ, "TMPDIR": str(self.tmp)}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment)
        self.addCleanup(process.communicate)
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
        left = not patience.until(lambda: not self.guest_processes() and not self.directory.exists())
        self.assertFalse(left, f"left: {self.guest_processes()}, {self.directory} exists: {self.directory.exists()}")
        self.assertEqual(os.listdir(self.tmp), [])
        # Where virtiofsd locks its sockets.
        self.assertEqual(list(pathlib.Path("/run/virtiofsd").glob(f"*{self.directory.name}*")), [])

    # Options of boot, script, exit status, and what boot says.
    ENDS = {
        "a panic": ((), "echo c >/proc/sysrq-trigger; sleep 1000", guest.DIED, "sysrq triggered crash"),
        "the timeout": (("--timeout", str(LIMIT)), "sleep 1000", guest.TIMEOUT, f"ended after {LIMIT} s"),
        "SIGTERM": ((), "sleep 1000", 128 + signal.SIGTERM, ""),
        "SIGKILL": (("--systemd",), "sleep 1000", -signal.SIGKILL, ""),
        "its own end": ((), "sleep 1; exit 3", 3, ""),
    }

    def test_by(self):
        for by, (options, script, status, said) in self.ENDS.items():
            with self.subTest(by):
                process = self.start(*options, script=script)
                if by.startswith("SIG"):
                    process.send_signal(signal.Signals[by])
                self.assertEqual(process.wait(), status)
                self.assertIn(said, process.stderr.read() if said else "")
                if status >= 0:  # boot itself has seen to it
                    self.assertEqual((self.guest_processes(), self.directory.exists()), ({}, False))
                self.assert_gone()

    def test_with_a_fault_of_its_kernel(self):
        """Then, and only then, another is booted: here it dies likewise."""
        script = """echo '<2>Kernel panic - not syncing: Segfault without recovery target' >/dev/kmsg
            echo c >/proc/sysrq-trigger; sleep 1000"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = guest.Guest(self.flavour).run("sh", "-c", script)
        self.assertEqual(done.returncode, guest.FAULT, done.stdout)
        self.assertEqual(printed.getvalue().count("booting another"), guest.BOOTS - 1)


class EmulatedEnd(End):
    """The same for the emulated guest, which is two programs: qemu, and the one that shows it our files."""

    flavour, options = "emulated", ("--emulated",)
    ENDS = {"a panic": End.ENDS["a panic"]}
    test_with_a_fault_of_its_kernel = None  # that of End

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
        process.wait()
        self.assert_gone()


if __name__ == "__main__":
    harness.main(kinds=())

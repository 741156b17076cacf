"""The demo, for every reader of the README runs it first: it finds the published numbers, which it has, and cleans up."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402

DEMO = harness.REPOSITORY / "tests/lib/demo.py"
# Of each of five pods three, of two tiers two, of each of eight containers three, and what is left of cgroups and records.
NUMBERS = 5 * 3 + 2 * 2 + 8 * 3 + 2


class Demo(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.tmp = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="podqos-test-demo-")))
        self.machine = machines.Machine()

    def start(self, kind):
        if oci.runtime_path(kind) is None:
            self.skipTest(f"{kind} is not installed")
        # Its output is a file, so that nobody has to read along.
        with open(self.tmp / "output", "w", encoding="utf-8") as output:
            return subprocess.Popen([sys.executable, DEMO, kind], stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(self.tmp)})

    def output(self):
        return (self.tmp / "output").read_text(encoding="utf-8")

    def assert_nothing_left(self, process):
        self.assertEqual(self.machine.leftovers(f"/podqos-demo-{process.pid}"), [])
        self.assertEqual([entry.name for entry in self.tmp.iterdir()], ["output"])
        held = []
        for place in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
            with contextlib.suppress(OSError):  # it has ended
                # A zombie has no command line any more; this machine's PID 1 reaps it in its own time.
                alive = (place.parent / "cmdline").read_bytes()
                if alive and f"/podqos-demo-{process.pid}" in place.read_text(encoding="utf-8"):
                    held.append(place.parent.name)
        self.assertEqual(held, [], "processes of the demo's containers")

    def shows(self, kind):
        process = self.start(kind)
        status = process.wait()
        text = self.output()
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("\nall numbers are right, nothing is left\n"), text)
        self.assertNotIn("FAIL", text)
        self.assertEqual(text.count("\nok   "), NUMBERS, text)
        self.assert_nothing_left(process)

    def interrupted(self, number, kind="runc", after="started pod3/foo"):
        process = self.start(kind)
        try:
            while after not in self.output():
                self.assertIsNone(process.poll(), self.output())
                time.sleep(0.02)
        finally:
            process.send_signal(number)
        self.assertEqual(process.wait(), 128 + number, self.output())
        self.assertNotIn("nothing is left", self.output())
        self.assert_nothing_left(process)

    def test_runc(self):
        self.shows("runc")

    def test_crun_twice(self):
        for _ in range(2):
            self.shows("crun")

    def test_interrupted(self):
        self.interrupted(signal.SIGINT)

    def test_terminated_at_once(self):
        self.interrupted(signal.SIGTERM, after="podqos on")

    def test_terminal_gone_while_it_stops(self):
        self.interrupted(signal.SIGHUP, after="Stopping all of them")

    def test_no_such_runtime(self):
        done = subprocess.run([sys.executable, DEMO, "podman"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "no such runtime: podman\n"))


if __name__ == "__main__":
    harness.main(kinds=("runc",))

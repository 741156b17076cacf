"""A system call that fails once, at whatever place: what it could not see is not taken for absent.

Once nothing runs any more, a reconciliation that nothing disturbs leaves no directory in any hierarchy, and no record.
"""

import itertools
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import container, pod  # noqa: E402

ALIVE = pod("alive", container("app", requests={"cpu": "250m", "memory": "1Gi"}))
ENDING = pod("ending", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
OPENS = "open,openat,openat2"
FEWEST = 25  # a sweep of fewer calls did not do what it should


class FailingCase(player.Case):
    """Lets the Nth call of a program that opens something fail, for each N."""

    def fails(self, error, turn, command, stdin=b""):
        """Runs a program of which one call fails; returns whether it came to that call."""
        trace = self.tmp / "trace"
        strace = ["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={OPENS}",
                  "-e", f"inject={OPENS}:error={error}:syscall=getpid:when={turn}", *command]
        patience.capture(strace, stdin)
        return "(INJECTED)" in trace.read_text(encoding="utf-8", errors="replace")

    def poststop(self, made, error, turn):
        command = [str(harness.HOOK), "--config", self.config, "poststop"]
        return self.fails(error, turn, command, json.dumps(made.state()).encode())

    def reconciliation(self, _made, error, turn):
        return self.fails(error, turn, [str(harness.CTL), "--config", self.config, "reconcile"])

    def sweep(self, fails, *living):
        """fails(container, error, N) -> whether the Nth call was made, for N = 1, 2, ... until it is not."""
        stayed = {}
        for error in ("EMFILE", "EIO"):
            for turn in itertools.count(1):
                made = self.create(self.container(ENDING, "app"))
                self.end(made)
                failed = fails(made, error, turn)
                self.assert_said(made)
                self.reconcile()
                shutil.rmtree(made.bundle.path)
                if left := self.left_of(made):
                    stayed[error, turn] = left
                    for path in left:
                        os.rmdir(path)
                self.check(*living)
                if not failed:
                    break
            self.assertGreater(turn, FEWEST)
        self.assertEqual(stayed, {})

    def assert_said(self, made):
        """What counts although nothing of it runs, status warns of."""
        status = self.podqos.ctl_json("status")
        if any(each["uid"] == made.uid for each in status["pods"]):
            self.assertTrue(any(f"pod {made.uid}: " in warning for warning in status["warnings"]), status)

    def left_of(self, made):
        """The directories of its pod, in all hierarchies."""
        return [path for path in self.machine.leftovers(self.root) if f"pod{made.uid}" in path]


class BesideAPod(FailingCase):
    """One pod ends while another lives."""

    def setUp(self):
        super().setUp()
        self.alive = self.create(self.container(ALIVE, "app"))

    def tearDown(self):
        self.delete(self.alive)
        super().tearDown()

    def test_poststop(self):
        self.sweep(self.poststop, self.alive)

    def test_reconcile(self):
        self.sweep(self.reconciliation, self.alive)


class Alone(FailingCase):
    """The last pod ends, and the whole tree with it."""

    def left_of(self, made):
        return self.machine.leftovers(self.root)

    def test_poststop(self):
        self.sweep(self.poststop)

    def test_reconcile(self):
        self.sweep(self.reconciliation)


if __name__ == "__main__":
    if shutil.which("strace") is None:
        sys.exit(harness.SKIPPED)
    harness.main(("runc",))

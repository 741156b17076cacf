"""The matrix: the life of two pods, for each runtime and each way in, in a guest with one kind of cgroups.

    guest.py v1 tests/lib/matrix.py cgroupfs
    guest.py systemd tests/lib/matrix.py systemd [RUNTIME|WAY...]

prints one line a cell, "runc v2 systemd wrapper: passed", and below a failed one why. It runs in a guest only;
tests/integration/engine/matrix_test.py boots the guests.
"""

import argparse
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import node_case  # noqa: E402
import units  # noqa: E402
from harness import MI  # noqa: E402
from node_case import BESTEFFORT, BURSTABLE, GUARANTEED  # noqa: E402

POLICIES = ("rewrite", "fail", "ignore")
WAYS = ("wrapper", "precreate", *(f"hooks-{policy}" for policy in POLICIES))
UPDATED = 96 * MI  # what `update` gives a container


class Cell(node_case.NodeCase):
    """The scenario of all ways in; a way says how a container starts, and where it shall be then."""

    way = "wrapper"
    second = GUARANTEED

    def check_verbs(self, box):
        """The runtime still manages the container: exec, update, pause."""
        pid = self.runtime.exec_detached(box.name, "sleep", "1000")
        self.check_place(pid, box.cgroup)
        self.runtime.call("update", "--memory", UPDATED, box.name)
        self.assert_values(box.cgroup, memory=UPDATED)
        self.check_pod(box.expected)
        self.runtime.pause(box.name)
        self.assertTrue(self.is_frozen(pid), "a paused container runs on")
        self.runtime.resume(box.name)
        self.assertFalse(self.is_frozen(pid), "a resumed container stays frozen")

    def is_frozen(self, pid):
        """Really frozen, by whichever cgroup above the process."""
        path = {name: where for names, where in machines.cgroups_of(pid).items() for name in names.split(",")}
        if not self.is_v2:
            return self.machine.file(path["freezer"], "freezer", "freezer.state") == "FROZEN"
        return "frozen 1" in self.machine.file(path[""], "cpu", "cgroup.events").splitlines()

    def test_life(self):
        """From the first container to the last, with a second pod beside them."""
        app = self.start(self.container(BURSTABLE, "app"))
        self.check_container(app)
        self.check_pod(BURSTABLE)
        self.check_tiers(BURSTABLE)
        self.check_verbs(app)

        other = self.start(self.container(self.second, "app"))
        side = self.start(self.container(BURSTABLE, "side"))
        if units.runs():
            units.call("daemon-reload")
        self.check_all(BURSTABLE, self.second)

        self.end(app)
        self.check_pod(BURSTABLE)
        self.check_tiers(BURSTABLE, self.second)
        self.start(app)
        self.check_container(app)
        self.check_pod(BURSTABLE)

        self.end(side)
        self.end(app)
        self.assertFalse(self.machine.exists(self.pod_cgroup(BURSTABLE)), "cgroup of a pod that has ended")
        self.check_tiers(self.second)
        self.check_place(other.pid, other.cgroup)
        self.start(app)
        self.check_container(app)
        self.check_pod(BURSTABLE)
        self.check_tiers(BURSTABLE, self.second)

        self.end(app)
        self.end(other)
        self.check_nothing_left()


class Wrapper(Cell):
    way = "wrapper"


class Precreate(Cell):
    """As Podman does it at every start: its own config.json goes through the hook."""

    way, hooked = "precreate", True
    second = BESTEFFORT

    def prepare(self, box):
        done = self.podqos.hook("precreate", box.original, kind=self.kind, cwd=box.bundle.path)
        box.bundle.file.write_text(done.stdout, encoding="utf-8")


class HooksRewrite(Cell):
    """The first start stays where the engine put it, the next one from that bundle is placed."""

    way, hooked = "hooks-rewrite", True
    settings = {**Cell.settings, "placement": {"onMisplaced": "rewrite"}}

    def expected_cgroup(self, box):
        return self.process_cgroup(box.engine_path) if box.starts == 0 else super().expected_cgroup(box)


class HooksFail(Cell):
    """A container elsewhere is refused; one whose engine names the right cgroup itself is let in."""

    way, hooked = "hooks-fail", True
    settings = {**Cell.settings, "placement": {"onMisplaced": "fail"}}

    def test_life(self):
        box = self.container(BURSTABLE, "app")
        done = self.runtime.run(box.name, box.bundle, "-d", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(box.engine_path, self.podqos.log_text())
        self.assertEqual(box.bundle.read(), box.original)
        self.check_nothing_left()
        super().test_life()

    def prepare(self, box):
        pod_cgroup = self.pod_cgroup(box.expected)
        unit = f"{os.path.basename(pod_cgroup)}:libpod:{box.name}"
        box.bundle.config["linux"]["cgroupsPath"] = unit if self.on_systemd else f"{pod_cgroup}/{self.leaf(box.name)}"
        box.bundle.save()


class HooksIgnore(Cell):
    """The container stays where it is and as it is; its pod is made and counted."""

    way, hooked = "hooks-ignore", True
    second = BESTEFFORT
    settings = {**Cell.settings, "placement": {"onMisplaced": "ignore"}}

    def expected_cgroup(self, box):
        return self.process_cgroup(box.engine_path)

    def has_values(self, box):
        return False


def flavour(driver):
    """How a cell names the machine: "v2+systemd" is systemd with a runtime that leaves it aside."""
    beside = driver == "cgroupfs" and units.runs()
    return machines.Machine().mode + ("+systemd" if beside else "")


def cell(base, kind, driver):
    """The test of one cell."""
    made = type(f"{base.__name__}_{kind}", (base,), {"kind": kind, "driver": driver, "__doc__": base.__doc__})
    test = made("test_life")
    test.name = f"{kind} {flavour(driver)} {driver} {base.way}"
    return test


class Printed(unittest.TestResult):
    """One line a cell, and below a failed one what happened."""

    def startTest(self, test):
        super().startTest(test)
        self._begun = time.monotonic()

    def _tell(self, test, word, why=""):
        print(f"{test.name}: {word}{why}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._tell(test, "passed", f" ({time.monotonic() - self._begun:.1f} s)")

    def _tell_failure(self, test, error):
        text = "".join(self._exc_info_to_string(error, test)).strip()
        self._tell(test, "failed", "\n" + "\n".join("    " + line for line in text.splitlines()))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._tell_failure(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._tell_failure(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._tell(test, "skipped", f" ({reason})")


def main():
    parser = argparse.ArgumentParser(description="The cells of the matrix that one guest can run.")
    parser.add_argument("driver", choices=node_case.DRIVERS)
    parser.add_argument("only", nargs="*", metavar="RUNTIME|WAY")
    given = parser.parse_args()
    if not guest.inside():
        sys.exit("matrix.py writes to /kubepods and kubepods.slice: it runs in a guest only")
    ways = (Wrapper, Precreate, HooksRewrite, HooksFail, HooksIgnore)
    suite = unittest.TestSuite(cell(base, kind, given.driver)
                               for kind in [k for k in harness.KINDS if k in given.only] or harness.KINDS
                               for base in [w for w in ways if w.way in given.only] or ways)
    result = suite.run(Printed())
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

"""The matrix on a real kernel: the life of two pods, for every runtime, cgroup version, cgroup driver and way in.

Each machine is a guest of its kind, two of which are booted at once; there this file runs again. No systemd of today runs
a machine with cgroup v1: what podqos would tell one, golden plans have (tests/unit/core/pod_plan_test.cpp).
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import node_case  # noqa: E402
import units  # noqa: E402
from harness import MI  # noqa: E402
from node_case import BESTEFFORT, BURSTABLE, GUARANTEED  # noqa: E402

UPDATED = 96 * MI  # what `update` gives a container


class Cell(node_case.NodeCase):
    """The scenario of all ways in; a way says how a container starts, and where it shall be then."""

    second = GUARANTEED

    def check_verbs(self, box):
        """The runtime still manages the container: exec, update, pause."""
        pid = self.runtime.exec_detached(box.name, "sleep", "1000")
        self.check_place(pid, box.cgroup)
        self.runtime.call("update", "--memory", UPDATED, box.name)
        self.assert_values(box.cgroup, memory=UPDATED)
        self.check_pod(box.expected)
        self.runtime.pause(box.name)
        self.expect_frozen(box.cgroup, True)
        self.runtime.resume(box.name)
        self.expect_frozen(box.cgroup, False)

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
    """podqos-runtime in the runtime's place."""


class Precreate(Cell):
    """As Podman does it at every start: its own config.json goes through the hook."""

    hooked = True
    second = BESTEFFORT

    def prepare(self, box):
        done = self.podqos.hook("precreate", box.original, kind=self.kind, cwd=box.bundle.path)
        box.bundle.file.write_text(done.stdout, encoding="utf-8")


class HooksRewrite(Cell):
    """The first start stays where the engine put it, the next one from that bundle is placed."""

    hooked = True
    settings = {**Cell.settings, "placement": {"onMisplaced": "rewrite"}}

    def expected_cgroup(self, box):
        return self.process_cgroup(box.engine_path) if box.starts == 0 else super().expected_cgroup(box)


class HooksFail(Cell):
    """A container elsewhere is refused; one whose engine names the right cgroup itself is let in."""

    hooked = True
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

    hooked = True
    second = BESTEFFORT
    settings = {**Cell.settings, "placement": {"onMisplaced": "ignore"}}

    def expected_cgroup(self, box):
        return self.process_cgroup(box.engine_path)

    def has_values(self, box):
        return False


def cells():
    kinds = [{"driver": driver, "kind": kind} for driver in node_case.DRIVERS for kind in harness.KINDS]
    return engine.cells(__name__, *(((Wrapper, Precreate, HooksRewrite, HooksFail, HooksIgnore), kind) for kind in kinds))


# Flavour of the guest, driver: the ways, or all. The slowest first. With systemd and cgroupfs the runtime makes its cgroups
# itself; there, and on a hybrid host, it is where cgroups lie that differs, not what a way does.
GUESTS = {("systemd", "systemd"): (), ("systemd", "cgroupfs"): (Wrapper, HooksRewrite),
          ("hybrid", "cgroupfs"): (Wrapper, HooksRewrite), ("v1", "cgroupfs"): (), ("v2", "cgroupfs"): ()}


def guests():
    made = {}
    for (flavour, driver), ways in GUESTS.items():
        names = [cls.__name__ for cls in cells() if cls.driver == driver
                 and (not ways or issubclass(cls, ways))]
        made[f"{flavour}_{driver}"] = guest.Guest(flavour), __file__, *names
    return guest.cases(made, at_a_time=2)


if __name__ == "__main__":
    harness.main(("runc",), here=[guests()], in_guest=cells())

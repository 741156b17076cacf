"""What podqos asks of systemd: each call of an event on D-Bus, which it waits for, seen by strace; no times.

A request for memory changes the pod, the Burstable tier and, under reservation, the BestEffort tier: what is counted is
the most that an event of its kind can need.
"""

import json
import pathlib
import shutil
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))

import bus  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import node as nodes  # noqa: E402
import syscalls  # noqa: E402

BURSTABLE, BESTEFFORT = "kubepods-burstable.slice", "kubepods-besteffort.slice"
TIERS = [f"SetUnitProperties {BURSTABLE}", f"SetUnitProperties {BESTEFFORT}"]


def slice_of(uid):
    return f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"


def forgotten(*units):
    """A unit is stopped, and what was left of a failure forgotten."""
    return [f"{verb} {unit}" for unit in units for verb in ("StopUnit", "ResetFailedUnit")]


@unittest.skipUnless(guest.inside() and nodes.runs_systemd(), "makes kubepods.slice: only in a guest with systemd")
@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Calls(unittest.TestCase):
    def setUp(self):
        self.node = nodes.Node()
        self.addCleanup(self.node.release)
        self.known = {"podqos.io/pod": json.dumps({"containers": [
            {"name": name, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}}
            for name in ("app", "side")]})}

    def assert_calls(self, program, expected):
        calls = bus.awaited_calls(syscalls.trace(program, self.node.tmp / "strace"))
        self.assertEqual([f"{said.member} {said.unit}" for said in calls], expected)

    @staticmethod
    def find(container):
        """Whether a scope's unit is the one of its cgroup."""
        cgroup = container.directory.relative_to("/sys/fs/cgroup")
        return [f"GetUnitByControlGroup /{cgroup}", f"GetUnit {container.directory.name}"]

    def tell(self, container):
        """Once it is found. Behind it comes a call whose answer says that systemd has written its memory.oom.group."""
        return [*self.find(container), f"SetUnitProperties {container.directory.name}", *self.find(container)]

    def end(self, container, expected):
        container.end()
        self.assert_calls(container.hook("poststop"), expected)

    def test_first_pod_and_last(self):
        uid = nodes.new_uid()
        first = self.node.container("app", uid)
        self.assert_calls(first.place(), [
            "StartTransientUnit kubepods.slice", f"StartTransientUnit {BURSTABLE}", f"StartTransientUnit {BESTEFFORT}",
            f"StartTransientUnit {slice_of(uid)}", "SetUnitProperties kubepods.slice", *TIERS])
        first.begin()
        self.assert_calls(first.hook("createRuntime"), [])
        self.end(first, forgotten(slice_of(uid), BURSTABLE, BESTEFFORT, "kubepods.slice"))

    def test_further_pod(self):
        self.node.container("app").live()
        uid = nodes.new_uid()
        first = self.node.container("app", uid)
        self.assert_calls(first.place(), [f"StartTransientUnit {slice_of(uid)}", *TIERS])
        first.begin()
        self.assert_calls(first.hook("createRuntime"), [])
        self.end(first, [*forgotten(slice_of(uid)), *TIERS])

    def test_container_of_a_pod_that_grows(self):
        """Its pod is known by the containers that came so far."""
        uid = nodes.new_uid()
        self.node.container("app", uid).live()
        second = self.node.container("side", uid)
        self.assert_calls(second.place(), [f"SetUnitProperties {slice_of(uid)}", *TIERS])
        second.begin()
        self.assert_calls(second.hook("createRuntime"), [])
        self.end(second, [])

    def test_container_of_a_pod_that_is_known(self):
        """podqos.io/pod has told of all containers."""
        uid = nodes.new_uid()
        self.node.container("app", uid, **self.known).live()
        second = self.node.container("side", uid, **self.known)
        self.assert_calls(second.place(), [])
        second.begin()
        self.assert_calls(second.hook("createRuntime"), [])
        self.end(second, [])

    def test_container_that_only_the_hook_sees(self):
        """Nobody has placed it: its own limits are told too, once its scope is known to be the unit of that name."""
        uid = nodes.new_uid()
        self.node.container("app", uid, **self.known).live()
        second = self.node.container("side", uid, **self.known)
        second.begin()
        self.assert_calls(second.hook("createRuntime"), self.tell(second))

    def test_container_that_only_the_hook_sees_and_that_lets_the_pod_grow(self):
        uid = nodes.new_uid()
        self.node.container("app", uid).live()
        second = self.node.container("side", uid)
        second.begin()
        self.assert_calls(second.hook("createRuntime"), [
            f"SetUnitProperties {slice_of(uid)}", *self.tell(second), *TIERS])


if __name__ == "__main__":
    harness.main(kinds=())

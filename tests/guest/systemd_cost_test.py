"""What podqos asks of systemd: each call of an event on D-Bus, which it waits for, seen by strace; no times.

A request for memory changes the pod, the Burstable tier and, under reservation, the BestEffort tier: what is counted is
the most that an event of its kind can need.
"""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
import syscalls  # noqa: E402
import units  # noqa: E402
from spawn import Program  # noqa: E402

BURSTABLE, BESTEFFORT = "kubepods-burstable.slice", "kubepods-besteffort.slice"
TIERS = [f"SetUnitProperties {BURSTABLE}", f"SetUnitProperties {BESTEFFORT}"]
RESOURCES = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
METHOD_CALL, NO_REPLY_EXPECTED = b"l\x01", 1  # the beginning of a message, and one of its flags
MEMBER = re.compile(rb"\x03\x01s\0....([A-Za-z]+)\0", re.DOTALL)  # header field 3, of signature "s"


def slice_of(uid):
    return f"kubepods-burstable-pod{uid}.slice"


def forgotten(*names):
    """A unit is stopped, and what was left of a failure forgotten."""
    return [f"{verb} {name}" for name in names for verb in ("StopUnit", "ResetFailedUnit")]


def awaited(calls):
    """"Method unit" of each call on D-Bus that wants an answer; the unit is the text with which their bodies begin."""
    for call in calls:
        parts = call.arguments[1].split("iov_base=")[1:] if call.name == "sendmsg" else ()
        message = b"".join(syscalls.text_of(part) or b"" for part in parts)
        if message[:2] == METHOD_CALL and not message[2] & NO_REPLY_EXPECTED:
            (size,) = struct.unpack_from("<I", message, 12)
            body = (16 + size + 7) // 8 * 8
            (length,) = struct.unpack_from("<I", message, body)
            yield f"{MEMBER.search(message)[1].decode()} {message[body + 4:body + 4 + length].decode()}"


@unittest.skipUnless(guest.inside() and units.runs(), "makes kubepods.slice: only in a guest with systemd")
@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Calls(player.Case):
    """Containers of an engine that knows nothing of pods, each in a scope of its own."""

    settings = {**player.Case.settings, "cgroupRoot": "/", "nodeMemory": None, "nodeCpu": None}

    def setUp(self):
        super().setUp()
        self.made = []
        self.addCleanup(self.release)

    def release(self):
        for made in self.made:
            self.end(made)
            self.hook("poststop", made)
        units.wait_for_none("kubepods")

    def container(self, uid, name="app", is_known=False):
        """Of a pod of two. Known: podqos.io/pod tells of both; else each tells of itself."""
        both = (harness.container(each, **RESOURCES) for each in ("app", "side"))
        made = super().container(harness.pod(uid, *both), name)
        if not is_known:
            del made.bundle.annotations["podqos.io/pod"]
            made.bundle.annotations.update({f"podqos.io/requests.{name}": "cpu=100m,memory=64Mi",
                                            f"podqos.io/limits.{name}": "memory=128Mi"})
        made.bundle.config["linux"]["cgroupsPath"] = f"system.slice:engine:{made.id}"
        made.bundle.save()
        self.made.append(made)
        return made

    def run_podqos(self, command, stdin, kill=None):
        """What it has asked of systemd."""
        if str(harness.RUNTIME) in command:
            command = [*command[:3], "--systemd-cgroup", *command[3:]]
        return list(awaited(syscalls.trace(Program(command, stdin, "/"), self.tmp / "strace")))

    def start(self, made):
        """A process in the scope that cgroupsPath names now."""
        unit, prefix, name = json.loads(made.bundle.read())["linux"]["cgroupsPath"].split(":")
        scope = f"{prefix}-{name}.scope"
        command = ("systemd-run", "--quiet", "--scope", f"--slice={unit}", f"--unit={scope}", "--property=Delegate=yes",
                   "sleep", "1000")
        made.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.running.append(made)
        made.cgroup = patience.expect(lambda: self.cgroup_in(made.process.pid, scope), scope)

    @staticmethod
    def cgroup_in(pid, scope):
        path = machines.cgroup_of(pid)
        return path if path.endswith(f"/{scope}") else None

    def end(self, made):
        """The process ends; systemd removes the scope in its own time."""
        if made.process is not None:
            made.process.kill()
            made.process.wait()
            made.process = None
            self.running.remove(made)
            patience.expect(lambda: not self.machine.exists(made.cgroup), f"{made.cgroup} is gone")

    def check_life(self, made, placed, released):
        """What is asked for when it is placed, confirmed (nothing), and released."""
        self.assertEqual(self.place(made), placed)
        self.start(made)
        self.assertEqual(self.hook("createRuntime", made), [])
        self.end(made)
        self.assertEqual(self.hook("poststop", made), released)

    def test_first_pod_and_last(self):
        made = [f"StartTransientUnit {name}" for name in ("kubepods.slice", BURSTABLE, BESTEFFORT, slice_of("first"))]
        self.check_life(self.container("first"), [*made, "SetUnitProperties kubepods.slice", *TIERS],
                        forgotten(slice_of("first"), BURSTABLE, BESTEFFORT, "kubepods.slice"))

    def test_further_pod(self):
        self.create(self.container("first"))
        self.check_life(self.container("further"), [f"StartTransientUnit {slice_of('further')}", *TIERS],
                        [*forgotten(slice_of("further")), *TIERS])

    def test_container_of_a_pod_that_grows(self):
        """Its pod is known by the containers that came so far."""
        self.create(self.container("grows"))
        self.check_life(self.container("grows", "side"), [f"SetUnitProperties {slice_of('grows')}", *TIERS], [])

    def test_container_of_a_pod_that_is_known(self):
        self.create(self.container("known", is_known=True))
        self.check_life(self.container("known", "side", is_known=True), [], [])

    def test_reconciliation(self):
        """What systemd has is asked of each unit, and sent again only where it is something else."""
        self.create(self.container("first"))
        command = [harness.CTL, "--config", str(self.podqos.config()), "reconcile"]
        asked = ["GetAll ", "GetAll ", "GetAll ", "GetAll ", "ListUnitsByPatterns "]
        self.assertEqual(sorted(self.run_podqos(command, b"")), asked)
        name = slice_of("first")
        weight = units.show([name], ("Id", "CPUWeight"))[0]["CPUWeight"]
        units.call("set-property", "--runtime", name, "CPUWeight=7")
        self.assertEqual(sorted(self.run_podqos(command, b"")), [*asked, f"SetUnitProperties {name}"])
        self.assertEqual(units.show([name], ("Id", "CPUWeight"))[0]["CPUWeight"], weight)

    def test_container_that_only_the_hook_sees(self):
        """Nobody has placed it: its own limits are told too, once its scope is known to be the unit of that name. Behind
        that comes a call whose answer says that systemd has written its memory.oom.group."""
        for uid, is_known in (("seen", True), ("grown", False)):
            with self.subTest(uid):
                self.create(self.container(uid, is_known=is_known))
                second = self.container(uid, "side", is_known)
                self.start(second)
                scope = pathlib.PurePath(second.cgroup).name
                find = [f"GetUnitByControlGroup {second.cgroup}", f"GetUnit {scope}"]
                told = [*find, f"SetUnitProperties {scope}", *find]
                grown = told if is_known else [f"SetUnitProperties {slice_of(uid)}", *told, *TIERS]
                self.assertEqual(self.hook("createRuntime", second), grown)


if __name__ == "__main__":
    harness.main(kinds=())

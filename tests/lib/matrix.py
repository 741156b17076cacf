"""The matrix: the life of two pods, for each runtime and each way in, in a guest with one kind of cgroups.

    guest.py v1 tests/lib/matrix.py cgroupfs
    guest.py systemd tests/lib/matrix.py systemd [RUNTIME] [WAY]

prints one line a cell, "runc v2 systemd wrapper: passed", and below a failed one why. The cells use the names of a real
node, /kubepods and kubepods.slice: it refuses to run elsewhere than in a guest. tests/integration/matrix_test.py boots
the guests. All expected numbers stand here, worked out by hand from Kubernetes' formulas.
"""

import argparse
import dataclasses
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import units  # noqa: E402
from harness import MI, container, pod  # noqa: E402

DRIVERS = ("cgroupfs", "systemd")
POLICIES = ("rewrite", "move", "fail", "ignore")
WAYS = ("wrapper", "precreate", *(f"hooks-{policy}" for policy in POLICIES))
STAGES = ("createRuntime", "poststop")
UPDATED = 96 * MI  # what `update` gives a container
PATIENCE = 10  # seconds


@dataclasses.dataclass(frozen=True)
class Expected:
    """One pod, and what the kernel shall say of it."""

    uid: str
    tier: str
    manifest: dict
    oom: dict  # by container; node memory is 1 GiB
    shares: int
    weight: int
    quota: dict | None  # microseconds in 100 ms, by driver
    memory: int | None


# shares = floor(1024 * cpu), weight = 1 + (shares - 2) * 9999 / 262142, OOM score = 1000 - 1000 * memory / 1 GiB.
# 651m is 65.1 ms in 100 ms; systemd keeps a second's quota in whole 10 ms, so it makes 660 ms of 651 ms.
BURSTABLE = Expected(
    "burst-1", "burstable",
    pod("burst-1",
        container("app", requests={"cpu": "250m", "memory": "64Mi"}, limits={"cpu": "500m", "memory": "128Mi"}),
        container("side", requests={"cpu": "100m", "memory": "32Mi"}, limits={"cpu": "151m", "memory": "64Mi"})),
    oom={"app": 938, "side": 969}, shares=358, weight=14, quota={"cgroupfs": 65100, "systemd": 66000},
    memory=192 * MI)
GUARANTEED = Expected(
    "guard-2", "guaranteed", pod("guard-2", container("app", limits={"cpu": "500m", "memory": "256Mi"})),
    oom={"app": -997}, shares=512, weight=20, quota={"cgroupfs": 50000, "systemd": 50000}, memory=256 * MI)
BESTEFFORT = Expected(
    "effort-3", "besteffort", pod("effort-3", container("app")),
    oom={"app": 1000}, shares=2, weight=1, quota=None, memory=None)


@dataclasses.dataclass(frozen=True)
class Tiers:
    """Values of the tiers: shares and weight of burstable, memory limits with all requests reserved (node: 1 GiB)."""

    shares: int
    weight: int
    burstable: int
    besteffort: int


TIERS = {  # by the uids of the living pods
    "burst-1": Tiers(358, 14, 1024 * MI, 928 * MI),
    "burst-1 guard-2": Tiers(358, 14, 768 * MI, 672 * MI),
    "guard-2": Tiers(2, 1, 768 * MI, 768 * MI),
    "burst-1 effort-3": Tiers(358, 14, 1024 * MI, 928 * MI),
    "effort-3": Tiers(2, 1, 1024 * MI, 1024 * MI),
}


ANNOTATIONS = {}


class Container:
    """A container of a cell, between its starts too."""

    def __init__(self, expected, label, bundle, name, engine_path):
        self.expected, self.label, self.bundle, self.name = expected, label, bundle, name
        self.engine_path = engine_path  # cgroup where its engine would have it
        self.original = bundle.read()
        self.starts = 0
        self.pid = None
        self.cgroup = None  # where its process shall be


class Cell(harness.TestCase):
    """The scenario of all ways in; a way says how a container starts, and where it shall be then."""

    driver, way = "cgroupfs", "wrapper"
    second = GUARANTEED
    settings = {"cgroupRoot": "/", "nodeMemory": "1Gi", "podPidsLimit": 64}

    def setUp(self):
        if oci.runtime_path(self.kind) is None:
            self.skipTest(f"{self.kind} is not installed")
        super().setUp()
        self.on_systemd = self.driver == "systemd"
        self.is_v2 = self.machine.version("cpu") == 2
        if self.on_systemd:
            flags = {"runc": ["--systemd-cgroup"], "crun": ["--cgroup-manager=systemd"]}[self.kind]
            self.wrapper.prefix += flags
            self.plain.prefix += flags
        self.runtime = self.wrapper if self.way == "wrapper" else self.plain

    def _clean_up(self):
        try:
            super()._clean_up()
        finally:
            units.clear("kubepods")

    # Names, as KUBELET.md has them.

    def kubepods(self):
        return "/kubepods.slice" if self.on_systemd else "/kubepods"

    def tier_path(self, tier):
        below = f"kubepods-{tier}.slice" if self.on_systemd else tier
        return self.kubepods() if tier == "guaranteed" else f"{self.kubepods()}/{below}"

    def pod_cgroup(self, expected):
        tier, uid = expected.tier, expected.uid
        if not self.on_systemd:
            return f"{self.tier_path(tier)}/pod{uid}"
        stem = "kubepods" if tier == "guaranteed" else f"kubepods-{tier}"
        return f"{self.tier_path(tier)}/{stem}-pod{uid.replace('-', '_')}.slice"

    def leaf(self, name):
        """Podman's name of a container's cgroup, which podqos keeps."""
        return f"libpod-{name}.scope" if self.on_systemd else f"libpod-{name}"

    def process_cgroup(self, cgroup):
        """crun gives the process a cgroup below its scope."""
        return f"{cgroup}/container" if self.on_systemd and self.kind == "crun" else cgroup

    # What ways differ in.

    def annotations(self, expected, label):
        """The same in all cells."""
        key = (expected.uid, label)
        if key not in ANNOTATIONS:
            ANNOTATIONS[key] = self.podqos.annotations(expected.manifest, label)
        return ANNOTATIONS[key]

    def container(self, expected, label):
        name = self.container_id(label)
        bundle = self.bundle(label=label)
        bundle.annotations.update(self.annotations(expected, label))
        place = f"machine.slice:libpod:{name}" if self.on_systemd else f"{self.elsewhere}/{self.leaf(name)}"
        bundle.config["linux"]["cgroupsPath"] = place
        if self.way != "wrapper":
            for stage in STAGES:
                bundle.add_hook(stage, harness.HOOK, [*self.podqos.hook_command(self.kind), stage])
        engine = f"/machine.slice/{self.leaf(name)}" if self.on_systemd else place
        return Container(expected, label, bundle.save(), name, engine)

    def prepare(self, box):
        """What is done to the bundle before the runtime is called."""

    def expected_cgroup(self, box):
        """Where the container shall be that starts now."""
        return self.process_cgroup(f"{self.pod_cgroup(box.expected)}/{self.leaf(box.name)}")

    def has_values(self, box):
        """Does the container get values and OOM score?"""
        return True

    # One step each.

    def start(self, box):
        self.prepare(box)
        pid_file = self.tmp / f"{box.name}.pid"
        box.cgroup = self.expected_cgroup(box)
        self.runtime.run(box.name, box.bundle, "-d", "--pid-file", pid_file)
        box.starts += 1
        box.pid = int(pid_file.read_text(encoding="utf-8"))
        self.check_place(box.pid, box.cgroup)
        if self.has_values(box):
            self.assert_oom(box.pid, box.expected.oom[box.label])
        return box

    def check_place(self, pid, cgroup):
        for controllers, where in machines.cgroups_of(pid).items():
            if controllers or self.is_v2:
                self.assertEqual(where, cgroup, f"cgroup of process {pid} in hierarchy \"{controllers}\"")

    def check_container(self, box):
        """Of "app": 250m, 500m and 128Mi."""
        if not self.has_values(box):
            self.assert_values(box.cgroup, quota=None, memory=None)
            return
        self.assert_container_share(box.cgroup, 256)
        self.assert_values(box.cgroup, quota=50000, memory=128 * MI)

    def check_pod(self, expected):
        quota = expected.quota[self.driver] if expected.quota else None
        self.check_share(self.pod_cgroup(expected), expected)
        self.assert_values(self.pod_cgroup(expected), quota=quota, period=100000, memory=expected.memory, pids=64)

    def check_share(self, cgroup, expected):
        what, value = ("weight", expected.weight) if self.is_v2 else ("shares", expected.shares)
        self.assertEqual(self.machine.read(cgroup, what), value, f"{what} of {cgroup}")

    def check_tiers(self, *pods):
        wanted = TIERS[" ".join(p.uid for p in pods)]
        self.check_share(self.tier_path("burstable"), wanted)
        self.check_share(self.tier_path("besteffort"), BESTEFFORT)
        self.assert_values(self.tier_path("burstable"), memory=wanted.burstable, quota=None)
        self.assert_values(self.tier_path("besteffort"), memory=wanted.besteffort, quota=None)

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

    def check_units(self, *pods):
        """What systemd believes, and what the kernel says after systemd has read everything anew."""
        wanted = TIERS[" ".join(p.uid for p in pods)]
        units.call("daemon-reload")
        found = units.show(["kubepods-burstable.slice", "kubepods-besteffort.slice",
                            *(self.pod_cgroup(p).rsplit("/", 1)[1] for p in pods)],
                           ["ActiveState", "CPUWeight", "CPUQuotaPerSecUSec", "MemoryMax", "TasksMax"])
        tiers = [
            {"CPUWeight": str(wanted.weight), "MemoryMax": str(wanted.burstable)},
            {"CPUWeight": "1", "MemoryMax": str(wanted.besteffort)},
        ]
        for unit, values in zip(found, tiers):
            unlimited = {"ActiveState": "active", "CPUQuotaPerSecUSec": "infinity", "TasksMax": unit["TasksMax"]}
            self.assertEqual(unit, {**unlimited, **values})
        for unit, expected in zip(found[len(tiers):], pods):
            quota = f"{expected.quota['systemd'] // 100}ms" if expected.quota else "infinity"
            self.assertEqual(unit, {
                "ActiveState": "active", "CPUWeight": str(expected.weight), "CPUQuotaPerSecUSec": quota,
                "MemoryMax": str(expected.memory or "infinity"), "TasksMax": "64"})
        for expected in pods:
            self.check_pod(expected)
        self.check_tiers(*pods)

    def end(self, box):
        self.runtime.delete(box.name)

    def check_nothing_left(self):
        """No cgroup, no unit, no drop-in of a unit, no record."""
        units.wait_for_none("kubepods", PATIENCE)
        self.assertEqual(units.cgroups("kubepods"), [])
        self.assertEqual(self.podqos.records(), [])
        if self.on_systemd:
            scopes = units.loaded(f"*{self.root[1:]}*")
            self.assertEqual(scopes, [], "scopes of the containers")

    def test_life(self):
        """From the first container to the last, with a second pod beside them."""
        app = self.start(self.container(BURSTABLE, "app"))
        self.check_container(app)
        self.check_pod(BURSTABLE)
        self.check_tiers(BURSTABLE)
        self.check_verbs(app)

        other = self.start(self.container(self.second, "app"))
        side = self.start(self.container(BURSTABLE, "side"))
        self.check_pod(self.second)
        self.check_tiers(BURSTABLE, self.second)
        if self.on_systemd:
            self.check_units(BURSTABLE, self.second)

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

    way = "precreate"
    second = BESTEFFORT

    def prepare(self, box):
        done = self.podqos.hook("precreate", box.original, kind=self.kind, cwd=box.bundle.path)
        box.bundle.file.write_text(done.stdout, encoding="utf-8")


class HooksRewrite(Cell):
    """The first start stays where the engine put it, the next one from that bundle is placed."""

    way = "hooks-rewrite"
    settings = {**Cell.settings, "placement": {"onMisplaced": "rewrite"}}

    def expected_cgroup(self, box):
        return self.process_cgroup(box.engine_path) if box.starts == 0 else super().expected_cgroup(box)


class HooksMove(Cell):
    """The process is moved, and its bundle rewritten for the next start; the runtime's own verbs stay behind.

    With systemd the engine's scope ends once its process has left: runc and crun find no cgroup any more, crun takes the
    container for stopped. They say so; the container itself, its values and its end are right.
    """

    way = "hooks-move"
    second = BESTEFFORT
    settings = {**Cell.settings, "placement": {"onMisplaced": "move"}}

    def expected_cgroup(self, box):
        moved = f"{self.pod_cgroup(box.expected)}/{self.leaf(box.name)}"  # a scope of podqos's own: none within
        return moved if box.starts == 0 else super().expected_cgroup(box)

    def check_verbs(self, box):
        if self.on_systemd:
            for verb in (["update", "--memory", UPDATED], ["pause"]):
                self.assertNotEqual(self.runtime.call(*verb, box.name, check=False).returncode, 0, verb)
        else:
            pid = self.runtime.exec_detached(box.name, "sleep", "1000")
            self.check_place(pid, box.engine_path)
            self.runtime.call("update", "--memory", UPDATED, box.name)
            self.assert_values(box.engine_path, memory=UPDATED)
            self.check_container(box)
            self.runtime.pause(box.name)
            self.assertFalse(self.is_frozen(box.pid))
            self.runtime.resume(box.name)
        self.check_place(box.pid, box.cgroup)
        self.assertFalse(self.is_frozen(box.pid))
        self.check_pod(box.expected)


class HooksFail(Cell):
    """A container elsewhere is refused; one whose engine names the right cgroup itself is let in."""

    way = "hooks-fail"
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

    way = "hooks-ignore"
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
    parser.add_argument("driver", choices=DRIVERS)
    parser.add_argument("only", nargs="*", metavar="RUNTIME|WAY")
    given = parser.parse_args()
    if not guest.inside():
        sys.exit("matrix.py writes to /kubepods and kubepods.slice: it runs in a guest only")
    suite = unittest.TestSuite()
    for kind in harness.KINDS:
        for base in (Wrapper, Precreate, HooksRewrite, HooksMove, HooksFail, HooksIgnore):
            if given.only and not {kind, base.way} & set(given.only):
                continue
            suite.addTest(cell(base, kind, given.driver))
    result = suite.run(Printed())
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

"""Pods with the names of a real node, /kubepods or kubepods.slice, and what kernel and systemd shall say of them.

For tests that have a whole machine, a guest, to themselves. All expected numbers stand here, worked out by hand from
Kubernetes' formulas.
"""

import dataclasses
import os
import pathlib

import harness
import machine as machines
import oci
import units
from harness import MI, container

DRIVERS = ("cgroupfs", "systemd")


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
    harness.pod(
        "burst-1",
        container("app", requests={"cpu": "250m", "memory": "64Mi"}, limits={"cpu": "500m", "memory": "128Mi"}),
        container("side", requests={"cpu": "100m", "memory": "32Mi"}, limits={"cpu": "151m", "memory": "64Mi"})),
    oom={"app": 938, "side": 969}, shares=358, weight=14, quota={"cgroupfs": 65100, "systemd": 66000},
    memory=192 * MI)
GUARANTEED = Expected(
    "guard-2", "guaranteed", harness.pod("guard-2", container("app", limits={"cpu": "500m", "memory": "256Mi"})),
    oom={"app": -997}, shares=512, weight=20, quota={"cgroupfs": 50000, "systemd": 50000}, memory=256 * MI)
BESTEFFORT = Expected(
    "effort-3", "besteffort", harness.pod("effort-3", container("app")),
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


# Of all pods: nothing is reserved; the shares of 16 CPUs, or that weight.
SHARES = 16384
ALLOCATABLE = {"memory": 1024 * MI,
               "pids": int(pathlib.Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))}

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


class NodeCase(harness.TestCase):
    """Starts containers as an engine does, and compares; a way in says how, and where a container shall be then."""

    driver = "cgroupfs"
    hooked = False  # the hooks stand in config.json and the runtime is called plainly; else the wrapper
    settings = {"cgroupRoot": "/", "nodeMemory": "1Gi", "podPidsLimit": 64}

    def setUp(self):
        if oci.runtime_path(self.kind) is None:
            self.skipTest(f"{self.kind} is not installed")
        super().setUp()
        self.is_v2 = self.machine.version("cpu") == 2
        self.use(self.driver)

    def use(self, driver):
        """From now on the runtime uses this driver."""
        self.driver, self.on_systemd = driver, driver == "systemd"
        flags = {"runc": ["--systemd-cgroup"], "crun": ["--cgroup-manager=systemd"]}[self.kind]
        for runtime in (self.plain, self.wrapper):
            runtime.prefix = [word for word in runtime.prefix if word not in flags] + flags * self.on_systemd
        self.runtime = self.plain if self.hooked else self.wrapper

    def _clean_up(self):
        try:
            super()._clean_up()
        finally:
            units.clear("kubepods")

    # Names, as the kubelet gives them.

    def kubepods(self):
        return "/kubepods.slice" if self.on_systemd else "/kubepods"

    def tier_path(self, tier):
        return self.kubepods() if tier == "guaranteed" else machines.child_cgroup(self.kubepods(), tier)

    def pod_cgroup(self, expected):
        return machines.child_cgroup(self.tier_path(expected.tier), f"pod{expected.uid}")

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

    def container(self, expected, label, args=("sleep", "1000")):
        name = self.container_id(label)
        bundle = self.bundle(label=label, args=args)
        bundle.annotations.update(self.annotations(expected, label))
        place = f"machine.slice:libpod:{name}" if self.on_systemd else f"{self.elsewhere}/{self.leaf(name)}"
        bundle.config["linux"]["cgroupsPath"] = place
        if self.hooked:
            self.register_hooks(bundle)
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
        self.assert_unified(box.cgroup)

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
        self.assert_values(self.kubepods(), **ALLOCATABLE, quota=None, shares=SHARES)

    def check_units(self, *pods):
        """What systemd believes."""
        wanted = TIERS[" ".join(p.uid for p in pods)]
        limits = ({"CPUWeight": str(wanted.weight), "MemoryMax": str(wanted.burstable)},
                  {"CPUWeight": str(BESTEFFORT.weight), "MemoryMax": str(wanted.besteffort)})
        tiers = [{"ActiveState": "active", "CPUQuotaPerSecUSec": "infinity", **tier} for tier in limits]
        names = [os.path.basename(self.tier_path(tier)) for tier in ("burstable", "besteffort")]
        self.assertEqual(units.show(names, tiers[0]), tiers)
        root = {"ActiveState": "active", "MemoryMax": str(ALLOCATABLE["memory"]), "TasksMax": str(ALLOCATABLE["pids"]),
                "CPUWeight": str(machines.linear_weight(SHARES))}
        self.assertEqual(units.show(["kubepods.slice"], root), [root])
        names = [os.path.basename(self.pod_cgroup(pod)) for pod in pods]
        found = [{"ActiveState": "active", "CPUWeight": str(pod.weight), "TasksMax": "64",
                  "CPUQuotaPerSecUSec": f"{pod.quota['systemd'] // 100}ms" if pod.quota else "infinity",
                  "MemoryMax": str(pod.memory or "infinity")} for pod in pods]
        self.assertEqual(units.show(names, found[0]), found)

    def check_all(self, *pods):
        """Pods, tiers and what systemd believes of them."""
        for expected in pods:
            self.check_pod(expected)
        self.check_tiers(*pods)
        if self.on_systemd:
            self.check_units(*pods)

    def end(self, box):
        self.runtime.delete(box.name)

    def check_nothing_left(self):
        """No cgroup, no unit, no drop-in of a unit, no record."""
        units.wait_for_none("kubepods")
        self.assertEqual(self.podqos.records(), [])
        self.assertEqual(units.loaded(f"*{self.root[1:]}*"), [], "scopes of the containers")

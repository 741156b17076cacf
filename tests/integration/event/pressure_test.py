"""Memory pressure: what a pod within its request keeps beside hogs of the lower classes, on either version of cgroups.

The node is a root that podqos has bounded, or a small guest. A working set is a mapped file and anonymous memory that
are touched again and again; what the kernel took of it and had to give back are its refaults (memory.stat). Expected
limits are the kubelet's setMemoryReserve: a tier has what the node has, less what pods of the classes above it request.

PODQOS_PRESSURE_SECONDS is how long working sets are measured while they are protected.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from busy_case import BusyCase  # noqa: E402
from harness import MI, container, pod  # noqa: E402
from systemd_driver import SystemdDriver  # noqa: E402

SECONDS = float(os.environ.get("PODQOS_PRESSURE_SECONDS", "2"))
PLAIN_SECONDS = min(SECONDS, 10)  # without protection, which shows sooner
WANTING = 2  # seconds that a hog meets with its limit
NODE, GUARANTEED, BURSTABLE = 192, 96, 32  # MiB: of the node, and what pods request
REFAULTS = 1000  # pages: a fight that has taken less from the hogs has not begun
# MiB that are touched of a file, and of anonymous memory, and the seconds until they are again.
SETS = {"g": (48, 24, 0.3), "b": (150, 14, 0), "e": (150, 24, 0)}
# As soon as the file /tmp/go is there, and Python's own memory comes to it.
WORK = """
import mmap, os, sys, time
size, anonymous, pause = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20, float(sys.argv[3])
with open("/tmp/file", "rb") as file:
    cache = mmap.mmap(file.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ)
memory = mmap.mmap(-1, anonymous, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
while not os.path.exists("/tmp/go"):
    time.sleep(0.1)
while True:
    for at in range(0, anonymous, mmap.PAGESIZE):
        memory[at] = 1
    for at in range(0, size, mmap.PAGESIZE):
        cache[at]
    time.sleep(pause)
"""


class PressureCase(BusyCase):
    """Pods, what they have, and what they have lost."""

    kind = "runc"
    settings = {"nodeMemory": f"{NODE}Mi", "qosReserved": None}

    def setUp(self):
        super().setUp()
        self.node = str(pathlib.Path(self.tier_path("besteffort")).parent)
        # Files with page cache that can be dropped, which those of a guest's own root are not.
        self.files = pathlib.Path("/run/guest/files") if guest.inside() else self.tmp / "files"
        self.files.mkdir()
        self.addCleanup(shutil.rmtree, self.files)

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config(self.kind)

    def converge(self):
        """Reconciles until all limits of tiers are the rule's."""
        self.podqos.ctl("reconcile", "--converge", str(patience.PATIENCE))

    def usage(self, path):
        return self.machine.read(path, "usage") or 0

    def kills(self, path):
        """Processes in this cgroup and below that were killed for want of memory; v1 counts in each by itself."""
        is_v1 = self.machine.version("memory") == 1
        name = "memory.oom_control" if is_v1 else "memory.events"
        top = pathlib.Path(self.machine.hierarchy("memory").mount + path)
        files = top.rglob(name) if is_v1 else [top / name]
        return sum(int(dict(line.split() for line in file.read_text(encoding="ascii").splitlines())["oom_kill"])
                   for file in files)

    def refaults(self, path):
        """Pages that the cgroup has lost and got back: (of files, anonymous ones)."""
        prefix = "total_" if self.machine.version("memory") == 1 else ""
        stat = dict(line.split() for line in self.machine.file(path, "memory", "memory.stat").splitlines())
        return tuple(int(stat[f"{prefix}workingset_refault_{kind}"]) for kind in ("file", "anon"))

    def lost(self, path):
        return sum(self.refaults(path))


class WorkingSets(PressureCase):
    """A Guaranteed pod, whose working set is within its request, and hogs of the other two classes."""

    def setUp(self):
        super().setUp()
        self.paths = {"g": self.pod_path("guaranteed", "g"), "b": self.pod_path("burstable", "b"),
                      "e": self.pod_path("besteffort", "e")}
        self.working_set = sum(SETS["g"][:2]) * MI
        self.identifiers, self.pids = {}, {}

    def prepare(self, manifest):
        """Starts a pod that will work on its set."""
        name = manifest["metadata"]["uid"]
        folder = self.files / name
        folder.mkdir()
        with (folder / "file").open("wb") as file:
            file.truncate(SETS[name][0] * MI)
        bundle = self.bundle(manifest, "app", ("/usr/bin/python3", "-c", WORK, *map(str, SETS[name])))
        mounts = {folder: "/tmp", **{pathlib.Path(path).resolve(): path for path in ("/usr", "/lib", "/lib64")}}
        bundle.config["mounts"] += [{"destination": destination, "type": "bind", "source": str(source),
                                     "options": ["bind", "ro"]} for source, destination in mounts.items()]
        self.identifiers[name] = self.container_id(name)
        self.pids[name] = self.wrapper.launch(self.identifiers[name], bundle.save())

    def fight(self, limits=None):
        """Begins it, with these limits for the Burstable pod."""
        whole = {"cpu": "100m", "memory": f"{GUARANTEED}Mi"}
        self.prepare(pod("g", container("app", whole, whole)))
        self.prepare(pod("b", container("app", {"memory": f"{BURSTABLE}Mi"}, limits)))
        self.prepare(pod("e", container("app")))
        for names in ("g", "be"):
            for name in names:
                (self.files / name / "go").touch()
            for name in names:
                patience.expect(lambda name=name: self.usage(self.paths[name]) > SETS[name][1] * MI, f"{name} works")
            if names == "g":
                patience.expect(lambda: self.usage(self.paths["g"]) > self.working_set, "the working set is there")

    def rate(self, seconds):
        """Refaults of the Guaranteed pod a second, in so many seconds, or more until the hogs fight."""
        began, before = time.monotonic(), {name: self.lost(path) for name, path in self.paths.items()}
        time.sleep(seconds)

        def of_hogs():
            return sum(self.lost(self.paths[name]) - before[name] for name in "be")

        patience.expect(lambda: of_hogs() > REFAULTS, "the hogs want more than there is")
        lost, took = self.lost(self.paths["g"]) - before["g"], time.monotonic() - began
        print(f"{lost} refaults beside {of_hogs()} of the hogs in {took:.1f} s", end="; ", flush=True)
        return lost / took

    def has_read_back(self):
        """Is all there that the Guaranteed pod lost before, since it has read nothing back for several rounds?"""
        before = self.lost(self.paths["g"])
        time.sleep(5 * SETS["g"][2])
        return self.usage(self.paths["g"]) > self.working_set and self.lost(self.paths["g"]) == before

    def assert_none_killed(self):
        self.assertEqual(self.kills(self.node), 0)
        self.assertEqual([name for name, pid in self.pids.items() if not machines.alive(pid)], [])


class Reserved(WorkingSets):
    """Limits of tiers protect where all of the Burstable class are within their requests: the hog of that class has a
    limit there. Together the tiers' limits are more than the node has, so that a Burstable pod beyond its request takes
    what the Guaranteed pod has, too: against that helps Memory QoS, for which cgroup v1 has no files."""

    def limits(self):
        return {tier: self.machine.read(self.tier_path(tier), "memory") for tier in ("burstable", "besteffort")}

    def test_from_when_it_is_switched_on(self):
        """Over a full tier, whose pods lose page cache until the rule holds, and nothing else."""
        self.fight(limits={"memory": f"{BURSTABLE}Mi"})
        plain = patience.wait_for(lambda: self.rate(PLAIN_SECONDS), 1, "the others take what is not protected")
        self.assertEqual(self.limits(), {"burstable": None, "besteffort": None})
        rule = {"burstable": (NODE - GUARANTEED) * MI, "besteffort": (NODE - GUARANTEED - BURSTABLE) * MI}
        self.assertGreater(self.usage(self.tier_path("besteffort")), rule["besteffort"])
        self.configure(qosReserved={"memory": "100%"})
        self.converge()
        self.assertEqual(self.limits(), rule)
        self.assert_none_killed()
        patience.expect(self.has_read_back, "the working set is there again")
        self.assertLess(self.rate(SECONDS), plain / 100)
        self.assert_none_killed()


class ReadBack(WorkingSets):
    """A hog that reads its page cache back as fast as cgroup v1 drops it for a lower limit. The kernel goes on trying
    until a signal comes (mm/memcontrol-v1.c mem_cgroup_resize_max), which no event must wait for."""

    def test_the_lock_is_free_meanwhile(self):
        self.fight(limits={"memory": f"{BURSTABLE}Mi"})
        self.rate(PLAIN_SECONDS)
        self.configure(qosReserved={"memory": "100%"})
        tier, rule = self.tier_path("besteffort"), (NODE - GUARANTEED - BURSTABLE) * MI
        self.podqos.ctl("reconcile", "--converge", "10")  # within its patience
        self.assertGreaterEqual(self.machine.read(tier, "memory"), rule)
        self.assert_none_killed()
        # One more container keeps the tier.
        self.launch(pod("event", container("app")), "app")
        self.wrapper.kill(self.identifiers["e"])
        patience.expect(lambda: self.usage(tier) < rule, "the hog has ended")
        self.converge()
        self.assertEqual(self.machine.read(tier, "memory"), rule)


class Tiered(WorkingSets):
    """memory.min protects whatever the others request and take."""

    def test_until_it_is_switched_off(self):
        self.configure(memoryReservationPolicy="TieredReservation")
        self.fight()
        protected = self.rate(SECONDS)
        self.assert_none_killed()
        self.configure(memoryReservationPolicy="None")
        self.podqos.ctl("reconcile")
        # On a busy machine the others may take nothing in so short a time.
        patience.wait_for(lambda: protected < self.rate(PLAIN_SECONDS) / 100, 1, "the others take what was protected")


class WithinRequest(PressureCase):
    """A Burstable pod has requested half of the node and uses less of it; BestEffort wants all there is."""

    REQUEST, USED = 96, 80  # MiB
    RULE = (NODE - REQUEST) * MI  # of the BestEffort tier
    # The three do not fit beside the pod. What the kernel kills of them is one dd, which begins anew.
    HOG = "for each in 1 2 3; do while :; do dd if=/dev/zero of=/dev/null bs=50M count=1 2>/dev/null; done & done; wait"
    # dd has read all of it, and ends when its reader does.
    TAKE = "dd if=/dev/zero bs={}M count=1 2>/dev/null | "
    UNTIL_GO = "while [ ! -e /dev/go ]; do sleep 0.1; done; "
    KEEP = TAKE.format(USED) + "sleep 1000"
    settings = {**PressureCase.settings, "memorySwap": {"swapBehavior": "LimitedSwap"}, "singleProcessOOMKill": True}

    def setUp(self):
        super().setUp()
        self.path, self.tier = self.pod_path("burstable", "calm"), self.tier_path("besteffort")

    def calm(self, script):
        """Starts the Burstable pod; returns its container's id."""
        return self.start(pod("calm", container("app", {"memory": f"{self.REQUEST}Mi"})), "app", script)[0]

    def hog(self, script):
        return self.start(pod("hog", container("app")), "app", script)[0]

    def go(self, identifier, runtime=None):
        (runtime or self.wrapper).exec(identifier, "sh", "-c", ": >/dev/go")

    def wait_for_memory(self, path):
        patience.expect(lambda: self.usage(path) > self.USED * MI, "the pod has its memory")

    def swapped(self):
        """Bytes of the Burstable pod that are in swap."""
        if self.machine.version("memory") == 2:
            return int(self.machine.file(self.path, "memory", "memory.swap.current") or 0)
        lines = self.machine.file(self.path, "memory", "memory.stat").splitlines()
        return int(dict(line.split() for line in lines).get("total_swap", 0))

    def hits(self):
        """How often the BestEffort tier has met with its limit."""
        if self.machine.version("memory") == 1:
            return int(self.machine.file(self.tier, "memory", "memory.failcnt"))
        lines = self.machine.file(self.tier, "memory", "memory.events").splitlines()
        return int(dict(line.split() for line in lines)["max"])

    def add_swap(self):
        """128 MiB of it for this test, in compressed memory of the guest."""
        modules = pathlib.Path("/usr/lib/modules", os.uname().release, "kernel")
        for file in (modules / "mm/zsmalloc.ko", modules / "drivers/block/zram/zram.ko"):
            if file.exists():
                subprocess.run(["busybox", "insmod", file], check=True)
        pathlib.Path("/sys/block/zram0/disksize").write_text("128M", encoding="ascii")
        subprocess.run(["mkswap", "/dev/zram0"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", "/dev/zram0"], check=True)
        self.addCleanup(subprocess.run, ["swapoff", "/dev/zram0"], check=True)

    def assert_hog_takes_nothing(self):
        """For some seconds it wants more than its tier has."""
        begin, before = time.monotonic(), self.hits()
        self.hog(self.HOG)
        patience.expect(lambda: self.hits() > before + 100 and time.monotonic() - begin > WANTING, "the hog meets its limit")
        self.assertEqual(self.machine.read(self.tier, "memory"), self.RULE)
        self.assertEqual(self.kills(self.path), 0)
        self.assertGreater(self.usage(self.path), self.USED * MI)
        self.assertEqual(self.swapped(), 0)

    def test_without_podqos_it_dies(self):
        """Of processes that are all alike the kernel kills the largest."""
        for name, script in (("calm", self.KEEP), ("hog", self.UNTIL_GO + self.HOG)):
            bundle = self.bundle(None, None, ("sh", "-c", script), label=name)
            bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{name}"
            identifier = self.container_id(name)
            self.plain.launch(identifier, bundle.save())
        path = f"{self.elsewhere}/calm"
        self.wait_for_memory(path)
        limit = "memory.limit_in_bytes" if self.machine.version("memory") == 1 else "memory.max"
        node = pathlib.Path(self.machine.hierarchy("memory").mount + self.elsewhere)
        (node / limit).write_text(str(NODE * MI), encoding="ascii")
        self.go(identifier, self.plain)
        patience.expect(lambda: self.kills(path) > 0, "the pod is killed")

    def test_it_lives(self):
        self.configure(qosReserved={"memory": "100%"})
        self.calm(self.KEEP)
        self.wait_for_memory(self.path)
        self.assert_hog_takes_nothing()

    def test_it_does_not_swap(self):
        """A pod that may: without the reservation it does."""
        if not guest.inside():
            self.skipTest("the swap of this machine is its own")
        self.add_swap()
        self.calm(self.KEEP)
        self.wait_for_memory(self.path)
        self.hog(self.HOG)
        patience.expect(lambda: self.swapped() > 8 * MI, "the pod is swapped out")
        self.wrapper.delete_all()
        self.configure(qosReserved={"memory": "100%"})
        self.calm(self.KEEP)
        self.wait_for_memory(self.path)
        self.assert_hog_takes_nothing()

    def test_of_a_hog_that_came_first(self):
        """It keeps what it has, until it frees it; then the rule holds."""
        self.configure(qosReserved={"memory": "100%"})
        first = self.hog(self.TAKE.format(self.REQUEST + 30) + self.UNTIL_GO + "sleep 1000")
        patience.expect(lambda: self.usage(self.tier) > (self.REQUEST + 30) * MI, "the hog has its memory")
        calm = self.calm(self.UNTIL_GO + self.KEEP)
        self.assertGreater(self.machine.read(self.tier, "memory"), (self.REQUEST + 30) * MI)
        self.go(first)
        begin = time.monotonic()
        self.converge()
        self.assertEqual(self.machine.read(self.tier, "memory"), self.RULE)
        print(f"converged in {time.monotonic() - begin:.1f} s", end="; ", flush=True)
        self.assertEqual(self.kills(self.node), 0)
        self.go(calm)
        self.wait_for_memory(self.path)
        self.assert_hog_takes_nothing()


class ReservedUnderCrun(Reserved):
    """With the cgroups that crun makes."""

    kind = "crun"


class OnSystemd(SystemdDriver):
    """With the systemd driver."""

    def setUp(self):
        super().setUp()
        self.use_driver()


class ReservedOnSystemd(OnSystemd, Reserved):
    """Limits of slices."""


class TieredOnSystemd(OnSystemd, Tiered):
    """Protections of slices, and of the cgroup that crun makes below a container's."""

    kind = "crun"


def classes_in_guest():
    if pathlib.Path("/run/systemd/system").is_dir():
        return [ReservedOnSystemd, TieredOnSystemd]
    if machines.Machine().version("memory") == 1:
        return [ReadBack, WithinRequest]
    return [ReservedUnderCrun, Tiered, WithinRequest]


if __name__ == "__main__":
    V2 = guest.Guest("v2", mem="640M"), __file__, "Tiered", "WithinRequest.test_it_does_not_swap"
    harness.main(("runc",), here=[Reserved, WithinRequest, guest.cases({"v2": V2})], in_guest=classes_in_guest())

"""The order of death: when the memory of the node's pods runs out, BestEffort goes first, then Burstable by how far it
is above its request, Guaranteed last.

The node is a root that podqos has bounded (enforceNodeAllocatable); who dies there the kernel decides, by memory and
the OOM scores that podqos has given: in effect by memory above the request (mm/oom_kill.c oom_badness). The Guaranteed
pod grows step by step within its request, and each step is too much for one more of the others. While a large process
ends, the kernel may take the next one as well (mm/mmap.c exit_mmap: MMF_OOM_SKIP comes before the last pages go): so a
step may cost two of them, but never one out of order.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import patience  # noqa: E402
from busy_case import BusyCase  # noqa: E402
from harness import MI, container, pod  # noqa: E402

NODE = 400  # MiB
START, STEPS = 90, (70, 70, 80)  # MiB that the Guaranteed pod has, and takes
GROWN = START + sum(STEPS)


def take(mebibytes):
    """A shell command that takes memory and keeps it: dd has read all of it and can write none."""
    return f"dd if=/dev/zero bs={mebibytes}M count=1 2>/dev/null | sleep 1000"


def growing():
    """A shell script that takes START, and with each file /dev/go0, /dev/go1 … one of STEPS."""
    script = f"{take(START)} & "
    for number, step in enumerate(STEPS):
        script += f"while [ ! -e /dev/go{number} ]; do sleep 0.1; done; {take(step)} & "
    return script + "wait"


class Death(BusyCase):
    """Four pods that fit, and one that grows."""

    kind = "runc"
    settings = {"nodeMemory": f"{NODE}Mi", "qosReserved": None}

    def setUp(self):
        super().setUp()
        if len(pathlib.Path("/proc/swaps").read_text(encoding="ascii").splitlines()) > 1 and \
                self.machine.version("memory") == 1:
            raise unittest.SkipTest("this machine can swap, which a limit of cgroup v1 does not count")

    def usage(self, path):
        return self.machine.read(path, "usage") or 0

    def wait_for(self, path, mebibytes):
        patience.expect(lambda: self.usage(path) > mebibytes * MI, f"{path} has {mebibytes} MiB")

    def dead(self, paths):
        """Those of {path: MiB that it took} that have lost their memory: v1 kills one process, v2 the container."""
        return {path for path, mebibytes in paths.items() if self.usage(path) < mebibytes * MI / 2}

    def grow(self, runtime, identifier, number):
        runtime.exec(identifier, "sh", "-c", f": >/dev/go{number}")

    def test_best_effort_then_burstable_by_excess_then_guaranteed(self):
        whole = {"cpu": "100m", "memory": f"{GROWN + 20}Mi"}
        others = {"batch": ("besteffort", 80, None), "far": ("burstable", 90, {"memory": "30Mi"}),
                  "near": ("burstable", 110, {"memory": "100Mi"})}
        paths = {name: self.pod_path(tier, name) for name, (tier, _, _) in others.items()}
        took = {paths[name]: mebibytes for name, (_, mebibytes, _) in others.items()}
        for name, (_, mebibytes, requests) in others.items():
            self.start(pod(name, container("app", requests)), "app", take(mebibytes))
            self.wait_for(paths[name], mebibytes)
        last, _ = self.start(pod("last", container("app", whole, whole)), "app", growing())
        path = self.pod_path("guaranteed", "last")
        self.wait_for(path, START)
        self.assertEqual(self.dead(took), set())
        orders = [["batch"], ["batch", "far"], ["batch", "far", "near"]]

        def dead():
            return [name for name in others if paths[name] in self.dead(took)]

        grown = START
        for number, step in enumerate(STEPS):
            self.grow(self.wrapper, last, number)
            grown += step
            self.wait_for(path, grown)
            patience.expect(lambda: dead() in orders, "the next have died, in order")
        patience.expect(lambda: dead() == orders[-1], "all others have died")

    def test_without_podqos_it_is_the_largest(self):
        """The same memory in the same bounds: who has most goes first, whatever it requests."""
        took = {"batch": 80, "far": 90, "near": 110, "last": START}
        paths = {name: f"{self.elsewhere}/{name}" for name in took}
        for name, mebibytes in took.items():
            script = growing() if name == "last" else take(mebibytes)
            bundle = self.bundle(None, None, ("sh", "-c", script), label=name)
            bundle.config["linux"]["cgroupsPath"] = paths[name]
            identifier = self.container_id(name)
            self.plain.launch(identifier, bundle.save())
            self.wait_for(paths[name], mebibytes)
        limit = "memory.limit_in_bytes" if self.machine.version("memory") == 1 else "memory.max"
        pathlib.Path(self.machine.hierarchy("memory").mount + self.elsewhere, limit).write_text(str(NODE * MI),
                                                                                              encoding="ascii")
        self.grow(self.plain, identifier, 0)
        patience.expect(lambda: self.dead({paths["near"]: took["near"]}), "the largest has died")
        self.assertEqual(self.dead({paths["batch"]: took["batch"]}), set())


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Death],
                 here=[Death, guest.cases({"v2": (guest.Guest("v2", mem="1024M"), __file__)})])

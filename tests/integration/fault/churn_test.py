"""Many pods come, go, crash and are resized with all features on, while some take all the memory that there is.

PODQOS_CHURN_PODS (24) live at a time, and for PODQOS_CHURN_SECONDS (5) after all are there each of three engines does
one thing after another with its own. podqos-nri watches, and reconciliations run beside it. At the end the kernel must
hold exactly what the oracle says, and no pod within its request may have ended but by its engine. tests/lib/soak.py has
the other variables.

The default run is a short one; tests/run --all has twenty seconds in a guest as well. Ten minutes of 200 pods, here and
in a guest:

    PODQOS_CHURN_PODS=200 PODQOS_CHURN_SECONDS=600 python3 tests/integration/fault/churn_test.py
    PODQOS_CHURN_PODS=200 PODQOS_CHURN_SECONDS=600 \\
        python3 tests/lib/guest.py --mem 4G v2 tests/integration/fault/churn_test.py
"""

import collections
import contextlib
import fractions
import itertools
import json
import os
import pathlib
import random
import select
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import nri_peer  # noqa: E402
import oci  # noqa: E402
import oracle  # noqa: E402
import patience  # noqa: E402
import soak  # noqa: E402
from harness import MI, container, pod  # noqa: E402

PODS = int(os.environ.get("PODQOS_CHURN_PODS", "24"))
SECONDS = int(os.environ.get("PODQOS_CHURN_SECONDS", "5"))
ENGINES = 3
ATTEMPTS = 5  # for a resize
ANY_UID = "uid-of-this-pod"
NODE = (PODS * 16 + 256) * MI  # never requested as a whole: BestEffort pods have 256 MiB at least
HOG = 200 + 3 * (PODS - 24)  # MiB: three of them are more than the BestEffort pods have
HUNGRY = 24  # of the pods; the others take little, so that the machine is not all that is tested
SETTINGS = {
    "nodeMemory": str(NODE), "nodeCpu": "64", "lockDeadline": "60s",  # of a machine with other work
    "qosReserved": {"memory": "100%"}, "enforceNodeAllocatable": ["pods"],
    "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9, "memoryHighPatience": "2s",
    "cpuBurst": {"guaranteed": "50%", "burstable": "20%"}, "cpuIdle": {"bestEffort": True},
    "ioWeight": {"guaranteed": 500, "burstable": 200, "bestEffort": 50},
    "eviction": {"besteffort": {"memoryPressure": "40%/2s"}, "burstable": {"memoryPressure": "60%/2s"},
                 "interval": "15s"},
}
FEATURES = oracle.Features(burst={"guaranteed": 50, "burstable": 20}, idle=True, reserves=True,
                           throttling=fractions.Fraction(9, 10),
                           io={"guaranteed": 500, "burstable": 200, "besteffort": 50})


def keep(mebibytes):
    """Takes memory and keeps it: dd, which the container ends with, has read all of it and can write none."""
    return ("busybox mkfifo /dev/pipe; sleep 10000 </dev/pipe & "
            f"exec dd if=/dev/zero of=/dev/pipe bs={mebibytes}M count=1 2>/dev/null")


def take_and_return(mebibytes):
    return f"while :; do dd if=/dev/zero of=/dev/null bs={mebibytes}M count=1 2>/dev/null; sleep 5; done"


def given(cpu, memory):
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}


def guaranteed(uid, size):
    return pod(uid, container("app", limits=given(20 * size, 28 + 4 * size)))


def burstable(uid, size):
    return pod(uid, container("app", given(10 * size, 12 + 2 * size), given(100 * size, 40 + 8 * size)))


def two(uid, app, log):
    return pod(uid, container("app", given(10 * app, 6 + app), given(50, 24 + 4 * app)),
               container("log", given(10, 6 + log)))


def hog(uid, size):
    return pod(uid, container("app", given(10, 4 + size)))


def throttled(uid, size):
    return pod(uid, container("app", given(10, 4 + size), {"memory": f"{HOG // 2}Mi"}))


def besteffort(uid, _):
    return pod(uid, container("app"))


# What lives in turn: the manifest of a pod whose containers are of size 1 or 2, what they do, and whether they stay
# within their request, so that nobody but their engine may end them.
Kind = collections.namedtuple("Kind", "manifest script is_within")
KINDS = (
    Kind(guaranteed, keep(4), True), Kind(burstable, keep(4), True), Kind(besteffort, "sleep 10000", False),
    Kind(two, "sleep 10000", True), Kind(burstable, take_and_return(3), True), Kind(besteffort, keep(HOG), False),
    Kind(guaranteed, take_and_return(4), True), Kind(hog, keep(HOG), False), Kind(two, keep(2), True),
    Kind(throttled, take_and_return(HOG // 2 + 5), False), Kind(besteffort, take_and_return(HOG), False),
    Kind(burstable, "sleep 10000", True),
)
CALM = KINDS[:5]


class Slot:
    """Where one pod after another of a kind lives."""

    def __init__(self, number):
        kinds = KINDS if number < HUNGRY else CALM
        self.kind, self.number = kinds[number % len(kinds)], number
        self.generation, self.manifest = 0, None
        self.sizes = [1] * (2 if self.kind.manifest is two else 1)  # of the containers
        self.running = {}  # container name -> (Instance, pidfd)

    @property
    def uid(self):
        return self.manifest["metadata"]["uid"]

    def next_pod(self):
        """Of the sizes that its predecessor has ended with."""
        self.generation += 1
        self.describe()

    def describe(self):
        make = self.kind.manifest
        self.manifest = make(f"{make.__name__}-{self.number}-{self.generation}", *self.sizes)

    def change_size(self, index):
        self.sizes[index] = 3 - self.sizes[index]
        self.describe()


def has_ended(pidfd):
    return bool(select.select([pidfd], [], [], 0)[0])


class Engine(threading.Thread):
    """Does one thing after another with the pods of its slots, until it is told to stop."""

    def __init__(self, case, number, slots):
        super().__init__(name=f"engine {number}")
        self.case, self.slots = case, slots
        self.random = random.Random(soak.SEED + number)
        self.failure = None

    def run(self):
        try:
            for slot in self.slots:
                self.start_pod(slot)
            self.case.full.wait(1000)
            while not self.case.over.is_set():
                # The hungry ones end more often than others.
                hungry = self.random.random() < 0.3
                slot = self.random.choice(self.slots[:HUNGRY // ENGINES] if hungry else self.slots)
                self.notice_ends(slot)
                events = (self.end_pod, self.crash, self.resize, self.tamper) if slot.running else (self.start_pod,)
                self.random.choice(events)(slot)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failure = error
            self.case.over.set()
            self.case.full.abort()

    def count(self, what):
        self.case.counts[what] += 1

    def note(self, text):
        self.case.history.append(f"{self.name}: {text}")

    def start_pod(self, slot):
        slot.next_pod()
        for fields in slot.manifest["spec"]["containers"]:
            self.start_container(slot, fields["name"])
        self.count("pods")

    def start_container(self, slot, name):
        """One that pressure ends before it runs is a failed start, as an engine would have it."""
        instance = self.case.new_instance(slot, name)
        self.note(f"start {instance}")
        runtime = instance.runtime
        done = runtime.call("create", "--bundle", instance.bundle.path, instance.id, check=slot.kind.is_within)
        state = runtime.state(instance.id) if done.returncode == 0 else None
        try:
            if state is None:
                raise ProcessLookupError
            pidfd = os.pidfd_open(state["pid"])
        except ProcessLookupError:
            self.refused(slot, instance, done.stderr)
            return
        if runtime.start(instance.id, check=slot.kind.is_within).returncode != 0:
            os.close(pidfd)
            self.refused(slot, instance, "start")
            return
        slot.running[name] = (instance, pidfd)

    def refused(self, slot, instance, text):
        if slot.kind.is_within:
            raise AssertionError(f"{instance} did not start: {text}")
        self.count("failed starts")
        instance.runtime.call("delete", "--force", instance.id, check=False)
        self.case.forget(instance)

    def notice_ends(self, slot):
        """As an engine does, some time after somebody has killed a container."""
        for name, (instance, pidfd) in list(slot.running.items()):
            if has_ended(pidfd):
                self.count("killed")
                self.note(f"{instance} was killed")
                if slot.kind.is_within:
                    raise AssertionError(f"{instance} is within its request, and was killed")
                self.end_container(slot, name)

    def end_container(self, slot, name):
        instance, pidfd = slot.running.pop(name)
        os.close(pidfd)
        self.case.delete(instance)
        self.case.forget(instance)

    def end_pod(self, slot):
        self.note(f"end {slot.uid}")
        for name in list(slot.running):
            self.end_container(slot, name)

    def crash(self, slot):
        """A container ends by itself, and is started again from the pod's spec as it is by now."""
        name = self.random.choice(list(slot.running))
        instance, pidfd = slot.running[name]
        self.note(f"crash {instance}")
        instance.runtime.call("kill", instance.id, "KILL", check=False)
        select.select([pidfd], [], [])
        self.end_container(slot, name)
        self.start_container(slot, name)
        self.count("crashes")

    def tamper(self, slot):
        """Another program changes a value of the pod, which a reconciliation has to find."""
        self.note(f"tamper with {slot.uid}")
        if self.case.machine.version("cpu") == 2:
            self.case.machine.write(self.case.pod_cgroup(slot), "weight", 77)
        else:
            self.case.machine.write(self.case.pod_cgroup(slot), "shares", 777)
        self.count("changed values")

    def resize(self, slot):
        """Some container, to its other size. BestEffort pods have nothing to resize."""
        name = self.random.choice(list(slot.running))
        instance, _ = slot.running[name]
        index, _ = self.fields_of(slot, name)
        slot.change_size(index)
        resources = self.fields_of(slot, name)[1]["resources"]
        if not resources:
            return
        limits = resources.get("limits", {})
        wanted = {"requests": {**limits, **resources.get("requests", {})}, "limits": limits}
        amounts = [f"--{kind}={','.join(f'{name}={amount}' for name, amount in given.items())}"
                   for kind, given in wanted.items() if given]
        self.note(f"resize {instance}: {' '.join(amounts)}")
        for _ in range(ATTEMPTS):
            done = self.case.ctl("resize", slot.uid, "--container", name, *amounts, "--runtime",
                                 oci.runtime_path(instance.runtime.kind), "--runtime-root", instance.runtime.root)
            if "has just changed: try again" not in done.stderr:  # by a reconciliation or by podqos-nri
                break
        if done.returncode == 0:
            self.count("resizes")
        elif "is too low" in done.stderr or has_ended(slot.running[name][1]):
            slot.change_size(index)
            self.count("refused resizes")
        else:
            raise AssertionError(f"{instance}: {done.stderr}")
        for each, _ in slot.running.values():
            each.manifest = slot.manifest

    @staticmethod
    def fields_of(slot, name):
        """(index, container of the manifest)."""
        return next((i, c) for i, c in enumerate(slot.manifest["spec"]["containers"]) if c["name"] == name)


class Churn(soak.SoakCase):
    """All features, and pressure."""

    settings = SETTINGS
    node_memory = NODE

    def features(self):
        return FEATURES

    def setUp(self):
        super().setUp()
        self.counts = collections.Counter()
        self.over = threading.Event()
        self.full = threading.Barrier(ENGINES + 1)
        self.config = self.podqos.config("crun")
        self.serials = itertools.count(1)
        self.reconcile_errors = []
        self.annotated = {}
        for make in {kind.manifest for kind in KINDS}:
            for sizes in itertools.product((1, 2), repeat=2 if make is two else 1):
                manifest = make(ANY_UID, *sizes)
                for fields in manifest["spec"]["containers"]:
                    text = json.dumps(self.podqos.annotations(manifest, fields["name"]))
                    self.annotated[make, *sizes, fields["name"]] = text

    def ctl(self, *args):
        """Without writing the configuration once more, which others read meanwhile."""
        return oci.call([harness.CTL, "--config", self.config, *args], check=False)

    def new_instance(self, slot, name):
        kind = list(self.runtimes)[slot.number % len(self.runtimes)]
        serial = next(self.serials)
        identifier = f"{self.root[1:]}-{serial}"
        bundle = oci.Bundle(self.tmp / "bundles" / str(serial), kind, ("sh", "-c", slot.kind.script))
        bundle.config["linux"]["cgroupsPath"] = self.engine_path(kind, identifier)
        text = self.annotated[slot.kind.manifest, *slot.sizes, name].replace(ANY_UID, slot.uid)
        bundle.annotations.update(json.loads(text))
        made = soak.Instance(slot.uid, slot.manifest, name, self.runtimes[kind], identifier, bundle.save())
        self.instances[made.key] = made
        return made

    def pod_cgroup(self, slot):
        qos_class = oracle.Pod(slot.manifest["spec"]).qos_class
        return machines.child_cgroup(self.truth.tier(qos_class), f"pod{slot.uid}")

    def container_differences(self, instance, path):
        return oracle.container_differences(self.machine, self.truth, instance.uid, instance.name, path)

    def start_plugin(self):
        """podqos-nri, which hears of nothing and watches tiers and limits."""
        runtime = nri_peer.Runtime(self.tmp / "nri.sock")
        self.addCleanup(runtime.stop)
        command = [harness.BIN / "podqos-nri", "--config", self.config, "--socket", self.tmp / "nri.sock"]
        plugin = subprocess.Popen(command, env={}, stdin=subprocess.DEVNULL)  # pylint: disable=consider-using-with
        self.addCleanup(plugin.wait)
        self.addCleanup(plugin.kill)
        runtime.accept().welcome()
        return plugin

    def reconcile_often(self, stop):
        """As the timer does, until everything has an end."""
        while not stop.wait(1):
            done = self.ctl("reconcile", "--quiet", "--converge", "3")
            self.counts["reconciliations"] += 1
            if done.returncode != 0 or done.stderr:
                self.reconcile_errors.append(done.stderr)

    def churn(self, engines):
        """Everything at once, for SECONDS after all pods are there."""
        for engine in engines:
            engine.start()
        with contextlib.suppress(threading.BrokenBarrierError):
            self.full.wait(1000)
            print(f"{PODS} pods are there, {self.told()}", flush=True)
            self.over.wait(SECONDS)
        self.over.set()
        for engine in engines:
            engine.join()
        for engine in engines:
            if engine.failure is not None:
                self.fail(f"{engine.name}: {engine.failure}{self.report()}")

    def told(self):
        return ", ".join(f"{what} {number}" for what, number in sorted(self.counts.items()))

    def end_pressure(self, engines):
        """Then limits that usage has held can become the rule's."""
        for engine in engines:
            for slot in engine.slots:
                engine.notice_ends(slot)
                if not slot.kind.is_within:
                    engine.end_pod(slot)

    def assert_converges(self):
        patience.until(lambda: not self.differences())
        self.check()
        report = json.loads(self.ctl("reconcile", "--dry-run", "-o", "json").stdout)
        self.assertEqual((report["changes"], report["warnings"], report["failed"]), ([], [], []))

    def test_all_features_under_pressure(self):
        print(f"PODQOS_SOAK_SEED={soak.SEED}", flush=True)
        slots = [Slot(number) for number in range(PODS)]
        engines = [Engine(self, number, slots[number::ENGINES]) for number in range(ENGINES)]
        plugin, stop = self.start_plugin(), threading.Event()
        reconciling = threading.Thread(target=self.reconcile_often, args=(stop,))
        reconciling.start()
        try:
            self.churn(engines)
            self.end_pressure(engines)
            self.assert_converges()
        finally:
            stop.set()
            reconciling.join()
        self.assertEqual(self.reconcile_errors, [])
        self.assertIsNone(plugin.poll())
        for engine in engines:
            for slot in engine.slots:
                engine.end_pod(slot)
        self.assert_nothing_left()
        log = self.podqos.log_text()
        self.counts["evictions"] = log.count("evicted pod")
        self.counts["steps of convergence"] = log.count("memory limit has come down")
        self.counts["raised memory.high"] = log.count("throttled at memory.high")
        print(self.told())
        self.assertGreater(self.counts["killed"], 0, "no pressure")

    def test_the_model_misses_features_that_are_off(self):
        """What each of them writes differs from what there is without."""
        self.podqos.settings.update(dict.fromkeys(
            ("memoryReservationPolicy", "memoryThrottlingFactor", "cpuBurst", "cpuIdle", "ioWeight", "eviction")))
        self.podqos.config("crun")
        slot = Slot(1)
        engine = Engine(self, 0, [slot])
        engine.start_pod(slot)
        wrong = " ".join(self.differences())
        on_v2 = self.machine.version("memory") == 2
        for what in ("burst", *(("idle", "low", "min", "high") if on_v2 else ())):
            self.assertIn(f"{what} of ", wrong)
        engine.end_pod(slot)


if __name__ == "__main__":
    soak.main()

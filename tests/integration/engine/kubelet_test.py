"""A kubelet beside podqos: what it makes stays to the byte, and podqos's own pods and its own leave each other alone.

Each guest, Debian under systemd with the installed package, runs this file again with one cgroup driver. There the part
of a kubelet (tests/lib/kubelet.py) is played with real containerd: once without podqos, and in each way that podqos is
registered there. Every file of the cgroups, the units' properties and the processes' scores must then be the same.
"""

import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import cgroup_settings  # noqa: E402
import containerd  # noqa: E402
import cri  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import kubelet  # noqa: E402
import libcontainer  # noqa: E402
import machine as machines  # noqa: E402
import metrics  # noqa: E402
import units  # noqa: E402
from harness import container  # noqa: E402

SETTINGS = pathlib.Path("/etc/podqos/conf.d/90-kubelet.json")
# All that podqos would do to a pod of its own, and would be seen.
EAGER = {"nodeMemory": "8Gi", "podPidsLimit": 100, "allowQosOverride": True, "trustAnnotations": "all",
         "cpuCFSQuotaPeriod": "50ms", "memorySwap": {"swapBehavior": "LimitedSwap"}}
# How podqos takes part: the way of containerd's handler, whether podqos-nri is connected, and whether pods are told.
WAYS = {"none": ("plain", False, False), "wrapper": ("wrapper", False, False), "hooks": ("hooks", False, False),
        "plugin": ("plain", True, False), "both": ("wrapper", True, True)}
# (release of Debian, cgroup driver, runtime): one guest each, and what is run there. With systemd, wrapper and plugin are
# tried together.
GUESTS = {
    ("trixie", "cgroupfs", "crun"): ("Untouched", "Beside"),
    ("trixie", "systemd", "crun"): ("Untouched.test_with_hooks", "Untouched.test_with_both",
                                    "Untouched.test_with_late_plugin", "Untouched.test_without", "Beside"),
    ("testing", "cgroupfs", "runc"): ("Untouched.test_with_plugin", "Beside"),
}


def spec(*containers, **fields):
    return {"containers": list(containers), **fields}


MIX = spec(container("main"), container("helper", limits={"cpu": "50m", "memory": "32Mi"}))
LIMITED = container("app", limits={"cpu": "100m", "memory": "64Mi"})
OVERHEAD = {"cpu": "50m", "memory": "32Mi"}


def pods(are_told=False):
    """One of each kind. Told: each with the annotation that describes it, and gives each of its containers limits."""
    shop = spec(
        container("web", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"}),
        container("log", limits={"cpu": "100m", "memory": "32Mi"}),
        initContainers=[container("setup", limits={"cpu": "300m", "memory": "256Mi"}),
                        container("proxy", {"cpu": "20m", "memory": "16Mi"}, {"cpu": "100m", "memory": "32Mi"},
                                  restartPolicy="Always"),
                        container("warm")])
    level = spec(container("free"), LIMITED, resources={"requests": {"cpu": "200m", "memory": "128Mi"},
                                                        "limits": {"cpu": "500m", "memory": "256Mi"}})
    critical = spec(container("api", {"cpu": "250m"}), priority=2000001000, priorityClassName="system-node-critical")
    claimed = {"podqos.io/requests": "cpu=2,memory=1Gi", "podqos.io/limits": "cpu=3,memory=2Gi",
               "podqos.io/limits.main": "cpu=1,memory=128Mi", "podqos.io/qos-class": "Guaranteed"}
    found = {"mix": MIX, "bank": spec(LIMITED, overhead=OVERHEAD),
             "idle": spec(container("app")), "shop": shop, "level": level}
    made = [*(kubelet.Pod(*each) for each in found.items()), kubelet.Pod("static", critical, dict(kubelet.STATIC))]
    for pod in made if are_told else ():
        described = spec(*(container(each, limits={"cpu": "30m", "memory": "40Mi"}) for each in pod.containers))
        pod.annotations["podqos.io/pod"] = json.dumps(described)
    return [*made, kubelet.Pod("claimed", MIX, claimed)]


# Names of pods, and what they are resized to: the CPU grows and the memory shrinks, and the other way round.
RESIZED = {
    "mix": spec(container("main"), container("helper", limits={"cpu": "80m", "memory": "24Mi"})),
    "bank": spec(container("app", limits={"cpu": "50m", "memory": "96Mi"}), overhead=OVERHEAD),
}
RESTARTED = (("mix", "main"), ("shop", "log"), ("static", "api"))


class Life:
    """A kubelet's pods from the first to the last in one of WAYS; `seen` is {stage: all that is set then}.

    Those without podqos meet its plugin while they run, and are seen once more then: "late".
    """

    def __init__(self, daemon, driver, kind, way):
        how, self.with_plugin, self.are_told = WAYS[way]
        self.is_podqos_there = way != "none"
        self.node = kubelet.Kubelet(daemon.cri, containerd.handler(how, kind, driver), libcontainer.DRIVERS[driver]())
        self.seen = {}

    def live(self):
        plugin = containerd.Plugin() if self.with_plugin else None
        try:
            self._live()
        finally:
            if plugin and plugin.stop() != 0:
                raise AssertionError(f"podqos-nri has failed\n{engine.log_text()}")
        return self

    def _live(self):
        node = self.node
        node.start()
        self._look("before")
        for pod in pods(self.are_told):
            node.run(pod)
        self._look("started")
        status = json.loads(engine.call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)
        self.known = {pod["name"]: (pod["kubeletsOwn"], pod["source"]) for pod in status["pods"]}
        if self.with_plugin:
            self.shown = metrics.samples(containerd.METRICS)
        for name, wanted in RESIZED.items():
            node.resize(name, wanted)
        self._look("resized")
        self.requested = self._requested()
        for name, ended in RESTARTED:
            node.restart(name, ended)
        node.update_tiers()
        node.sweep()
        self._look("restarted")
        if not self.is_podqos_there:
            self._meet_late_plugin()
        for name in list(node.running):
            node.remove(name)
        node.update_tiers()
        self._look("after")

    def _requested(self):
        """{name of a resized pod: (millicores, bytes) that it requests}, as podqos counts."""
        status = json.loads(engine.call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)
        return {pod["name"]: (pod["requests"]["cpuMilli"], pod["requests"]["memoryBytes"]) for pod in status["pods"]
                if pod["name"] in RESIZED}

    def _meet_late_plugin(self):
        """podqos-nri is started beside pods that run already."""
        plugin = containerd.Plugin()
        engine.call("podqosctl", "reconcile")
        self._look("late")
        if plugin.stop() != 0:
            raise AssertionError(f"podqos-nri has failed\n{engine.log_text()}")

    def _look(self, stage):
        """After podqos has looked, too."""
        if self.is_podqos_there:
            engine.call("podqosctl", "reconcile")
        self.seen[stage] = cgroup_settings.read(self.node.tier_path("guaranteed"), self.node.names())


def emptied(settings):
    """Those that a tier has again once its pods are gone: for the first of them the kubelet enables controllers."""
    return {key: value for key, value in settings.items() if not key.endswith(", cgroup.subtree_control")}


class InGuest(unittest.TestCase):
    """One cgroup driver and one runtime, whose names a class of tests ends with."""

    driver, kind = "cgroupfs", "crun"
    maxDiff = None  # each difference counts
    daemon = None  # one for all tests

    def setUp(self):
        self.addCleanup(self.clean_up, self.daemon)

    def same(self, before, after, what):
        self.assertGreater(len(before), 20, what)  # files that one cgroup has
        with self.subTest(what):
            self.assertEqual("\n".join(cgroup_settings.differences(before, after)), "")

    @classmethod
    def clean_up(cls, daemon):
        """Only a failed test has left pods; a kubelet's own cgroups stay."""
        if daemon.cri.pods():
            print(f"--- podqos\n{engine.log_text()}\n--- containerd\n{containerd.log_text()}", flush=True)
            daemon.remove_all()
        units.clear("kubepods")
        engine.call("podqosctl", "reconcile", check=False)


class Untouched(InGuest):
    """What a kubelet sets, on its pods and for their containers, is what it is without podqos."""

    @classmethod
    def setUpClass(cls):
        engine.write_json(SETTINGS, EAGER)
        engine.choose_runtime(cls.kind)
        cls.addClassCleanup(cls.clean_up, cls.daemon)
        cls.baseline = Life(cls.daemon, cls.driver, cls.kind, "none").live().seen
        units.clear("kubepods")

    def check(self, way):
        life = Life(self.daemon, self.driver, self.kind, way).live()
        self.assertEqual(life.known, {pod.name: (True, "engine") for pod in pods()}, "podqos has seen all pods")
        if life.with_plugin and not life.are_told:
            # With the overhead of the second, which is Guaranteed: its request is its limit. Of the first the memory
            # request is known by an OOM score alone, which no resize changes.
            self.assertEqual({name: cpu for name, (cpu, _) in life.requested.items()}, {"mix": 80, "bank": 100})
            self.assertEqual(life.requested["bank"][1], 128 * harness.MI)
        if life.with_plugin:
            self.check_metrics(life.shown, life.node.tier_path("burstable"))
        for stage in ("before", "started", "resized", "restarted", "after"):
            self.same(self.baseline[stage], life.seen[stage], stage)
        # As its first user saw it: nothing has given the one container the other's limits.
        for stage in ("started", "resized", "restarted"):
            main = {key: value for key, value in life.seen[stage].items() if "<mix main>" in key}
            for file, value in (("cpu.max", "max 100000"), ("memory.max", "max")):
                found = {text for key, text in main.items() if key.endswith(f", {file}")}
                self.assertEqual(found, {value}, f"{file} of a container without limits, {stage}")
        self.assertEqual(engine.records(), [])

    def check_metrics(self, values, tier):
        """A kubelet's pods and tiers are shown as such."""
        for owner, wanted in (("kubelet", len(pods())), ("podqos", 0)):
            shown = [value for name, value in values.items() if re.match(f'podqos_pods{{.*,owner="{owner}"}}', name)]
            self.assertEqual(sum(shown), wanted, owner)
        weight = self.baseline["started"][f"{tier}, cpu.weight"]
        self.assertEqual(values[f'podqos_tier_cpu_weight{{tier="burstable",cgroup="{tier}"}}'], int(weight))

    def test_with_wrapper(self):
        self.check("wrapper")

    def test_with_hooks(self):
        self.check("hooks")

    def test_with_plugin(self):
        self.check("plugin")

    def test_with_both(self):
        self.check("both")

    def test_with_late_plugin(self):
        self.same(self.baseline["restarted"], self.baseline["late"], "late")

    def test_without(self):
        """All is as it was when the pods are gone."""
        self.same(emptied(self.baseline["before"]), emptied(self.baseline["after"]), "after")


class Beside(InGuest):
    """podqos's own pods, for which no engine has chosen a cgroup, and a kubelet on one node."""

    def setUp(self):
        super().setUp()
        engine.write_json(SETTINGS, {})
        engine.choose_runtime(self.kind)
        self.plugin = containerd.Plugin()
        self.addCleanup(self.stop_plugin)
        self.handler = containerd.handler("wrapper", self.kind, self.driver)
        self.cri, self.own = self.daemon.cri, {}

    def stop_plugin(self):
        self.assertEqual(self.plugin.stop(), 0)

    def run_own(self, name):
        """A pod with podqos's annotation, which the kubelet has not made."""
        manifest = spec(container("app", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"}))
        sandbox = self.cri.run_pod(cri.sandbox(name, f"{name}-1", annotations={"podqos.io/pod": json.dumps(manifest)}),
                                   self.handler)
        app = self.cri.create(sandbox, cri.container("app", engine.IMAGE, cpu_shares=102))
        self.cri.start(app)
        path = os.path.dirname(machines.container_cgroup_of(self.cri.pid(app)))
        self.own[name] = sandbox, app, path, self.of_own(path)
        self.assertRegex(path, r"^/podqos(/|\.slice/).*burstable", "its own tree, apart from the kubelet's")

    @staticmethod
    def of_own(path):
        """Without the files in which systemd keeps what podqos has told it again."""
        return {key: value for key, value in cgroup_settings.read(path, {}).items()
                if not key.endswith(", DropInPaths")}

    def assert_own_unharmed(self):
        for name, (_, app, path, before) in self.own.items():
            self.assertEqual(self.cri.containers()[app], cri.RUNNING, name)
            self.same(before, self.of_own(path), name)

    def look(self, node):
        """At what the kubelet has made, after podqos has looked."""
        engine.call("podqosctl", "reconcile")
        return cgroup_settings.read(node.tier_path("guaranteed"), node.names())

    def test_neither_harms_the_other(self):
        self.run_own("early")
        node = kubelet.Kubelet(self.cri, self.handler, libcontainer.DRIVERS[self.driver]())
        node.start()
        empty = emptied(self.look(node))
        self.assert_own_unharmed()
        node.run(kubelet.Pod("mix", MIX))
        full = self.look(node)
        self.run_own("amid")
        self.same(full, self.look(node), "a pod of podqos beside a kubelet's")
        node.update_tiers()
        node.sweep()
        self.same(full, self.look(node), "a minute later")
        self.assert_own_unharmed()
        node.remove("mix")
        node.update_tiers()
        self.same(empty, emptied(self.look(node)), "the last pod of the kubelet has ended")
        # The kubelet has ended: its root and its tiers stay as it left them.
        self.run_own("late")
        self.assert_own_unharmed()
        for sandbox, *_ in self.own.values():
            self.cri.stop_pod(sandbox)
            self.cri.remove_pod(sandbox)
        self.same(empty, emptied(self.look(node)), "the last pod of podqos has ended")
        self.assertEqual(engine.records(), [])
        self.assertEqual(units.cgroups("podqos"), [])


def guests():
    """Runs all this in each of GUESTS, two at a time."""
    machines = {}
    for (root, *cell), chosen in GUESTS.items():
        names = [".".join(["_".join((cls, *cell)), *method]) for cls, *method in (one.split(".") for one in chosen)]
        machines["_".join((root, *cell))] = guest.Guest("systemd", root=root), __file__, *names
    return guest.cases(machines, at_a_time=2)


def setUpModule():
    if guest.inside():
        containerd.configure()
        InGuest.daemon = containerd.Containerd()
        InGuest.daemon.start()
        InGuest.daemon.load_image()
        unittest.addModuleCleanup(InGuest.daemon.stop)


if __name__ == "__main__":
    harness.main(("runc",), here=[guests()], in_guest=engine.cells(__name__, *(
        ((Untouched, Beside), {"driver": driver, "kind": kind})
        for driver, kind in sorted({each[1:] for each in GUESTS}))))

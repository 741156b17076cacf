"""Pods as a kubelet asks containerd for them, how podqos is registered there, and what shall hold of them."""

import dataclasses
import json
import os
import pathlib

import containerd
import cri
import engine
import harness
import machine as machines
import patience
import units
from harness import MI

SETTINGS = pathlib.Path("/etc/podqos/conf.d/90-set-up.json")
SANDBOX_SCORE = -998  # containerd's, of every pod's own container
OTHER_SLICE = "system.slice"  # one that is no pod's


@dataclasses.dataclass(frozen=True)
class SetUp:
    """How podqos is registered beside containerd, and what it can do then for pods whose cgroup nobody has chosen."""

    way: str  # of containerd.WAYS
    places: bool  # a container comes below its pod before it starts
    sees_sandbox: bool  # so does the pod's own container
    plugin: bool = False  # podqos-nri is connected


SET_UPS = {
    "example": SetUp("example", places=True, sees_sandbox=True),
    "wrapper": SetUp("wrapper", places=True, sees_sandbox=True),
    # A spec to start from is not for the pod's own container.
    "hooks": SetUp("hooks", places=False, sees_sandbox=False),
    "both": SetUp("both", places=True, sees_sandbox=True),
    # No plugin is asked about the pod's own container.
    "plugin": SetUp("plain", places=True, sees_sandbox=False, plugin=True),
    "all": SetUp("both", places=True, sees_sandbox=True, plugin=True),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Pod:
    """A manifest, what a kubelet makes of it for CRI, and what the kernel shall say of the pod."""

    uid: str
    tier: str
    spec: tuple  # containers, as in a manifest
    sent: dict  # name: the container's LinuxContainerResources
    sums: dict  # the pod's
    shares: int
    quota: int | None
    memory: int | None

    @property
    def annotations(self):
        return {"podqos.io/pod": json.dumps({"containers": self.spec})}


def sent(oom, shares, quota=0, memory=0):
    """What a kubelet of today sends: 0 is unset in CRI."""
    bounds = {"cpu_quota": quota, "cpu_period": 100000, "memory_limit_in_bytes": memory}
    return {"oom_score_adj": oom, "cpu_shares": shares, "unified": {"memory.oom.group": "1"},
            **{name: value for name, value in bounds.items() if quota or memory}}


# 100m are 102 shares, 50m are 51, and 150m are 153. 1000 - 1000 * 64Mi / 2Gi is 969, for the quotient is cut; without a
# request for memory the limit is it.
BURSTABLE = Pod(
    "shop-1", "burstable",
    (harness.container("web", requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "200m", "memory": "128Mi"}),
     harness.container("log", requests={"cpu": "50m"}, limits={"cpu": "100m", "memory": "32Mi"})),
    {"web": sent(969, 102, 20000, 128 * MI), "log": sent(985, 51, 10000, 32 * MI)},
    {"cpu_shares": 153, "cpu_quota": 30000, "cpu_period": 100000, "memory_limit_in_bytes": 160 * MI},
    shares=153, quota=30000, memory=160 * MI)
GUARANTEED = Pod(
    "bank-2", "guaranteed", (harness.container("app", limits={"cpu": "250m", "memory": "256Mi"}),),
    {"app": sent(-997, 256, 25000, 256 * MI)},
    {"cpu_shares": 256, "cpu_quota": 25000, "cpu_period": 100000, "memory_limit_in_bytes": 256 * MI},
    shares=256, quota=25000, memory=256 * MI)
BESTEFFORT = Pod("idle-3", "besteffort", (harness.container("app"),), {"app": sent(1000, 2)}, {"cpu_shares": 2},
                 shares=2, quota=None, memory=None)
# As somebody writes them for crictl.
PLAIN = dataclasses.replace(BESTEFFORT, sent={"app": {}}, sums={})
ANNOTATED = dataclasses.replace(BURSTABLE, sent={"web": {}, "log": {}}, sums={})


class ContainerdCase(engine.EngineCase):
    """One runtime, one cgroup driver and one set-up, whose name each is."""

    kind, driver, set_up = "crun", "cgroupfs", "wrapper"
    settings = {}  # laid over the configuration of podqos
    daemon = None  # one for all tests
    plugin_type = containerd.Plugin

    def setUp(self):
        super().setUp()
        engine.choose_runtime(self.kind)
        engine.write_json(SETTINGS, self.settings)
        self.how = SET_UPS[self.set_up]
        self.handler = containerd.handler(self.how.way, self.kind, self.driver)
        self.cri = self.daemon.cri
        self.plugin = self.plugin_type() if self.how.plugin else None
        self.addCleanup(self.clean_up)

    def clean_up(self):
        """Only a failed test has left something."""
        if self.plugin:
            self.assertEqual(self.plugin.stop(), 0)
        if engine.records() or self.cri.pods():
            print(f"--- {self.id()}: podqos\n{engine.log_text()}\n--- containerd\n{containerd.log_text()}", flush=True)
            self.daemon.remove_all()
        for prefix in ("kubepods", "podqos-kubepods", "podqos.slice"):
            units.clear(prefix)

    def pod_path(self, pod):
        return self.path_of(pod.tier, pod.uid)

    # One step each.

    def run_pod(self, pod):
        """A pod as a kubelet asks for it, whose cgroup nobody has chosen: kubelet_test.py has the others.

        With systemd containerd needs a parent for the pod's own container, where no wrapper sees to it.
        """
        needs_parent = self.driver == "systemd" and self.how.plugin and not self.how.sees_sandbox
        config = cri.sandbox(pod.uid, pod.uid, OTHER_SLICE if needs_parent else "", pod.annotations)
        if pod.sums:
            config["linux"]["resources"] = pod.sums
        return self.cri.run_pod(config, self.handler)

    def start(self, sandbox, pod, name):
        """A container that runs; its id."""
        container = self.cri.create(sandbox, cri.container(name, engine.IMAGE, **pod.sent[name]))
        self.cri.start(container)
        return container

    def run_whole(self, pod):
        """A pod and all its containers: (the pod, {name: id})."""
        sandbox = self.run_pod(pod)
        return sandbox, {name: self.start(sandbox, pod, name) for name in pod.sent}

    def run_all_classes(self):
        """{pod: what run_whole() gives}."""
        return {pod: self.run_whole(pod) for pod in (BURSTABLE, GUARANTEED, BESTEFFORT)}

    def remove(self, sandbox):
        """As a kubelet does when the pod's containers have ended, or crictl with -f."""
        self.cri.stop_pod(sandbox)
        self.cri.remove_pod(sandbox)

    def end(self, *sandboxes):
        """The last ones: nothing of them stays."""
        for sandbox in sandboxes:
            self.remove(sandbox)
        self.assert_nothing_left()

    # What holds.

    def assert_container(self, container, resources, **changes):
        """The process has the OOM score and its cgroup the values that a kubelet sends; the runtime converts shares."""
        pid = self.cri.pid(container)
        leaf = machines.container_cgroup_of(pid)
        wanted = {"quota": resources.get("cpu_quota"), "memory": resources.get("memory_limit_in_bytes"), **changes}
        self.assertEqual(machines.oom_score_adj(pid), resources["oom_score_adj"])
        self.assert_values(leaf, **wanted)
        self.assert_container_share(leaf, resources["cpu_shares"])
        self.assert_unified(machines.cgroup_of(pid))

    def assert_below(self, path, pid, identifier):
        leaf = machines.container_cgroup_of(pid)
        self.assertEqual(os.path.dirname(leaf), path)
        self.assertIn(identifier, os.path.basename(leaf))

    def where(self, path, placed):
        """The cgroup that holds the cgroups of containers whose pod has none from a kubelet."""
        if placed:
            return path
        return "/k8s.io" if self.driver == "cgroupfs" else f"/{OTHER_SLICE}"  # the former is containerd's name space

    def assert_pod(self, pod, sandbox, containers):
        """Pod, its own container and its others ({name: id}), where nobody but podqos has chosen a cgroup."""
        path = self.pod_path(pod)
        for name, container in containers.items():
            self.assert_below(self.where(path, self.how.places), self.cri.pid(container), container)
            self.assert_container(container, pod.sent[name])
        info = self.cri.pod_info(sandbox)
        self.assert_below(self.where(path, self.how.sees_sandbox), info["pid"], sandbox[0])
        self.assertEqual(machines.oom_score_adj(info["pid"]), SANDBOX_SCORE)
        self.assert_values(path, shares=pod.shares, quota=pod.quota, memory=pod.memory)

    def assert_root(self):
        """What all pods have together: the CPU of the whole node. It is podqos's own, and so goes with the last pod."""
        root = os.path.dirname(self.tier_path("guaranteed"))
        self.assert_values(root, shares=1024 * os.cpu_count())
        self.assertIn("trusted.podqos.made", os.listxattr(f"/sys/fs/cgroup{root}"))

    def assert_known_as(self, pod, qos_class, source):
        known = self.known()[pod.uid]
        self.assertEqual((known["qosClass"], known["source"]), (qos_class, source))

    def assert_nothing_left(self):
        """After a restart containerd tells no plugin of the end of a pod: it looks every two seconds."""
        patience.until(lambda: not self.plugin or not engine.records())
        super().assert_nothing_left()
        self.assertEqual(self.machine.leftovers("/k8s.io"), [])

"""What a node's pods get of its CPU beside a busy system and beside a kubelet's pods, by the rules of Kubernetes.

The values of all cgroups are computed here, from requests: shares are milli-CPUs * 1024 / 1000, 2 at least; a tier has
those of its pods' sum, the root those of what is allocatable; cgroup v2 has weights of them. What the kernel makes of
them is measured as CPU time, in guests with one CPU: here this file only boots them, there it runs again.
"""

import contextlib
import os
import pathlib
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import oracle  # noqa: E402
from busy_case import BURN, BusyCase  # noqa: E402
from harness import container, pod  # noqa: E402

FORMULAS = {"linear": machines.linear_weight, "log": machines.logarithmic_weight}
KUBELETS = "/kubepods"


def milli(pods):
    return sum(pods.values())


def parts(values, of=1.0):
    """Each one's part of what they share, by weights or shares."""
    return {name: of * value / sum(values.values()) for name, value in values.items()}


class NodeCase(BusyCase):
    """Pods that request milli-CPUs: {name: number} of each class."""

    formula = "log"
    allocatable = 2000  # milli-CPUs
    settings = {"nodeCpu": "2"}

    def setUp(self):
        # No quotas: a Guaranteed pod too then takes what its shares give it, more than it requests.
        self.settings = {**self.settings, "weightFormula": self.formula, "cpuCFSQuota": False}
        super().setUp()
        self.version = self.machine.version("cpu")
        self.system = f"{self.root}-system"
        self.default = 1024 if self.version == 1 else 100  # the kernel's

    def value(self, milli_cpu, formula=None):
        """What the kernel is told for a request: shares on v1, a weight on v2."""
        shares = oracle.shares_for(milli_cpu)
        return shares if self.version == 1 else FORMULAS[formula or self.formula](shares)

    def run_pods(self, guaranteed, burstable, besteffort):
        for name, request in guaranteed.items():
            whole = {"cpu": f"{request}m", "memory": "16Mi"}
            self.start(pod(name, container("app", requests=whole, limits=whole)))
        for name, request in burstable.items():
            self.start(pod(name, container("app", requests={"cpu": f"{request}m"})))
        for name in besteffort:
            self.start(pod(name, container("app")))

    def tree_shares(self, root, pods, formula=None):
        """{path: share} of all pods below a root whose part is known."""
        kubepods, part, guaranteed, burstable, besteffort = *root, *pods
        values = {f"{kubepods}/pod{name}": self.value(request, formula) for name, request in guaranteed.items()}
        tiers = {f"{kubepods}/burstable": self.value(milli(burstable), formula) if burstable else 0,
                 f"{kubepods}/besteffort": self.value(0, formula) if besteffort else 0}
        shares = parts({**values, **tiers}, part)
        for tier, names in (("burstable", burstable), ("besteffort", besteffort)):
            inside = {f"{kubepods}/{tier}/pod{name}": self.value(names[name], formula) for name in names}
            shares.update(parts(inside, shares.pop(f"{kubepods}/{tier}")))
        return shares


class BusyNode(NodeCase):
    """A busy process of the system beside busy pods of all classes."""

    SYSTEM = None
    PODS = ({"g": 20}, {"b1": 10, "b2": 30}, {"e": 0})  # little, so that a BestEffort pod's time can be measured

    def setUp(self):
        super().setUp()
        self.system = self.SYSTEM or self.system
        self.burn_in(self.system)

    def sides(self):
        return parts({self.root: self.value(self.allocatable), self.system: self.default})

    def test_all_classes_at_once(self):
        self.run_pods(*self.PODS)
        shares = self.sides()
        self.assert_shares({**shares, **self.tree_shares((f"{self.root}/kubepods", shares[self.root]), self.PODS)})


class BusySystem(BusyNode):
    """Of whichever class, the pods have the share of the node's CPU."""

    def test_each_class_alone(self):
        """No requests, 100m and 2 CPUs."""
        for name, requests in (("none", {}), ("small", {"cpu": "100m"}), ("large", {"cpu": "2"})):
            made, _ = self.start(pod(name, container("app", requests=requests)))
            print(name, end=": ")
            self.assert_shares(self.sides())
            self.wrapper.delete(made)


class BusySystemLinear(BusySystem):
    """The same by the kubelet's formula, on a node that keeps half of its four CPUs for itself."""

    formula = "linear"
    settings = {"nodeCpu": "4", "reserved": {"system": {"cpu": "1500m"}, "kube": {"cpu": "500m"}}}


class Proportional(BusyNode):
    """The system keeps what is reserved for it: one of four CPUs."""

    SYSTEM = "/system.slice"
    settings = {"nodeCpu": "4", "reserved": {"system": {"cpu": "1"}}, "rootCpuWeight": "proportional"}

    def sides(self):
        return {self.root: 3 / 4, self.system: 1 / 4}


class KubeletCase(NodeCase):
    """Beside a tree as a kubelet makes it, whose own cgroups have weights by its formula, which is linear."""

    allocatable = 1000
    settings = {"nodeCpu": "1"}
    THEIRS = ({"kg": 300}, {"kb": 300}, {})

    def setUp(self):
        self.addCleanup(self.remove_kubelets)  # after podqos's pods
        super().setUp()
        self.addCleanup(self.end_kubelets)
        guaranteed, burstable, besteffort = self.THEIRS
        tiers = {"": self.allocatable, "/burstable": milli(burstable), "/besteffort": 0}
        self.values = {f"{KUBELETS}{tier}": self.value(request, "linear") for tier, request in tiers.items()}
        for tier, pods, oom in (("", guaranteed, -997), ("/burstable", burstable, 990),
                                ("/besteffort", besteffort, 1000)):
            for name, request in pods.items():
                self.values[f"{KUBELETS}{tier}/pod{name}"] = self.value(request, "linear")
                self.run_kubelets(f"{KUBELETS}{tier}", name, request, oom)

    def run_kubelets(self, parent, name, request, oom):
        """A pod with one busy container, as a kubelet and its engine make it."""
        path = f"{parent}/pod{name}"
        self.make(path)
        bundle = self.bundle(name=name, args=("sh", "-c", BURN))
        bundle.annotations.update({"io.kubernetes.cri.sandbox-uid": name, "io.kubernetes.cri.sandbox-id": f"s-{name}",
                                   "io.kubernetes.cri.container-type": "container",
                                   "io.kubernetes.cri.container-name": "app"})
        bundle.config["linux"]["cgroupsPath"] = f"{path}/{name}"
        bundle.resources.update({"cpu": {"shares": oracle.shares_for(request)}})
        bundle.config["process"]["oomScoreAdj"] = oom
        self.wrapper.launch(self.container_id(name), bundle.save())

    def make(self, path):
        """A cgroup of the kubelet's, without processes, and the values of those that are there."""
        passing = f"{path}/passing"
        process = os.posix_spawn("/bin/sleep", ["sleep", "100"], os.environ)
        self.machine.enter(process, passing)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        self.machine.remove(passing)
        found = self.machine.hierarchy("cpu")
        for cgroup, value in self.values.items():
            file = pathlib.Path(found.mount + cgroup, "cpu.shares" if found.version == 1 else "cpu.weight")
            if file.exists():
                file.write_text(str(value), encoding="ascii")

    def end_kubelets(self):
        for pid in self.machine.processes(KUBELETS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove_kubelets(self):
        machine = machines.Machine()
        for folder in machine.leftovers(KUBELETS) + list(map(str, machine.directories(KUBELETS))):
            os.rmdir(folder)

    def sides(self, requested):
        """The two roots' values: each side keeps what it requests, the kubelet's first, and half of what is free."""
        theirs, whole = sum(map(milli, self.THEIRS)), self.values[KUBELETS]
        own = min(requested, self.allocatable - theirs)
        free = self.allocatable - theirs - own
        proportion = (own + free / 2) / max(theirs + free / 2, self.allocatable / 4)
        return {self.root: max(int(whole * proportion), self.value(0)), KUBELETS: whole}

    def check_sides(self, pods, values):
        shares = parts(values)
        own = self.tree_shares((f"{self.root}/kubepods", shares[self.root]), pods)
        theirs = self.tree_shares((KUBELETS, shares[KUBELETS]), self.THEIRS, "linear")
        self.assert_shares({**shares, **own, **theirs})
        return shares


class BesideAKubelet(KubeletCase):
    """Both sides keep what they requested."""

    PODS = ({"g": 200}, {"b1": 100}, {})

    def test_alone_and_with_a_busy_system(self):
        self.run_pods(*self.PODS)
        self.assertEqual(self.podqos.ctl_json("status")["kubelets"]["requests"]["cpuMilli"], 600)
        values = self.sides(300)
        shares = self.check_sides(self.PODS, values)
        self.assertGreaterEqual(shares[self.root], 0.3)
        self.assertGreaterEqual(shares[KUBELETS], 0.6)
        self.burn_in(self.system)
        self.check_sides(self.PODS, {**values, self.system: self.default})


class BesideAKubeletLinear(BesideAKubelet):
    """The same by the kubelet's formula."""

    formula = "linear"


class OvercommittedBesideAKubelet(KubeletCase):
    """Both sides together request more than there is: the kubelet's pods keep theirs."""

    PODS = ({}, {"b1": 900}, {})

    def test_kubelet_first(self):
        self.run_pods(*self.PODS)
        shares = self.check_sides(self.PODS, self.sides(900))
        self.assertGreaterEqual(shares[KUBELETS], 0.6)


class Overcommitted(NodeCase):
    """The first pod requests all there is, and those that come later as much again: all get their part."""

    PODS = ({}, {"b1": 2000, "b2": 1000, "b3": 1000}, {})

    def test_shares_in_proportion(self):
        self.run_pods(*self.PODS)
        self.assert_shares(self.tree_shares((f"{self.root}/kubepods", 1.0), self.PODS))
        (warning,) = self.podqos.ctl_json("status", "--exit-zero")["warnings"]
        self.assertIn("pods request more than is allocatable, cpu 4 of 2", warning)


class BestEffortBesideAKubelet(KubeletCase):
    """Nothing is requested, and yet it runs."""

    PODS = ({}, {}, {"e": 0})

    def test_runs(self):
        self.run_pods(*self.PODS)
        shares = self.check_sides(self.PODS, self.sides(0))
        self.assertGreaterEqual(shares[KUBELETS], 0.6)


class BesideAKubeletWithoutRequests(KubeletCase):
    """The kubelet's pods request nothing: they, the system and the kubelet have their part beside podqos's pods."""

    THEIRS = ({}, {}, {"ke": 0})
    PODS = ({"g": 500}, {}, {})

    def test_leaves_the_system_its_part(self):
        self.run_pods(*self.PODS)
        values = self.sides(500)
        self.check_sides(self.PODS, values)
        self.burn_in(self.system)
        shares = self.check_sides(self.PODS, {**values, self.system: self.default})
        # On v1 the kubelet's root has as much as the system by default, 1024 shares, and podqos's three times as much.
        self.assertGreaterEqual(shares[self.system], 0.34 if self.version == 2 else 0.19)
        before = self.start_kubelets()
        for pid in self.machine.processes(f"{self.root}/kubepods"):
            os.kill(pid, signal.SIGSTOP)
        alone = self.start_kubelets()
        print(f"beside {before:.2f} s, alone {alone:.2f} s", end=" ", flush=True)
        # Where podqos's root has fifty times the shares of the kubelet's it takes twenty times as long.
        self.assertLess(before, 8 * alone)

    def start_kubelets(self):
        """How long `runc run` of a pod of the kubelet takes, in seconds."""
        times = []
        for _ in range(3):
            bundle = self.bundle(args=("true",))
            bundle.config["linux"]["cgroupsPath"] = f"{KUBELETS}/besteffort/podstart/{bundle.path.name}"
            bundle.save()
            began = time.monotonic()
            self.plain.run(self.container_id("start"), bundle)
            times.append(time.monotonic() - began)
        return statistics.median(times)


class NothingRequestedBesideAKubelet(BesideAKubeletWithoutRequests):
    """Nor do podqos's own: both sides have the same."""

    PODS = ({}, {}, {"e": 0})

    def test_leaves_the_system_its_part(self):
        self.run_pods(*self.PODS)
        values = self.sides(0)
        self.assertEqual(values[self.root], values[KUBELETS])
        self.burn_in(self.system)
        self.check_sides(self.PODS, {**values, self.system: self.default})


class Start(NodeCase):
    """`runc run` of a pod that requests 10m beside a busy process of the system, and the same without podqos.

    Where the root has the shares of what is requested it takes eight times as long, and more.
    """

    kind = "runc"
    ROUNDS, MOST = 5, 4

    def test_is_not_starved(self):
        self.burn_in(self.system)
        times = {self.plain: [], self.wrapper: []}
        for _ in range(self.ROUNDS):
            for runtime, taken in times.items():
                bundle = self.bundle(pod("small", container("app", requests={"cpu": "10m"})), "app", ("true",))
                began = time.monotonic()
                runtime.run(self.container_id("app"), bundle)
                taken.append(time.monotonic() - began)
        plain, podqos = map(statistics.median, times.values())
        print(f"plain {plain * 1000:.0f} ms, podqos {podqos * 1000:.0f} ms, ratio {podqos / plain:.2f}", end=" ",
              flush=True)
        self.assertLess(podqos, self.MOST * plain)


def classes():
    """Those for this version: on v1 there are no weights to make of shares."""
    linear = [] if machines.Machine().version("cpu") == 1 else [BusySystemLinear, BesideAKubeletLinear]
    return [BusySystem, Overcommitted, Proportional, BesideAKubelet, OvercommittedBesideAKubelet,
            BestEffortBesideAKubelet, BesideAKubeletWithoutRequests, NothingRequestedBesideAKubelet, Start, *linear]


if __name__ == "__main__":
    harness.main(("runc",), in_guest=classes(), here=[guest.cases(
        {flavour: (guest.Guest(flavour, mem="640M"), __file__) for flavour in ("v1", "v2")})])

"""Podman 5 with the installed package: precreate as the package registers it, and the wrapper, with crun and runc.

Here the package is built, and one guest is booted for each runtime: Debian 13, systemd as PID 1. There this file runs
again, on Podman's two cgroup managers. What is expected of a pod is Kubernetes' arithmetic on its manifest; where
Podman keeps a part of the manifest to itself, the test says which.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import engine  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import podman  # noqa: E402
from engine import BURSTABLE, GUARANTEED  # noqa: E402
from harness import MI  # noqa: E402

MONITOR_SETTINGS = pathlib.Path("/etc/podqos/conf.d/90-monitor.json")
MANIFEST = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: shop
spec:
  hostNetwork: true
  restartPolicy: Never
  containers:
  - name: web  # keeps what it is told
    image: {engine.IMAGE}
    imagePullPolicy: Never
    resources:
      requests: {{cpu: 100m, memory: 64Mi}}
      limits: {{cpu: 200m, memory: 128Mi}}
  - name: log
    image: {engine.IMAGE}
    imagePullPolicy: Never
    resources:
      requests: {{cpu: 50m}}
      limits: {{cpu: 100m, memory: 32Mi}}
"""


class PodmanCase(engine.EngineCase):
    """One way in; the driver is Podman's cgroup manager."""

    way = "precreate"

    def setUp(self):
        super().setUp()
        engine.choose_runtime(self.kind)
        runtime = self.kind if self.way == "precreate" else "podqos"
        self.podman = podman.Podman(runtime, self.driver, hooks=self.way != "wrapper")
        self.addCleanup(self.clean_up)

    def clean_up(self):
        """Only a failed test has left something."""
        if engine.records() or engine.leftovers():
            engine.call("podman", "pod", "rm", "--all", "--force", "--time", "0", check=False)
            engine.call("podman", "rm", "--all", "--force", "--time", "0", check=False)

    def remove(self, *what):
        """A container, or "pod" and its name; nothing stays."""
        self.podman(*what[:-1], "rm", "--force", "--time", "0", what[-1])
        self.assert_nothing_left()

    def assert_known_as(self, qos_class, source, name):
        """What podqosctl says of the only pod, which it finds by its name and by Podman's id of it."""
        [known] = self.known().values()
        self.assertEqual((known["qosClass"], known["source"], known["name"], known["engine"]),
                         (qos_class, source, name, "podman"))
        self.assertEqual(known["id"], self.podman("pod", "ps", "--quiet", "--no-trunc"))

    def assert_placed(self, container, pod_path, oom, **wanted):
        """The container's process lives below the pod, with this OOM score, and its cgroup has these values."""
        leaf = f"{pod_path}/{self.podman.leaf(container)}"
        pid = self.podman.pid(container)
        self.assertEqual(machines.container_cgroup_of(pid), leaf)
        self.assertEqual(machines.oom_score_adj(pid), oom)
        self.assert_values(leaf, **wanted)
        return leaf

    def assert_verbs(self, container, leaf, limit):
        """Podman finds the container where podqos has placed it."""
        shown = json.loads(self.podman("stats", "--no-stream", "--format", "json", container))[0]
        self.assertEqual(shown["mem_usage"].split(" / ")[1], limit)
        self.assertEqual(shown["pids"], "1")
        self.podman("exec", "--detach", container, "sleep", "4321")
        self.assert_beside(container, leaf, b"sleep\x004321\0")
        for verb, frozen in (("pause", True), ("unpause", False)):
            self.podman(verb, container)
            self.expect_frozen(machines.cgroup_of(self.podman.pid(container)), frozen)

    def assert_beside(self, container, leaf, command):
        """A second process in the container's cgroup, once it has become this command."""
        for _ in patience.turns():
            beside = self.machine.processes(leaf) - {self.podman.pid(container)}
            commands = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in beside]
            if commands == [command]:
                break
        self.assertEqual(commands, [command])


class Verbs(PodmanCase):
    """podman run of a container that names its pod, and what Podman does with a container afterwards."""

    def test_verbs(self):
        container = self.podman.run("--name", "web", *BURSTABLE)
        pod = self.path_of("burstable", "web-1")
        # 250m are 256 shares; 1000 - 1000 * 128Mi / 2Gi is 938, for the quotient is cut.
        leaf = self.assert_placed(container, pod, 938, quota=50000, memory=256 * MI)
        self.assert_values(pod, shares=256, quota=50000, memory=256 * MI)
        self.assert_tiers(burstable_memory=128 * MI, burstable_shares=256)
        self.assert_verbs(container, leaf, "268.4MB")
        self.podman("update", "--memory", "200m", container)
        self.assert_values(leaf, memory=200 * MI)
        before = self.podman.pid(container)
        self.podman("restart", "--time", "0", container)
        self.assertNotEqual(self.podman.pid(container), before)
        self.assert_placed(container, pod, 938, quota=50000, memory=200 * MI)
        self.assert_values(pod, shares=256, quota=50000, memory=256 * MI)
        self.remove(container)


class KubePlay(PodmanCase):
    """podman kube play of what podqosctl annotate has written: the pod's values are those of a kubelet."""

    def assert_pod(self, containers, pod):
        web, log = containers
        # 100m are 102 shares, 50m are 51, and 150m are 153. Without a request for memory the limit is it.
        leaf = self.assert_placed(web, pod, 969, quota=20000, memory=128 * MI)
        self.assert_container_share(leaf, 102)
        self.assert_container_share(self.assert_placed(log, pod, 985, quota=10000, memory=32 * MI), 51)
        self.assert_values(pod, shares=153, quota=30000, memory=160 * MI)
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)

    def play(self):
        """(the containers, the pod's cgroup)."""
        annotated = engine.call("podqosctl", "annotate", "-f", "-", stdin=None, input=MANIFEST).stdout
        containers = self.podman.play(annotated)
        return containers, self.path_of("burstable", self.podman.sandbox(containers[0]))

    def test_annotated(self):
        containers, pod = self.play()
        self.assert_pod(containers, pod)
        self.assert_known_as("Burstable", "podqos.io/pod", "shop")
        self.remove("pod", "shop")


class PodRestart(KubePlay):
    """The same, and then podman pod restart."""

    def test_annotated(self):
        containers, pod = self.play()
        before = [self.podman.pid(container) for container in containers]
        self.podman("pod", "restart", "shop")
        self.assertEqual([pid for pid in before if machines.alive(pid)], [])
        self.assert_pod(containers, pod)
        self.remove("pod", "shop")


class PlainPlay(PodmanCase):
    """podman kube play of a manifest that nobody has annotated."""

    def test_plain(self):
        """The CPU requests are lost: the limits count, 300m, where the manifest says 150m."""
        web, log = self.podman.play(MANIFEST)
        self.assert_what_podman_passes_on(web)
        pod = self.path_of("burstable", self.podman.sandbox(web))
        self.assert_placed(web, pod, 969, quota=20000, memory=128 * MI)
        self.assert_placed(log, pod, 985, quota=10000, memory=32 * MI)
        self.assert_values(pod, shares=307, quota=30000, memory=160 * MI)
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=307)
        # On the host's network, the pod has the host's name.
        self.assert_known_as("Burstable", "inference", "")
        self.remove("pod", "shop")

    def assert_what_podman_passes_on(self, web):
        """docs/engines/podman.md says so. podqos adds nothing to resources that it has inferred."""
        config = self.podman.config(web)
        resources = config["linux"]["resources"]
        self.assertEqual(resources["cpu"], {"quota": 20000, "period": 100000})
        self.assertEqual(resources["memory"], {"limit": 128 * MI, "reservation": 64 * MI})
        # Neither pod nor container is named, nor is there a uid or a namespace.
        named = {key for key, value in config["annotations"].items() if "shop" in value or "web" in value}
        self.assertEqual(named, set())


class PodCreate(PodmanCase):
    """podman pod create, and members with flags of their own."""

    def test_pod_create(self):
        self.podman("pod", "create", "--name", "mixed")
        first = self.podman.run("--pod", "mixed", "--memory", "64m", "--cpus", "0.5", "--cpu-shares", "256")
        infra = self.podman("pod", "inspect", "--format", "{{.InfraContainerID}}", "mixed")
        pod = self.path_of("burstable", infra)
        self.assert_values(pod, shares=256, quota=50000, memory=64 * MI)
        # A container without limits takes the pod's away. Its request is nothing.
        second = self.podman.run("--pod", "mixed")
        self.assert_placed(first, pod, 969, quota=50000, memory=64 * MI)
        self.assert_placed(second, pod, 999, quota=None, memory=None)
        self.assert_values(pod, shares=256, quota=None, memory=None)
        self.assert_tiers(burstable_memory=64 * MI, burstable_shares=256)
        [known] = self.known().values()
        self.assertEqual((known["engine"], known["name"]), ("podman", "mixed"))
        # Podman's own container of the pod stays where Podman has put it.
        self.assertNotIn("kubepods", machines.cgroup_of(self.podman.pid(infra)))
        self.remove("pod", "mixed")


class BoundedPod(PodmanCase):
    """podman pod create --memory --cpus: the members leave Podman's cgroup, and its limits come with them."""

    def test_limits_of_the_whole_pod(self):
        self.podman("pod", "create", "--name", "bounded", "--memory", "100m", "--cpus", "0.5")
        container = self.podman.run("--pod", "bounded")
        pod = self.path_of("burstable", self.podman.sandbox(container))
        self.assert_placed(container, pod, 999, quota=None, memory=None)
        self.assert_values(pod, shares=2, quota=50000, memory=100 * MI)
        self.remove("pod", "bounded")


class ChargedMonitor(PodmanCase):
    """chargeMonitor: conmon is in the pod's cgroup while the container lives, and does not hold the pod."""

    def setUp(self):
        super().setUp()
        engine.write_json(MONITOR_SETTINGS, {"chargeMonitor": True})
        self.addCleanup(MONITOR_SETTINGS.unlink)

    def test_conmon(self):
        container = self.podman.run("--name", "web", *BURSTABLE)
        pod = self.path_of("burstable", "web-1")
        self.assert_placed(container, pod, 938)
        conmon = podman.conmon(container)
        self.assertEqual(pathlib.Path(f"/proc/{conmon}/comm").read_text(encoding="utf-8").strip(), "conmon")
        leaf = "podqos-monitor"
        if self.driver == "systemd":
            leaf += f"-{pathlib.Path(pod).stem}.scope"
        self.assertEqual(machines.cgroup_of(conmon), f"{pod}/{leaf}")
        self.podman("exec", container, "true")
        self.remove(container)


class Others(PodmanCase):
    """The other classes, and what has none."""

    def test_best_effort(self):
        container = self.podman.run("--pod", "new:idle")
        pod = self.path_of("besteffort", self.podman.sandbox(container))
        self.assert_placed(container, pod, 1000, quota=None, memory=None)
        self.assert_values(pod, shares=2, quota=None, memory=None)
        self.remove("pod", "idle")

    def test_guaranteed(self):
        container = self.podman.run(*GUARANTEED)
        pod = self.path_of("guaranteed", "web-2")
        self.assert_placed(container, pod, -997, quota=25000, memory=256 * MI)
        self.assert_values(pod, shares=256, quota=25000, memory=256 * MI)
        self.assert_tiers(guaranteed_memory=256 * MI)
        self.remove(container)

    def test_no_pod(self):
        """A container that belongs to no pod stays Podman's."""
        container = self.podman.run()
        self.assertRegex(machines.cgroup_of(self.podman.pid(container)), f"^/machine.slice/libpod-{container}.scope")
        self.assertNotIn("poststop", self.podman.config(container)["hooks"])
        self.assertEqual(engine.records(), [])
        self.remove(container)

    def test_without_hook(self):
        """status and why say why, and what to do about it."""
        container = podman.Podman(self.kind, self.driver, hooks=False).run(*BURSTABLE)
        done = engine.call("podqosctl", "status", "-o", "json", check=False)
        self.assertEqual(done.returncode, 1)
        [missed] = json.loads(done.stdout)["notManaged"]
        self.assertEqual((missed["container"]["id"], missed["engine"], missed["pid"], missed["remedy"]),
                         (container, "podman", self.podman.pid(container),
                          "podqosctl configure podman, then recreate the container"))
        self.assertIn("podqos was not asked when it was created", engine.call("podqosctl", "why", container[:12]).stdout)
        self.remove(container)


def cells():
    """What is run of the classes above with which way in, driver and runtime."""
    crun = [((Verbs, PodRestart, PlainPlay, PodCreate, BoundedPod, ChargedMonitor, Others), "precreate", "systemd"),
            ((Verbs, KubePlay), "wrapper", "systemd"), ((KubePlay,), "both", "systemd"),
            ((KubePlay, BoundedPod, ChargedMonitor), "precreate", "cgroupfs"), ((KubePlay,), "wrapper", "cgroupfs")]
    # A program in Go, which takes thrice the time in this guest.
    runc = [((Verbs, KubePlay, PodCreate), "precreate", "systemd"), ((Verbs, PodRestart), "wrapper", "systemd"),
            ((KubePlay,), "wrapper", "cgroupfs")]
    return engine.cells(__name__, *((classes, {"way": way, "driver": driver, "kind": kind})
                                    for kind, rows in (("crun", crun), ("runc", runc)) for classes, way, driver in rows))


def setUpModule():
    podman.configure()


if __name__ == "__main__":
    TESTS = cells()
    harness.main(("runc",), here=[engine.guests(__file__, TESTS)], in_guest=TESTS)

"""Docker 28 with podqos as a runtime of daemon.json, on both cgroup drivers.

Here the package is built, and a guest of Debian testing is booted: systemd as PID 1. There this file runs again. What is
expected of a pod is Kubernetes' arithmetic on its annotations.
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import docker  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
from engine import BURSTABLE, GUARANTEED  # noqa: E402
from harness import MI  # noqa: E402


class Pods(engine.EngineCase):
    """With one cgroup driver and one runtime."""

    @classmethod
    def setUpClass(cls):
        engine.choose_runtime(cls.kind)
        docker.configure(cls.driver)
        cls.daemon = docker.Docker()
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.load_image()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.daemon.remove_all)

    def assert_placed(self, container, tier, uid, **wanted):
        """The container's process lives in its pod's cgroup, which has these values; the pod's cgroup."""
        pod = self.path_of(tier, uid)
        path = f"{pod}/{container if self.driver == 'cgroupfs' else f'docker-{container}.scope'}"
        self.assertEqual(machines.container_cgroup_of(self.daemon.pid(container)), path)
        self.assert_values(pod, **wanted)
        return path

    def remove(self, *containers):
        for container in containers:
            self.daemon("rm", "--force", container)
        self.assert_nothing_left()

    def test_classes(self):
        """Each class in its tier; whoever may call Docker is the node's operator, so that all claims count."""
        burstable = self.daemon.run(*BURSTABLE)
        guaranteed = self.daemon.run(*GUARANTEED)
        self.assert_placed(burstable, "burstable", "web-1", quota=50000, memory=256 * MI)
        self.assert_placed(guaranteed, "guaranteed", "web-2", quota=25000, memory=256 * MI)
        self.assertEqual(machines.oom_score_adj(self.daemon.pid(guaranteed)), -997)
        self.assertEqual({pod["engine"] for pod in self.known().values()}, {"docker"})
        self.assert_tiers(256 * MI, 128 * MI, 256)
        self.remove(burstable, guaranteed)

    def test_verbs(self):
        """Docker finds the container where podqos has placed it."""
        container = self.daemon.run(*BURSTABLE)
        leaf = self.assert_placed(container, "burstable", "web-1")
        self.assertEqual(self.machine.read(leaf, "memory"), 256 * MI)
        self.assertEqual(self.daemon("exec", container, "cat", "/proc/self/cgroup"), "0::/")
        self.daemon("pause", container)
        self.expect_frozen(leaf, True)
        self.daemon("unpause", container)
        self.daemon("update", "--memory", "192m", "--memory-swap", "192m", container)
        self.assertEqual(self.machine.read(leaf, "memory"), 192 * MI)
        shown = json.loads(self.daemon("stats", "--no-stream", "--format", "{{json .}}", container))
        self.assertTrue(shown["MemUsage"].endswith("/ 192MiB"), shown)
        self.daemon("restart", "--time", "0", container)
        self.assert_placed(container, "burstable", "web-1", quota=50000, memory=256 * MI)
        self.remove(container)

    def test_update(self):
        """A pod whose resources are Docker's follows at once what is raised, and what is lowered."""
        container = self.daemon.run("--annotation", "podqos.io/pod-uid=web-4", "--cpus", "0.5", "--memory", "128m")
        pod = machines.container_cgroup_of(self.daemon.pid(container)).rpartition("/")[0]
        for cpus, memory in ((0.7, 192), (0.3, 96)):
            limit = f"{memory}m"
            self.daemon("update", "--cpus", str(cpus), "--memory", limit, "--memory-swap", limit, container)
            self.assert_values(pod, quota=int(cpus * 100_000), memory=memory * MI)
            status = json.loads(engine.call("podqosctl", "status", "-o", "json").stdout)
            self.assertEqual(status["warnings"], [])
        # runc keeps the limit of memory and swap together of the last update, and refuses one of memory above it.
        engine.call("podqosctl", "resize", container, "--limits", "memory=160Mi")
        self.assert_values(pod, quota=30000, memory=160 * MI)
        self.remove(container)

    def test_update_to_paste(self):
        """A resize holds until the restart; with the line that it prints, pasted into a shell, also after that."""
        container = self.daemon.run("--annotation", "podqos.io/pod-uid=web-3", "--cpus", "0.5", "--memory", "128m")

        def limits():
            leaf = machines.container_cgroup_of(self.daemon.pid(container))
            return self.machine.read(leaf, "quota"), self.machine.read(leaf, "memory")

        self.assertEqual(limits(), (50000, 128 * MI))
        said = engine.call("podqosctl", "resize", container, "--limits", "cpu=700m,memory=192Mi").stderr
        self.assertEqual(limits(), (70000, 192 * MI))
        self.daemon("restart", "--time", "0", container)
        self.assertEqual(limits(), (50000, 128 * MI))
        engine.call("podqosctl", "resize", container, "--limits", "cpu=700m,memory=192Mi")
        (line,) = re.findall(rf"docker update .*{container}", said)
        engine.call("sh", "-c", line)
        self.daemon("restart", "--time", "0", container)
        self.assertEqual(limits(), (70000, 192 * MI))
        self.remove(container)

    def test_no_pod(self):
        """What has no annotation stays where Docker puts it."""
        container = self.daemon.run("--memory", "64m")
        wanted = f"/docker/{container}" if self.driver == "cgroupfs" else f"/system.slice/docker-{container}.scope"
        self.assertEqual(machines.container_cgroup_of(self.daemon.pid(container)), wanted)
        self.assertEqual(engine.records(), [])


def setUpModule():
    engine.configure()


if __name__ == "__main__":
    harness.main(
        ("runc",), here=[guest.cases({"testing": (guest.Guest("systemd", root="testing"), __file__)})],
        in_guest=engine.cells(__name__, *(((Pods,), {"driver": driver, "kind": kind})
                                          for driver, kind in (("systemd", "runc"), ("cgroupfs", "crun")))))

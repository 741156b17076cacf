"""containerd 1.7 with the installed package: pods created through CRI, in each way that podqos is registered there.

Here the package is built, and one guest is booted for each runtime: Debian 13, systemd as PID 1. There this file runs
again, with both cgroup drivers. What is expected of a pod is Kubernetes' arithmetic on its manifest; what containerd
does not tell podqos, or does against it, is asserted as it is.
"""

import concurrent.futures
import json
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import containerd  # noqa: E402
import cri  # noqa: E402
import engine  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import metrics  # noqa: E402
import patience  # noqa: E402
from containerd_case import (  # noqa: E402
    SETTINGS, BURSTABLE, GUARANTEED, BESTEFFORT, PLAIN, ANNOTATED, ContainerdCase)
from harness import MI  # noqa: E402


class AllClasses(ContainerdCase):
    """A pod of each class, whose cgroup nobody has chosen: a kubelet without cgroups for pods, or crictl."""

    def test_all_classes(self):
        pods = self.run_all_classes()
        for (pod, whole), qos_class in zip(pods.items(), ("Burstable", "Guaranteed", "BestEffort")):
            self.assert_pod(pod, *whole)
            self.assert_known_as(pod, qos_class, "podqos.io/pod")
        self.assert_tiers(guaranteed_memory=256 * MI, burstable_memory=96 * MI, burstable_shares=153)
        self.assert_root()
        web = pods[BURSTABLE][1]["web"]
        self.assert_told(web)
        self.assert_verbs(BURSTABLE, web)
        self.remove(pods[GUARANTEED][0])
        self.assertFalse(self.machine.exists(self.pod_path(GUARANTEED)))
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)
        self.remove(pods[BURSTABLE][0])
        self.assert_tiers()
        self.cri.remove_pod(pods[BESTEFFORT][0])  # nobody has stopped it
        self.assert_nothing_left()

    def assert_told(self, container):
        """Where podqos could not place a container, it says what helps."""
        if not self.how.places:
            self.assertRegex(engine.LOG.read_text(encoding="utf-8"),
                             fr"warning: pod {BURSTABLE.uid} \(default/{BURSTABLE.uid}\), container {container} runs "
                             f"in cgroup /k8s.io/{container}, not in .*: register podqos-runtime")

    def assert_verbs(self, pod, container):
        """containerd finds the container where podqos has placed it; 0::/ is the cgroup that it began in.

        The annotation states what the pod has: it follows an update where NRI, and so the kubelet, tells of one.
        """
        self.assertEqual(self.cri.exec(container, "cat", "/proc/self/cgroup"), "0::/\n")
        self.cri.update(container, memory_limit_in_bytes=96 * MI)
        self.assert_container(container, pod.sent["web"], memory=96 * MI)
        taken_back = 32 * MI if self.how.plugin else 0
        self.assert_values(self.pod_path(pod), shares=pod.shares, quota=pod.quota, memory=pod.memory - taken_back)


class Annotated(ContainerdCase):
    """Containers for which nobody sends any resources: the annotation has them."""

    def test_annotated(self):
        sandbox = self.run_pod(ANNOTATED)
        for name, resources in BURSTABLE.sent.items():
            container = self.start(sandbox, ANNOTATED, name)
            self.assert_container(container, resources)
        self.assert_values(self.pod_path(ANNOTATED), shares=153, quota=30000, memory=160 * MI)
        # What containerd bounds by no limit takes no memory from others.
        self.assert_tiers(burstable_shares=153)
        self.end(sandbox)


class Restart(ContainerdCase):
    """containerd ends, in order and by SIGKILL, while a pod lives: pod and records stay as they are."""

    def test_restart(self):
        sandbox, containers = self.run_whole(BURSTABLE)
        before = (engine.records(), {each: self.cri.pid(each) for each in containers.values()})
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            self.restart(number)
            after = (engine.records(), {each: self.cri.pid(each) for each in containers.values()})
            self.assertEqual(after, before)
            self.assertEqual(self.cri.containers(), dict.fromkeys(containers.values(), cri.RUNNING))
            self.assert_pod(BURSTABLE, sandbox, containers)
        self.check_replacement(sandbox, containers)
        self.end(sandbox)

    def restart(self, number):
        """Of containerd, and the plugin has found it again, which it looks for at once each time."""
        told = self.plugin.synchronized() if self.plugin else 0
        self.daemon.restart(number)
        if self.plugin:
            self.plugin.wait(told + 1)
            self.assertNotRegex(engine.LOG.read_text(encoding="utf-8"), "; retrying in (?!100 ms)")

    def check_replacement(self, sandbox, containers):
        """A container that has ended is followed by another of its name, as a kubelet restarts it."""
        ended = containers["log"]
        os.kill(self.cri.pid(ended), signal.SIGKILL)
        self.cri.stop(ended)
        self.assertEqual(self.cri.status(ended)[0]["exit_code"], 128 + signal.SIGKILL)
        self.cri.remove(ended)
        containers = {**containers, "log": self.start(sandbox, BURSTABLE, "log")}
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)


class WithoutPodAnnotations(ContainerdCase):
    """The wrapper in a handler without pod_annotations: what podqos knows is what containerd says by itself."""

    def setUp(self):
        super().setUp()
        self.handler = containerd.handler("bare-wrapper", self.kind, self.driver)

    def test_kubelet(self):
        """The sums tell the CPU request, the scores the memory requests: at least 31 and 15 thousandths of 2 GiB."""
        sandbox, containers = self.run_whole(BURSTABLE)
        for container in (*containers.values(), sandbox[0]):
            self.assertNotIn("podqos.io/pod", self.annotations(container))
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_known_as(BURSTABLE, "Burstable", "CRI pod sums")
        # 66571994 and 32212255 bytes; a limit is cut to whole pages.
        self.assert_tiers(burstable_memory=98787328, burstable_shares=153)
        self.end(sandbox)

    def test_crictl(self):
        """Neither sums nor resources: nothing is known of the pod before its container, which asks for nothing."""
        sandbox, containers = self.run_whole(PLAIN)
        pid = self.cri.pid(containers["app"])
        self.assert_below(self.pod_path(PLAIN), pid, containers["app"])
        self.assertEqual(machines.oom_score_adj(pid), 1000)
        self.assert_below("/k8s.io", self.cri.pod_info(sandbox)["pid"], sandbox[0])
        self.assert_known_as(PLAIN, "BestEffort", "inference")
        self.end(sandbox)

    def annotations(self, container):
        """Those that the runtime was given."""
        config = json.loads((containerd.bundle(container) / "config.json").read_text(encoding="utf-8"))
        return config["annotations"]


class ChargedShim(ContainerdCase):
    """chargeMonitor: the shim is in the pod's cgroup while the pod lives, and does not hold it."""

    settings = {"chargeMonitor": True}

    def test_shim(self):
        sandbox, _ = self.run_whole(BURSTABLE)
        monitor = f"{self.pod_path(BURSTABLE)}/podqos-monitor"
        self.assertEqual(machines.cgroup_of(containerd.shim(self.cri.pod_info(sandbox)["pid"])), monitor)
        self.end(sandbox)


class KilledShim(ContainerdCase):
    """The shim is killed, and with it all that it holds: containerd clears up, and the pod is released."""

    def test_killed(self):
        sandbox = self.run_pod(BURSTABLE)
        container = self.start(sandbox, BURSTABLE, "web")
        self.assert_pod(BURSTABLE, sandbox, {"web": container})
        os.kill(containerd.shim(self.cri.pid(container)), signal.SIGKILL)
        patience.until(lambda: self.cri.containers() == {container: cri.EXITED})
        self.assertEqual(self.cri.containers(), {container: cri.EXITED})
        self.end(sandbox)


class PluginGone(ContainerdCase):
    """The plugin ends, in order and by SIGKILL, and what happens meanwhile is made good when it is back."""

    def test_absence(self):
        pods = {pod: self.run_whole(pod) for pod in (BURSTABLE, GUARANTEED)}
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.plugin.stop(number)
            self.plugin.start()
            for pod, whole in pods.items():
                self.assert_pod(pod, *whole)
        self.plugin.stop(signal.SIGKILL)
        self.remove(pods[GUARANTEED][0])
        late, containers = self.run_whole(BESTEFFORT)
        self.assertEqual(set(self.known([containers["app"]])), {BURSTABLE.uid, GUARANTEED.uid})
        self.plugin.start()
        self.assertEqual(set(self.known()), {BURSTABLE.uid, BESTEFFORT.uid})
        self.assert_pod(BURSTABLE, *pods[BURSTABLE])
        self.assert_below("/k8s.io", self.cri.pid(containers["app"]), containers["app"])
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)
        self.end(pods[BURSTABLE][0], late)


class KilledInCreate(ContainerdCase):
    """The plugin dies while a pod is being made: the wrapper places what is left to place."""

    def test_killed(self):
        sandbox = self.run_pod(BURSTABLE)
        self.plugin.stop(signal.SIGKILL)
        containers = {"web": self.start(sandbox, BURSTABLE, "web")}
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.plugin.start()
        containers["log"] = self.create_unanswered(sandbox, "log")
        self.cri.start(containers["log"])
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.plugin.start()
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)
        self.end(sandbox)

    def create_unanswered(self, sandbox, name):
        """containerd waits for the plugin, and gets no answer."""
        os.kill(self.plugin.pid, signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            created = pool.submit(self.cri.create, sandbox,
                                  cri.container(name, engine.IMAGE, **BURSTABLE.sent[name]))
            with self.assertRaises(concurrent.futures.TimeoutError):
                created.result(timeout=1)  # half of what containerd waits
            self.plugin.stop(signal.SIGKILL)
            return created.result()

    def clean_up(self):
        """A test that failed may have left it stopped or killed."""
        if self.plugin.stop(signal.SIGKILL) != 0:
            self.plugin.start()
        super().clean_up()


class AsAService(ContainerdCase):
    """The package's unit: systemd starts it, reloads it, and forbids nothing that it needs. How it comes back, and how it
    listens on TCP, nri_service_test.py has."""

    plugin_type = containerd.Service
    METRICS = "unix:/run/podqos-nri/metrics.sock"
    settings = {"nri": {"metrics": METRICS}}

    def test_service(self):
        self.assertEqual((self.plugin.show("Type"), self.plugin.show("SubState")), ("notify", "running"))
        sandbox, containers = self.run_whole(GUARANTEED)
        self.assert_pod(GUARANTEED, sandbox, containers)
        self.assert_tiers(guaranteed_memory=256 * MI)
        self.assertEqual(metrics.samples(self.METRICS)['podqos_pods{qos_class="Guaranteed",owner="podqos"}'], 1)
        self.check_reload()
        self.end(sandbox)

    def check_reload(self):
        """By a limit that the next pod has."""
        pid = self.plugin.pid
        engine.write_json(SETTINGS, {**self.settings, "podPidsLimit": 100})
        self.plugin.reload()
        sandbox, containers = self.run_whole(BURSTABLE)
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_values(self.pod_path(BURSTABLE), pids=100)
        self.assertEqual(self.plugin.pid, pid)
        self.remove(sandbox)


def cells():
    """What is run of the classes above with which set-up, driver and runtime."""
    every = [((AllClasses,), "example", "systemd")]
    crun = [((AllClasses, Annotated, Restart, WithoutPodAnnotations, ChargedShim, KilledShim), "wrapper", "cgroupfs"),
            ((AllClasses, Annotated, Restart), "hooks", "cgroupfs"), ((AllClasses,), "both", "cgroupfs"),
            ((AllClasses, Annotated, Restart, PluginGone), "plugin", "cgroupfs"),
            ((AsAService,), "plugin", "systemd"), ((KilledInCreate,), "all", "cgroupfs"),
            ((AllClasses, Annotated), "all", "systemd")]
    # A program in Go, which takes thrice the time in this guest.
    runc = [((AllClasses, Restart), "wrapper", "cgroupfs"), ((AllClasses,), "hooks", "cgroupfs"),
            ((AllClasses,), "plugin", "cgroupfs"), ((AsAService,), "plugin", "systemd"), ((KilledInCreate,), "all", "systemd")]
    return engine.cells(__name__, *((classes, {"set_up": set_up, "driver": driver, "kind": kind})
                                    for kind, rows in (("crun", every + crun), ("runc", every + runc))
                                    for classes, set_up, driver in rows))


def setUpModule():
    containerd.configure()
    ContainerdCase.daemon = containerd.Containerd()
    ContainerdCase.daemon.start()
    ContainerdCase.daemon.load_image()
    unittest.addModuleCleanup(ContainerdCase.daemon.stop)


if __name__ == "__main__":
    TESTS = cells()
    harness.main(("runc",), here=[engine.guests(__file__, TESTS)], in_guest=TESTS)

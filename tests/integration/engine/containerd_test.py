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
import time
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
    SETTINGS, CONTROLLERS, INFERRED, BURSTABLE, GUARANTEED, BESTEFFORT, UNTOLD, PLAIN, ANNOTATED,
    ContainerdCase)
from harness import MI  # noqa: E402


class AllClasses(ContainerdCase):
    """A pod of each class, whose cgroup nobody has chosen: a kubelet without cgroups for pods, or crictl."""

    def test_all_classes(self):
        pods = {pod: self.run_pod(pod) for pod in (BURSTABLE, GUARANTEED, BESTEFFORT)}
        containers = {pod: {name: self.start(sandbox, pod, name) for name in pod.sent} for pod, sandbox in pods.items()}
        for pod, sandbox in pods.items():
            self.assert_pod(pod, sandbox, containers[pod])
            self.assert_known_as(pod, {"guaranteed": "Guaranteed", "burstable": "Burstable",
                                       "besteffort": "BestEffort"}[pod.tier], "podqos.io/pod")
        self.assert_tiers(guaranteed_memory=256 * MI, burstable_memory=96 * MI, burstable_shares=153)
        self.assert_root()
        self.assert_told(containers[BURSTABLE]["web"])
        self.assert_verbs(BURSTABLE, containers[BURSTABLE]["web"])
        self.remove(pods[GUARANTEED])
        self.assertFalse(self.machine.exists(self.pod_path(GUARANTEED)))
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)
        self.remove(pods[BURSTABLE])
        self.assert_tiers()
        self.cri.remove_pod(pods[BESTEFFORT])  # nobody has stopped it
        self.assert_nothing_left()

    def assert_told(self, container):
        """Where podqos could not place a container, it says what helps."""
        if not self.how.places:
            self.assertRegex(engine.LOG.read_text(encoding="utf-8"),
                             f"warning: pod {BURSTABLE.uid}, container {container} runs in cgroup "
                             f"/k8s.io/{container}, not in .*: register podqos-runtime")

    def assert_verbs(self, pod, container):
        """containerd finds the container where podqos has placed it; 0::/ is the cgroup that it began in.

        Of an update only a plugin is told: then the pod follows.
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
        self.remove(sandbox)
        self.assert_nothing_left()


class Restart(ContainerdCase):
    """containerd ends, in order and by SIGKILL, while a pod lives: pod and records stay as they are."""

    def test_restart(self):
        sandbox = self.run_pod(BURSTABLE)
        containers = {name: self.start(sandbox, BURSTABLE, name) for name in BURSTABLE.sent}
        before = (engine.records(), {each: self.cri.pid(each) for each in containers.values()})
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.restart(number)
            after = (engine.records(), {each: self.cri.pid(each) for each in containers.values()})
            self.assertEqual(after, before)
            self.assertEqual(self.cri.containers(), dict.fromkeys(containers.values(), cri.RUNNING))
            self.assert_pod(BURSTABLE, sandbox, containers)
        self.check_replacement(sandbox, containers)
        self.remove(sandbox)
        self.assert_nothing_left()

    def restart(self, number):
        """Of containerd, and the plugin has found it again."""
        told = self.plugin.synchronized() if self.plugin else 0
        self.daemon.restart(number)
        if self.plugin:
            self.plugin.wait(told + 1)

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
        sandbox = self.run_pod(BURSTABLE)
        containers = {name: self.start(sandbox, BURSTABLE, name) for name in BURSTABLE.sent}
        for container in (*containers.values(), sandbox[0]):
            self.assertNotIn("podqos.io/pod", self.annotations(container))
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_known_as(BURSTABLE, "Burstable", "CRI pod sums")
        # 66571994 and 32212255 bytes; a limit is cut to whole pages.
        self.assert_tiers(burstable_memory=98787328, burstable_shares=153)
        self.remove(sandbox)
        self.assert_nothing_left()

    def test_crictl(self):
        """Neither sums nor resources: nothing is known of the pod before its container, which asks for nothing."""
        sandbox = self.run_pod(PLAIN)
        container = self.start(sandbox, PLAIN, "app")
        pid = self.cri.pid(container)
        self.assert_below(self.pod_path(PLAIN), pid, container)
        self.assertEqual(machines.oom_score_adj(pid), 1000)
        self.assert_below("/k8s.io", self.cri.pod_info(sandbox)["pid"], sandbox[0])
        self.assert_known_as(PLAIN, "BestEffort", "inference")
        self.remove(sandbox)
        self.assert_nothing_left()

    def annotations(self, container):
        """Those that the runtime was given."""
        config = json.loads((containerd.bundle(container) / "config.json").read_text(encoding="utf-8"))
        return config["annotations"]


class Adopted(ContainerdCase):
    """A kubelet's pod: it has made the cgroup, whose values stay its own, and the pod stays where it wants it."""

    top = "/kubepods"

    def test_adopted(self):
        path = self.pod_path(BURSTABLE)
        self.make_parent(path)
        cgroups = (self.tier_path("guaranteed"), self.tier_path("burstable"), path)
        before = [self.machine.snapshot(cgroup) for cgroup in cgroups]
        sandbox = self.run_pod(BURSTABLE, parent=path)
        container = self.start(sandbox, BURSTABLE, "web")
        self.assert_container(container, BURSTABLE.sent["web"])
        for pid, identifier in ((self.cri.pid(container), container), (self.cri.pod_info(sandbox)["pid"], sandbox[0])):
            leaf = identifier if self.driver == "cgroupfs" else f"cri-containerd-{identifier}.scope"
            self.assertEqual(machines.container_cgroup_of(pid), f"{path}/{leaf}")
        self.assertEqual([self.machine.snapshot(cgroup) for cgroup in cgroups], before)
        self.assert_known_as(BURSTABLE, "Burstable", "engine")
        if self.plugin:
            self.check_metrics(cgroups[1])
        self.remove(sandbox)
        self.assertEqual(engine.records(), [])
        self.assertEqual([self.machine.snapshot(cgroup) for cgroup in cgroups], before)

    def check_metrics(self, tier):
        """A kubelet's pods and tiers are shown as such."""
        values = metrics.samples(containerd.METRICS)
        self.assertEqual(values['podqos_pods{qos_class="Burstable",owner="kubelet"}'], 1)
        self.assertEqual(values['podqos_pods{qos_class="Burstable",owner="podqos"}'], 0)
        self.assertEqual(values[f'podqos_tier_cpu_weight{{tier="burstable",cgroup="{tier}"}}'],
                         self.machine.read(tier, "weight"))

    def make_parent(self, path):
        """As a kubelet does it."""
        if self.driver == "systemd":
            self.make_slice(self.tier_path("besteffort"), "1", "CPUWeight", "t", "1")
            self.make_slice(path, "3", "CPUWeight", "t", "6", "CPUQuotaPerSecUSec", "t", "300000",
                            "MemoryMax", "t", str(160 * MI))
            self.wait_for(path)
            return
        cgroup = pathlib.Path(f"/sys/fs/cgroup{path}")
        cgroup.mkdir(parents=True)
        (cgroup.parent.parent / "besteffort").mkdir(exist_ok=True)
        for above in (cgroup.parents[1], cgroup.parent):
            (above / "cgroup.subtree_control").write_text(CONTROLLERS, encoding="ascii")
        (cgroup.parent / "cpu.weight").write_text("6", encoding="ascii")
        for file, value in (("cpu.weight", "6"), ("cpu.max", "30000 100000"), ("memory.max", str(160 * MI))):
            (cgroup / file).write_text(value, encoding="ascii")

    def make_slice(self, path, *properties):
        engine.call("busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                    "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
                    os.path.basename(path), "fail", *properties, "0")

    def wait_for(self, path):
        """systemd starts a unit in its own time."""
        patience.until(lambda: self.machine.read(path, "memory") == 160 * MI, 10)


class Refused(ContainerdCase):
    """The systemd driver without a parent: containerd gives the runtime a path that it refuses, before any hook."""

    MESSAGES = {"runc": 'expected cgroupsPath to be of format "slice:prefix:name"', "crun": "Invalid unit name or type"}

    def test_refused(self):
        with self.assertRaises(cri.Failed) as caught:
            self.run_pod(BURSTABLE)
        self.assertIn(self.MESSAGES[self.kind], caught.exception.message)
        self.assert_nothing_left()


class ChargedShim(ContainerdCase):
    """chargeMonitor: the shim is in the pod's cgroup while the pod lives, and does not hold it."""

    settings = {"chargeMonitor": True}

    def test_shim(self):
        sandbox = self.run_pod(BURSTABLE)
        self.start(sandbox, BURSTABLE, "web")
        monitor = f"{self.pod_path(BURSTABLE)}/podqos-monitor"
        self.assertEqual(machines.cgroup_of(containerd.shim(self.cri.pod_info(sandbox)["pid"])), monitor)
        self.remove(sandbox)
        self.assert_nothing_left()


class KilledShim(ContainerdCase):
    """The shim is killed, and with it all that it holds: containerd clears up, and the pod is released."""

    def test_killed(self):
        sandbox = self.run_pod(BURSTABLE)
        container = self.start(sandbox, BURSTABLE, "web")
        self.assert_pod(BURSTABLE, sandbox, {"web": container})
        os.kill(containerd.shim(self.cri.pid(container)), signal.SIGKILL)
        patience.until(lambda: self.cri.containers() == {container: cri.EXITED}, 20)
        self.assertEqual(self.cri.containers(), {container: cri.EXITED})
        self.remove(sandbox)
        self.assert_nothing_left()


class PluginGone(ContainerdCase):
    """The plugin ends, in order and by SIGKILL, and what happens meanwhile is made good when it is back."""

    def test_absence(self):
        pods = {pod: self.run_pod(pod) for pod in (BURSTABLE, GUARANTEED)}
        containers = {pod: {name: self.start(sandbox, pod, name) for name in pod.sent} for pod, sandbox in pods.items()}
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.plugin.stop(number)
            self.plugin.start()
            for pod, sandbox in pods.items():
                self.assert_pod(pod, sandbox, containers[pod])
        self.plugin.stop(signal.SIGKILL)
        self.remove(pods[GUARANTEED])
        late = self.run_pod(BESTEFFORT)
        container = self.start(late, BESTEFFORT, "app")
        self.assertEqual(set(self.known()), {BURSTABLE.uid, GUARANTEED.uid})
        self.plugin.start()
        self.assertEqual(set(self.known()), {BURSTABLE.uid, BESTEFFORT.uid})
        self.assert_pod(BURSTABLE, pods[BURSTABLE], containers[BURSTABLE])
        self.assert_below("/k8s.io", self.cri.pid(container), container)
        self.assert_tiers(burstable_memory=96 * MI, burstable_shares=153)
        for sandbox in (pods[BURSTABLE], late):
            self.remove(sandbox)
        self.assert_nothing_left()


class Shown(ContainerdCase):
    """The plugin's metrics are what containerd was asked for and what the kernel has."""

    def samples(self):
        """As they are now: what the kernel says is kept for a second."""
        time.sleep(1.1)
        return metrics.samples(containerd.METRICS)

    def assert_shown(self, values, **pods):
        for qos_class in ("Guaranteed", "Burstable", "BestEffort"):
            for owner in ("podqos", "kubelet"):
                wanted = pods.get(qos_class, 0) if owner == "podqos" else 0
                self.assertEqual(values[f'podqos_pods{{qos_class="{qos_class}",owner="{owner}"}}'], wanted)

    def test_shown(self):
        self.assertEqual(metrics.request(containerd.METRICS, "/readyz").status, 200)
        self.assert_shown(self.samples())
        pods = {pod: self.run_pod(pod) for pod in (BURSTABLE, GUARANTEED, BESTEFFORT)}
        for pod, sandbox in pods.items():
            for name in pod.sent:
                container = self.start(sandbox, pod, name)
                # What only sleeps may have computed for less than the kernel counts.
                self.cri.exec(container, "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=100")
        values = self.samples()
        self.assert_shown(values, Guaranteed=1, Burstable=1, BestEffort=1)
        requests = 'podqos_pod_requests_{}{{qos_class="Burstable",owner="podqos"}}'
        self.assertEqual(values[requests.format("cpu_cores")], 0.15)
        self.assertEqual(values[requests.format("memory_bytes")], 96 * MI)
        for tier in ("burstable", "besteffort"):
            path = self.tier_path(tier)
            labels = f'{{tier="{tier}",cgroup="{path}"}}'
            self.assertEqual(values[f"podqos_tier_memory_limit_bytes{labels}"], self.machine.read(path, "memory"))
            self.assertEqual(values[f"podqos_tier_cpu_weight{labels}"], self.machine.read(path, "weight"))
            self.assertGreater(values[f"podqos_tier_memory_usage_bytes{labels}"], 0)
            self.assertGreater(values[f"podqos_tier_cpu_usage_seconds_total{labels}"], 0)
            self.assertEqual(values[f"podqos_tier_oom_kills_total{labels}"], 0)
            # Not every kernel has it.
            pressure = f'podqos_tier_pressure_stalled_seconds_total{labels[:-1]},resource="memory"}}'
            self.assertEqual(pressure in values, os.path.exists(f"/sys/fs/cgroup{path}/memory.pressure"))
        for request, times in (("RunPodSandbox", 3), ("CreateContainer", 4), ("StartContainer", 4)):
            self.assertEqual(values[f'podqos_nri_request_duration_seconds_count{{request="{request}"}}'], times)
        self.assertEqual(sum(value for name, value in values.items() if name.startswith("podqos_errors")), 0)
        for sandbox in pods.values():
            self.remove(sandbox)
        self.assert_shown(self.samples())
        self.assert_nothing_left()

    def test_away(self):
        """containerd ends, and is back."""
        self.daemon.stop()
        patience.until(lambda: metrics.request(containerd.METRICS, "/readyz").status != 200, 10)
        away = metrics.request(containerd.METRICS, "/readyz")
        told = self.plugin.synchronized()
        self.daemon.start()
        self.plugin.wait(told + 1)
        self.assertEqual(away.status, 503)
        self.assertEqual(metrics.request(containerd.METRICS, "/readyz").status, 200)
        self.assertEqual(self.plugin.synchronized(), told + 1)

    def test_service(self):
        """The installed unit lets it listen on a unix socket, and does not by itself. nri_service_test.py has TCP."""
        self.assertEqual(self.plugin.stop(), 0)
        self.addCleanup(engine.call, "systemctl", "stop", "podqos-nri")
        address = "unix:/run/podqos-nri/metrics.sock"
        engine.write_json(SETTINGS, {"nri": {"metrics": address}})
        engine.call("systemctl", "restart", "podqos-nri")
        self.assertEqual(metrics.request(address, "/healthz").text, "ok\n")
        self.assertIn("podqos_build_info", metrics.request(address, "/metrics").text)
        engine.write_json(SETTINGS, {})
        engine.call("systemctl", "restart", "podqos-nri")
        with self.assertRaises(FileNotFoundError):
            metrics.request(address, "/healthz")


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
        self.remove(sandbox)
        self.assert_nothing_left()

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


class Resized(ContainerdCase):
    """In-place resize of a container: its pod and the tier follow. (containerd 1.7 resizes no pod as such.)"""

    def test_resized(self):
        sandbox = self.run_pod(UNTOLD)
        container = self.start(sandbox, UNTOLD, "web")
        path = self.pod_path(UNTOLD)
        self.assert_container(container, UNTOLD.sent["web"])
        self.assert_values(path, shares=102, quota=20000, memory=128 * MI)
        self.assert_tiers(burstable_memory=INFERRED, burstable_shares=102)
        # 300m, at most 600m, and 192 MiB; the OOM score, and so the request for memory, cannot be changed.
        resized = {"cpu_shares": 307, "cpu_quota": 60000, "cpu_period": 100000, "memory_limit_in_bytes": 192 * MI}
        self.cri.update(container, **resized)
        self.assert_container(container, {**UNTOLD.sent["web"], **resized})
        self.assert_values(path, shares=307, quota=60000, memory=192 * MI)
        self.assert_tiers(burstable_memory=INFERRED, burstable_shares=307)
        self.remove(sandbox)
        self.assert_nothing_left()


class AsAService(ContainerdCase):
    """The package's unit: systemd starts it, again when it is killed, reloads it, and forbids nothing that it needs."""

    plugin_type = containerd.Service

    def test_service(self):
        self.assertEqual((self.plugin.show("Type"), self.plugin.show("SubState")), ("notify", "running"))
        sandbox = self.run_pod(GUARANTEED)
        containers = {"app": self.start(sandbox, GUARANTEED, "app")}
        self.assert_pod(GUARANTEED, sandbox, containers)
        self.assert_tiers(guaranteed_memory=256 * MI)
        self.check_restart()
        self.assert_pod(GUARANTEED, sandbox, containers)
        self.check_reload()
        self.remove(sandbox)
        self.assert_nothing_left()

    def check_restart(self):
        pid, told = self.plugin.pid, self.plugin.synchronized()
        os.kill(pid, signal.SIGKILL)
        self.plugin.wait(told + 1)
        self.assertNotEqual(self.plugin.pid, pid)
        self.assertEqual(self.plugin.show("NRestarts"), "1")

    def check_reload(self):
        """By a limit that the next pod has."""
        pid = self.plugin.pid
        engine.write_json(SETTINGS, {"podPidsLimit": 100})
        self.plugin.reload()
        sandbox = self.run_pod(BURSTABLE)
        containers = {"web": self.start(sandbox, BURSTABLE, "web")}
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_values(self.pod_path(BURSTABLE), pids=100)
        self.assertEqual(self.plugin.pid, pid)
        self.remove(sandbox)


class Preinstalled(AllClasses):
    """The plugin in containerd's own directory: it starts it, and ends with it."""

    plugin_type = containerd.Preinstalled

    def test_configuration(self):
        """containerd's file for it lies over podqos's own, which has the address of its metrics."""
        handed = containerd.PLUGIN_CONFIGS / "10-podqos.conf"
        self.addCleanup(handed.unlink)
        engine.write_json(handed, {"podPidsLimit": 100})
        engine.write_json(SETTINGS, {"podPidsLimit": 200, "nri": {"metrics": containerd.METRICS}})
        self.plugin.stop()
        self.plugin.start()
        sandbox = self.run_pod(BURSTABLE)
        containers = {name: self.start(sandbox, BURSTABLE, name) for name in BURSTABLE.sent}
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.assert_values(self.pod_path(BURSTABLE), pids=100)
        values = metrics.samples(containerd.METRICS)
        self.assertEqual(values["podqos_nri_connected"], 1)
        self.assertEqual(values['podqos_pods{qos_class="Burstable",owner="podqos"}'], 1)
        self.check_service(self.plugin.pid)
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.remove(sandbox)
        self.assert_nothing_left()
        self.check_end(self.plugin.pid)

    def check_service(self, pid):
        """A service beside it waits in vain, and takes nothing."""
        refused = f"another podqos-nri (process {pid}) holds"
        engine.call("systemctl", "start", "--no-block", containerd.Service.UNIT)
        self.addCleanup(engine.call, "systemctl", "stop", containerd.Service.UNIT)
        patience.wait_for(lambda: self.plugin.said(refused), 60, "the service has been refused")
        engine.call("systemctl", "stop", containerd.Service.UNIT)
        self.assertEqual(self.plugin.pid, pid)

    def check_end(self, pid):
        """It ends with containerd."""
        self.daemon.stop()
        patience.wait_for(lambda: not machines.alive(pid), 20, "the plugin has ended")
        self.daemon.start()


def cells():
    """What is run of the classes above with which set-up, driver and runtime."""
    every = [((AllClasses, Adopted), "example", "systemd"), ((Adopted, Refused), "hooks", "systemd")]
    crun = [((AllClasses, Annotated, Restart, WithoutPodAnnotations, Adopted, ChargedShim, KilledShim), "wrapper", "cgroupfs"),
            ((AllClasses, Annotated, Restart, Adopted), "hooks", "cgroupfs"), ((AllClasses,), "both", "cgroupfs"),
            ((AllClasses, Annotated, Preinstalled, Restart, Adopted, PluginGone, Resized, Shown), "plugin", "cgroupfs"),
            ((AsAService, Adopted), "plugin", "systemd"), ((KilledInCreate,), "all", "cgroupfs"),
            ((AllClasses, Annotated), "all", "systemd")]
    # A program in Go, which takes thrice the time in this guest.
    runc = [((AllClasses, Restart), "wrapper", "cgroupfs"), ((AllClasses,), "hooks", "cgroupfs"),
            ((AllClasses,), "plugin", "cgroupfs"), ((AsAService,), "plugin", "systemd"), ((KilledInCreate,), "all", "systemd")]
    return engine.cells(__name__, *((classes, {"set_up": set_up, "driver": driver, "kind": kind})
                                    for kind, rows in (("crun", every + crun), ("runc", every + runc))
                                    for classes, set_up, driver in rows))


def setUpModule():
    containerd.configure()
    ContainerdCase.daemon = containerd.Preinstalled.daemon = containerd.Containerd()
    ContainerdCase.daemon.start()
    ContainerdCase.daemon.load_image()
    unittest.addModuleCleanup(ContainerdCase.daemon.stop)


if __name__ == "__main__":
    TESTS = cells()
    harness.main(("runc",), here=[engine.guests(__file__, TESTS)], in_guest=TESTS)

"""Memory QoS on the kernel's side: memory.min, memory.low and memory.high of containers, pods and tiers.

Expected values follow from KEP-2570; those of tiers from pkg/kubelet/cm/qos_container_manager_linux.go setMemoryQoS.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import metrics  # noqa: E402
import nri_peer  # noqa: E402
import patience  # noqa: E402
from systemd_driver import SystemdDriver  # noqa: E402

MI = harness.MI
ON_V2 = machines.Machine().version("memory") == 2 and machines.Machine().version("cpu") == 2
FILES = ("memory.min", "memory.low", "memory.high")
NONE = ("0", "0", "max")
TIERED = {"memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9}


def high(request, limit, tenths):
    """memory.high of a container, in whole pages."""
    return str((request + (limit - request) * tenths // 10) // 4096 * 4096)


class MemoryCase(harness.TestCase):
    """Two pods: a Guaranteed one of 32 MiB and a Burstable one that requests 64 MiB of 128 MiB at most."""

    GUARANTEED = harness.pod("guaranteed", harness.container("app", limits={"cpu": "100m", "memory": "32Mi"}))
    BURSTABLE = harness.pod("burstable", harness.container("app", {"memory": "64Mi"}, {"memory": "128Mi"}))
    HIGH = high(64 * MI, 128 * MI, 9)

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config(self.kind)

    def held(self, path):
        return tuple(self.machine.file(path, "memory", file) for file in FILES)

    def start(self, tier, manifest, **options):
        """Starts the pod's container; returns its cgroup."""
        _, pid = self.launch(manifest, "app", **options)
        return self.assert_placed(pid, self.pod_path(tier, manifest["metadata"]["uid"]))

    def assert_tree(self, lowest, low):
        """What the root, above which podqos has made one cgroup, and the tiers reserve."""
        for path in (self.root, f"{self.root}/kubepods"):
            self.assertEqual(self.held(path), (str(lowest), str(low), "max"), path)
        self.assertEqual(self.held(self.tier_path("burstable")), ("0", str(low), "max"))
        self.assertEqual(self.held(self.tier_path("besteffort")), NONE)


@harness.for_each_runtime
@unittest.skipUnless(ON_V2, "cgroup v1 has no such files")
class Values(MemoryCase):
    """Requests are protected, limits throttled at, and both are taken back."""

    settings = TIERED

    def test_off(self):
        self.configure(memoryReservationPolicy="None", memoryThrottlingFactor=None)
        for tier, manifest in (("guaranteed", self.GUARANTEED), ("burstable", self.BURSTABLE)):
            self.assertEqual(self.held(self.start(tier, manifest)), NONE)
            self.assertEqual(self.held(self.pod_path(tier, tier)), NONE)
        self.assert_tree(0, 0)

    def assert_shown(self):
        """By status: rule and kernel of tiers, pods and containers."""
        status, text = self.podqos.ctl_json("status"), self.podqos.ctl("status").stdout
        self.assertEqual(status["warnings"], [])
        names = ("memoryMinBytes", "memoryLowBytes", "memoryHighBytes")
        guaranteed, burstable = status["pods"]
        for shown, wanted in ((status["trees"][0]["top"], (96 * MI, 64 * MI, None)),
                              (burstable, (None, 64 * MI, None)), (guaranteed, (32 * MI, None, None)),
                              (burstable["containers"][0], (None, 64 * MI, int(self.HIGH)))):
            self.assertEqual(tuple(shown["rule"][name] for name in names), wanted)
            self.assertEqual(tuple(shown[name] for name in names), (wanted[0] or 0, wanted[1] or 0, wanted[2]))
        root = f"{self.root}/kubepods"
        for line in (f"memory.min of {root}: 96Mi\n", f"memory.low of {root}: 64Mi\n",
                     f"memory.low of {root}/burstable: 64Mi\n"):
            self.assertIn(line, text)
        self.assertNotIn(f"memory.min of {root}/burstable", text)

    def test_values_that_follow_the_settings(self):
        first, second = self.start("guaranteed", self.GUARANTEED), self.start("burstable", self.BURSTABLE)
        pods = self.pod_path("guaranteed", "guaranteed"), self.pod_path("burstable", "burstable")

        def assert_on():
            self.assertEqual(self.held(first), (str(32 * MI), "0", "max"))
            self.assertEqual(self.held(second), ("0", str(64 * MI), self.HIGH))
            self.assertEqual(self.held(pods[0]), (str(32 * MI), "0", "max"))
            self.assertEqual(self.held(pods[1]), ("0", str(64 * MI), "max"))
            self.assert_tree(96 * MI, 64 * MI)

        assert_on()
        self.assert_shown()
        self.configure(memoryThrottlingFactor=0.5)
        self.podqos.ctl("reconcile")
        self.assertEqual(self.held(second), ("0", str(64 * MI), str(96 * MI)))
        self.configure(memoryReservationPolicy="None", memoryThrottlingFactor=None)
        self.podqos.ctl("reconcile")
        for path in (first, second, *pods):
            self.assertEqual(self.held(path), NONE, path)
        self.assert_tree(0, 0)
        self.assertEqual(self.podqos.ctl_json("reconcile")["changes"], [])
        self.configure(**TIERED)
        self.podqos.ctl("reconcile")
        assert_on()
        self.assertEqual(self.podqos.ctl_json("reconcile")["changes"], [])

    def test_release(self):
        self.start("guaranteed", self.GUARANTEED)
        name, _ = self.launch(self.BURSTABLE, "app")
        self.wrapper.delete(name)
        self.assert_tree(32 * MI, 0)

    def test_what_others_change(self):
        """status says it, and reconcile mends it."""
        cgroup = self.start("burstable", self.BURSTABLE)
        mount = self.machine.hierarchy("memory").mount
        for path in (cgroup, self.pod_path("burstable", "burstable"), self.tier_path("burstable")):
            pathlib.Path(mount + path, "memory.low").write_text("0", encoding="ascii")
        warnings = self.podqos.ctl_json("status")["warnings"]
        self.assertEqual(len([line for line in warnings if "memory.low is 0" in line]), 3, warnings)
        self.podqos.ctl("reconcile")
        self.assertEqual(self.held(cgroup), ("0", str(64 * MI), self.HIGH))
        self.assert_tree(64 * MI, 64 * MI)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])

    def test_what_the_author_sets(self):
        bundle = self.bundle(self.BURSTABLE, "app")
        bundle.resources["unified"] = {"memory.high": "max", "memory.low": str(8 * MI)}
        pid = self.wrapper.launch(self.container_id("own"), bundle.save())
        cgroup = self.assert_placed(pid, self.pod_path("burstable", "burstable"))
        for settings in (TIERED, {"memoryReservationPolicy": "None"}):
            self.configure(**settings)
            self.podqos.ctl("reconcile")
            self.assertEqual(self.held(cgroup), ("0", str(8 * MI), "max"))

    def test_registration_after_the_start(self):
        """createRuntime alone: the values are written to the cgroup that the engine has chosen."""
        bundle = self.register_hooks(self.bundle(self.BURSTABLE, "app"))
        bundle.cgroups_path = f"{self.elsewhere}/app"
        pid = self.plain.launch(self.container_id("hooked"), bundle.save())
        self.assertEqual(self.held(machines.cgroup_of(pid)), ("0", str(64 * MI), self.HIGH))

    def test_precreate(self):
        """By podqos's hook for Podman, which edits config.json before the runtime reads it."""
        bundle, name = self.register_hooks(self.bundle(self.BURSTABLE, "app")), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-payload-{name}"
        done = self.podqos.hook("precreate", bundle.save().read(), kind=self.kind, cwd=self.tmp)
        bundle.file.write_text(done.stdout, encoding="utf-8")
        cgroup = self.assert_placed(self.plain.launch(name, bundle), self.pod_path("burstable", "burstable"))
        self.assertEqual(self.held(cgroup), ("0", str(64 * MI), self.HIGH))
        self.plain.delete(name)

    def test_update(self):
        """A container that its runtime updates: request and limit of 64 MiB, then a limit of 128 MiB."""
        bundle = self.bundle(label="updated")
        bundle.annotations["podqos.io/pod-uid"] = "updated"
        bundle.resources.update({"cpu": {"shares": 512}, "memory": {"limit": 64 * MI}})
        name = self.container_id("updated")
        cgroup = self.assert_placed(self.wrapper.launch(name, bundle.save()), self.pod_path("burstable", "updated"))
        self.assertEqual(self.held(cgroup), ("0", str(64 * MI), "max"))
        self.plain.call("update", "--memory", str(128 * MI), name)
        self.podqos.ctl("reconcile")
        self.assertEqual(self.held(cgroup), ("0", str(64 * MI), self.HIGH))
        self.assertEqual(self.held(self.pod_path("burstable", "updated")), ("0", str(64 * MI), "max"))


@harness.for_each_runtime
@unittest.skipUnless(ON_V2 and os.path.isdir("/run/systemd/system"), "systemd does not run this machine with cgroup v2")
class Scope(SystemdDriver, MemoryCase):
    """With systemd's driver, where crun 1.8 has a cgroup of its own below the scope, whose values count as well."""

    settings = TIERED

    def test_status_and_reconcile_agree(self):
        self.use_driver()
        _, pid = self.launch(self.BURSTABLE, "app")
        scope = machines.container_cgroup_of(pid)
        cgroups = {scope, machines.cgroup_of(pid)}
        for cgroup in cgroups:
            self.assertEqual(self.held(cgroup), ("0", str(64 * MI), self.HIGH))
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])
        self.assertEqual(self.podqos.ctl_json("reconcile", "--dry-run")["changes"], [])
        for cgroup in cgroups:
            pathlib.Path(self.machine.hierarchy("memory").mount + cgroup, "memory.low").write_text("0", encoding="ascii")
        warnings = self.podqos.ctl_json("status")["warnings"]
        self.assertEqual(len(warnings), len(cgroups), warnings)
        for cgroup in cgroups:
            self.assertTrue(any(f"cgroup {cgroup}: memory.low is 0, the rule says 64Mi" in line for line in warnings), warnings)
        # systemd writes memory.oom.group along with it.
        changes = [change for change in self.podqos.ctl_json("reconcile")["changes"] if "memory.low" in json.dumps(change)]
        self.assertEqual(len(changes), len(cgroups), changes)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])


@harness.for_each_runtime
@unittest.skipUnless(ON_V2, "cgroup v1 has no memory.high")
class Livelock(MemoryCase):
    """kubernetes/enhancements#2570: anonymous memory above memory.high without swap: nothing can be reclaimed."""

    # memory.high is at 19660 KiB; dd wants 48 MiB, and the limit has room for it.
    STUCK = harness.pod("stuck", harness.container("app", {"memory": "1Mi"}, {"memory": "96Mi"}))
    ARGS = ("sh", "-c", "dd if=/dev/zero of=/dev/null bs=48M count=1 && exec sleep 1000")

    def begin(self, waits):
        """Starts the container with so much patience; returns its cgroup, and whether it has got its memory."""
        self.configure(memoryThrottlingFactor=0.2, memoryHighPatience=waits)
        _, pid = self.launch(self.STUCK, "app", args=self.ARGS)
        cgroup = self.assert_placed(pid, self.pod_path("burstable", "stuck"))
        comm = pathlib.Path(f"/proc/{pid}/comm")
        return cgroup, lambda: comm.read_text(encoding="ascii") == "sleep\n"

    def looks(self, is_done):
        """Looks as the timer of podqos-reconcile does, until the container goes on, or long enough."""
        def look():
            self.podqos.ctl("reconcile")
            self.shown.append(self.podqos.ctl("status").stdout)
            return is_done()
        return patience.until(look, 30, length=0.5)

    def lines(self):
        return [line for line in self.podqos.log_text().splitlines() if "throttled at memory.high" in line]

    def setUp(self):
        super().setUp()
        self.shown = []  # by status, after each look

    def test_stuck_without_patience(self):
        cgroup, is_done = self.begin("0s")
        self.assertFalse(self.looks(is_done))
        self.assertEqual(self.held(cgroup)[2], high(MI, 96 * MI, 2))
        self.assertEqual(self.lines(), [])

    def test_goes_on(self):
        cgroup, is_done = self.begin("1s")
        self.assertTrue(self.looks(is_done))
        self.assertGreaterEqual(int(self.held(cgroup)[2]), 36 * MI)
        self.assertEqual(len(self.lines()), 1, self.lines())
        self.assertIn("pod stuck", self.lines()[0])
        self.assertEqual([event["uid"] for event in self.podqos.events() if event["event"] == "throttled"], ["stuck"])
        self.assertTrue(any("1/1, 1 throttled" in text for text in self.shown), self.shown)
        # What was raised remains.
        raised = self.held(cgroup)[2]
        self.podqos.ctl("reconcile")
        self.assertEqual(self.held(cgroup)[2], raised)


    def test_goes_on_beside_the_plugin(self):
        """podqos-nri looks by itself; it need not have placed the container."""
        socket = self.tmp / "nri.sock"
        runtime = nri_peer.Runtime(socket)
        self.addCleanup(runtime.stop)
        _, is_done = self.begin("1s")
        address = f"unix:{self.tmp}/metrics.sock"
        command = [harness.BIN / "podqos-nri", "--config", self.podqos.config(self.kind), "--socket", socket,
                   "--metrics", address]
        with subprocess.Popen(command, env={}, stderr=subprocess.DEVNULL) as plugin:
            try:
                runtime.accept().welcome()
                self.assertTrue(patience.until(is_done, 90, length=0.5))
                throttlings = metrics.tiers(address, "podqos_tier_memory_throttlings_total")
                self.assertGreater(throttlings[self.tier_path("burstable")], 0)
                self.assertEqual(throttlings[self.tier_path("besteffort")], 0)
            finally:
                plugin.terminate()
        self.assertEqual(len(self.lines()), 1, self.lines())


@harness.for_each_runtime
@unittest.skipIf(ON_V2, "cgroup v2 has the files")
class WithoutFiles(MemoryCase):
    """cgroup v1: one line in the log, and containers as they were."""

    settings = TIERED

    def test_says_so_once(self):
        first = self.start("guaranteed", self.GUARANTEED)
        self.start("burstable", self.BURSTABLE)
        self.podqos.ctl("reconcile")
        self.assert_values(first, memory=32 * MI)
        log = self.podqos.log_text()
        self.assertEqual(log.count("cgroup v1 has no files memory.min, memory.low and memory.high"), 1, log)


if __name__ == "__main__":
    harness.main()

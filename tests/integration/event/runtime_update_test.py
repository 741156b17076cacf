"""`runc update` of a running container: the wrapper tells podqos of it, else nothing but the container's own cgroup."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from systemd_driver import SystemdDriver  # noqa: E402

MI, GI = harness.MI, harness.GI
NODE = 32 * GI  # nodeMemory of the harness, where qosReserved is 100 %


class Updates:
    """A pod follows its containers at the next reconciliation; until then `status` says so."""

    def use_driver(self):
        """cgroupfs is what runtimes use unless told otherwise."""

    def place(self, bundle, name):
        """Starts a container of the pod; returns its cgroup."""
        return self.assert_placed(self.wrapper.launch(name, bundle.save()), self.pod)

    def app(self, label):
        """A container as Podman and Docker make it, of half a CPU and 64 MiB; returns (id, its cgroup)."""
        bundle = self.bundle(label=label)
        bundle.annotations["podqos.io/pod-uid"] = "updated"
        bundle.resources.update({"cpu": {"shares": 512, "quota": 50_000, "period": 100_000},
                                 "memory": {"limit": 64 * MI}})
        name = self.container_id(label)
        return name, self.place(bundle, name)

    def setUp(self):
        super().setUp()
        self.use_driver()
        self.pod = self.pod_path("burstable", "updated")
        self.name, self.own = self.app("app")

    def assert_pod(self, memory, quota, shares, requested):
        """The pod's values, and what the kubelet's formulas make of its requests for the tiers."""
        self.assert_values(self.pod, memory=memory, quota=quota, shares=shares)
        self.assert_values(self.tier_path("burstable"), shares=shares, memory=NODE)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=NODE - requested)

    def warnings(self):
        """The warnings of `status`, which are the same in text."""
        warnings = self.podqos.ctl_json("status")["warnings"]
        text = self.podqos.ctl("status")
        for warning in warnings:
            self.assertIn(warning, text.stdout + text.stderr)
        return warnings

    def assert_warned(self, words):
        warnings = self.warnings()
        self.assertEqual(len(warnings), 1, warnings)
        for word in words:
            self.assertIn(word, warnings[0])

    def reconcile(self, changes):
        """Reconciles; `changes` begins what it says of the pod. A second time changes nothing."""
        report = self.podqos.ctl_json("reconcile")
        said = [line for line in report["changes"] if "follows" in line]
        self.assertEqual(len(said), len(changes), report)
        for line, words in zip(said, changes):
            self.assertIn(words, line)
        again = self.podqos.ctl_json("reconcile")
        self.assertEqual((again["changes"], again["failed"]), ([], []))
        return again["warnings"]

    def test_memory(self):
        self.assert_pod(64 * MI, 50_000, 512, 64 * MI)
        self.assertEqual(self.warnings(), [])
        self.reconcile([])
        self.plain.call("update", "--memory", str(256 * MI), self.name)
        self.assert_values(self.own, memory=256 * MI)
        self.assert_warned([self.name, "memory limit 256Mi is above its pod's", "podqosctl reconcile"])
        self.assertEqual(self.reconcile(["memory limit 256Mi"]), [])
        self.assert_pod(256 * MI, 50_000, 512, 64 * MI)
        self.assertEqual(self.warnings(), [])
        # Requests end at the limits, as Kubernetes has them.
        self.plain.call("update", "--memory", str(32 * MI), self.name)
        self.assertEqual(self.reconcile(["memory limit 32Mi"]), [])
        self.assert_pod(32 * MI, 50_000, 512, 32 * MI)

    def test_by_the_wrapper(self):
        """The pod gets what is raised before the runtime acts, which cgroup v1 refuses a quota above the pod's."""
        self.wrapper.update(self.name, {"memory": {"limit": 256 * MI}, "cpu": {"quota": 150_000, "period": 100_000}})
        self.assert_values(self.own, memory=256 * MI, quota=150_000)
        self.assert_pod(256 * MI, 150_000, 512, 64 * MI)
        self.assertEqual(self.warnings(), [])
        # What is lower, it gets once the runtime has ended; and the share.
        self.wrapper.call("update", "--memory", str(32 * MI), "--cpu-quota", "20000", self.name)
        self.assert_values(self.own, memory=32 * MI, quota=20_000)
        self.assert_pod(32 * MI, 20_000, 204, 32 * MI)
        self.wrapper.call("update", "--cpu-share", "102", self.name)
        self.assert_values(self.pod, shares=102)
        self.reconcile([])

    def test_the_end_of_the_runtime(self):
        """Its status is the wrapper's, and it does not outlive that."""
        runtime = self.tmp / "ending"
        config = self.tmp / "ending.json"
        config.write_text(json.dumps({**self.podqos.settings, "runtimes": [str(runtime)]}), encoding="utf-8")
        command = [harness.RUNTIME, "--config", config, "update", "--cpu-share", "100", self.name]
        for words, status in (("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)):
            runtime.write_text(f"#!/bin/sh\n{words}\n", encoding="ascii")
            runtime.chmod(0o755)
            self.assertEqual(subprocess.run(command, check=False).returncode, status, words)
        started = self.tmp / "started"
        runtime.write_text(f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 600\n",
                           encoding="ascii")
        with subprocess.Popen(command) as wrapper:
            patience.expect(started.exists, "the runtime's start")
            wrapper.kill()
        status = pathlib.Path("/proc", started.read_text(encoding="ascii").strip(), "stat")

        def has_ended():
            try:
                return status.read_text(encoding="ascii").split(") ")[1][0] == "Z"
            except OSError:  # its parent has taken note of it
                return True
        patience.expect(has_ended, "the runtime's end")

    def test_standard_input(self):
        """As containerd and Docker pass it: the runtime gets all of it, whatever it is."""
        wanted = json.dumps({"memory": {"limit": 256 * MI}})
        self.wrapper.call("update", "--resources=-", self.name, stdin=wanted)
        self.assert_values(self.own, memory=256 * MI)
        self.assert_values(self.pod, memory=256 * MI)
        command = self.wrapper.command("update", "--resources=-", self.name)
        resources = self.tmp / "resources.json"
        resources.write_text(wanted.replace(str(256 * MI), str(512 * MI)), encoding="ascii")
        with resources.open("rb") as file:
            subprocess.run(command, stdin=file, check=True)
        self.assert_values(self.own, memory=512 * MI)
        self.assert_values(self.pod, memory=512 * MI)
        # What can be read but once is the runtime's alone: the pod follows once that has ended.
        for text in (f"cat {resources} | \"$@\"", f"cat {resources} | {{ sleep 2; cat; }} | \"$@\""):
            subprocess.run(["sh", "-c", text, "sh", *map(str, command)], check=True)
        wanted = wanted.replace(str(256 * MI), str(1024 * MI))
        for path in ("/dev/stdin", "/proc/self/fd/0"):
            self.wrapper.call("update", "--resources", path, self.name, stdin=wanted)
            self.assert_values(self.own, memory=1024 * MI)
        self.assert_values(self.pod, memory=1024 * MI)
        self.reconcile([])

    def test_what_the_runtime_refuses(self):
        """It is taken back what the pod has been given."""
        for words in (("--memory", str(256 * MI)), ("--memory", str(32 * MI), "--cpu-quota", "5000", "--cpu-share", "4")):
            refused = self.wrapper.call("update", *words, "--no-such-option", self.name, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assert_pod(64 * MI, 50_000, 512, 64 * MI)

    def test_of_no_pod(self):
        """Standard input and the runtime's answer are as without podqos."""
        bundle = self.bundle(label="alone")
        name = self.container_id("alone")
        self.wrapper.launch(name, bundle.save())
        before = self.podqos.records()
        self.wrapper.update(name, {"memory": {"limit": 128 * MI}})
        self.assertEqual(self.podqos.records(), before)
        for runtime in (self.wrapper, self.plain):
            self.assertNotEqual(runtime.call("update", "--memory", "64M", "unknown", check=False).returncode, 0)

    def test_a_second_container(self):
        other, _ = self.app("other")
        self.assert_pod(128 * MI, 100_000, 1024, 128 * MI)
        self.plain.update(other, {"cpu": {"shares": 256, "quota": 25_000, "period": 100_000}})
        self.plain.call("update", "--memory", str(128 * MI), self.name)
        self.assertNotEqual(self.podqos.ctl_json("reconcile", "-n")["plan"], [])
        # Of weight 10, which 256 shares are by runc's older formula, 238 shares are the least: 233m.
        share, requested = ("CPU shares 256", 750) if self.machine.version("cpu") == 1 else ("CPU weight 10", 733)
        changes = [f"container {self.name}, updated to memory limit 128Mi",
                   f"container {other}, updated to CPU limit 250m, {share}"]
        self.assertEqual(self.reconcile(changes), [])
        self.assert_pod(192 * MI, 75_000, requested * 1024 // 1000, 128 * MI)
        self.wrapper.delete(other)

    def test_cpu_quota(self):
        """cgroup v1 refuses a quota above the pod's; then the pod's is raised first, by hand."""
        if self.machine.version("cpu") == 1:
            self.plain.update(self.name, {"cpu": {"quota": 20_000, "period": 100_000}})
            self.reconcile(["CPU limit 200m"])
            raised = {"cpu": {"quota": 150_000, "period": 100_000}}
            self.assertNotEqual(self.plain.update(self.name, raised, check=False).returncode, 0)
            quota = pathlib.Path(self.machine.hierarchy("cpu").mount + self.pod, "cpu.cfs_quota_us")
            quota.write_text("-1", encoding="ascii")
            self.plain.update(self.name, raised)
        else:
            self.plain.update(self.name, {"cpu": {"quota": 150_000, "period": 100_000}})
            self.assert_warned(["CPU limit 1500m is above its pod's 500m", "podqosctl reconcile"])
        self.reconcile(["CPU limit 1500m"])
        self.assert_values(self.pod, quota=150_000)
        self.assertEqual(self.warnings(), [])


@harness.for_each_runtime
class RuntimeUpdate(Updates, harness.TestCase):
    """With the cgroupfs driver."""


@harness.for_each_runtime
@unittest.skipUnless(os.path.isdir("/run/systemd/system"), "systemd does not run this machine")
class RuntimeUpdateOnSystemd(SystemdDriver, Updates, harness.TestCase):
    """With systemd's, where crun 1.8 sets limits in a cgroup below its scope only."""

    def place(self, bundle, name):
        path = machines.cgroup_of(self.wrapper.launch(name, bundle.save()))
        self.assertTrue(path.startswith(f"{self.pod}/"), path)
        return path


if __name__ == "__main__":
    harness.main()

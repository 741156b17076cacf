"""A machine that lacks controllers: what is left of a pod's values is written, and nothing else is touched.

On cgroup v1 a hierarchy is unmounted in a mount namespace of the test's own, so that podqos and the runtime lack it and
nobody else does. What keeps a controller away from a pod on cgroup v2, systemd_faults_test.py has.
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import MI, container, pod  # noqa: E402

POD = pod("lacking-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))


class Lacking(harness.TestCase):
    """Guaranteed: 102 shares, 10 ms of each 100, 64 MiB."""

    settings = {"podPidsLimit": 64}

    def setUp(self):
        super().setUp()
        before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        here = os.getcwd()
        self.addCleanup(os.close, before)
        self.addCleanup(os.chdir, here)
        self.addCleanup(ctypes.CDLL(None).setns, before, 0x20000)  # CLONE_NEWNS
        machines.private_mounts()

    def lose(self, *controllers):
        for controller in controllers:
            hierarchy = self.machine.hierarchy(controller)
            if hierarchy is None or hierarchy.version != 1 or set(hierarchy.controllers) - set(controllers):
                self.skipTest(f"{controller} has no hierarchy of its own on this machine")
            done = subprocess.run(["umount", "-n", "-l", hierarchy.mount], capture_output=True, text=True, check=False)
            if done.returncode != 0:  # in a container its mounts may be locked, user_namespaces(7)
                self.skipTest(f"{hierarchy.mount} cannot be unmounted here: {done.stderr}")
        # What is left over is looked for everywhere.
        self.addCleanup(setattr, self, "machine", self.machine)
        self.machine = machines.Machine()

    def try_run(self, policy):
        """(id, what the wrapper printed and returned, pid of the container or None)."""
        self.podqos.settings["onError"] = policy
        self.podqos.config(self.kind)
        name, pid_file = self.container_id("app"), self.tmp / "pid"
        done = self.wrapper.run(name, self.bundle(POD, "app"), "-d", "--pid-file", pid_file, check=False)
        return name, done, int(pid_file.read_text(encoding="ascii")) if done.returncode == 0 else None

    def lacks(self, controller):
        self.lose(controller)
        values = {"cpu": {"shares": 102, "quota": 10000}, "memory": {"memory": 64 * MI}, "pids": {"pids": 64}}
        for policy in ("admit", "reject"):
            with self.subTest(onError=policy):
                name, done, pid = self.try_run(policy)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                path = f"{self.pod_path('guaranteed', 'lacking-1')}/{name}"
                places = {controllers: where for controllers, where in machines.cgroups_of(pid).items()
                          if self.machine.hierarchy(controllers.split(",")[0]) is not None}
                self.assertEqual(set(places.values()), {path}, places)
                for other in set(values) - {controller}:
                    self.assert_values(os.path.dirname(path), **values[other])
                self.assert_oom(pid, -997)
                shown = self.podqos.ctl_json("status")["pods"]
                self.assertEqual([each["qosClass"] for each in shown], ["Guaranteed"])
                self.wrapper.delete(name)
                self.assertEqual(self.podqos.records(), [])

    def test_no_pids(self):
        self.lacks("pids")

    def test_no_memory(self):
        self.lacks("memory")

    def test_no_cpu(self):
        self.lacks("cpu")

    def test_neither_cpu_nor_memory(self):
        """Nothing is left to do: the container is its engine's, or is refused."""
        self.lose("cpu", "memory")
        words = ("container podqos-test-", "neither the cpu nor the memory controller is mounted", "/proc/self/mountinfo")
        for policy, status in (("admit", 0), ("reject", 1)):
            with self.subTest(onError=policy):
                name, done, pid = self.try_run(policy)
                self.assertEqual(done.returncode, status, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
                self.assertEqual(self.podqos.records(), [])
                if policy == "admit":
                    self.assertNotIn("kubepods", machines.cgroup_of(pid))
                    self.wrapper.delete(name)
                else:
                    self.assertIsNone(self.wrapper.state(name))


@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Refused(player.Case):
    """The kernel does not enable cpu. strace stands for it: the first write, of all controllers, and the second, of cpu
    alone, are refused."""

    def setUp(self):
        super().setUp()
        if self.machine.version("cpu") != 2:
            self.skipTest("cgroup v1 enables nothing")

    def place_refused(self, made, error):
        """Places a container; returns the pod's cgroup."""
        file = f"/sys/fs/cgroup{self.root}/cgroup.subtree_control"
        patience.capture(["strace", "-f", "-qq", "-o", "/dev/null", "-P", file, "-e", "trace=write",
                          "-e", f"inject=write:error={error}:syscall=getpid:when=1..2", harness.RUNTIME, "--config",
                          self.config, "create", "--bundle", made.bundle.path, made.id], b"")
        return self.pod_path("guaranteed", "lacking-1")

    def test_enabled_again_where_an_ancestor_lost_it(self):
        """So while systemd realizes its units: ENOENT, and the next attempt finds cpu to be enabled from the root on."""
        made = self.container(POD, "app")
        path = self.place_refused(made, "ENOENT")
        self.assert_values(path, shares=102, quota=10000, memory=64 * MI)
        self.assertNotIn("no cpu controller", self.podqos.log_text())
        self.start(made)
        self.delete(made)
        self.assert_nothing_left()

    def test_the_others_are_written_and_cpu_when_it_can_be_had(self):
        """EINVAL comes with CONFIG_RT_GROUP_SCHED and a realtime process outside the root cgroup."""
        made = self.container(POD, "app")
        path = self.place_refused(made, "EINVAL")
        self.assert_values(path, memory=64 * MI)
        self.assertNotIn("shares", made.bundle.reload().resources.get("cpu", {}))
        self.assertFalse(pathlib.Path(f"/sys/fs/cgroup{path}/cpu.weight").exists())
        log = self.podqos.log_text()
        for word in ("warning: pods have no cpu controller", f'{self.root}: write "+cpu"', "CONFIG_RT_GROUP_SCHED", "ps -eLo"):
            self.assertIn(word, log)
        self.assertIn(f"the pods below {self.root}/kubepods have no values of cpu", self.podqos.ctl("status").stdout)
        self.start(made)
        self.hook("createRuntime", made)
        self.reconcile()
        self.assert_values(path, shares=102, memory=64 * MI)
        self.assertNotIn("no values of", self.podqos.ctl("status").stdout)
        self.delete(made)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main(kinds=("runc",))

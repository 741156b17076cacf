"""A pod's next container comes when the last one has hardly ended, or only seems to have ended."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402


@harness.for_each_runtime
class DyingContainer(harness.TestCase):
    """What a container left in its cgroup a moment ago ends while the next one of its pod comes, with less CPU."""

    def limited(self, label, cpu, quota):
        bundle = self.bundle(label=label)
        bundle.annotations.update({"podqos.io/pod-uid": "dying", "podqos.io/container": "app",
                                   "podqos.io/limits.app": f"cpu={cpu},memory=64Mi"})
        bundle.resources["cpu"] = {"quota": quota, "period": 100000}
        return bundle.save()

    def test_is_waited_for(self):
        first = self.container_id("first")
        path = machines.cgroup_of(self.wrapper.launch(first, self.limited("first", "300m", 30000)))
        straggler = subprocess.Popen(["sleep", "0.3"])
        self.addCleanup(straggler.wait)
        for directory in self.machine.directories(path):
            pathlib.Path(directory, "cgroup.procs").write_text(str(straggler.pid), encoding="ascii")
        self.plain.kill(first)
        while any(pid != straggler.pid for pid in self.machine.processes(path)):
            time.sleep(0.01)
        second = self.container_id("second")
        self.assert_placed(self.wrapper.launch(second, self.limited("second", "200m", 20000)),
                           self.pod_path("burstable", "dying"))
        pod = self.pod_path("burstable", "dying")
        if self.machine.read(pod, "quota") != 20000:
            # On a busy machine cgroup v1 counts the quota of what has ended for longer than podqos comes back to it.
            self.assertIn("values not written yet, retrying", self.podqos.log_text())
            patience.until(lambda: self.podqos.ctl("reconcile", check=False, kind=self.kind).returncode == 0
                           and self.machine.read(pod, "quota") == 20000, 10)
        self.assert_values(pod, quota=20000)
        self.assertFalse(self.machine.exists(path))
        self.plain.delete(first)
        self.plain.delete(second)
        self.assert_nothing_left()


HEADLESS = """
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *run(void *nothing) { for (;;) pause(); return nothing; }
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, run, 0) != 0) return 1;
  return (int)syscall(SYS_exit, 0);
}
"""


@unittest.skipUnless(shutil.which("gcc"), "needs gcc")
@harness.for_each_runtime
class HeadlessContainer(harness.TestCase):
    """A process lives until its last thread has ended; its first one may be a zombie long before."""

    UID = "headless"

    def bundle_of(self, label, *args):
        bundle = self.bundle(label=label, args=args)
        bundle.annotations.update({"podqos.io/pod-uid": self.UID, "podqos.io/container": label,
                                   f"podqos.io/limits.{label}": "cpu=100m,memory=64Mi"})
        return bundle

    def start(self):
        """A container whose first thread has ended while another runs."""
        programs = self.tmp / "programs"
        programs.mkdir(mode=0o755)
        source = self.tmp / "headless.c"
        source.write_text(HEADLESS, encoding="ascii")
        subprocess.run(["gcc", "-static", "-pthread", "-o", programs / "headless", source], check=True)
        bundle = self.bundle_of("app", "/tmp/headless")
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(programs),
                                        "options": ["bind", "ro"]})
        name = self.container_id("app")
        self.wrapper.create(name, bundle.save())
        pid = self.wrapper.pid(name)  # runc has none to tell later
        self.assertGreater(pid, 1)
        self.addCleanup(self.end, pid)
        self.wrapper.start(name)
        stat = pathlib.Path(f"/proc/{pid}/stat")
        while stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        return name, pid

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def containers(self):
        record = json.loads((self.podqos.state / "pods" / f"{self.UID}.json").read_text(encoding="utf-8"))
        return {container["name"] for container in record["containers"]}

    def test_lives(self):
        name, pid = self.start()
        self.assertNotIn("has ended", self.podqos.ctl("reconcile").stdout)
        self.assertNotIn("not running", self.podqos.ctl("status").stdout)
        self.assertEqual(self.containers(), {"app"})
        self.assert_values(self.pod_path("burstable", self.UID), quota=10000, memory=64 * harness.MI)
        self.end(pid)
        self.plain.delete(name)
        self.podqos.ctl("reconcile")
        self.assert_nothing_left()

    def test_stays_in_its_pod_beside_the_next(self):
        name, pid = self.start()
        second = self.container_id("helper")
        self.wrapper.launch(second, self.bundle_of("helper", "sleep", "1000").save())
        self.assertEqual(self.containers(), {"app", "helper"})
        self.assert_values(self.pod_path("burstable", self.UID), quota=20000, memory=128 * harness.MI)
        self.wrapper.delete(second)
        self.assertEqual(self.containers(), {"app"})
        self.end(pid)
        self.plain.delete(name)
        self.podqos.ctl("reconcile")
        self.assert_nothing_left()


@harness.runc_only
class HalfGoneTree(harness.TestCase):
    """The last pod has ended, but a stranger keeps one of the tiers."""

    def test_next_pod_finds_whole_tiers(self):
        first, _ = self.launch(harness.pod("first", harness.container("app", requests={"cpu": "250m"})), "app")
        strangers = f"{self.tier_path('burstable')}/stranger"
        for directory in self.machine.directories(self.tier_path("burstable")):
            pathlib.Path(directory, "stranger").mkdir()
        self.wrapper.delete(first)
        self.assertTrue(self.machine.exists(strangers))
        self.assertFalse(self.machine.exists(self.tier_path("besteffort")))
        second, pid = self.launch(harness.pod("second", harness.container("app")), "app")
        self.assert_placed(pid, self.pod_path("besteffort", "second"))
        self.assert_values(self.tier_path("besteffort"), shares=2)
        for directory in self.machine.directories(strangers):
            pathlib.Path(directory).rmdir()
        self.wrapper.delete(second)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()

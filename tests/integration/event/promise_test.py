"""The promise itself: what pods get of a machine's CPU and memory when they fight for it.

Other tests see to it that the right values stand in the right files; this one looks at what the kernel makes of them,
and cpu_share_test.py at what it makes of all pods' share of the node.
It does so in a guest with cgroup v2, one CPU and little memory, where nothing else runs: here this file only boots it,
there it runs again.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from busy_case import BURN, BusyCase, near  # noqa: E402
from harness import MI, container, pod  # noqa: E402

MEMORY = 640 * MI  # of the guest; its kernel keeps some for itself


def take(mebibytes):
    """A shell command that takes memory and keeps it: dd has read all of it and can write none."""
    return f"dd if=/dev/zero bs={mebibytes}M count=1 2>/dev/null | sleep 1000"


class Promise(BusyCase):
    """What memory a cgroup has."""

    def usage(self, path):
        return self.machine.read(path, "usage")

    def kills(self, path):
        """Processes below this cgroup that were killed for want of memory."""
        lines = self.machine.file(path, "memory", "memory.events").splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])


class PodLimit(Promise):
    """What the containers of a pod take together is bounded."""

    def test_memory(self):
        """40 MiB twice are more than 64: the pod loses one of them, its neighbour nothing."""
        whole = {"limits": {"memory": "64Mi"}}
        calm = pod("calm", container("only"), resources=whole)
        greedy = pod("greedy", container("one"), container("two"), resources=whole)
        calm_path, greedy_path = self.pod_path("burstable", "calm"), self.pod_path("burstable", "greedy")
        _, calm_pid = self.start(calm, "only", take(40))
        self.start(greedy, "one", take(40))
        patience.expect(lambda: self.usage(calm_path) > 40 * MI and self.usage(greedy_path) > 40 * MI, "40 MiB in each pod")
        self.assertEqual(self.kills(greedy_path), 0)
        self.start(greedy, "two", take(40))
        patience.expect(lambda: self.kills(greedy_path) > 0, "somebody in the pod is killed")
        self.assertEqual(self.kills(self.root), self.kills(greedy_path))
        self.assertTrue(machines.alive(calm_pid))
        self.assertGreater(self.usage(calm_path), 40 * MI)

    def test_slack(self):
        """A container without a limit has what its pod may use and nobody in it does."""
        manifest = pod("slack", container("bounded", limits={"cpu": "100m"}), container("free"),
                       resources={"limits": {"cpu": "400m"}})
        path = self.pod_path("burstable", "slack")
        free, _ = self.start(manifest, "free", BURN)
        self.assert_near(self.cpu_shares([path], lambda shares: near(shares[path], 0.4))[path], 0.4)
        bounded, _ = self.start(manifest, "bounded", BURN)
        free, bounded = f"{path}/{free}", f"{path}/{bounded}"
        # A quota of one tick of this kernel's clock is overrun by up to half of it.
        shares = self.cpu_shares([path, free, bounded], lambda shares: near(shares[path], 0.4) and
                                 shares[bounded] < 0.15 and shares[free] > 0.25)
        self.assert_near(shares[path], 0.4)
        self.assertLess(shares[bounded], 0.15)
        self.assertGreater(shares[free], 0.25)


class VolumeCase(harness.TestCase):
    """A tmpfs that containers write into."""

    def setUp(self):
        super().setUp()
        self.volume = self.tmp / "volume"
        self.volume.mkdir()
        subprocess.run(["mount", "-n", "-t", "tmpfs", "tmpfs", self.volume], check=True)
        self.addCleanup(self.unmount)

    def unmount(self):
        if self.volume.is_mount():
            subprocess.run(["umount", "-n", self.volume], check=True)

    def write(self, manifest, mebibytes):
        """Runs the pod's container "writer", which writes so much into the volume, and ends."""
        script = f"dd if=/dev/zero of=/tmp/file bs=1M count={mebibytes}; sleep 1"
        bundle = self.bundle(manifest, "writer", ("sh", "-c", script))
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(self.volume),
                                        "options": ["bind", "rw"]})
        self.wrapper.run(self.container_id("writer"), bundle.save())
        self.assertEqual((self.volume / "file").stat().st_size, mebibytes * MI)


class DelayedRelease(VolumeCase):
    """How long an ended pod is kept for the memory that it is charged with is no matter of the wall clock, which may be
    set meanwhile: the time since the machine was booted counts. (In no guest, whose kernels have no time namespaces.)"""

    settings = {"releaseDelay": "30m"}

    def reconcile(self, boot_time):
        subprocess.run(["unshare", "--time", "--boottime", boot_time, harness.CTL, "--config", self.podqos.config(),
                        "reconcile"], check=True, stdout=subprocess.DEVNULL)

    def test_time_since_boot_counts(self):
        if subprocess.run(["unshare", "--time", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("the kernel has no time namespaces")
        # Without a request for CPU it would end when a busy machine has nothing else to do.
        self.write(pod("delay-1", container("writer", {"cpu": "1"}, {"memory": "96Mi"})), 8)
        path = self.pod_path("burstable", "delay-1")
        for boot_time, is_kept in (("0", True), ("1200", True), ("2400", False)):
            self.reconcile(boot_time)
            self.assertEqual(self.machine.exists(path), is_kept, boot_time)


class TmpfsVolume(VolumeCase, Promise):
    """Memory in a volume is the pod's, whatever becomes of the container that wrote it."""

    settings = {"releaseDelay": "30m"}

    def assert_charged(self, path):
        self.assertGreater(self.usage(path), 50 * MI)

    def test_beside_another_container(self):
        manifest = pod("volume-1", container("writer", limits={"memory": "96Mi"}), container("other"))
        path = self.pod_path("burstable", "volume-1")
        other, _ = self.launch(manifest, "other")
        before = self.usage(path)
        self.assertLess(before, 10 * MI)
        self.write(manifest, 50)
        self.assert_charged(path)
        again, _ = self.launch(manifest, "writer")
        self.assert_charged(path)
        self.wrapper.delete(again)
        self.assert_charged(path)
        self.unmount()
        self.wrapper.delete(other)

    def test_of_the_only_container(self):
        """The pod has ended; its cgroup waits for the restart."""
        manifest = pod("volume-2", container("writer", limits={"memory": "96Mi"}))
        path = self.pod_path("burstable", "volume-2")
        self.write(manifest, 50)
        self.assert_charged(path)
        again, pid = self.launch(manifest, "writer")
        self.assert_placed(pid, path)
        self.assert_charged(path)
        self.unmount()
        self.assertLess(self.usage(path), 10 * MI)
        self.wrapper.delete(again)


class Reservation(Promise):
    """Memory that a Guaranteed pod has requested is there for it, although others came first."""

    settings = {"nodeMemory": None, "qosReserved": {"memory": "100%"}}

    def test_best_effort_cannot_take_it(self):
        requested = {"cpu": "1", "memory": "300Mi"}
        guaranteed = pod("late", container("app", requests=requested, limits=requested))
        best_effort = pod("early", container("modest"), container("greedy"))
        # It has asked, and takes nothing yet.
        app, _ = self.start(guaranteed, "app", "while [ ! -e /dev/go ]; do sleep 0.1; done; " + take(280))
        path, tier = self.pod_path("guaranteed", "late"), self.tier_path("besteffort")
        self.assert_values(tier, memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - 300 * MI)
        self.start(best_effort, "modest", take(60))
        patience.expect(lambda: self.usage(tier) > 60 * MI, "the modest one has its memory")
        self.start(best_effort, "greedy", take(300))
        patience.expect(lambda: self.kills(tier) > 0, "the greedy one is killed")
        self.assertGreater(self.usage(tier), 60 * MI)
        self.wrapper.exec(app, "sh", "-c", ": >/dev/go")
        patience.expect(lambda: self.usage(path) > 280 * MI, "the Guaranteed pod has what it requested")
        self.assertEqual(self.kills(path), 0)
        self.assertGreater(self.usage(tier), 60 * MI)


class Allocatable(Promise):
    """What all pods use above what is allocatable is taken from them, as far as it can be had."""

    settings = {"nodeMemory": "128Mi"}

    def test_files_are_reclaimed(self):
        """Pages of files that have been read are charged until they are reclaimed."""
        bundle = self.bundle(pod("reader", container("app")), "app",
                             ("sh", "-c", "cat /tmp/*/*.so* | busybox head -c 100m >/dev/null; sleep 1000"))
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": "/usr/lib",
                                        "options": ["bind", "ro"]})
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
        root = f"{self.root}/kubepods"
        self.wrapper.launch(self.container_id("app"), bundle.save())
        patience.expect(lambda: self.usage(root) > 90 * MI, "the files have been read")
        self.assert_values(root, memory=128 * MI)
        self.podqos.settings["reserved"] = {"system": {"memory": "64Mi"}}
        self.podqos.ctl("reconcile", "--converge", str(patience.PATIENCE))  # the last of the files may still be read
        self.assert_values(root, memory=64 * MI)
        self.assertEqual(self.kills(root), 0)


if __name__ == "__main__":
    harness.main(("runc",), here=[guest.cases({"v2": (guest.Guest("v2", mem=f"{MEMORY // MI}M"), __file__)}), DelayedRelease],
                 in_guest=[PodLimit, TmpfsVolume, Reservation, Allocatable])

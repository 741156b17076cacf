"""How long an ended pod is kept for the tmpfs memory that it is charged with is no matter of the wall clock."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
from harness import MI, container, pod  # noqa: E402


@harness.runc_only
class DelayedRelease(harness.TestCase):
    """The time since the machine was booted counts: the wall clock may be set while a pod is kept."""

    settings = {"releaseDelay": "30m"}

    def setUp(self):
        super().setUp()
        self.volume = self.tmp / "volume"
        self.volume.mkdir()
        subprocess.run(["mount", "-n", "-t", "tmpfs", "tmpfs", self.volume], check=True, timeout=60)
        self.addCleanup(subprocess.run, ["umount", "-n", self.volume], check=True, timeout=60)
        self.path = self.pod_path("burstable", "delay-1")
        # Without a request for CPU it would end when a busy machine has nothing else to do.
        manifest = pod("delay-1", container("writer", {"cpu": "1"}, {"memory": "96Mi"}))
        bundle = self.bundle(manifest, "writer", ("sh", "-c", "dd if=/dev/zero of=/tmp/file bs=1M count=8; sleep 1"))
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(self.volume),
                                        "options": ["bind", "rw"]})
        self.wrapper.run(self.container_id("writer"), bundle.save())
        self.assertEqual((self.volume / "file").stat().st_size, 8 * MI)
        self.assertTrue(self.machine.exists(self.path))

    def reconcile(self, *prefix):
        command = [*prefix, harness.CTL, "--config", str(self.podqos.config(self.kind)), "reconcile"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=harness.CALL_TIMEOUT)

    def test_time_since_boot_counts(self):
        if subprocess.run(["unshare", "--time", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("the kernel has no time namespaces")
        self.reconcile("unshare", "--time", "--boottime", "1200")
        self.assertTrue(self.machine.exists(self.path))
        self.reconcile("unshare", "--time", "--boottime", "2400")
        self.assertFalse(self.machine.exists(self.path))


if __name__ == "__main__":
    harness.main()

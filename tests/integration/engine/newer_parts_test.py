"""What Debian testing has, newer than the parts of Debian 12 and 13: runc 1.3, crun 1.28, containerd 2.1, Podman 5.8.

Tests of the older parts run once more, in guests of testing. Where the archive's testing cannot be had, or has moved on
from what the tests were written for, they are skipped. Docker has a file of its own, docker_test.py.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MATRIX = HERE.parents[1] / "lib/matrix.py"


class Testing(unittest.TestCase):
    def check(self, flavour, file, *arguments):
        machine = guest.Guest(flavour, root="testing", timeout=1200)
        machine.require()
        done = machine.run_test(file, *arguments)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, f"{pathlib.Path(file).name} in the guest with testing")

    def test_runtimes(self):
        """The wrapper with both."""
        self.check("v2", MATRIX, "cgroupfs", "wrapper")

    def test_weights(self):
        self.check("v2", __file__)

    def test_containerd(self):
        """NRI is on by itself, the configuration has version 3."""
        self.check("systemd", HERE / "containerd_test.py", "AllClasses_plugin_cgroupfs_crun",
                   "Preinstalled_plugin_cgroupfs_crun", "AsAService_plugin_systemd_crun", "AllClasses_example_systemd_crun",
                   "AllClasses_wrapper_cgroupfs_runc")

    def test_podman(self):
        self.check("systemd", HERE / "podman_test.py", "Verbs_precreate_systemd_crun", "PodCreate_precreate_systemd_crun",
                   "KubePlay_wrapper_systemd_crun", "KubePlay_precreate_cgroupfs_crun", "Verbs_wrapper_systemd_runc")


class DetectedFormula(harness.TestCase):
    """weightFormula "auto": both make 23 of 153 shares, where older ones and the kubelet make 6, and the pods follow."""

    settings = {"weightFormula": "auto"}

    def test_pods_are_weighed_as_their_containers(self):
        manifest = harness.pod("web-1", harness.container("app", requests={"cpu": "150m"}))
        _, pid = self.launch(manifest, "app")
        container = machines.cgroup_of(pid)
        self.launch(harness.pod("web-2", harness.container("app", requests={"cpu": "150m"})), "app")
        weights = {path: self.machine.read(path, "weight")
                   for path in (container, self.pod_path("burstable", "web-2"))}
        self.assertEqual(set(weights.values()), {machines.logarithmic_weight(153)}, weights)


if guest.inside():
    harness.for_each_runtime(DetectedFormula)
    del Testing
del DetectedFormula


if __name__ == "__main__":
    harness.main(harness.KINDS if guest.inside() else ("runc",))

"""What Debian testing has, newer than the parts of Debian 12 and 13: runc 1.3, crun 1.28, containerd 2.1, Podman 5.8.

Tests of the older parts run once more, in guests of testing. Where the archive's testing cannot be had, or has moved on
from what the tests were written for, they are skipped. Docker has a file of its own, docker_test.py.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def of(flavour, *words):
    return guest.Guest(flavour, root="testing"), *words


TESTING = guest.cases({
    # The wrapper with both.
    "runtimes": of("v2", HERE / "matrix_test.py", "Wrapper_cgroupfs_runc", "Wrapper_cgroupfs_crun"),
    "weights": of("v2", __file__),
    # NRI is on by itself, the configuration has version 3.
    "containerd": of("systemd", HERE / "containerd_test.py", "AllClasses_plugin_cgroupfs_crun", "AsAService_plugin_systemd_crun",
                     "AllClasses_example_systemd_crun", "AllClasses_wrapper_cgroupfs_runc"),
    "podman": of("systemd", HERE / "podman_test.py", "Verbs_precreate_systemd_crun", "PodCreate_precreate_systemd_crun",
                 "KubePlay_wrapper_systemd_crun", "KubePlay_precreate_cgroupfs_crun", "Verbs_wrapper_systemd_runc"),
})


@harness.for_each_runtime
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


if __name__ == "__main__":
    harness.main(harness.KINDS if guest.inside() else ("runc",), here=[TESTING],
                 in_guest=[each for name, each in vars().items() if name.startswith("DetectedFormula_")])

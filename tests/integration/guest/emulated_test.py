"""What takes a whole kernel: huge pages and cpuset on cgroup v2, two CPUs, and what podqos reads of pressure.

This machine may lack any of it, and user-mode-linux lacks all, so the file boots one emulated guest and runs itself in
there. `guest.py emulated .../emulated_test.py NAME...` runs only the tests of these names.
"""

import errno
import json
import mmap
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
from harness import MI, container, pod  # noqa: E402

ENABLED = {"cpu", "memory", "pids", "hugetlb", "cpuset"}
MAP_HUGETLB = 0x40000  # asm-generic/mman-common.h; a page of 2 MiB on x86
HUGE_PAGE = 2 * MI
# tests/run builds it with the sanitizers only.
APP_TEST = os.environ.get("PODQOS_APP_TEST", harness.BIN / "podqos_app_test")


# What the queries of Prometheus are given where the machine has no PSI (nri_metrics_test.py).
RECORDED = pathlib.Path(__file__).resolve().parents[2] / "data/prometheus/cgroup_v2.prom"


def series_of_version_two(exposition):
    """Names and labels of what only cgroup v2 has, wherever the cgroups are."""
    return [re.sub('cgroup="[^"]*"', "", sample)
            for sample in re.findall("^(podqos_tier_(?:oom_kills|pressure)_.*) ", exposition, re.MULTILINE)]


def cgroup_file(path, name):
    """A file of a v2 cgroup."""
    return pathlib.Path("/sys/fs/cgroup" + path, name)


def words(path, name):
    return cgroup_file(path, name).read_text(encoding="ascii").split()


class Programs(unittest.TestCase):
    """The unit tests of the cgroup layer meet a v2 hierarchy that has every controller."""

    def run_tests(self, program, pattern, *names):
        """Runs a program's tests; those of these names must not be skipped."""
        done = subprocess.run([program, f"--gtest_filter={pattern}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        for test in names:
            self.assertIn(f"[       OK ] {test} ", done.stdout)

    def test_cgroup_layer(self):
        self.run_tests(harness.BIN / "podqos_cgroup_test", "*", "OpenCgroupfs.FindsTheControllersOfThisMachine",
                       "Execute.EnablesControllersOnTheWayDown")

    def test_tiers_in_figures(self):
        """Pressure, which podqos-nri shows for each tier, is read where a kernel has it."""
        self.run_tests(APP_TEST, "NodeFiguresLive.*", "NodeFiguresLive.ReadsTheTiersOfPodqosAndOfAKubelet")
        # There is none in the root.
        self.assertTrue(any(pathlib.Path("/sys/fs/cgroup").glob("*/memory.pressure")))


class EveryController(harness.TestCase):
    """A machine with cgroup v2 and all its controllers; the guest is no such machine if this fails."""

    def setUp(self):
        self.assertLessEqual(ENABLED, set(words("", "cgroup.controllers")))
        super().setUp()


@harness.for_each_runtime
class HugePages(EveryController):
    """A pod may use as many huge pages as its containers together, each container as many as its own limit says, and
    of a size that no container names none."""

    POD = pod(
        "huge-1",
        container("small", limits={"cpu": "1", "memory": "64Mi", "hugepages-2Mi": "2Mi"}),
        container("large", limits={"cpu": "1", "memory": "64Mi", "hugepages-2Mi": "4Mi"}),
    )
    RESERVED = 8  # pages that the kernel keeps ready

    def setUp(self):
        super().setUp()
        pool = pathlib.Path("/proc/sys/vm/nr_hugepages")
        self.addCleanup(pool.write_text, pool.read_text(encoding="ascii"), encoding="ascii")
        pool.write_text(str(self.RESERVED), encoding="ascii")
        self.assertEqual(int(pool.read_text(encoding="ascii")), self.RESERVED)

    def test_limits_of_pod_and_containers(self):
        small, large = (self.launch(self.POD, name)[1] for name in ("small", "large"))
        path = self.pod_path("guaranteed", "huge-1")
        for name in ("hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"):
            self.assertEqual(words(path, name), [str(3 * HUGE_PAGE)], name)
        for name in ("hugetlb.1GB.max", "hugetlb.1GB.rsvd.max"):
            self.assertEqual(words(path, name), ["0"], name)
        for pid, pages in ((small, 1), (large, 2)):
            inner = self.assert_placed(pid, path)
            self.assertEqual(words(inner, "hugetlb.2MB.max"), [str(pages * HUGE_PAGE)])
            self.assertEqual(self.touch(inner, pages), 0)
            # What the controller refuses at the touch is a bus error (hugetlb.rst).
            self.assertEqual(self.touch(inner, pages + 1), -signal.SIGBUS)

    def test_none_for_a_pod_without_them(self):
        self.launch(pod("huge-2", container("app", requests={"cpu": "100m"})), "app")
        path = self.pod_path("burstable", "huge-2")
        for size in ("2MB", "1GB"):
            self.assertEqual(words(path, f"hugetlb.{size}.max"), ["0"], size)
        # A reservation that the pod may not have is refused before the first touch.
        self.assertEqual(self.touch(path + "/" + self.only_child(path), 1), errno.ENOMEM)
        # The tier limits no pod in this.
        self.assertEqual(words(self.tier_path("burstable"), "hugetlb.2MB.max"), ["max"])

    def only_child(self, path):
        (child,) = [entry.name for entry in cgroup_file(path, "").iterdir() if entry.is_dir()]
        return child

    def touch(self, path, pages):
        """A process in that cgroup writes to so many new huge pages; returns how it ended."""
        script = (f"import mmap, sys\n"
                  f"try: m = mmap.mmap(-1, {pages * HUGE_PAGE}, {mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB})\n"
                  f"except OSError as error: sys.exit(error.errno)\n"
                  f"for page in range({pages}): m[page * {HUGE_PAGE}] = 1\n")
        return subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, check=False,
                              preexec_fn=lambda: cgroup_file(path, "cgroup.procs").write_text("0")).returncode


@harness.for_each_runtime
class Cpuset(EveryController):
    """A container of a pod can be bound to CPUs, and the pod is not."""

    def test_container_on_one_cpu(self):
        manifest = pod("cpuset-1", container("app", requests={"cpu": "100m"}))
        bundle, name = self.bundle(manifest, "app"), self.container_id("app")
        bundle.resources["cpu"] = {"cpus": "1"}
        pid = self.wrapper.launch(name, bundle.save())
        path = self.pod_path("burstable", "cpuset-1")
        inner = self.assert_placed(pid, path)
        self.assertEqual(words(path, "cpuset.cpus.effective"), ["0-1"])
        self.assertEqual(words(inner, "cpuset.cpus.effective"), ["1"])
        self.assertEqual(os.sched_getaffinity(pid), {1})


@harness.runc_only
class Pressure(EveryController):
    """podqosctl top tells how long the tasks of a pod waited, as the kernel's PSI does."""

    def test_of_a_throttled_pod(self):
        burning = container("app", requests={"cpu": "50m"}, limits={"cpu": "100m", "memory": "64Mi"})
        self.launch(pod("waiting", burning), "app", args=("sh", "-c", "while :; do :; done"))

        def say(*words):
            return self.podqos.ctl(*words).stdout

        found = json.loads(say("top", "--once", "-o", "json"))["pods"][0]
        # It may run in 10 of 100 milliseconds.
        self.assertGreater(found["cpuWaitingPercent"], 50)
        self.assertEqual(found["memoryWaitingPercent"], 0)
        self.assertRegex(say("top", "--once"), r"THR +CPSI .* MPSI ")
        recorded = series_of_version_two(RECORDED.read_text(encoding="utf-8"))
        self.assertEqual(len(recorded), 21)
        self.assertEqual(series_of_version_two(say("metrics")), recorded)


if __name__ == "__main__":
    harness.main(harness.KINDS if guest.inside() else ("runc",),
                 here=[guest.cases({"emulated": (guest.Guest("emulated"), __file__)})])

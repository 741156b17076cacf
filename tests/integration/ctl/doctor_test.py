"""podqosctl doctor: each thing that can be broken here is broken, and doctor names it and its remedy, which mends it.

Kernels are broken in guests. No kernel of Debian 12 or later can lack swap accounting (since 6.1 swapaccount=0 does
nothing) or memory.reclaim (5.19) where it has the memory controller: those two are tests/unit/ctl/doctor_test.cpp's.
"""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import podqosctl  # noqa: E402
from busy_case import BusyCase  # noqa: E402
from harness import MI, container, pod  # noqa: E402

BURSTABLE = pod("ill-1", container("app", requests={"cpu": "250m"}, limits={"cpu": "500m", "memory": "64Mi"}))
# The checks of the machine itself, on which other things may be wrong.
OTHERS = ("engines", "containerd", "crio", "podman", "docker", "services", "kernel")


def found(podqos):
    """(exit status, {(group, name): [check]}) of the checks of what the test has made."""
    done = podqos.ctl("doctor", "-o", "json", check=False)
    checks = {}
    for check in json.loads(done.stdout):
        checks.setdefault((check["group"], check["name"]), []).append(check)
    return done.returncode, checks


class Checks(harness.TestCase):
    """What the checks say, and that the remedies are right."""

    def bad(self):
        """{(group, name): check} of what is not in order."""
        _, checks = found(self.podqos)
        return {key: check for key, (check, *_) in checks.items()
                if check["outcome"] in ("problem", "warning") and key[0] not in OTHERS}

    def assert_bad(self, group, name, *words, outcome="problem"):
        """This check alone says so; returns the remedy."""
        bad = self.bad()
        self.assertEqual(list(bad), [(group, name)])
        check = bad[group, name]
        self.assertEqual(check["outcome"], outcome)
        for word in words:
            self.assertIn(word, check["text"])
        if outcome == "problem":
            self.assertEqual(self.podqos.ctl("doctor", check=False).returncode, 1)
        return check["remedy"]


@harness.runc_only
class Node(Checks):
    """Without pods."""

    def test_nothing_there(self):
        self.assertEqual(self.bad(), {})
        shown = self.podqos.ctl("doctor", check=False).stdout
        self.assertIn(f"{self.podqos.state} does not exist: no pod has come yet", " ".join(shown.split()))
        self.assertFalse(self.podqos.state.exists())
        for name in ("controllers", "pressure", "swap", "reclaim"):
            self.assertIn(("kernel", name), found(self.podqos)[1])

    def test_broken_settings(self):
        self.podqos.settings["scope"] = "everything"
        self.assertEqual(self.assert_bad("configuration", "files", "scope", "until it is corrected, "), "podqosctl config check")
        self.podqos.settings.update(scope="pods", enabled=False)
        self.assert_bad("configuration", "enabled", "switched off")

    def test_state_directory_that_others_write_to(self):
        self.podqos.state.mkdir()
        self.podqos.state.chmod(0o777)
        bad = self.bad()
        self.assertIn("writable by others", bad["state", "directory"]["text"])
        self.assertEqual(bad["state", "directory"]["remedy"],
                         f"look at its files, then chmod 0700 {self.podqos.state}")
        self.podqos.state.chmod(0o700)
        self.assertEqual(self.bad(), {})

    def test_cgroup_that_podqos_did_not_make(self):
        root = f"{self.root}/kubepods"
        for hierarchy in self.machine.hierarchies:
            directory = pathlib.Path(hierarchy.mount + root)
            directory.mkdir(parents=True)
            self.addCleanup(directory.rmdir)
        self.assert_bad("pods", "roots", f"cgroup {root} exists but was not created by podqos", "set cgroupRoot to")

    def test_hostile_names_stay_on_one_line(self):
        self.podqos.settings["stateDir"] = f"{self.tmp}/a\x1b[31m\nb"
        os.mkdir(self.podqos.settings["stateDir"])
        os.chmod(self.podqos.settings["stateDir"], 0o777)
        self.assertNotIn("\x1b", self.podqos.ctl("doctor", check=False).stdout)


@harness.runc_only
class Pods(Checks):
    """With one pod, which is well."""

    def setUp(self):
        super().setUp()
        self.name, self.pid = self.launch(BURSTABLE, "app")
        self.assertEqual(self.bad(), {})

    def test_a_lock_that_is_held(self):
        """By whom and for how long; nothing waits for it."""
        lock = self.podqos.state / "lock"
        with lock.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            # As if it had been taken a minute ago.
            os.utime(lock, (time.time() - 60, time.time() - 60))
            remedy = self.assert_bad("state", "lock", f"held by process {os.getpid()} (", " for 6")
            self.assertEqual(remedy, f"if it hangs: kill {os.getpid()}")
        self.assertEqual(self.bad(), {})

    def mend(self, remedy):
        self.assertEqual(remedy.split()[0], "podqosctl")
        self.podqos.ctl(*remedy.split()[1:])
        self.assertEqual(self.bad(), {})

    def test_a_value_that_another_program_changed(self):
        path = self.pod_path("burstable", "ill-1")
        name = "memory.limit_in_bytes" if self.machine.version("memory") == 1 else "memory.max"
        file = pathlib.Path(self.machine.hierarchy("memory").mount + path, name)
        file.write_text(str(128 * MI), encoding="ascii")
        self.mend(self.assert_bad("pods", "values", "ill-1", "128Mi", "the rule says 64Mi"))
        self.assertEqual(self.machine.read(path, "memory"), 64 * MI)

    def test_a_container_that_was_moved(self):
        home = machines.cgroup_of(self.pid)
        self.machine.enter(self.pid, self.elsewhere)
        self.assert_bad("pods", "places", "ill-1", f"to cgroup {self.elsewhere}")
        self.machine.enter(self.pid, home)
        self.assertEqual(self.bad(), {})

    def test_a_container_whose_end_was_missed(self):
        os.kill(self.pid, signal.SIGKILL)
        patience.expect(lambda: not machines.alive(self.pid), "the end of the container")
        self.mend(self.assert_bad("pods", "containers", "not running", outcome="warning"))

    def test_a_pod_cgroup_without_record(self):
        stray = self.pod_path("burstable", "stray-1")
        process = subprocess.Popen(["sleep", "1000"])  # pylint: disable=consider-using-with
        self.addCleanup(self.machine.remove, stray)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.machine.enter(process.pid, stray)
        self.assert_bad("pods", "unmanaged", stray)

    def test_records_that_were_lost(self):
        for file in (self.podqos.state / "pods").iterdir():
            file.write_text("{", encoding="ascii")
        self.assertIn(": run podqosctl reconcile", self.bad()["state", "records"]["text"])
        self.mend("podqosctl reconcile")
        # What could not be read was set aside.
        for file in (self.podqos.state / "pods").glob("*.corrupt-*"):
            file.unlink()


@harness.runc_only
class Tiers(BusyCase, Checks):
    """Usage that keeps a tier's memory limit above its rule."""

    kind = "runc"
    settings = {"nodeMemory": "512Mi", "qosReserved": None}

    def test_a_limit_above_its_rule(self):
        tier, amounts = self.tier_path("besteffort"), {"cpu": "100m", "memory": "384Mi"}
        self.launch(pod("late", container("app", requests=amounts, limits=amounts)), "app")
        self.start(pod("hog", container("hog")), "hog", "dd if=/dev/zero bs=150M count=1 2>/dev/null | sleep 1000")
        patience.expect(lambda: self.machine.read(tier, "usage") >= 150 * MI, "the hog has its memory")
        self.podqos.settings["qosReserved"] = {"memory": "100%"}
        self.podqos.ctl("reconcile", "--converge", "0")
        remedy = self.assert_bad("pods", "tiers", tier, outcome="warning")
        self.assertEqual(remedy, "podqosctl reconcile --converge 60")


def call(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Kernel(unittest.TestCase):
    """In a guest."""

    def checks(self):
        """{name: (outcome, text, remedy)}"""
        with podqosctl.config_file(memorySwap={"swapBehavior": "LimitedSwap"}) as config:
            done = podqosctl.ctl("--config", config, "doctor", "-o", "json", check=False)
            podqosctl.ctl("--config", config, "status")
        return {check["name"]: (check["outcome"], check["text"], check["remedy"])
                for check in json.loads(done.stdout) if check["group"] == "kernel"}


class WithoutMemory(Kernel):
    """Booted with cgroup_disable=memory, with cgroup v2."""

    LACKING = "the kernel has no memory controller"

    def test_controllers(self):
        checks = self.checks()
        self.assertEqual(checks["controllers"], ("problem", "the kernel lacks memory: pods get no values of it",
                                                 "boot without cgroup_disable=memory, or with cgroup_enable=memory"))
        self.assertEqual(checks["reclaim"], ("skipped", self.LACKING, None))

    def test_swap(self):
        """No memory in place of a disk; nothing limits who uses it."""
        self.assertEqual(self.checks()["swap"], ("ok", "the machine has none", None))
        call("busybox", "modprobe", "zram")
        pathlib.Path("/sys/block/zram0/disksize").write_text("16M", encoding="ascii")
        call("mkswap", "/dev/zram0")
        call("swapon", "/dev/zram0")
        self.addCleanup(call, "swapoff", "/dev/zram0")
        self.assertEqual(self.checks()["swap"], ("skipped", self.LACKING, None))


class MixedVersions(Kernel):
    """Controllers of both versions."""

    def test_controllers(self):
        self.assertEqual(self.checks()["controllers"], ("ok", "cgroup v1: cpu, memory, pids, blkio", None))
        call("umount", "/sys/fs/cgroup/pids")
        self.assertEqual(self.checks()["controllers"],
                         ("problem", "the kernel lacks pids: pods get no values of it",
                          "mount it, or remove cgroup_disable= from the kernel's command line"))
        unified = pathlib.Path("/sys/fs/cgroup/unified")
        unified.mkdir()
        call("mount", "-t", "cgroup2", "cgroup2", unified)
        self.assertEqual(self.checks()["controllers"],
                         ("ok", "cgroup v2: pids; cgroup v1: cpu, memory, blkio", None))


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[WithoutMemory, MixedVersions], here=[Node, Pods, Tiers, guest.cases({
        "without_memory": (guest.Guest("v2", kernel=("cgroup_disable=memory",)), __file__, "WithoutMemory"),
        "mixed_versions": (guest.Guest("v1"), __file__, "MixedVersions")}, installed=False)])

"""Memory limits that usage keeps above their rule come down to it: on this machine's cgroups, and with v2 in a guest.

The rule is the kubelet's setMemoryReserve: on a node of 512 MiB a Guaranteed pod of 384 MiB leaves 128 MiB to the tiers.
"""

import contextlib
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import metrics  # noqa: E402
import nri_peer  # noqa: E402
import patience  # noqa: E402
from busy_case import BusyCase  # noqa: E402
from harness import MI, container, pod  # noqa: E402
from systemd_driver import SystemdDriver  # noqa: E402

RULE = 128 * MI
MARGIN = 16 * MI
GUARANTEED = {"cpu": "100m", "memory": "384Mi"}
# What holds memory until somebody asks for less: dd has read all of it, and ends when its reader does.
HOG = "dd if=/dev/zero bs={}M count=1 2>/dev/null | while [ ! -e /dev/less ]; do sleep 0.1; done; sleep 1000"


class Convergence(BusyCase):
    """Reservation is switched on over a tier that has more than it leaves."""

    kind = "runc"
    settings = {"nodeMemory": "512Mi", "qosReserved": None, "lockDeadline": "60s"}  # under strace a step may be slow

    def setUp(self):
        super().setUp()
        self.use_driver()
        self.tier = self.tier_path("besteffort")
        self.launch(pod("late", container("app", requests=GUARANTEED, limits=GUARANTEED)), "app")

    def use_driver(self):
        """That of cgroupfs, which needs nothing."""

    def usage(self):
        return self.machine.read(self.tier, "usage")

    def limit(self):
        return self.machine.read(self.tier, "memory")

    def kills(self):
        name = "memory.oom_control" if self.machine.version("memory") == 1 else "memory.events"
        lines = self.machine.file(self.tier, "memory", name).splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])

    def hog(self, mebibytes, number=1):
        """A BestEffort pod with so much memory that nothing but its end frees: (id, pid)."""
        before = self.usage()
        started = self.start(pod(f"hog-{number}", container("hog")), "hog", HOG.format(mebibytes))
        patience.expect(lambda: self.usage() >= before + mebibytes * MI, "the hog has its memory")
        return started

    def shrink(self, identifier):
        self.wrapper.exec(identifier, "sh", "-c", ": >/dev/less")

    def reserve(self):
        """Switches the reservation on, and reconciles once."""
        self.podqos.settings["qosReserved"] = {"memory": "100%"}
        return self.podqos.ctl("reconcile").stdout

    @contextlib.contextmanager
    def reconciling(self, *prefix):
        """`podqosctl reconcile` as the timer runs it."""
        command = [*prefix, harness.CTL, "--config", self.podqos.config(self.kind), "reconcile", "--quiet",
                   "--converge", str(patience.PATIENCE)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.kill()

    def shown(self):
        """What status says of the tier."""
        tiers = self.podqos.ctl_json("status")["trees"][0]["tiers"]
        return next(tier for tier in tiers if tier["cgroup"] == self.tier)

    def assert_unharmed(self, *pids):
        self.assertEqual(self.kills(), 0)
        for pid in pids:
            self.assertTrue(machines.alive(pid))

    def test_without_podqos_it_is_refused_or_kills(self):
        """A limit that is written at once, as a kubelet does: cgroup v1 refuses it, v2 kills for it."""
        _, pid = self.hog(250)
        directory = pathlib.Path(self.machine.hierarchy("memory").mount + self.tier)
        if self.machine.version("memory") == 1:
            with self.assertRaises(OSError) as refused:
                (directory / "memory.limit_in_bytes").write_text(str(RULE), encoding="ascii")
            self.assertEqual(refused.exception.errno, errno.EBUSY)
            self.assertIsNone(self.limit())
            self.assert_unharmed(pid)
            return
        (directory / "memory.max").write_text(str(RULE), encoding="ascii")
        patience.expect(lambda: self.kills() > 0, "the hog is killed")

    def test_follows_a_hog_that_shrinks(self):
        first, first_pid = self.hog(100, 1)
        second, second_pid = self.hog(150, 2)
        self.assertIsNone(self.limit())
        printed = self.reserve()
        held = self.limit()
        self.assertGreaterEqual(held, 250 * MI + MARGIN)
        self.assertIn("above the rule because its usage is", printed)
        shown = self.shown()
        self.assertEqual((shown["rule"]["memoryLimitBytes"], shown["memoryLimitBytes"], shown["converging"]),
                         (RULE, held, True))
        self.assertRegex(self.podqos.ctl("status").stdout, r"BestEffort .*\(rule 128Mi\) \(converging\)\n")
        # Neither event nor reconciliation: the limit stays where it is.
        self.shrink(first)
        patience.expect(lambda: self.usage() < 200 * MI, "the first hog has shrunk")
        time.sleep(2)
        self.assertEqual(self.limit(), held)
        with self.reconciling() as process:
            patience.expect(lambda: self.limit() < 200 * MI, "the limit follows the first hog")
            self.assertGreaterEqual(self.limit(), 150 * MI)
            self.assertIsNone(process.poll())
            self.shrink(second)
            patience.expect(lambda: self.limit() == RULE, "the limit follows the second hog")
            self.assertEqual(process.wait(), 0)
        self.assertFalse(self.shown()["converging"])
        self.assert_unharmed(first_pid, second_pid)
        self.assertIn("memory limit has come down to 128Mi", self.podqos.log_text())

    def test_a_full_tier_gives_back_page_cache(self):
        """What has been read is charged to the tier until it is reclaimed."""
        script = "cat /tmp/file >/dev/null; sleep 1000"
        if guest.inside():
            script = "busybox find /tmp -type f -name '*.so*' -exec cat {} + | busybox head -c 250m >/dev/null; sleep 1000"
            source = "/usr/lib"
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
        else:
            source = self.tmp / "files"
            source.mkdir()
            with (source / "file").open("wb") as file:
                os.truncate(file.fileno(), 250 * MI)
        bundle = self.bundle(pod("reader", container("app")), "app", ("sh", "-c", script))
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(source),
                                        "options": ["bind", "ro"]})
        pid = self.wrapper.launch(self.container_id("app"), bundle.save())
        patience.expect(lambda: self.usage() > 240 * MI, "the files have been read")
        self.reserve()
        with self.reconciling():
            patience.expect(lambda: self.limit() == RULE, "the limit is the rule's")
        self.assertLessEqual(self.usage(), RULE)
        self.assertGreater(self.usage(), 64 * MI)
        self.assert_unharmed(pid)

    @contextlib.contextmanager
    def plugin(self):
        """podqos-nri, connected to a runtime without pods of its own: the address of its metrics."""
        runtime = nri_peer.Runtime(self.tmp / "nri.sock")
        address = f"unix:{self.tmp}/metrics.sock"
        command = [harness.BIN / "podqos-nri", "--config", self.podqos.config(self.kind), "--socket",
                   self.tmp / "nri.sock", "--metrics", address]
        self.addCleanup(runtime.stop)
        with subprocess.Popen(command) as process:
            try:
                runtime.accept().welcome()
                yield address
            finally:
                process.kill()

    def test_the_plugin_does_it_beside_a_reconciliation(self):
        """Its housekeeping finds the tier; the timer's run may do the same."""
        hog, pid = self.hog(250)
        self.reserve()
        self.assertGreaterEqual(self.limit(), 250 * MI + MARGIN)
        with self.plugin() as address, self.reconciling():
            gap = f'podqos_tier_memory_limit_gap_bytes{{tier="besteffort",cgroup="{self.tier}"}}'
            patience.expect(lambda: metrics.samples(address).get(gap, 0) >= 138 * MI, "the gap is shown")
            steps = 'podqos_memory_limit_steps_total{step="pause"}'
            patience.expect(lambda: metrics.samples(address)[steps] > 0, "the plugin has found nothing to reclaim")
            self.assertGreaterEqual(self.limit(), 250 * MI)
            self.shrink(hog)
            patience.expect(lambda: self.limit() == RULE, "the limit follows the hog")
            patience.expect(lambda: metrics.samples(address)[gap] == 0, "the gap is closed")
        self.assert_unharmed(pid)

    def test_the_plugin_does_it_alone(self):
        hog, pid = self.hog(250)
        self.reserve()
        with self.plugin() as address:
            # Its first comparison of the whole node lowers what it can as well, and does not count that.
            compared, pauses = "podqos_last_reconcile_timestamp_seconds", 'podqos_memory_limit_steps_total{step="pause"}'
            patience.expect(lambda: metrics.samples(address).get(compared), "the plugin has compared the node")
            patience.expect(lambda: metrics.samples(address)[pauses] > 0, "the plugin has found nothing to reclaim")
            self.shrink(hog)
            patience.expect(lambda: self.limit() == RULE, "the limit follows the hog")
            steps = 'podqos_memory_limit_steps_total{step="lower"}'
            patience.expect(lambda: metrics.samples(address)[steps] > 0, "the step is counted")
        self.assert_unharmed(pid)

    @unittest.skipUnless(shutil.which("strace") and not guest.inside(), "needs strace")
    def test_events_wait_for_single_steps(self):
        """A start waits at most for the transaction of one step; what is slow is done without the lock."""
        hogs = [self.hog(40, number) for number in range(5)]
        self.reserve()
        self.assertGreater(self.limit(), RULE)
        tracing = ["strace", "-f", "-e", "trace=flock", "-o"]
        with self.reconciling(*tracing, self.tmp / "steps") as process:
            waits = 0
            for number, (identifier, _) in enumerate(hogs):
                self.shrink(identifier)
                trace = self.tmp / f"start-{number}"
                bundle = self.bundle(pod(f"event-{number}", container("app")), "app")
                hook = [*tracing, str(trace), str(harness.HOOK), *self.podqos.hook_command(self.kind)[1:]]
                bundle.add_hook("createRuntime", shutil.which("strace"), [*hook, "createRuntime"])
                self.wrapper.launch(self.container_id("app"), bundle.save())
                calls = trace.read_text(encoding="utf-8")
                self.assertRegex(calls, "LOCK_EX")
                waits += calls.count("LOCK_NB) = -1 EAGAIN")
                # No wait outlasts lockDeadline.
                self.assertNotIn("EINTR", calls)
            patience.expect(lambda: self.limit() == RULE, "the limit has come down")
            process.wait()
        steps = (self.tmp / "steps").read_text(encoding="utf-8").count("flock(")
        self.assertGreater(steps, 1)
        self.assertLessEqual(waits, steps)


class ConvergenceOnSystemd(SystemdDriver, Convergence):
    """Limits of slices, under crun."""

    kind = "crun"


if __name__ == "__main__":
    ON_SYSTEMD = pathlib.Path("/run/systemd/system").is_dir()
    harness.main(("runc",), here=[guest.cases({"v2": (guest.Guest("v2", mem="640M"), __file__)}), Convergence],
                 in_guest=[ConvergenceOnSystemd if ON_SYSTEMD else Convergence])

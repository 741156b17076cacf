"""Eviction local to a tier: podqos-nri takes the right pod of a tier under memory pressure, once, and no other.

The pods are started through the wrapper; the plugin, with a runtime that tells it nothing, only watches. Pressure is
the working set on cgroup v1, and on v2 where the kernel has no PSI, as in the guest with user-mode-linux; it is that of
PSI in the emulated guest.
"""

import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import metrics  # noqa: E402
import nri_peer  # noqa: E402
import patience  # noqa: E402
from busy_case import BusyCase  # noqa: E402
from harness import BIN, MI, container, pod  # noqa: E402

NODE = 256  # MiB; what the root's limit is
AT_ONCE = {"memoryPressure": "20%/1s"}


def take(mebibytes):
    """A shell command that takes memory and keeps it: dd has read all of it and can write none."""
    return f"dd if=/dev/zero bs={mebibytes}M count=1 2>/dev/null | sleep 1000"


class EvictionCase(BusyCase):
    """Pods with memory, and podqos-nri."""

    kind = "runc"
    settings = {"nodeMemory": f"{NODE}Mi", "qosReserved": None}

    def setUp(self):
        super().setUp()
        self.plugin = None

    def take(self, uid, mebibytes, tier="besteffort", requests=None, **spec):
        """A pod whose container "app" has so much memory: the pid of its init."""
        _, pid = self.start(pod(uid, container("app", requests), **spec), "app", take(mebibytes))
        path = self.pod_path(tier, uid)
        patience.expect(lambda: self.machine.read(path, "usage") > mebibytes * MI, f"{uid} has its memory")
        return pid

    def watch(self, *tracer, **eviction):
        """Lets podqos-nri go by this setting: starts it, with a tracer's command line before its own, or has it read
        the setting again.
        """
        self.podqos.settings["eviction"] = eviction or None
        self.podqos.settings["nri"] = {"metrics": f"unix:{self.tmp}/metrics.sock"}
        config = self.podqos.config(self.kind)
        if self.plugin is not None:
            self.plugin.send_signal(signal.SIGHUP)
            self.wait_for_log("configuration reloaded")
            return
        runtime = nri_peer.Runtime(self.tmp / "nri.sock")
        self.addCleanup(runtime.stop)
        self.plugin = subprocess.Popen([*tracer, BIN / "podqos-nri", "--config", config,
                                        "--socket", self.tmp / "nri.sock"], env={}, stdin=subprocess.DEVNULL)
        self.addCleanup(self.plugin.wait)
        self.addCleanup(self.plugin.kill)
        runtime.accept().welcome()

    def wait_for_log(self, text):
        patience.expect(lambda: text in self.podqos.log_text(), f"the log says {text!r}")

    def evictions(self):
        """{tier: evictions}, of the metrics."""
        samples = metrics.samples(f"unix:{self.tmp}/metrics.sock")
        return {tier: samples[f'podqos_evictions_total{{tier="{tier}"}}'] for tier in ("burstable", "besteffort")}

    def lines(self):
        """What the log says of evictions."""
        return [line for line in self.podqos.log_text().splitlines() if "evicted pod" in line]

    def assert_ends(self, pid):
        patience.expect(lambda: not machines.alive(pid), f"process {pid} has ended")

    def assert_evicts_nothing(self, *pids, seconds=4):
        """For several times as long as the threshold asks for."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual([pid for pid in pids if not machines.alive(pid)], [])
            time.sleep(0.2)
        self.assertEqual(self.lines(), [])


class Victim(EvictionCase):
    """Who is evicted."""

    def test_the_one_furthest_above_its_request(self):
        small, large = self.take("small", 20), self.take("large", 60)
        other = self.take("other", 100, "burstable", {"memory": "10Mi"})
        foreign = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(foreign.wait)
        self.addCleanup(foreign.kill)
        self.machine.enter(foreign.pid, f"{self.pod_path('besteffort', 'large')}/foreign")
        self.watch()
        self.assert_evicts_nothing(small, large, other)
        self.watch(besteffort=AT_ONCE, interval="1h")
        self.assert_ends(large)
        self.wait_for_log("evicted pod large")
        self.assertEqual([machines.alive(pid) for pid in (small, other, foreign.pid)], [True] * 3)
        line, = self.lines()
        self.assertRegex(line, r"evicted pod large from \S+/besteffort: its working set was \d\d % of 256Mi, and at "
                               r"least 20 % for 1 s; the pod used \d+\w*, requests 0 and has priority 0")
        self.assertEqual(self.evictions(), {"burstable": 0, "besteffort": 1})
        self.assertEqual([event["uid"] for event in self.podqos.events() if event["event"] == "evicted"], ["large"])
        self.machine.killed(f"{self.pod_path('besteffort', 'large')}/foreign")
        foreign.wait()
        self.machine.remove(f"{self.pod_path('besteffort', 'large')}/foreign")

    def test_the_lower_priority_first(self):
        high = self.take("high", 60, priority=10)
        low = self.take("low", 20)
        critical = self.take("critical", 80, priority=2_000_000_000)
        self.watch(besteffort=AT_ONCE, interval="15s")
        self.assert_ends(low)
        self.assert_ends(high)
        self.wait_for_log("no pod is evicted, as each is critical or within its request")
        self.assertTrue(machines.alive(critical))
        self.assertEqual([line.split("evicted pod ")[1].split()[0] for line in self.lines()], ["low", "high"])

    def test_never_one_within_its_request(self):
        within = self.take("within", 100, "burstable", {"memory": "120Mi"})
        above = self.take("above", 15, "burstable", {"memory": "5Mi"})
        self.watch(burstable=AT_ONCE, interval="15s")
        self.assert_ends(above)
        self.wait_for_log("no pod is evicted")
        self.assertTrue(machines.alive(within))
        self.assertEqual(len(self.lines()), 1)
        self.assertEqual(self.evictions(), {"burstable": 1, "besteffort": 0})


class Bounds(EvictionCase):
    """When nothing is evicted."""

    def test_at_most_one_in_an_interval(self):
        first, second, third = self.take("first", 70), self.take("second", 60), self.take("third", 50)
        self.watch(besteffort={"memoryPressure": "10%/1s"}, interval="1h")
        self.assert_ends(first)
        time.sleep(4)
        self.assertEqual([machines.alive(second), machines.alive(third)], [True, True])
        self.assertEqual(len(self.lines()), 1)

    def test_another_tiers_pressure(self):
        mild = self.take("mild", 20)
        wild = self.take("wild", 150, "burstable", {"memory": "1Mi"})
        self.watch(besteffort=AT_ONCE, interval="15s")
        self.assert_evicts_nothing(mild, wild)

    def test_below_the_threshold(self):
        pids = self.take("one", 20), self.take("two", 20)
        self.watch(besteffort={"memoryPressure": "60%/1s"}, burstable=AT_ONCE, interval="15s")
        self.assert_evicts_nothing(*pids)


@unittest.skipIf(machines.Machine().version("memory") == 2, "cgroup.kill kills all at once, and freezes nothing")
class Interrupted(EvictionCase):
    """The plugin is killed while it evicts: what it has frozen must not stay so."""

    def test_what_is_frozen_ends(self):
        large, other = self.take("large", 60), self.take("other", 20)
        self.watch("/usr/bin/strace", "-f", "-o", self.tmp / "calls", "-e", "trace=kill", "-e",
                   "inject=kill:signal=KILL:when=1", besteffort=AT_ONCE, interval="1h")
        patience.expect(lambda: "killed by SIGKILL" in (self.tmp / "calls").read_text(encoding="ascii"),
                        "podqos-nri has been killed")
        cgroup = machines.cgroup_of(large)
        self.assertEqual(self.machine.file(cgroup, "freezer", "freezer.state"), "FROZEN")
        self.assertTrue(machines.alive(large))
        self.podqos.ctl("reconcile")
        self.plugin.wait()
        self.plugin = None
        # The interval began with the interrupted eviction.
        self.watch(besteffort={"memoryPressure": "1%/1s"}, interval="1h")
        self.assert_ends(large)
        time.sleep(4)
        self.assertTrue(machines.alive(other))


class Stalled(EvictionCase):
    """Pressure by PSI: memory alone, however much it is, is none."""

    settings = {"nodeMemory": "1Gi", "qosReserved": None}

    def stall(self, uid, tier, requests=None):
        """A pod that takes and returns memory for ever."""
        script = "while :; do dd if=/dev/zero of=/dev/null bs=40M count=1 2>/dev/null; done"
        _, pid = self.start(pod(uid, container("app", requests)), "app", script)
        file = pathlib.Path(self.machine.hierarchy("memory").mount + self.tier_path(tier), "memory.high")
        file.write_text(str(24 * MI), encoding="ascii")
        return pid

    def test_ends_with_the_pod_that_causes_it(self):
        calm = self.take("calm", 10)
        other = self.take("other", 60, "burstable", {"memory": "1Mi"})
        wild = self.stall("wild", "besteffort")
        self.watch(besteffort={"memoryPressure": "30%/2s"}, burstable={"memoryPressure": "30%/2s"}, interval="15s")
        self.assert_ends(wild)
        self.assertEqual([machines.alive(calm), machines.alive(other)], [True, True])
        line, = self.lines()
        self.assertRegex(line, r"evicted pod wild from \S+/besteffort: all its tasks waited for memory \d+ % of the ")

        def relaxed():
            text = self.machine.file(self.tier_path("besteffort"), "memory", "memory.pressure")
            return float(text.splitlines()[1].split()[1].removeprefix("avg10=")) < 30

        patience.expect(relaxed, "the pressure is gone")
        self.assertEqual(self.evictions(), {"burstable": 0, "besteffort": 1})


if __name__ == "__main__":
    PSI = pathlib.Path("/proc/pressure/memory").exists()
    harness.main(("runc",), in_guest=[Stalled] if PSI else [Victim, Bounds, Interrupted],
                 here=[Victim, Bounds, Interrupted])

"""Quick: what the classes get of one CPU, by their weights, when they are idle, and in a short spike.

On this machine's cgroups, and with v2 in a guest; cpu_class_test.py has more of it. Expected values follow from the
requests and the kernel's rules, as there. All that counts is what the kernel says that cgroups of this test ran, or how
often it has throttled them, on one CPU, so that whatever else this machine does only makes it take longer.
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
from busy_case import ClassCase, guaranteed, near  # noqa: E402
from harness import container, pod  # noqa: E402

IDLE = 0.03  # the most that an idle tier has beside a busy Guaranteed pod
QUOTA, SPIKE = 30_000, 45_000  # microseconds of a period of 100 ms, and of CPU time at once
ENOUGH = 3  # spikes
SPIKES = f"""
import os, sys, time
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
print("ready", flush=True)
for line in sys.stdin:
    used = time.process_time()
    while time.process_time() - used < {SPIKE / 1e6}:
        pass
    print(time.process_time() - used, flush=True)
"""


class Contention(ClassCase):
    """Each first without podqos or the setting."""

    settings = {"nodeCpu": "4", "weightFormula": "log", "cpuCFSQuota": False}
    REQUESTS = {"g": 80, "b": 40, "e": 0}  # milli-CPUs, little beside which a BestEffort pod's time can be measured

    def pin(self, *paths):
        """Lets all that runs below these cgroups run on one CPU."""
        for path in paths:
            for pid in self.machine.processes(path):
                os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})

    def test_tiers_and_an_idle_one(self):
        """Beside a busy cgroup of the system."""
        system, default = f"{self.root}-system", 1024 if self.version == 1 else 100
        values = {name: self.value(request) for name, request in self.REQUESTS.items()}
        own = self.value(4000) / (self.value(4000) + default)
        paths = dict(zip("gbe", (self.pod_path("guaranteed", "g"), *map(self.tier_path, ("burstable", "besteffort")))))
        wanted = {paths[name]: own * value / sum(values.values()) for name, value in values.items()}
        wanted[system] = 1 - own

        plain = {name: self.start_plain(name) for name in self.REQUESTS}
        self.pin(*plain.values())
        parts = self.parts(plain.values(), plain.values())
        self.assertFalse(all(near(parts[path], wanted[paths[name]]) for name, path in plain.items()))
        self.assertGreater(parts[plain["e"]], IDLE)
        self.plain.delete_all()

        self.burn_in(system)
        self.start(guaranteed("g", "80m"))
        self.start(pod("b", container("app", requests={"cpu": "40m"})))
        self.start(pod("e", container("app")))
        self.pin(system, self.root)
        parts = self.parts(wanted, (system, self.root),
                           lambda parts: all(near(part, wanted[path]) for path, part in parts.items()))
        for path, part in parts.items():
            self.assert_near(part, wanted[path])

        beside = (paths["e"], paths["g"])
        if self.version == 2:
            self.assertGreater(parts[paths["e"]] / (parts[paths["e"]] + parts[paths["g"]]), IDLE)
        self.reconfigure(cpuIdle={"bestEffort": True})
        self.assertLess(self.parts(beside, beside, lambda parts: parts[paths["e"]] < IDLE)[paths["e"]], IDLE)

    def throttled(self, paths):
        """How often the kernel has throttled these cgroups."""
        return sum(int(dict(line.split() for line in self.file(path, "cpu.stat").splitlines())["nr_throttled"])
                   for path in paths)

    def spikes(self, name):
        """How many of the spikes of a new pod, each after enough time for a whole quota and burst, are throttled."""
        _, pid = self.start(guaranteed(name, f"{QUOTA // 100}m"), script="sleep 1000")
        cgroups = (machines.cgroup_of(pid), self.pod_path("guaranteed", name))
        counted = []
        with subprocess.Popen([sys.executable, "-c", SPIKES], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.machine.enter(process.pid, cgroups[0])
            for _ in patience.turns(length=0.35):
                before = self.throttled(cgroups)
                print("go", file=process.stdin, flush=True)
                # A guest takes for its own what its machine takes away: such a spike is too long for any burst.
                if float(process.stdout.readline()) < 1.2 * SPIKE / 1e6:
                    counted.append(self.throttled(cgroups) > before)
                if len(counted) >= ENOUGH and (any(counted) or self.podqos.settings.get("cpuBurst")):
                    break
            process.stdin.close()
        print(f"{sum(counted)} of {len(counted)} spikes throttled", end="; ", flush=True)
        self.assertGreaterEqual(len(counted), ENOUGH)
        return sum(counted)

    def test_a_spike_is_not_throttled(self):
        # Whatever else this machine does: a spike beside which others run is none.
        self.configure(cpuCFSQuota=True, nodeCpu="256")
        self.assertGreater(self.spikes("off"), 0)
        self.configure(cpuBurst={"guaranteed": "100%"})
        self.assertEqual(self.spikes("on"), 0)


if __name__ == "__main__":
    here = [Contention]
    if machines.Machine().version("cpu") == 1:
        here.append(guest.cases({"v2": (guest.Guest("v2", mem="640M"), __file__)}))
    harness.main(("crun",), in_guest=[Contention], here=here)

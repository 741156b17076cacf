"""What the classes get of the CPU where all want it: tiers, cpuIdle and cpuBurst, each beside a node without them.

Expected values are computed here, from requests and the kernel's rules: a cgroup gets its weight's part of what its
siblings share; an idle one on cgroup v2 has a weight of 3 beside 1024 for the weight 100 (WEIGHT_IDLEPRIO,
kernel/sched/sched.h); a quota is refilled each 100 ms, and a burst is what a period may use beyond it. CPU time is that
of cpuacct.usage or cpu.stat over one run, in guests with one CPU: here this file only boots them.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
from busy_case import BURN, ClassCase, guaranteed, near  # noqa: E402
from harness import container, pod  # noqa: E402

QUOTA, PERIOD = 30_000, 100_000


class Tiers(ClassCase):
    """Three tiers and a busy system: without podqos containers are equal, with it each has what its pod requests."""

    REQUESTS = {"g": 200, "b": 100, "e": 0}

    def test_each_gets_its_weight(self):
        system, default = f"{self.root}-system", 1024 if self.version == 1 else 100
        self.burn_in(system)
        root, values = self.value(1000), {name: self.value(request) for name, request in self.REQUESTS.items()}
        part = root / (root + default)
        paths = {"g": self.pod_path("guaranteed", "g"), "b": self.tier_path("burstable"),
                 "e": self.tier_path("besteffort")}
        wanted = {paths[name]: part * value / sum(values.values()) for name, value in values.items()}

        plain = {name: self.start_plain(name) for name in self.REQUESTS}
        shares = self.cpu_shares(plain.values())
        print({name: f"{shares[path]:.1%}" for name, path in plain.items()}, "without podqos; ", end="")
        self.assertFalse(all(near(shares[plain[name]], wanted[paths[name]]) for name in plain))
        self.plain.delete_all()

        self.start(guaranteed("g", "200m"))
        self.start(pod("b", container("app", requests={"cpu": "100m"})))
        self.start(pod("e", container("app")))
        self.assert_shares({**wanted, system: 1 - part})


class Idle(ClassCase):
    """An idle BestEffort tier gets less than 3 % beside a busy Guaranteed pod."""

    MOST = 0.03

    def assert_idle(self, path, other, is_idle=True):
        """By the part that a cgroup has of what it and another one get."""
        part = self.parts([path], [path, other], lambda parts: (parts[path] < self.MOST) == is_idle)[path]
        (self.assertLess if is_idle else self.assertGreater)(part, self.MOST)

    def test_besteffort_beside_guaranteed(self):
        plain = {name: self.start_plain(name) for name in ("g", "e")}
        self.assert_idle(plain["e"], plain["g"], is_idle=False)
        self.plain.delete_all()

        self.start(guaranteed("g", "100m"))
        self.start(pod("e", container("app")))
        tier, beside = self.tier_path("besteffort"), self.pod_path("guaranteed", "g")
        if self.version == 1:  # 2 shares beside 102, which idle is not below
            self.reconfigure(cpuIdle={"bestEffort": True})
            self.assertEqual((self.file(tier, "cpu.shares"), self.file(tier, "cpu.idle")), ("2", "0"))
            self.assert_idle(tier, beside)
            return
        self.assertEqual((self.file(tier, "cpu.idle"), self.file(tier, "cpu.weight")), ("0", "1"))
        self.assert_idle(tier, beside, is_idle=False)  # a weight of 1 beside 17
        self.reconfigure(cpuIdle={"bestEffort": True})
        self.assertEqual(self.file(tier, "cpu.idle"), "1")
        self.assert_idle(tier, beside)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])
        self.assertIn(f"cpu.idle of {tier}: 1\n", self.podqos.ctl("status").stdout)
        self.reconfigure()
        self.assertNotIn("refused write", self.podqos.log_text())
        self.reconfigure(cpuIdle={"bestEffort": False})
        self.assertEqual((self.file(tier, "cpu.idle"), self.file(tier, "cpu.weight")), ("0", "1"))

    def test_a_new_tier_is_idle_from_the_start(self):
        self.configure(cpuIdle={"bestEffort": True})
        self.start(pod("e", container("app")), script="sleep 1000")
        if self.version == 2:
            self.assertEqual(self.file(self.tier_path("besteffort"), "cpu.idle"), "1")
            self.assertEqual(self.file(self.pod_path("besteffort", "e"), "cpu.idle"), "0")

    def test_a_pod_asks_to_be_idle(self):
        """Beside one of its own class that requests as much."""
        one, other = (self.pod_path("burstable", name) for name in ("one", "other"))
        for name in ("one", "other"):
            bundle = self.bundle(pod(name, container("app", requests={"cpu": "500m"})), "app", ("sh", "-c", BURN))
            if name == "one":
                bundle.annotations["podqos.io/cpu-idle"] = "true"
            self.wrapper.launch(self.container_id(name), bundle.save())
        value = (self.file(one, "cpu.shares") if self.version == 1 else self.file(one, "cpu.idle"))
        self.assertEqual(value, "2" if self.version == 1 else "1")
        self.assert_idle(one, other)


class Burst(ClassCase):
    """How far a class may burst; what it does for a spike is counted in cpu_contention_test.py."""

    settings = {"nodeCpu": "1", "weightFormula": "log"}

    def limited(self, name, **annotations):
        """A container with the quota: (its cgroup, its pod's)."""
        bundle = self.bundle(guaranteed(name, f"{QUOTA * 1000 // PERIOD}m"), "app", ("sleep", "1000"))
        bundle.annotations.update(annotations)
        pid = self.wrapper.launch(self.container_id(name), bundle.save())
        return machines.cgroup_of(pid), self.pod_path("guaranteed", name)

    def burst(self, path):
        return int(self.file(path, "cpu.cfs_burst_us" if self.version == 1 else "cpu.max.burst"))

    def test_what_is_granted_is_only_lowered(self):
        self.configure(cpuBurst={"guaranteed": "50%"})
        half, less, none = (self.limited(name, **annotations) for name, annotations in (
            ("half", {"podqos.io/cpu-burst": "80%"}), ("less", {"podqos.io/cpu-burst": "10%"}),
            ("none", {"podqos.io/cpu-burst": "0"})))
        self.assertEqual([self.burst(path) for path in (*half, *less, *none)], [15_000, 15_000, 3000, 3000, 0, 0])
        tree = self.podqos.ctl("tree").stdout
        self.assertIn("300m+150m", tree)
        self.reconfigure(cpuBurst={"guaranteed": "20%"})
        self.assertEqual([self.burst(path) for path in (*half, *less, *none)], [6000, 6000, 3000, 3000, 0, 0])
        self.reconfigure(cpuBurst=None)
        self.assertEqual([self.burst(path) for path in (*half, *less)], [0, 0, 0, 0])
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])


class SlicesCase(ClassCase):
    """With the systemd driver, whose units keep what they are told over a daemon-reload."""

    def setUp(self):
        super().setUp()
        for runtime in (self.plain, self.wrapper):
            runtime.prefix.append("--cgroup-manager=systemd")

    def tier_path(self, tier):
        kubepods = machines.slice_of(f"{self.root}/kubepods")
        return kubepods if tier == "guaranteed" else machines.child_cgroup(kubepods, tier)

    def pod_path(self, tier, uid):
        return machines.child_cgroup(self.tier_path(tier), f"pod{uid}")

    def reload(self):
        subprocess.run(["systemctl", "daemon-reload"], check=True)

    def weight_of(self, path):
        """CPUWeight as systemd has it."""
        shown = subprocess.run(["systemctl", "show", "-P", "CPUWeight", pathlib.Path(path).name], check=True, text=True,
                               capture_output=True)
        return shown.stdout.strip()


class IdleSlice(SlicesCase):
    """The slice of the BestEffort tier."""

    def test_systemd_keeps_it_idle(self):
        self.start(pod("e", container("app")), script="sleep 1000")
        tier = self.tier_path("besteffort")
        self.assertEqual((self.file(tier, "cpu.idle"), self.weight_of(tier)), ("0", "1"))
        self.reconfigure(cpuIdle={"bestEffort": True})
        self.reload()
        self.assertEqual((self.file(tier, "cpu.idle"), self.weight_of(tier)), ("1", "idle"))
        self.reconfigure(cpuIdle={"bestEffort": False})
        self.reload()
        self.assertEqual((self.file(tier, "cpu.idle"), self.file(tier, "cpu.weight"), self.weight_of(tier)),
                         ("0", "1", "1"))


class BurstSlice(SlicesCase):
    """The slice of a pod, its container's scope, and crun's own cgroup below, whichever of them have a quota."""

    settings = {"nodeCpu": "1", "weightFormula": "log", "cpuBurst": {"guaranteed": "50%"}}

    def test_all_that_limits_bursts(self):
        _, pid = self.start(guaranteed("g", f"{QUOTA * 1000 // PERIOD}m"), script="sleep 1000")
        self.reload()
        path, quotas = machines.cgroup_of(pid), 0
        while path != self.tier_path("guaranteed"):
            limited = self.file(path, "cpu.max") == f"{QUOTA} {PERIOD}"
            self.assertEqual(self.file(path, "cpu.max.burst"), "15000" if limited else "0", path)
            quotas, path = quotas + limited, str(pathlib.Path(path).parent)
        self.assertGreaterEqual(quotas, 2)


if __name__ == "__main__":
    other = "v2" if machines.Machine().version("cpu") == 1 else "v1"  # this machine's own is cpu_contention_test's
    flavours = {other: guest.Guest(other, mem="640M"), "systemd": guest.Guest("systemd")}
    on_systemd = pathlib.Path("/run/systemd/system").is_dir()
    harness.main(("crun",), in_guest=[IdleSlice, BurstSlice] if on_systemd else [Tiers, Idle, Burst],
                 here=[guest.cases({name: (each, __file__) for name, each in flavours.items()})])

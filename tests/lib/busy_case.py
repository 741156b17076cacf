"""Who gets what of a CPU that everybody wants, on either version of cgroups: a TestCase for a guest with one CPU."""

import subprocess
import time

import harness
import machine as machines
import oracle
import patience

SETTLED, STEP = 0.5, 1.5  # seconds until a fight is under way, and until its shares are looked at
BURN = "while :; do :; done"


def near(share, wanted):
    return 0.9 * wanted < share < 1.1 * wanted


def guaranteed(name, cpu):
    whole = {"cpu": cpu, "memory": "16Mi"}
    return harness.pod(name, harness.container("app", requests=whole, limits=whole))


class BusyCase(harness.TestCase):
    """Pods started by crun through the wrapper."""

    kind = "crun"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_all)

    def end_all(self):
        """Before the clean-up deletes the containers: a process with much memory takes its time to end, and one that
        outlives its container keeps the pod until the next event."""
        patience.expect(lambda: self.machine.killed(self.root), "all processes have ended")

    def start(self, manifest, name="app", script=BURN):
        """A container of the pod that runs a shell script: (id, pid)."""
        return self.launch(manifest, name, args=("sh", "-c", script))

    def burn_in(self, path):
        """A busy process in a cgroup of its own, which goes with the test."""
        process = subprocess.Popen(["/bin/sh", "-c", BURN])  # pylint: disable=consider-using-with
        self.addCleanup(self.machine.remove, path)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.machine.enter(process.pid, path)

    def cpu_time(self, path):
        """Seconds that the processes of this cgroup and those below it have run."""
        if self.machine.version("cpuacct") == 1:
            return int(self.machine.file(path, "cpuacct", "cpuacct.usage")) / 1e9
        return int(self.machine.file(path, "cpu", "cpu.stat").split()[1]) / 1e6  # usage_usec comes first

    def cpu_shares(self, paths, is_enough=lambda shares: True):
        """{path: share of the time that it ran}, of the next seconds or, where this machine is busy, of as many as are
        enough."""
        time.sleep(SETTLED)
        turns = patience.turns(length=STEP)
        next(turns)
        began, before = time.monotonic(), {path: self.cpu_time(path) for path in paths}
        for _ in turns:
            took, after = time.monotonic() - began, {path: self.cpu_time(path) for path in paths}
            shares = {path: (after[path] - before[path]) / took for path in paths}
            if is_enough(shares):
                break
        return shares

    def assert_near(self, share, wanted, tolerance=0.10):
        self.assertGreater(share, wanted * (1 - tolerance))
        self.assertLess(share, wanted * (1 + tolerance))

    def assert_shares(self, wanted):
        """{path: share of the time}, each within a tenth."""
        shares = self.cpu_shares(wanted, lambda shares: all(near(share, wanted[path]) for path, share in shares.items()))
        print(", ".join(f"{path.removeprefix(self.root) or 'pods'} {share:.1%} of {wanted[path]:.1%}"
                        for path, share in shares.items()), end="; ", flush=True)
        for path, share in shares.items():
            with self.subTest(path):
                self.assert_near(share, wanted[path])


class ClassCase(BusyCase):
    """Without quotas, so that a Guaranteed pod takes what its shares give it."""

    settings = {"nodeCpu": "1", "weightFormula": "log", "cpuCFSQuota": False}

    def setUp(self):
        super().setUp()
        self.version = self.machine.version("cpu")

    def value(self, milli_cpu):
        shares = oracle.shares_for(milli_cpu)
        return shares if self.version == 1 else machines.logarithmic_weight(shares)

    def configure(self, **settings):
        """Other settings, for what comes next."""
        self.podqos.settings.update(settings)
        self.podqos.config(self.kind)

    def reconfigure(self, **settings):
        """Other settings, also for what runs."""
        self.configure(**settings)
        self.podqos.ctl("reconcile")

    def parts(self, paths, all_of_it, is_enough=lambda parts: True):
        """{path: part of what the cgroups `all_of_it` ran}; see cpu_shares()."""
        def parts_of(shares):
            whole = sum(shares[path] for path in all_of_it)
            return {path: shares[path] / whole for path in paths}

        parts = parts_of(self.cpu_shares({*paths, *all_of_it}, lambda shares: is_enough(parts_of(shares))))
        print(", ".join(f"{path.rpartition('/')[2]} {part:.2%}" for path, part in parts.items()), end="; ", flush=True)
        return parts

    def file(self, path, name):
        return self.machine.file(path, "cpu", name).strip()

    def start_plain(self, name):
        """A busy container where an engine without podqos puts it; returns its cgroup."""
        bundle = self.bundle(name=name, args=("sh", "-c", BURN))
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{name}"
        self.plain.launch(self.container_id(name), bundle.save())
        return f"{self.elsewhere}/{name}"
